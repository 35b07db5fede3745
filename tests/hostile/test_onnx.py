"""ONNX files that would freeze, fill or crash a process: each is refused by a sentence."""

import re
import resource
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import onnx.inliner
import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from placement.formats.onnx.checks import calls
from placement.formats.onnx.checks.external import check_external
from placement.loaders import load
from profiling.measuring.load import PATIENCE
from tests.command import refused as refused_by_command
from tests.loaders.models import BOOL, FLOAT, INT64, model_of, value
from tests.thorough import either

HERE = Path(__file__).parent
OPSETS = [helper.make_opsetid("", 18), helper.make_opsetid("mine", 1)]
N = helper.make_node


@pytest.fixture
def save(tmp_path):
    def write(model, name="model.onnx"):
        path = tmp_path / name
        path.write_bytes(model if isinstance(model, bytes) else model.SerializeToString())
        return str(path)

    return write


def refused(path, *parts):
    with pytest.raises(ValueError) as error:
        load(path)
    message = str(error.value)
    assert "\n" not in message and message.endswith(".") and len(message) < 600, message
    for part in parts:
        assert part in message, message


def command(tmp_path, *arguments):
    """Exit status and standard error of the command line, in 2 GB and at most 60 s."""

    def limit():
        resource.setrlimit(resource.RLIMIT_DATA, (2 * 2**30, 2 * 2**30))

    done = subprocess.run(
        [sys.executable, "-m", "placement", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=limit,
        env={
            "PATH": "/usr/bin:/bin",
            "PLACEMENT_STUDIO_HOME": str(tmp_path / "home"),
            PATIENCE: "0",
        },
        cwd=HERE.parents[1],
    )
    return done.returncode, done.stderr


def ints(name, *numbers):
    return numpy_helper.from_array(np.array(numbers, np.int64), name)


def scalar(name, number, kind=np.int64):
    return numpy_helper.from_array(np.array(number, kind), name)


@pytest.mark.parametrize(("file", "part"), [
    ("onnx_laughs.onnx", "nodes once its functions are inlined"),
    ("onnx_body.onnx", "data type number 2147483647"),
])  # fmt: skip
def test_files_of_this_folder(file, part):
    """What a process of its own says, and its memory, is in test_every_file.py."""
    refused(str(HERE / file), part)


def test_the_file_of_this_folder_with_a_loop_without_end():
    with pytest.raises(ValueError, match="runs its body 4611686018427387904 times"):
        compiled(str(HERE / "onnx_loop_memory.onnx"))


# Functions


def calling(bodies, main):
    """A model whose functions F0, F1, ... have these nodes, each from `a` to `b`."""
    functions = [
        helper.make_function("mine", f"F{i}", ["a"], ["b"], nodes, OPSETS)
        for i, nodes in enumerate(bodies)
    ]
    graph = helper.make_graph(main, "g", [value("x", (2,))], [value("y")])
    return helper.make_model(graph, opset_imports=OPSETS, functions=functions, ir_version=8)


def row(kinds, first, last):
    """Nodes of these kinds one behind the other; a number is a call of that function."""
    names = [first, *(f"{first}_{i}" for i in range(len(kinds) - 1)), last]
    return [
        N(f"F{kind}", [x], [y], domain="mine") if isinstance(kind, int) else N(kind, [x], [y])
        for kind, (x, y) in zip(kinds, pairwise(names), strict=True)
    ]


@st.composite
def libraries(draw):
    """Kinds of nodes per function, where each calls later ones only."""
    count = draw(st.integers(1, 5))
    return [
        draw(st.lists(st.sampled_from(["Relu", *range(i + 1, count)]), min_size=1, max_size=4))
        for i in range(count)
    ]


@settings(max_examples=60)
@given(libraries())
def test_the_count_is_what_inlining_makes(library):
    bodies = [row(kinds, "a", "b") for kinds in library]
    model = calling(bodies, row([0, "Relu", 0], "x", "y"))
    made = len(onnx.inliner.inline_local_functions(model).graph.node)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calls, "MAX_NODES", made)
        calls.check_calls(model, "model")
        patch.setattr(calls, "MAX_NODES", made - 1)
        with pytest.raises(ValueError, match=rf"stands for {made} nodes"):
            calls.check_calls(model, "model")


def test_functions_that_call_themselves(save):
    refused(save(calling([row([0], "a", "b")], row([0], "x", "y"))), "call themselves")
    two = [row([1], "a", "b"), row(["Relu", 0], "a", "b")]
    refused(save(calling(two, row([0], "x", "y"))), "call themselves")


