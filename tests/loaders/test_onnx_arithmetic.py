"""Shapes that a model computes from shapes are those that onnxruntime's values have."""

from dataclasses import replace

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import helper, numpy_helper, reference

import placement as pl
from placement.core.placement import Placement
from placement.formats.onnx.arithmetic import MAX_ELEMENTS
from placement.formats.onnx.infer import infer
from placement.formats.onnx.values import graph_values
from placement.loaders import load, symbolic_dims
from tests.loaders.models import INT64, model_of, value
from tests.profiling.live import two_lanes

node = helper.make_node


def numbers(name, *given, kind=np.int64):
    return numpy_helper.from_array(np.array(given, kind), name)


def number(name, given, kind=np.int64):
    return numpy_helper.from_array(np.array(given, kind), name)


def heads():
    """Attention heads as exporters write them: the width divided by their number."""
    nodes = [
        node("Shape", ["x"], ["shape"]),
        node("Gather", ["shape", "two"], ["width"], axis=0),
        node("Div", ["width", "heads"], ["each"]),
        node("Cast", ["each"], ["real"], to=onnx.TensorProto.FLOAT),
        node("Floor", ["real"], ["floor"]),
        node("Cast", ["floor"], ["whole"], to=INT64),
        node("Unsqueeze", ["whole", "zeros"], ["last"]),
        node("Concat", ["front", "last"], ["target"], axis=0),
        node("Reshape", ["x", "target"], ["split"]),
        node("Transpose", ["split"], ["turned"], perm=[0, 2, 3, 1]),
        node("MatMul", ["split4", "turned"], ["scores"]),
        node("Transpose", ["split"], ["split4"], perm=[0, 2, 1, 3]),
    ]
    stored = [number("two", 2), number("heads", 4), numbers("zeros", 0), numbers("front", 2, -1, 4)]
    x = value("x", (2, 7, 36))
    return nodes, [x], stored, {"x": np.ones((2, 7, 36), np.float32)}


def anchors():
    """A grid of places in a picture, as detectors make it: ranges, and a mask that picks a size."""
    nodes = [
        node("Shape", ["x"], ["shape"]),
        node("Gather", ["shape", "three"], ["width"], axis=0),
        node("Range", ["zero", "width", "one"], ["row"]),
        node("Cast", ["row"], ["places"], to=onnx.TensorProto.FLOAT),
        node("Unsqueeze", ["width", "zeros"], ["width1"]),
        node("Concat", ["ones", "width1"], ["wanted"], axis=0),
        node("Shape", ["wanted"], ["rank"]),
        node("ConstantOfShape", ["rank"], ["filled"], value=numbers("v", -1)),
        node("Mul", ["filled", "minus"], ["twos"]),
        node("Equal", ["wanted", "twos"], ["same"]),
        node("Where", ["same", "filled", "wanted"], ["size"]),
        node("Expand", ["places", "size"], ["grid"]),
        node("Add", ["grid", "places"], ["moved"]),
    ]
    stored = [number("three", 3), number("zero", 0), number("one", 1), numbers("zeros", 0)]
    stored += [numbers("ones", 5, 1), numbers("minus", 3, 3, 3)]
    return nodes, [value("x", (1, 3, 8, 11))], stored, {"x": np.ones((1, 3, 8, 11), np.float32)}


def paddings():
    """A padding that is turned around on its way, as PyTorch's exporter writes it."""
    nodes = [
        node("ConstantOfShape", ["four"], ["none"], value=numbers("v", 0)),
        node("Concat", ["sides", "none"], ["all"], axis=0),
        node("Reshape", ["all", "pairs"], ["two"]),
        node("Slice", ["two", "end", "begin", "zeros", "back"], ["turned"]),
        node("Transpose", ["turned"], ["by_side"], perm=[1, 0]),
        node("Reshape", ["by_side", "flat"], ["pads"]),
        node("Pad", ["x", "pads"], ["y"]),
        node("Split", ["y"], ["left", "right"], axis=2),
    ]
    stored = [numbers("four", 4), numbers("sides", 2, 1), numbers("pairs", -1, 2)]
    stored += [numbers("end", -1), numbers("begin", -(2**62)), numbers("zeros", 0)]
    stored += [numbers("back", -1), numbers("flat", -1)]
    return nodes, [value("x", (1, 2, 5))], stored, {"x": np.ones((1, 2, 5), np.float32)}


