"""Types and sizes of all values of an optimised model: from its own inference, else by one run."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from profiling.backends._ort import sessions
from profiling.backends._ort.optimise import Optimised
from profiling.backends._ort.types import numpy_dtype
from profiling.measuring.outputs import num_bytes

LONGEST_S = 60.0


@dataclass(frozen=True)
class Value:
    """What is known of a value.

    `type` is onnxruntime's word ("tensor(float)"); `shape` is set where every run has the same one,
    and only such values lie in preallocated buffers; `num_bytes` may be the size of one run.
    """

    type: str
    shape: tuple[int, ...] | None
    num_bytes: int

    @property
    def dtype(self) -> np.dtype[Any] | None:
        return numpy_dtype(self.type)

    @property
    def fixed(self) -> bool:
        return self.shape is not None and self.dtype is not None


def probe(optimised: Optimised, feeds: Mapping[str, Any], inner: bool = True) -> dict[str, Value]:
    """Every input, output and (with `inner`) every value between the kernels, by name.

    Opens the model with all of them as outputs, and runs it once for those without a fixed size.
    """
    import onnx

    model = onnx.ModelProto()
    model.CopyFrom(optimised.model)
    model.ir_version = max(model.ir_version, 8)
    declared = {output.name for output in model.graph.output}
    if inner:
        names = (name for node in model.graph.node for name in node.output if name)
        extra = [name for name in names if name not in declared]
        model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in extra)
    target = optimised.path / f"{optimised.level}.probe.onnx"
    target.write_bytes(model.SerializeToString())
    made = sessions.options(1)
    made.add_session_config_entry("session.disable_prepacking", "1")
    session = sessions.session(str(target), made, [sessions.CPU])
    known = {node.name: _static(node) for node in (*session.get_inputs(), *session.get_outputs())}
    unknown = [v.name for v in session.get_outputs() if not known[v.name].fixed]
    if unknown:
        known.update(_measured(session, unknown, feeds, known))
    return known


def _static(node: Any) -> Value:
    # onnxruntime shows a scalar and an unknown rank alike, without dimensions.
    shape = tuple(node.shape) if node.type.startswith("tensor(") and node.shape else (None,)
    fixed = all(isinstance(dim, int) and dim >= 0 for dim in shape)
    size = _bytes(node.type, shape) if fixed else 0
    return Value(node.type, shape if fixed else None, size)


def _measured(
    session: Any, names: list[str], feeds: Mapping[str, Any], known: Mapping[str, Value]
) -> dict[str, Value]:
    """Sizes of values in one run, a few at a time so that not all of them live at once.

    Where the model does not run on these inputs the sizes stay zero.
    """
    found = {}
    for start in range(0, len(names), 64):
        some = names[start : start + 64]
        try:
            made = _run(session, some, feeds)
        except Exception:  # seeded inputs may not make sense to the model (sizes, axes)
            break
        for name, value in zip(some, made, strict=True):
            found[name] = Value(known[name].type, None, num_bytes(value))
    return found


def _run(session: Any, names: list[str], feeds: Mapping[str, Any]) -> list[Any]:
    """One run, ended by onnxruntime's own error once it takes too long."""
    import onnxruntime as ort

    options = ort.RunOptions()
    timer = threading.Timer(LONGEST_S, setattr, (options, "terminate", True))
    timer.daemon = True
    timer.start()
    try:
        made: list[Any] = session.run(names, dict(feeds), options)
        return made
    finally:
        timer.cancel()


def _bytes(type_text: str, shape: tuple[Any, ...]) -> int:
    dtype = numpy_dtype(type_text)
    if dtype is not None:
        return int(prod(shape)) * dtype.itemsize
    return int(prod(shape)) * (2 if "16" in type_text else 8)