def test_functions_that_call_each_other_too_deep(save):
    bodies = [row([i + 1], "a", "b") for i in range(150)] + [row(["Relu"], "a", "b")]
    refused(save(calling(bodies, row([0], "x", "y"))), "more than 100 deep")


def test_a_function_that_is_defined_twice(save):
    model = calling([row(["Relu"], "a", "b")], row([0], "x", "y"))
    model.functions.add().CopyFrom(model.functions[0])
    refused(save(model), "'F0' twice")


def test_functions_that_are_called_from_bodies_count(save):
    """A call hands a body to a function that uses it often, and so on."""
    branch = helper.make_graph(row(["Relu"], "x", "t"), "b", [], [value("t")])
    main = []
    for _ in range(12):
        call = N("Often", ["c"], ["t"], domain="mine", body=branch)
        branch = helper.make_graph([call], "b", [], [value("t")])
        main = [N("Often", ["c"], ["y"], domain="mine", body=branch)]
    nodes = []
    for i in range(8):
        node = N("If", ["c"], [f"v{i}"])
        for side in ("then_branch", "else_branch"):
            node.attribute.add(name=side, ref_attr_name="body", type=onnx.AttributeProto.GRAPH)
        nodes.append(node)
    often = helper.make_function("mine", "Often", ["c"], ["v7"], nodes, OPSETS, ["body"])
    graph = helper.make_graph(main, "g", [value("c", (), BOOL), value("x", (2,))], [value("y")])
    model = helper.make_model(graph, opset_imports=OPSETS, functions=[often], ir_version=8)
    refused(save(model), "once its functions are inlined")


def test_constants_that_calls_would_copy(save):
    stored = numpy_helper.from_array(np.zeros(2**18, np.float32), "w")
    body = [N("Constant", [], ["w"], value=stored), N("Add", ["a", "w"], ["b"])]
    model = calling([body], row([0] * 300, "x", "y"))
    refused(save(model), "would grow by", "bytes")


def test_names_that_calls_would_copy(save):
    long = "x" * 100_000
    body = [N("Add", ["a", "a"], [f"t{i}" if i < 999 else "b"]) for i in range(1000)]
    model = calling([body], [N("F0", [long], ["y"], domain="mine")] * 10)
    refused(save(model), "would grow by", "bytes")


# Claims


def adding(stored, kind=FLOAT):
    return model_of(
        [N("Add", ["x", "w"], ["y"])], [value("x", (1,), kind)], [value("y", None, kind)], [stored]
    )


def tensor(kind, dims, **fields):
    made = TensorProto(name="w", data_type=kind, dims=dims)
    for field, content in fields.items():
        if field == "raw_data":
            made.raw_data = content
        else:
            getattr(made, field).extend(content)
    return made


@pytest.mark.parametrize(("stored", "part"), [
    (tensor(FLOAT, [10**9], float_data=[1.0]), "claims 4000000000 bytes"),
    (tensor(FLOAT, [2], int32_data=[1, 2]), "stored as int32_data"),
    (tensor(FLOAT, [2], float_data=[1, 2], raw_data=b"\0" * 8), "stored in pieces, twice"),
    (tensor(INT64, [2], int32_data=[1, 2]), "stored as int32_data"),
    (tensor(TensorProto.UINT4, [10**9], int32_data=[1]), "claims 500000000 bytes"),
    (tensor(TensorProto.UINT4, [10**9], raw_data=b"1"), "claims 500000000 bytes"),
    (tensor(TensorProto.COMPLEX64, [2], float_data=[1, 2]), "claims 16 bytes"),
    (tensor(TensorProto.STRING, [10**9], string_data=[b"a"]), "claims 1000000000 texts"),
    (tensor(TensorProto.STRING, [1], raw_data=b"a"), "stored as raw_data"),
    (tensor(99, [1], raw_data=b"a"), "data type number 99"),
    (tensor(0, [1], raw_data=b"a"), "data type number 0"),
    (tensor(FLOAT, [1] * 65, raw_data=b"1234"), "impossible shape"),
    (tensor(FLOAT, [2**62, 2**62, 0], raw_data=b""), "impossible shape"),
])  # fmt: skip
def test_claims_by_every_way_to_store(stored, part, save):
    refused(save(adding(stored)), part)


def sparse(dims, at, indices_shape=None, kind=FLOAT):
    values = tensor(kind, [len(at)], float_data=[1.0] * len(at))
    values.name = "w"
    indices = numpy_helper.from_array(np.array(at, np.int64), "i")
    if indices_shape is not None:
        indices.dims[:] = indices_shape
    return helper.make_sparse_tensor(values, indices, dims)


