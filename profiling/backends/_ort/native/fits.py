"""Which programs run natively: those of CPU lanes with cores and values of their own."""

from collections.abc import Iterable, Mapping, Sequence

from placement.core.decoding import shown
from placement.core.machine import Device
from profiling.backends._ort import sessions
from profiling.backends._ort.layout import Layout
from profiling.backends._ort.native.library import library
from profiling.backends._ort.optimise import PROTOBUF_LIMIT, Optimised
from profiling.backends._ort.parts import Part, shared_tensors
from profiling.backends._ort.types import numpy_type
from profiling.backends._ort.values import Value
from profiling.devices import native


def why_not(layout: Layout, optimised: Optimised, values: Mapping[str, Value]) -> str:
    """What keeps a program's lanes from running natively, as a sentence; or nothing."""
    if not all(part.nodes for part in layout.parts):
        return "another runtime computes, too"
    return (
        _none_on(layout.devices)
        or _loose(layout, values)
        or _large(layout, optimised)
        or _missing()
    )


def all_fit(devices: Sequence[Device], values: Iterable[Value | None]) -> bool:
    """Whether each placement on these devices runs natively whose parts hand on these values; but
    for weights that a message does not hold."""
    fixed = all(v is not None and v.dtype is not None and v.fixed for v in values)
    return fixed and not (_none_on(devices) or _missing())


def _none_on(devices: Sequence[Device]) -> str:
    other = next((d for d in devices if d.provider != sessions.CPU), None)
    if other is not None:
        return f"{shown(other.name)} is a device of {other.provider}"
    if sessions.has_shared_pool():
        return "all sessions of this process share one pool of threads"
    return native.share_cores(devices) or native.why_not()


def _missing() -> str:
    found = library()
    return found if isinstance(found, str) else ""


def _loose(layout: Layout, values: Mapping[str, Value]) -> str:
    """The first value between parts that has no fixed shape, or is no array."""
    for part in layout.parts:
        for name in (*part.inputs, *part.outputs):
            value = values[name]
            if value.dtype is None:
                return f"value {shown(name)} is {value.type}"
            given = any(name in feeds for feeds in layout.feeds)
            if not value.fixed and not given:
                return f"value {shown(name)} has no fixed shape"
    return ""


def _large(layout: Layout, optimised: Optimised) -> str:
    """A weight that parts share and that is no array; or that a part is too large for a message."""
    shared = shared_tensors(optimised, layout.parts)
    other = next((t for t in shared if not numpy_type(t.data_type)), None)
    if other is not None:
        return f"weight {shown(other.name)} has a type that numpy lacks"
    apart = {t.name for t in shared}
    own = {
        t.name: optimised.num_bytes(t)
        for t in optimised.model.graph.initializer
        if t.name not in apart
    }
    most = max((_own_bytes(part, own) for part in layout.parts), default=0)
    return "a segment has more than 2 GB of weights" if most >= PROTOBUF_LIMIT else ""


def _own_bytes(part: Part, weights: Mapping[str, int]) -> int:
    return sum(weights.get(name, 0) for name in part.weights)
