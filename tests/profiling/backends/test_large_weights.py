"""Weights that are too many for a message: sessions get them as arrays on their file."""

import numpy as np
import psutil
import pytest
from onnx import helper, numpy_helper

from placement.core.machine import Device, Machine
from placement.core.schedule import Schedule, Segment
from profiling import backends
from profiling.backends._ort import compile as compiling
from profiling.backends._ort import memory, optimise, parts
from tests.profiling.live import CPU, saved

TWO = Machine("two", tuple(Device(f"cpu:{i}", "cpu", "onnxruntime", CPU) for i in range(2)))


@pytest.fixture
def tower(tmp_path):
    """Three products of 150 x 150, with what is subtracted from each."""
    rng, nodes, weights, read = np.random.default_rng(0), [], [], "x"
    for i in range(3):
        for kind, shape in (("MatMul", (150, 150)), ("Sub", (150,))):
            array = rng.normal(size=shape).astype(np.float32)
            weights.append(numpy_helper.from_array(array, f"{kind}{i}"))
            made = "y" if (i, kind) == (2, "Sub") else f"{kind}_{i}"
            nodes.append(helper.make_node(kind, [read, f"{kind}{i}"], [made]))
            read = made
    return saved(tmp_path, nodes, {"x": [2, 150]}, {"y": [2, 150]}, weights)


@pytest.mark.parametrize("native", [True, False])
def test_mapped_weights_give_the_same_to_the_bit(native, tower, monkeypatch):
    def outputs():
        compiled = backends.get("onnxruntime").compile(tower, TWO)
        compiled = compiled if native else compiled.in_python()
        names = [op.name for op in compiled.kernels.ops]
        schedule = Schedule(
            (Segment("cpu:0", tuple(names[:2])), Segment("cpu:1", tuple(names[2:])))
        )
        program = compiled.open(schedule, compiled.feeds(0, {}))
        for segment in range(2):
            program.run(segment)
        found = program.outputs()["y"].copy()
        program.close()
        return found

    plain = outputs()
    mapped = []
    monkeypatch.setattr(optimise, "PROTOBUF_LIMIT", 100_000)
    monkeypatch.setattr(compiling, "INSIDE_BYTES", 0)
    note = optimise.Optimised.mapped
    monkeypatch.setattr(
        optimise.Optimised, "mapped", lambda self, t: mapped.append(t.name) or note(self, t)
    )
    backends.get("onnxruntime")._kept.clear()
    np.testing.assert_array_equal(outputs(), plain)
    assert len(mapped) == 3, "not what is small"
    backends.get("onnxruntime")._kept.clear()
    assert parts.SMALL_BYTES < 4 * 150 * 150


def test_a_model_that_does_not_fit_is_refused_before_anything_is_read(tower, monkeypatch):
    """With both sizes: three copies of weights that go through messages, two of mapped ones."""
    weights = tower.graph.param_bytes
    free = psutil.virtual_memory()._replace(available=weights)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: free)
    backends.get("onnxruntime")._kept.clear()
    monkeypatch.setattr(compiling, "write_source", None)
    with pytest.raises(ValueError, match=rf"need {3 * weights + 2400} bytes .*, {weights} are"):
        backends.get("onnxruntime").compile(tower, TWO)
    monkeypatch.setattr(memory, "PROTOBUF_LIMIT", 100_000)
    with pytest.raises(ValueError, match=rf"need {2 * weights + 2400} bytes .*, {weights} are"):
        backends.get("onnxruntime").compile(tower, TWO)