@pytest.mark.parametrize(("stored", "part"), [
    (sparse([2**20, 2**20], [[0, 0]]), "would have 4398046511104 bytes"),
    (sparse([4], [4]), "outside its shape"),
    (sparse([4], [-1]), "outside its shape"),
    (sparse([4, 4], [[0, 4]]), "outside its shape"),
    (sparse([4, 4], [16]), "outside its shape"),
    (sparse([4], [[1, 1]], [2, 1]), "do not belong together"),
    (sparse([], [0]), "impossible shape"),
    (sparse([-4], [0]), "impossible shape"),
])  # fmt: skip
def test_sparse_tensors(stored, part, save):
    model = adding(ints("unused", 1))
    model.graph.sparse_initializer.append(stored)
    refused(save(model), part)
    node = N("Constant", [], ["w"], sparse_value=stored)
    model = model_of([node, N("Add", ["x", "w"], ["y"])], [value("x", (1,))], [value("y")])
    refused(save(model), part)


# External data


def places(descriptor, seen=()):
    """Every way from a message of the format down to a tensor, as names of fields."""
    for field in descriptor.fields:
        kind = field.message_type
        if kind is None or kind.full_name in seen or field.name == "training_info":
            continue
        if kind.name == "TensorProto":
            yield (field.name,)
            continue
        yield from ((field.name, *rest) for rest in places(kind, (*seen, descriptor.full_name)))


PLACES = sorted(places(onnx.ModelProto.DESCRIPTOR))


def put(message, way, what):
    for i, name in enumerate(way):
        field = message.DESCRIPTOR.fields_by_name[name]
        if i == len(way) - 1:
            target = getattr(message, name)
            (target.add() if field.is_repeated else target).CopyFrom(what)
        else:
            inner = getattr(message, name)
            message = inner.add() if field.is_repeated else inner


@pytest.mark.parametrize("way", PLACES, ids=".".join)
@pytest.mark.parametrize("location", ["../secret", "*/_ORT_MEM_ADDR_/*"])
def test_external_data_wherever_a_tensor_may_stand(way, location, tmp_path):
    assert len(PLACES) > 10
    (tmp_path / "*" / "_ORT_MEM_ADDR_").mkdir(parents=True)
    (tmp_path / "*" / "_ORT_MEM_ADDR_" / "*").write_bytes(b"\0" * 64)
    secret = TensorProto(name="w", data_type=INT64, dims=[1])
    secret.data_location = TensorProto.EXTERNAL
    secret.external_data.add(key="location", value=location)
    model = model_of([N("Relu", ["x"], ["y"])], [value("x", (2,))], [value("y", (2,))])
    put(model, way, secret)
    with pytest.raises(ValueError, match=re.escape(repr(location))):
        check_external(model, tmp_path / "model.onnx")


def test_external_data_in_the_default_of_an_attribute(save, tmp_path):
    secret = TensorProto(name="w", data_type=FLOAT, dims=[2])
    secret.data_location = TensorProto.EXTERNAL
    secret.external_data.add(key="location", value="../../etc/passwd")
    node = N("Constant", [], ["c"])
    node.attribute.add(name="value", ref_attr_name="t", type=onnx.AttributeProto.TENSOR)
    model = calling([[node, N("Add", ["a", "c"], ["b"])]], row([0], "x", "y"))
    model.functions[0].attribute_proto.append(helper.make_attribute("t", secret))
    refused(save(model), "outside the model's folder")
    inside = model.functions[0].attribute_proto[0].t
    inside.external_data[0].value = "data"
    (tmp_path / "data").write_bytes(np.array([3, 4], np.float32).tobytes())
    proto = load(save(model)).executable.model_proto()
    found = [a.t for n in proto.graph.node for a in n.attribute if a.HasField("t")]
    assert [numpy_helper.to_array(t).tolist() for t in found] == [[3, 4]]
    assert not any(t.external_data for t in found)


def test_two_places_for_one_tensor(save, tmp_path):
    (tmp_path / "data").write_bytes(b"\0" * 8)
    stored = TensorProto(name="w", data_type=FLOAT, dims=[2])
    stored.data_location = TensorProto.EXTERNAL
    for location in ("data", "../secret"):
        stored.external_data.add(key="location", value=location)
    refused(save(adding(stored)), "no one place")
    stored.external_data.reverse()
    refused(save(adding(stored)), "no one place")