@pytest.mark.parametrize("made", [heads, anchors, paddings])
def test_they_are_those_of_the_values_that_onnxruntime_computes(made):
    nodes, inputs, stored, feeds = made()
    last = nodes[-1].output[0]
    order = sorted(nodes, key=lambda n: n.output[0] == "scores")
    model = model_of(order, inputs, [onnx.ValueInfoProto(name=last)], stored)
    found = graph_values(infer(model, "m")[0].graph)
    plain = graph_values(infer(model, "m", arithmetic=False)[0].graph)
    written = [output for n in order for output in n.output]
    assert any(plain.get(name) is None or plain[name].shape is None for name in written)
    everything = model_of(order, inputs, list(map(unknown, written)), stored)
    session = ort.InferenceSession(everything.SerializeToString(), cheap())
    values = dict(zip(written, session.run(written, feeds), strict=True))
    assert {name: found[name].shape for name in written} == {
        name: np.shape(values[name]) for name in written
    }


def lies_outside():
    tensor = onnx.TensorProto(name="v", data_type=INT64, dims=[1])
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="numbers")
    return tensor


def hollow(text):
    """A weight without bytes: its name and dimensions."""
    name, *dims = text.split()
    return onnx.TensorProto(name=name, data_type=INT64, dims=[int(dim) for dim in dims])


def unknown(name):
    return onnx.ValueInfoProto(name=name)


def cheap():
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return options


def shapes_of(nodes, stored, x=(2, 3)):
    last = nodes[-1].output[0]
    model = model_of(nodes, [value("x", x)], [onnx.ValueInfoProto(name=last)], stored)
    return {name: known.shape for name, known in graph_values(infer(model, "m")[0].graph).items()}


def test_what_cannot_be_computed_stays_unknown():
    nodes = [
        node("Shape", ["x"], ["shape"]),
        node("Div", ["shape", "none"], ["divided"]),
        node("Reshape", ["x", "divided"], ["y"]),
    ]
    assert shapes_of(nodes, [numbers("none", 0, 1)]).get("y") is None
    nodes[1] = node("Mod", ["shape", "none"], ["divided"])
    assert shapes_of(nodes, [numbers("none", 5, 5)])["y"] == (2, 3)
    assert shapes_of(nodes, [numbers("none", 0, 5)]).get("y") is None


def test_many_numbers_are_none_that_shapes_are_computed_from():
    def many(count):
        nodes = [
            node("Range", ["zero", "count", "one"], ["row"]),
            node("ReduceMax", ["row"], ["most"], keepdims=0),
            node("Div", ["most", "one"], ["same"]),
            node("Range", ["zero", "same", "one"], ["y"]),
        ]
        return shapes_of(nodes, [number("zero", 0), number("one", 1), number("count", count)])

    assert many(MAX_ELEMENTS)["y"] == (MAX_ELEMENTS - 1,)
    assert many(MAX_ELEMENTS + 1)["row"] == (MAX_ELEMENTS + 1,)
    assert many(MAX_ELEMENTS + 1).get("y") is None
    assert many(10**12)["row"] == (10**12,) and many(10**12).get("y") is None


LONG = 2**40


