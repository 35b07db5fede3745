"""Devices that are not here: nothing is computed, and a virtual clock says what a step takes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from placement.core.graph import Graph
from placement.core.machine import Device, Machine
from placement.core.model import Model
from placement.core.schedule import Schedule, Segment
from profiling.backends.base import Backend, Compiled, Feeds, Program


class NullProgram(Program):
    """Hands out zeros for outputs once every segment has run, in an order that respects data."""

    def __init__(self, kernels: Graph, schedule: Schedule) -> None:
        segment_of = schedule.segment_of
        self._outputs = kernels.outputs
        self._missing: list[set[int]] = [set() for _ in schedule.segments]
        for tensor in kernels.tensors:
            if tensor.producer is not None:
                made_by = segment_of[tensor.producer]
                for consumer in tensor.consumers:
                    self._missing[segment_of[consumer]].add(made_by)
        for segment, missing in enumerate(self._missing):
            missing.discard(segment)
        self._done: set[int] = set()
        self.actual_devices = {s.device: "virtual clock" for s in schedule.segments}

    def run(self, segment: int) -> None:
        late = self._missing[segment] - self._done
        assert not late, f"segment {segment} runs before segments {sorted(late)}"
        self._done.add(segment)

    def feed(self, number: int) -> None:
        self._done.clear()

    def outputs(self) -> dict[str, Any]:
        return {t.name: np.zeros(t.shape or (), dtype=_dtype(t.dtype)) for t in self._outputs}


@dataclass(frozen=True, eq=False)
class NullCompiled(Compiled):
    """Every op is its own kernel."""

    kernels: Graph
    sources: tuple[tuple[str, ...], ...]
    random_ops: tuple[str, ...] = ()

    def feeds(self, seed: int, given: Feeds) -> dict[str, Any]:
        rng = np.random.default_rng(seed)
        made = {
            t.name: rng.random(t.shape or ()).astype(_dtype(t.dtype)) for t in self.kernels.inputs
        }
        return {**made, **given}

    def open(self, schedule: Schedule, feeds: Mapping[str, Any]) -> Program:
        return NullProgram(self.kernels, schedule)

    def open_ring(
        self, schedule: Schedule, feeds: Sequence[Feeds], depth: int
    ) -> tuple[Program, ...]:
        return tuple(NullProgram(self.kernels, schedule) for _ in range(depth))

    def unplaced(self, device: Device | None, feeds: Mapping[str, Any]) -> Program:
        return NullProgram(self.kernels, _whole(self.kernels))


class Null(Backend):
    """See `profiling.execution.execute`, which takes the times of a step from the simulation."""

    name: ClassVar[str] = "null"
    emulated: ClassVar[bool] = True

    def missing(self) -> str:
        return ""

    def devices(self) -> tuple[Device, ...]:
        return (Device("null:0", "cpu", self.name, label="virtual clock"),)

    def libraries(self) -> tuple[tuple[str, str], ...]:
        return ()

    def why_missing(self, device: Device, here: Mapping[str, Device]) -> str:
        return ""

    def compile(self, model: Model, machine: Machine) -> Compiled:
        return NullCompiled(model.graph, tuple((op.name,) for op in model.graph.ops))


def _whole(kernels: Graph) -> Schedule:
    """All kernels in one call."""
    names = tuple(op.name for op in kernels.ops)
    return Schedule((Segment("null:0", names),) if names else ())


def _dtype(name: str) -> np.dtype[Any]:
    """The numpy type of a tensor; float32 stands for what numpy does not know."""
    try:
        return np.dtype(name)
    except TypeError:
        return np.dtype(np.float32)


BACKEND = Null()