def test_how_a_model_was_trained_is_dropped(save):
    model = model_of([N("Relu", ["x"], ["y"])], [value("x", (2,))], [value("y", (2,))])
    secret = TensorProto(name="w", data_type=FLOAT, dims=[2])
    secret.data_location = TensorProto.EXTERNAL
    secret.external_data.add(key="location", value="../secret")
    model.training_info.add().initialization.initializer.append(secret)
    assert not load(save(model)).executable.model_proto().training_info


# Shapes


@pytest.mark.parametrize("stated", [(1,), (1, 1), None])
@pytest.mark.parametrize("kind", [FLOAT, TensorProto.UINT8])
def test_stated_shapes_hide_nothing(stated, kind, save):
    size = ints("n", 2**20, 2**20, 2)
    nodes = [N("Expand", ["x", "n"], ["big"]), N("ReduceMax", ["big"], ["y"], keepdims=0)]
    model = model_of(nodes, [value("x", (1,))], [value("y", ())], [size], opset=18)
    model.graph.value_info.append(value("big", stated, kind))
    refused(save(model), "'big'", "8796093022208 bytes")
    model = model_of(nodes[:1], [value("x", (1,))], [value("big", stated, kind)], [size])
    refused(save(model), "'big'", "8796093022208 bytes")


def test_what_ops_give_counts_and_is_told(save):
    nodes = [N("Relu", ["x"], ["t"]), N("Relu", ["t"], ["y"])]
    model = model_of(nodes, [value("x", (8,))], [value("y", (5,))])
    model.graph.value_info.append(value("t", (2, 4)))
    opened = load(save(model))
    assert {t.name: t.shape for t in opened.graph.tensors} == dict.fromkeys("xty", (8,))
    assert any("other shapes than its ops give for 2 values" in note for note in opened.notes)


def test_a_body_cannot_hide_a_size_either(save):
    branch = helper.make_graph(
        [N("Expand", ["x", "n"], ["t"])], "b", [], [value("t", (1,))],
        value_info=[value("t", (1,))],
    )  # fmt: skip
    node = N("If", ["c"], ["y"], then_branch=branch, else_branch=branch)
    inputs = [value("c", (), BOOL), value("x", (1,))]
    model = model_of([node], inputs, [value("y", (1,))], [ints("n", 2**40, 2)])
    refused(save(model), "'y'")


def test_what_is_stated_fills_in_what_nobody_can_infer(save):
    node = N("Strange", ["x"], ["t"], domain="mine")
    graph = helper.make_graph(
        [node, N("NonZero", ["t"], ["y"])], "g", [value("x", (8,))], [value("y", (1, 7), INT64)],
        value_info=[value("t", (3,))],
    )  # fmt: skip
    opened = load(save(helper.make_model(graph, opset_imports=OPSETS, ir_version=8)))
    shapes = {t.name: t.shape for t in opened.graph.tensors}
    assert shapes == {"x": (8,), "t": (3,), "y": (1, 7)}


@pytest.mark.parametrize("kind", ["Concat", "Gather"])
def test_numbers_that_inference_would_write_down(kind, save, tmp_path):
    nodes = [N("Shape", ["x"], ["s0"])]
    if kind == "Concat":
        nodes += [N("Concat", [f"s{i}"] * 2, [f"s{i + 1}"], axis=0) for i in range(30)]
        inputs = [value("x", (2,))]
    else:
        nodes += [N("Gather", ["s0", "i"], ["s30"])]
        inputs = [value("x", (2,)), value("i", (10**9,), INT64)]
    model = model_of(nodes, inputs, [value("s30", None, INT64)])
    status, text = command(tmp_path, "inspect", save(model))
    assert (status, text) == (0, "")


def test_ranks_that_are_stated(save):
    model = model_of([N("Relu", ["x"], ["y"])], [value("x", [1] * 70)], [value("y")])
    refused(save(model), "'x'", "70 dimensions")


# Arguments on which a library crashes or does not end


@pytest.mark.parametrize(("node", "part"), [
    (N("Max", ["x", "x", ""], ["y"]), "leaves out input 3"),
    (N("Relu", [""], ["y"]), "leaves out input 1"),
    (N("Split", ["x"], ["y", "z", "u"], num_outputs=2), "2 parts for 3 outputs"),
    (N("Split", ["x"], ["y"], num_outputs=10**12), "1000000000000 parts for 1 outputs"),
    (N("Einsum", ["x"], ["y"], equation="..........a->a"), "'..........a->a'"),
    (N("Einsum", ["x"], ["y"], equation="a,a->a"), "for 1 inputs"),
])  # fmt: skip
def test_arguments_that_no_library_should_see(node, part, save):
    model = model_of([node], [value("x", (6,))], [value("y")], opset=18)
    refused(save(model), part)