@pytest.mark.parametrize(
    ("nodes", "stored"),
    [
        pytest.param(
            [node("ScatterND", ["none", "where", "what"], ["made"])],
            [numbers("none"), (f"where {LONG} 0"), (f"what {LONG} 0")],
            id="a loop of 2**40 rounds over nothing",
        ),
        pytest.param(
            [node("Expand", ["none", "size"], ["made"])],
            [numbers("none"), numbers("size", 2**31, 1)],
            id="17 GB of ones beside nothing",
        ),
        pytest.param(
            [node("Tile", ["one", "times"], ["made"])],
            [numbers("one", 1), numbers("times", 2**40)],
            id="a value 2**40 times",
        ),
        pytest.param(
            [node("Range", ["low", "high", "step"], ["made"])],
            [number("low", -(2**62)), number("high", 2**62), number("step", 2**32)],
            id="a range whose length overflows",
        ),
        pytest.param(
            [node("Size", ["wide"], ["made"])],
            [f"wide {LONG} {LONG}"],
            id="a size that no number holds",
        ),
        pytest.param(
            [node("Cast", ["real"], ["made"], to=INT64)],
            [numbers("real", float("nan"), 1e300, kind=np.float64)],
            id="a number that is none",
        ),
        pytest.param(
            [node("ConstantOfShape", ["one"], ["made"], value=lies_outside())],
            [numbers("one", 1)],
            id="a number in another file",
        ),
        pytest.param(
            [node("Constant", [], ["made"], value=lies_outside())], [], id="a file of numbers"
        ),
    ],
)
def test_hostile_arithmetic_is_left_alone(nodes, stored, tmp_path, monkeypatch):
    """Neither computed nor read."""
    computed = []

    class Watched(reference.ReferenceEvaluator):
        def __init__(self, graph, **settings):
            computed.append(graph.node[0].op_type)
            super().__init__(graph, **settings)

    monkeypatch.setattr(reference, "ReferenceEvaluator", Watched)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "numbers").write_bytes(np.array([2], np.int64).tobytes())
    weights = [
        tensor if isinstance(tensor, onnx.TensorProto) else hollow(tensor) for tensor in stored
    ]
    behind = [*nodes, node("Abs", ["made"], ["whole"]), node("Reshape", ["x", "whole"], ["y"])]
    shapes_of(behind, weights)
    assert computed == []
    plain = [numbers("made", 3, 2), *weights]
    shapes_of(behind[1:], plain)
    assert computed == ["Abs"], "what is harmless would have been"


def test_weights_of_one_name_are_one_value():
    nodes = [node("Div", ["size", "ones"], ["whole"]), node("Reshape", ["x", "whole"], ["y"])]
    twice = [numbers("size", 1, 6, kind=np.float16), numbers("size", 3, 2), numbers("ones", 1, 1)]
    assert shapes_of(nodes, twice).get("y") in (None, (3, 2))


@pytest.mark.parametrize(
    ("given", "size"),
    [
        ([node("Constant", [], ["two"], value_ints=[3, 2])], (3, 2)),
        ([node("Constant", [], ["two"], value=numbers("v", 3, 2))], (3, 2)),
        (
            [
                node("Constant", [], ["six"], value_int=6),
                node("Unsqueeze", ["six", "first"], ["two"]),
            ],
            (6,),
        ),
        ([node("Shape", ["t"], ["two"], start=-3, end=-1)], (2, 3)),
        ([node("Shape", ["t"], ["two"], start=1)], (2, 3, 1)),
        ([node("Shape", ["t"], ["two"], domain="ai.onnx", end=-1)], (1, 2, 3)),
    ],
)
def test_what_numbers_come_from(given, size):
    nodes = [*given, node("Div", ["two", "one"], ["whole"]), node("Reshape", ["x", "whole"], ["y"])]
    stored = [number("one", 1), numbers("first", 0)]
    stored.append(numpy_helper.from_array(np.ones((1, 2, 3, 1), np.float32), "t"))
    assert shapes_of(nodes, stored)["y"] == size


def test_a_placement_from_before_still_fits(save):
    nodes, inputs, stored, _ = anchors()
    graph = load(save(model_of(nodes, inputs, [onnx.ValueInfoProto(name="moved")], stored))).graph
    assert graph.formerly and graph.formerly != graph.fingerprint
    devices = dict.fromkeys(graph.index, "cpu:0")
    for known in (graph.fingerprint, graph.formerly):
        Placement(known, "m", devices).require_graph(graph)
    with pytest.raises(ValueError, match="fingerprint"):
        replace(graph, formerly="../../other")
    with pytest.raises(ValueError, match="another graph"):
        Placement("0" * 16, "m", devices).require_graph(graph)
    plain = load(save(model_of([node("Relu", ["x"], ["y"])], [value("x", (2,))], [value("y")])))
    assert plain.graph.formerly == "" and not plain.graph.is_known_as("")


