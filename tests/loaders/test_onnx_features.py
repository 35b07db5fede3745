"""What ONNX files in the wild contain: each loads the way a person would expect."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

from placement.loaders import load, symbolic_dims
from tests.loaders.models import BOOL, FLOAT, INT64, model_of, value


def weight(name, shape, fill=1.0):
    return numpy_helper.from_array(np.full(shape, fill, np.float32), name)


def run(model, feeds):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, feeds)


def test_initializers_listed_as_inputs_are_weights(save):
    node = helper.make_node("MatMul", ["x", "w"], ["y"], name="product")
    model = load(
        save(
            model_of(
                [node],
                [value("x", (1, 4)), value("w", (4, 2))],
                [value("y")],
                [weight("w", (4, 2))],
            )
        )
    )
    assert [t.name for t in model.graph.inputs] == ["x"]
    assert model.graph.ops[0].param_bytes == 32
    assert [i.name for i in model.executable.model_proto().graph.input] == ["x"]


def test_nodes_that_make_weights_are_no_ops(save):
    nodes = [
        helper.make_node("Constant", [], ["w"], value=weight("", (4, 2))),
        helper.make_node("ConstantOfShape", ["s"], ["b"]),
        helper.make_node("Unsqueeze", ["b", "axes"], ["b2"]),
        helper.make_node("MatMul", ["x", "w"], ["p"], name="product"),
        helper.make_node("Add", ["p", "b2"], ["y"], name="sum"),
    ]
    stored = [
        helper.make_tensor("s", INT64, (1,), [2]),
        helper.make_tensor("axes", INT64, (1,), [0]),
    ]
    graph = load(save(model_of(nodes, [value("x", (1, 4))], [value("y")], stored))).graph
    assert [(op.name, op.param_bytes) for op in graph.ops] == [("product", 32), ("sum", 8)]
    assert [t.name for t in graph.tensors] == ["x", "p", "y"]


def test_a_model_of_constants_still_has_an_op(save):
    node = helper.make_node("Constant", [], ["y"], value=weight("", (2,)))
    graph = load(save(model_of([node], [], [value("y", (2,))]))).graph
    assert [op.kind for op in graph.ops] == ["Constant"]
    assert graph.tensors[0].is_output


def test_random_nodes_are_ops(save):
    node = helper.make_node("RandomNormal", [], ["r"], shape=[2])
    add = helper.make_node("Add", ["x", "r"], ["y"])
    graph = load(save(model_of([node, add], [value("x", (2,))], [value("y")]))).graph
    assert [op.kind for op in graph.ops] == ["RandomNormal", "Add"]


def test_weights_read_twice_count_once(save):
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], name="first"),
        helper.make_node("Transpose", ["w"], ["wt"]),
        helper.make_node("MatMul", ["a", "wt"], ["y"], name="second"),
    ]
    graph = load(
        save(model_of(nodes, [value("x", (1, 4))], [value("y")], [weight("w", (4, 2))]))
    ).graph
    assert [(op.name, op.param_bytes) for op in graph.ops] == [("first", 32), ("second", 0)]


def test_names_are_made_unique_and_given_ones_kept(save):
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("Relu", ["a"], ["b"], name="same"),
        helper.make_node("Relu", ["b"], ["c"], name="same"),
        helper.make_node("Relu", ["c"], ["d"], name="same_2"),
        helper.make_node("Relu", ["d"], ["y"], name="Relu_a"),
    ]
    model = load(save(model_of(nodes, [value("x", (1,))], [value("y")])))
    names = [op.name for op in model.graph.ops]
    assert names == ["Relu_a_2", "same", "same_3", "same_2", "Relu_a"]
    assert [node.name for node in model.executable.model_proto().graph.node] == names


@pytest.mark.parametrize("name", ["<img src=x onerror=alert(1)>", "a\0b\nc", "n" * 100_000, "café"])
def test_strange_names_are_plain_text(name, save):
    nodes = [
        helper.make_node("Relu", ["x"], [f"v{name}"], name=name),
        helper.make_node("Relu", [f"v{name}"], ["y"], name=f"{name}2"),
    ]
    model = load(save(model_of(nodes, [value("x", (1,))], [value("y")])))
    shown = [op.name for op in model.graph.ops]
    assert len(set(shown)) == 2 and all(s.isprintable() and len(s) <= 200 for s in shown)
    if len(name) < 100 and name.isprintable():
        assert shown[0] == name
    assert f"v{name}" in {t.name for t in model.graph.tensors}, "value names stay as they are"


def test_optional_inputs_may_be_left_out(save):
    node = helper.make_node("Clip", ["x", "", "high"], ["y"])
    graph = load(save(model_of([node], [value("x", (2,)), value("high", ())], [value("y")]))).graph
    assert [t.name for t in graph.inputs] == ["x", "high"]


def test_a_value_read_twice_has_one_consumer(save):
    node = helper.make_node("Mul", ["x", "x"], ["y"], name="square")
    graph = load(save(model_of([node], [value("x", (2,))], [value("y")]))).graph
    assert graph.inputs[0].consumers == ("square",)


def test_outputs_that_are_inputs_or_weights(save):
    node = helper.make_node("Relu", ["x"], ["y"])
    model = load(
        save(
            model_of(
                [node],
                [value("x", (2,))],
                [value("x", (2,)), value("y"), value("w", (3,))],
                [weight("w", (3,))],
            )
        )
    )
    assert [(t.name, t.producer, t.is_output) for t in model.graph.tensors] == [
        ("x", None, True),
        ("y", "Relu_y", True),
    ]
    assert any("'w'" in note for note in model.notes)


def test_unused_outputs_stay_without_consumers(save):
    node = helper.make_node("Split", ["x"], ["a", "b"], num_outputs=2)
    graph = load(save(model_of([node], [value("x", (4,))], [value("a")], opset=18))).graph
    assert {t.name: (t.consumers, t.is_output) for t in graph.tensors if t.producer} == {
        "a": ((), True),
        "b": ((), False),
    }


def test_nodes_out_of_order_are_sorted(save):
    nodes = [
        helper.make_node("Relu", ["a"], ["y"], name="last"),
        helper.make_node("Relu", ["x"], ["a"], name="first"),
    ]
    model = load(save(model_of(nodes, [value("x", (2,))], [value("y")])))
    assert [op.name for op in model.graph.ops] == ["first", "last"]
    feed = np.array([-1.0, 2.0], np.float32)
    assert run(model.executable.model_proto(), {"x": feed})[0].tolist() == [0.0, 2.0]


class TestDimensions:
    @staticmethod
    def model():
        node = helper.make_node("MatMul", ["x", "w"], ["y"])
        return model_of(
            [node], [value("x", ("batch", 4))], [value("y", ("batch", 2))], [weight("w", (4, 2))]
        )

    def test_a_size_reaches_every_value(self, save):
        model = load(save(self.model()), {"batch": 8})
        assert [t.shape for t in model.graph.tensors] == [(8, 4), (8, 2)]
        proto = model.executable.model_proto()
        assert proto.graph.input[0].type.tensor_type.shape.dim[0].dim_value == 8

    def test_the_default_is_shown(self, save):
        path = save(self.model())
        assert [(d.name, d.size) for d in symbolic_dims(path)] == [("batch", 1)]
        model = load(path)
        assert model.graph.inputs[0].shape == (1, 4)
        assert any("batch=1" in note for note in model.notes)

    def test_unknown_names_are_refused_with_those_that_exist(self, save):
        with pytest.raises(ValueError, match=r"'bath'.*it has batch"):
            load(save(self.model()), {"bath": 4})
        with pytest.raises(ValueError, match="it has none"):
            load("onnx-squeezenet", {"batch": 4})

    @pytest.mark.parametrize("size", [0, -3, 2**40])
    def test_impossible_sizes_are_refused(self, size, save):
        with pytest.raises(ValueError, match="batch"):
            load(save(self.model()), {"batch": size})

    def test_dimensions_without_a_name_are_called_after_their_place(self, save):
        node = helper.make_node("Relu", ["x"], ["y"])
        path = save(model_of([node], [value("x", (None, 3, None, None))], [value("y")]))
        assert [(d.name, d.size) for d in symbolic_dims(path)] == [
            ("x.0", 1),
            ("x.2", 224),
            ("x.3", 224),
        ]
        assert load(path, {"x.0": 2, "x.3": 32}).graph.inputs[0].shape == (2, 3, 224, 32)

    def test_expressions_follow_their_names(self, save):
        node = helper.make_node("Concat", ["x", "m"], ["y"], axis=0)
        path = save(
            model_of([node], [value("x", ("past",)), value("m", ("past + 2 * seq",))], [value("y")])
        )
        assert {d.name for d in symbolic_dims(path)} == {"past", "past + 2 * seq"}
        node = helper.make_node("Concat", ["x", "s", "m"], ["y"], axis=0)
        inputs = [value("x", ("past",)), value("s", ("seq",)), value("m", ("past + 2 * seq",))]
        model = load(save(model_of([node], inputs, [value("y")])), {"past": 3, "seq": 5})
        assert [t.shape for t in model.graph.tensors] == [(3,), (5,), (13,), (21,)]

    def test_graphs_of_other_sizes_have_other_fingerprints(self, save):
        path = save(self.model())
        one, two = load(path, {"batch": 1}), load(path, {"batch": 2})
        assert one.graph.fingerprint != two.graph.fingerprint
        assert one.executable.content_hash != two.executable.content_hash


def test_functions_are_inlined(save):
    opset = [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)]
    function = helper.make_function(
        "mine",
        "Twice",
        ["a"],
        ["c"],
        [helper.make_node("Relu", ["a"], ["b"]), helper.make_node("Neg", ["b"], ["c"])],
        opset[:1],
    )
    nodes = [
        helper.make_node("Twice", ["x"], ["h"], domain="mine"),
        helper.make_node("Twice", ["h"], ["y"], domain="mine"),
    ]
    graph = helper.make_graph(nodes, "g", [value("x", (2,))], [value("y", (2,))])
    source = helper.make_model(graph, opset_imports=opset, functions=[function])
    model = load(save(source))
    assert [op.kind for op in model.graph.ops] == ["Relu", "Neg", "Relu", "Neg"]
    assert len({op.name for op in model.graph.ops}) == 4
    result = run(model.executable.model_proto(), {"x": np.array([-1.0, 2.0], np.float32)})
    assert result[0].tolist() == [0.0, 0.0]


def test_sequences_optionals_and_strings_have_types(save):
    nodes = [
        helper.make_node("SequenceConstruct", ["x", "x"], ["s"]),
        helper.make_node("Optional", ["s"], ["o"]),
        helper.make_node("Identity", ["t"], ["u"]),
    ]
    text = value("t", (3,), onnx.TensorProto.STRING)
    out = helper.make_tensor_sequence_value_info("s", FLOAT, None)
    graph = load(
        save(
            model_of(
                nodes, [value("x", (2,)), text], [out, value("u", None, onnx.TensorProto.STRING)]
            )
        )
    ).graph
    kinds = {t.name: (t.dtype, t.num_bytes) for t in graph.tensors}
    assert kinds["s"] == ("sequence(float32)", 0)
    assert kinds["o"] == ("optional(sequence(float32))", 0)
    assert kinds["u"] == ("string", 0)


def test_packed_types_take_part_of_a_byte(save):
    packed = helper.make_tensor("w", onnx.TensorProto.INT4, (3,), [1, 2, 3])
    node = helper.make_node("DequantizeLinear", ["w", "s"], ["y"])
    graph = load(save(model_of([node], [value("s", ())], [value("y")], [packed], opset=21))).graph
    assert graph.ops[0].param_bytes == 2


def test_shapes_that_do_not_fit_are_a_note_not_an_error(save):
    node = helper.make_node("MatMul", ["x", "v"], ["y"])
    model = load(save(model_of([node], [value("x", (2, 3)), value("v", (4, 5))], [value("y")])))
    assert model.notes and model.graph.tensors[-1].shape is None


def test_conditions_capture_outer_weights(save):
    branch = helper.make_graph([helper.make_node("Add", ["x", "w"], ["a"])], "t", [], [value("a")])
    other = helper.make_graph([helper.make_node("Identity", ["x"], ["b"])], "e", [], [value("b")])
    node = helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=other)
    inputs = [value("c", (), BOOL), value("x", (4,))]
    graph = load(save(model_of([node], inputs, [value("y")], [weight("w", (4,))]))).graph
    assert [(op.kind, op.param_bytes) for op in graph.ops] == [("If", 16)]
    assert [t.name for t in graph.inputs] == ["c", "x"]


def test_an_old_model_is_brought_to_a_version_that_runs(save):
    source = model_of([helper.make_node("Relu", ["x"], ["y"])], [value("x", (1,))], [value("y")])
    for version in (3, onnx.IR_VERSION):
        source.ir_version = version
        proto = load(save(source)).executable.model_proto()
        assert run(proto, {"x": np.ones(1, np.float32)})[0].tolist() == [1.0]
        assert proto.opset_import[0].version == 17