# Running


def loop(length, condition=True, gathered=4, goes_on="c"):
    """x + 1 in a Loop that also gathers a constant of `gathered` floats."""
    body = helper.make_graph(
        [N("Identity", [goes_on], ["co"]), N("Add", ["a", "one"], ["ao"]),
         N("Identity", ["big"], ["so"])],
        "body",
        [value("i", (), INT64), value("c", (), BOOL), value("a", (2,))],
        [value("co", (), BOOL), value("ao", (2,)), value("so", (gathered,))],
    )  # fmt: skip
    nodes = [
        N("Expand", ["seven", "size"], ["big"]),
        N("Loop", ["m", "cond", "x"], ["y", "z"], body=body, name="turns"),
    ]
    weights = [
        scalar("m", length), scalar("cond", condition, np.bool_),
        numpy_helper.from_array(np.ones(2, np.float32), "one"),
        numpy_helper.from_array(np.full(1, 7, np.float32), "seven"), ints("size", gathered),
    ]  # fmt: skip
    inputs = [value("x", (2,)), value("on", (), BOOL)]
    return model_of(nodes, inputs, [value("y", (2,)), value("z")], weights)


def compiled(path):
    from profiling import backends
    from tests.profiling.live import two_lanes

    return backends.get("onnxruntime").compile(load(path), two_lanes())


def test_a_loop_that_reads_a_large_folded_constant(save):
    from placement.core.schedule import Schedule, Segment

    made = compiled(save(loop(3, gathered=10_000)))
    feeds = made.feeds(0, {"x": np.array([1, 2], np.float32)})
    names = [op.name for op in made.kernels.ops]
    program = made.open(Schedule((Segment("cpu:0", tuple(names)),)), feeds)
    program.run(0)
    outputs = program.outputs()
    program.close()
    np.testing.assert_array_equal(outputs["y"], [4, 5])
    np.testing.assert_array_equal(outputs["z"], np.full((3, 10_000), 7))


def test_loops_that_no_step_can_end(save, monkeypatch):
    with pytest.raises(ValueError, match="runs its body 1000000000000 times, which no step"):
        compiled(save(loop(10**12)))
    with pytest.raises(ValueError, match=r"gathers 400000000000 bytes"):
        compiled(save(loop(10**5, gathered=10**6)))


@pytest.mark.parametrize("model", [loop(10**12, condition=False), loop(3)])
def test_loops_that_end(model, save):
    assert compiled(save(model)).kernels.ops


def test_values_that_no_memory_here_holds(save, monkeypatch):
    """Before anything is run: what an Expand makes lies behind a shape that is stated smaller."""
    nodes = [N("Expand", ["x", "n"], ["big"], name="makes"), N("Neg", ["big"], ["t"]),
             N("ReduceMax", ["t"], ["y"], keepdims=0)]  # fmt: skip
    model = model_of(nodes, [value("x", (1,))], [value("y", ())], [ints("n", 2**30, 2**7)])
    model.graph.value_info.append(value("big", (1,)))
    with pytest.raises(ValueError, match=r"need 549755813\d+ bytes behind op 'makes' \(Expand\)"):
        compiled(save(model))
    small = model_of(nodes, [value("x", (1,))], [value("y", ())], [ints("n", 1000)])
    memory = psutil.virtual_memory()._replace(available=3000)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: memory)
    with pytest.raises(ValueError, match="3000 are free"):
        compiled(save(small))
    monkeypatch.undo()
    assert compiled(save(small)).kernels.ops


# One that fails in a step and one that cannot be opened come first.
REFUSED = (
    (N("Reshape", ["x", "n"], ["y"], name="bad"), ["bad"]),
    (N("Strange", ["x"], ["y"], name="bad"), ["Strange"]),
    (N("Conv", ["x", "x"], ["y"], name="bad"), ["bad"]),
    (N("Gather", ["x", "n"], ["y"], name="bad"), ["bad"]),
)


@pytest.mark.thorough
@pytest.mark.parametrize(("node", "parts"), either(REFUSED[:2], REFUSED))
def test_what_onnxruntime_says_is_one_sentence(node, parts, save):
    model = model_of([node], [value("x", (6,))], [value("y")], [ints("n", 9)])
    said = refused_by_command(
        *("run", save(model), "--placer", "single", "--steps", "1", "--analytic")
    )
    for part in parts:
        assert part in said, said
    assert "ONNXRuntimeError" not in said and "/tmp" not in said
