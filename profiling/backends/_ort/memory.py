"""What a model and a program of its kernels will hold in memory, before anything is allocated."""

from collections.abc import Mapping, Sequence

from placement.core.graph import Graph
from placement.core.machine import Device
from profiling.backends._ort.optimise import PROTOBUF_LIMIT, Optimised
from profiling.backends._ort.parts import Part
from profiling.devices.memory import free_bytes

# Their outputs may be their inputs by another name.
_VIEWS = ("Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze")
# Of weights in a message while a session opens: in it, as the session reads it, and packed. Mapped
# ones are packed twice, for the parts and for the unplaced model beside them.
_COPIES, _MAPPED_COPIES = 3, 2


def check_whole(graph: Graph) -> None:
    """ValueError where the unplaced model, which every profile and run computes too, cannot fit.

    Counted are the copies of weights while a session opens, and what must be there between two ops
    at least, whatever a runtime fuses.
    """
    most_bytes, where = _least_peak(graph)
    free, weights = free_bytes(), graph.param_bytes
    needed = weights * (_MAPPED_COPIES if weights > PROTOBUF_LIMIT else _COPIES) + most_bytes
    if needed > free:
        raise ValueError(
            f"Weights and values of {graph.name!r} need {needed} bytes {where}, {free} are free;"
            " give its dimensions smaller sizes (--dim), or close other programs."
        )


def _least_peak(graph: Graph) -> tuple[int, str]:
    """The most bytes of values between two ops, and behind which op that is."""
    views = {op.name for op in graph.ops if op.kind in _VIEWS}
    last = {op.name: i for i, op in enumerate(graph.ops)}
    freed = [0] * len(graph.ops)
    made: dict[str | None, int] = {}
    for tensor in graph.tensors:
        if tensor.producer in views:
            continue
        made[tensor.producer] = made.get(tensor.producer, 0) + tensor.num_bytes
        if tensor.producer is not None and not tensor.is_output and tensor.consumers:
            freed[max(last[name] for name in tensor.consumers)] += tensor.num_bytes
    live = most = made.get(None, 0)
    where = "for its inputs"
    for i, op in enumerate(graph.ops):
        live += made.get(op.name, 0) - freed[i]
        if live > most:
            most, where = live, f"behind op {op.name[:80]!r} ({op.kind[:40]})"
    return most, where


def peak_bytes(
    optimised: Optimised,
    parts: Sequence[Part],
    devices: Sequence[Device],
    buffer_of: Mapping[str, int],
    capacity: Sequence[int],
    depth: int,
) -> dict[str, int]:
    """Bytes of weights and border buffers by device; a buffer counts where it is first written.

    Weights are there once, buffers `depth` times.
    """
    weight = {t.name: optimised.num_bytes(t) for t in optimised.model.graph.initializer}
    peak = {device.name: 0 for device in devices}
    seen: set[str | int] = set()
    for part, device in zip(parts, devices, strict=True):
        for name in part.weights:
            if name not in seen:
                seen.add(name)
                peak[device.name] += weight.get(name, 0)
        for name in part.outputs:
            number = buffer_of.get(name)
            if number is not None and number not in seen:
                seen.add(number)
                peak[device.name] += depth * capacity[number]
    return peak
