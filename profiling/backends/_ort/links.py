"""Seconds that copies between host memory and an execution provider take, there and back.

A call of one trivial op on values in host memory copies there and back, and costs something by
itself; so only the slope over the size is the link's.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from placement.core.machine import Device
from profiling.backends._ort.sessions import load_cuda, settings
from profiling.measuring.timing import measure


def copy_seconds(src: Device, dst: Device, sizes: Sequence[int]) -> list[float] | None:
    """Half the seconds of such a call by size; None where the driver offers no way."""
    device = dst if src.on_host else src
    if not (src.on_host or dst.on_host):
        return None
    try:
        import onnxruntime
        from onnx import TensorProto, helper
    except ImportError:
        return None
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])],
        "copy",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n"])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        load_cuda(device.provider)
        session = onnxruntime.InferenceSession(
            model.SerializeToString(),
            options,
            providers=[(device.provider, settings(device))],
            enable_fallback=0,
        )
        return [_round_trip_s(onnxruntime, session, size) / 2 for size in sizes]
    except Exception:  # whatever the driver raises: the nominal figure stays
        return None


def _round_trip_s(onnxruntime: Any, session: Any, size: int) -> float:
    values = np.ones(size // 4, dtype=np.float32)
    sent = onnxruntime.OrtValue.ortvalue_from_numpy(values)
    received = onnxruntime.OrtValue.ortvalue_from_shape_and_type(values.shape, np.float32)
    binding = session.io_binding()
    binding.bind_ortvalue_output("y", received)

    def there_and_back() -> None:
        binding.bind_ortvalue_input("x", sent)  # this copies, not the run
        session.run_with_iobinding(binding)

    return measure(there_and_back, warmup=2, repeats=9).median_s