def reader(shape, kind=None):
    given = {} if kind is None else {"kind": kind}
    return model_of([node("Identity", ["x"], ["y"])], [value("x", shape, **given)], [value("y")])


@pytest.mark.parametrize(
    ("shape", "kind", "sizes"),
    [
        (("unk__7", 3, "unk__8", "unk__9"), None, (1, 3, 224, 224)),
        (("p2o.DynamicDimension.0", 3, "?", "p2o.DynamicDimension.1"), None, (1, 3, 224, 224)),
        (("s0", "s1", "s2", 3), None, (1, 224, 224, 3)),
        (("N", 3, "x_dynamic_axes_2", 48), None, (1, 3, 224, 48)),
        (("?", 3, "?", "?"), None, (1, 3, 224, 224)),
        (("batch", 4, "past", 64), None, (1, 4, 1, 64)),
        (("unk__7", 64, "unk__8", "unk__9"), None, (1, 64, 1, 1)),
        (("unk__7", "unk__8"), INT64, (1, 16)),
        (("unk__7", "unk__8"), None, (1, 1)),
    ],
)
def test_dimensions_whose_name_an_exporter_made_up_have_sizes_by_their_place(
    save, shape, kind, sizes
):
    assert load(save(reader(shape, kind))).graph.inputs[0].shape == sizes


def test_pictures_have_a_size_with_which_shapes_agree(save):
    """Behind a pooling by 16 the network holds the number 3: 48 rows are what it is made for."""
    nodes = [
        node("MaxPool", ["x"], ["small"], kernel_shape=[16, 16], strides=[16, 16]),
        node("Concat", ["small", "rows"], ["y"], axis=1),
    ]
    rows = numpy_helper.from_array(np.ones((1, 1, 3, 3), np.float32), "rows")
    path = save(
        model_of(nodes, [value("x", (None, 3, "?", "?"))], [value("y", (1, 4, 3, 3))], [rows])
    )
    model = load(path)
    assert model.graph.inputs[0].shape == (1, 3, 48, 48)
    sizes = {dim.name: dim.size for dim in model.executable.symbolic_dims}
    assert sizes == {"x.0": 1, "x.2": 48, "x.3": 48}
    assert "Dimension 'x.2' is 48 by default (--dim x.2=48)" in model.notes
    assert any("contradict" in note for note in model.notes)
    proto = model.executable.model_proto()
    assert [dim.dim_value for dim in proto.graph.input[0].type.tensor_type.shape.dim] == [
        *(1, 3, 48, 48)
    ]
    same = load(path, {"x.2": 48, "x.3": 48})
    assert same.graph.fingerprint == model.graph.fingerprint
    assert same.executable.content_hash == model.executable.content_hash
    assert load(path, {"x.2": 64, "x.3": 64}).graph.inputs[0].shape == (1, 3, 64, 64)
    assert load(path, {"x.2": 64}).graph.inputs[0].shape == (1, 3, 64, 224), "no side fits"
    assert {dim.name for dim in symbolic_dims(path)} == sizes.keys()


@pytest.mark.parametrize(("length", "named"), [("length", True), (1, False)])
def test_a_runtime_that_fails_tells_the_sizes_that_stand_for_open_dimensions(save, length, named):
    nodes = [node("Pad", ["x", "pads"], ["p"], mode="reflect"), node("Relu", ["p"], ["y"])]
    stored = [numbers("pads", 0, 3, 0, 3)]
    model = load(save(model_of(nodes, [value("x", (1, length))], [value("y")], stored, opset=18)))
    with pytest.raises(RuntimeError, match=r"(The runtime failed|onnxruntime cannot)") as caught:
        pl.profile(model, two_lanes(), refresh=True)
    told = "('length' = 1); set them on the Model page, or with --dim NAME=N. "
    assert (told in str(caught.value)) == str(caught.value).startswith("Perhaps") == named
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)
