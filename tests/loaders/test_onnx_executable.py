"""The executable side: the same nodes as the graph, the same results as the file."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper
from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented as NoKernel

from placement.loaders import load
from tests.loaders.models import model_of, package_files, value


def session(proto):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def feeds(path):
    """The inputs that the onnx package stores beside a model."""
    found = sorted((path.parent / "test_data_set_0").glob("input_*.pb"))
    return [numpy_helper.to_array(onnx.TensorProto.FromString(p.read_bytes())) for p in found]


def test_results_are_those_of_the_file():
    """Over every converted model of the onnx package that the runtime has kernels for."""
    compared = 0
    for path in package_files():
        if not path.parent.parent.name.startswith("pytorch"):
            continue
        try:
            before = session(onnx.load(path))
        except NoKernel:
            continue
        model = load(str(path))
        after = session(model.executable.model_proto())
        names = [i.name for i in after.get_inputs()]
        assert names == [t.name for t in model.graph.inputs]
        data = dict(zip(names, feeds(path), strict=True))
        shapes = {t.name: t.shape for t in model.graph.outputs}
        outputs = [o.name for o in after.get_outputs()]
        for name, expected, actual in zip(
            outputs, before.run(None, data), after.run(None, data), strict=True
        ):
            np.testing.assert_array_equal(actual, expected)
            assert shapes[name] is None or shapes[name] == actual.shape
        compared += 1
    assert compared >= 80


def test_external_data_moves_into_the_model(save, tmp_path):
    weights = np.arange(8, dtype=np.float32)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "w.bin").write_bytes(b"pad!" + weights.tobytes())
    tensor = onnx.TensorProto(name="w", data_type=onnx.TensorProto.FLOAT, dims=[8])
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, text in (("location", "data/w.bin"), ("offset", "4"), ("length", "32")):
        tensor.external_data.add(key=key, value=text)
    node = helper.make_node("Add", ["x", "w"], ["y"])
    model = load(save(model_of([node], [value("x", (8,))], [value("y")], [tensor])))
    assert model.graph.param_bytes == 32
    proto = model.executable.model_proto()
    result = session(proto).run(None, {"x": np.ones(8, np.float32)})[0]
    np.testing.assert_array_equal(result, weights + 1)


def test_a_file_that_changed_is_refused(save):
    def source(kind):
        return model_of([helper.make_node(kind, ["x"], ["y"])], [value("x", (2,))], [value("y")])

    model = load(save(source("Relu")))
    assert model.executable.model_proto().graph.node[0].op_type == "Relu"
    changed = load(save(source("Sigmoid")))
    assert changed.executable.content_hash != model.executable.content_hash
    with pytest.raises(ValueError, match="changed"):
        model.executable.model_proto()


def test_weights_count_for_the_hash_but_not_for_the_fingerprint(save):
    def source(fill):
        stored = numpy_helper.from_array(np.full(4, fill, np.float32), "w")
        node = helper.make_node("Add", ["x", "w"], ["y"])
        return model_of([node], [value("x", (4,))], [value("y")], [stored])

    one, two = load(save(source(1.0))), load(save(source(2.0)))
    assert one.graph.fingerprint == two.graph.fingerprint
    assert one.executable.content_hash != two.executable.content_hash
