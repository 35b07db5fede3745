"""Finalists, each device alone and the whole CPU, measured until the fastest is certain.

The whole CPU as one device is another machine than its lanes. Where it wins, the answer is a
placement on that machine, which its file names (`WHOLE_CPU`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from placement.api.live import measurable
from placement.api.problems import stored_profile
from placement.api.quiet import quiet
from placement.core.events import Emit
from placement.core.formatting import percent, seconds
from placement.core.verb_options import STEP_TIMEOUT_S, PlaceOptions
from placement.remote.calls import in_confinement
from placement.schedule.simulated import simulate

if TYPE_CHECKING:
    from placement.core.load import Load
    from placement.core.machine import Machine
    from placement.core.model import Model
    from placement.core.placement import Placement
    from placement.core.problem import Problem
    from placement.placers.base import Finalist
    from profiling.execution.tournament import Entrant, Tournament

# The machine of one device that stands for the CPU of this computer.
WHOLE_CPU = "local:1"
WHOLE_CPU_NAME = "whole CPU as one device"
# Less than a confined process has for a model (`profiling.sandbox.confinement`), and what weights
# take with what a runtime makes of them.
ROOM_BYTES, ROOM_BYTES_PER_BYTE, PACKED = 2 * 2**30, 6, 2.5


@dataclass(frozen=True)
class Final:
    """A placement that took part, with what is predicted and the seconds of its measured turns.

    `predicted_s` is None where nothing is known. `left` says why it was not in the race at its end,
    `machine` names the machine where it is not the one that was asked for.
    """

    name: str
    problem: Problem
    placement: Placement
    predicted_s: float | None
    turn_s: tuple[float, ...] = ()
    left: str = ""
    machine: str = ""

    @property
    def median_s(self) -> float:
        return float(np.median(self.turn_s)) if self.turn_s else math.inf


@dataclass(frozen=True)
class Finals:
    """All that took part, the fastest of them, and whether it is certain that no other is.

    `load` is what others computed in the rounds that counted.
    """

    entries: tuple[Final, ...]
    winner: Final
    is_certain: bool
    load: Load | None = None

    @property
    def is_emulated(self) -> bool:
        """Whether a virtual clock took the place of hardware."""
        from profiling import backends

        return backends.emulated(self.winner.problem.machine.devices)

    @property
    def account(self) -> str:
        """Which placement won, in words."""
        won = self.winner
        if not won.turn_s:
            return "Nothing was measured"
        how = "Emulated" if self.is_emulated else "Measured"
        said = f"{how}, {won.name} is fastest of {len(self.entries)}: {seconds(won.median_s)}"
        others = [e for e in self.entries if e is not won and e.turn_s]
        second = min(others, key=lambda e: e.median_s, default=None)
        if second is not None:
            gain = percent(abs(second.median_s / won.median_s - 1))
            said += f"; next is {second.name}, {gain} slower"
        return said if self.is_certain else f"{said}; that is not certain yet"


def finals(
    model: Model | None,
    problem: Problem,
    finalists: Sequence[Finalist],
    options: PlaceOptions,
    *,
    keep: Placement | None,
    emit: Emit,
    stop: Callable[[], bool],
) -> Finals:
    """Measure who is fastest of the finalists and of what has to be beaten.

    With `keep`, a placement that some ops may leave, that one has to be beaten and nothing else.
    """
    from profiling.execution.tournament import Entrant

    opened = measurable(model, problem)
    finalists = finalists[: _num_finalists(problem)]
    found, entrants = list[Final](), list[Entrant]()
    for entry in _entries(opened, problem, finalists, options.placer, keep):
        predicted = simulate(entry.problem, entry.placement)
        found.append(entry if entry.machine else replace(entry, predicted_s=predicted.value))
        entrants.append(Entrant(entry.name, entry.problem, predicted.schedule))
    raced = _raced(opened, entrants, options.live_limit_s, options.seed, emit=emit, stop=stop)
    entries = tuple(
        replace(entry, turn_s=turn_s, left=left)
        for entry, turn_s, left in zip(found, raced.turn_s, raced.left, strict=True)
    )
    winner = entries[raced.winner or 0]
    if winner.machine and winner.predicted_s is None:
        whole = one_device(problem, winner.problem.machine, winner.median_s)
        entries = tuple(replace(e, problem=whole) if e is winner else e for e in entries)
        winner = entries[raced.winner or 0]
    return Finals(entries, winner, raced.is_certain, raced.load)


def _num_finalists(problem: Problem) -> int:
    """How many finalists may be open side by side with each device alone, by their weights.

    All have weights of their own, which a runtime packs anew, in the memory of one process.
    """
    weights_bytes = max(1, problem.kernels.param_bytes)
    room = int((ROOM_BYTES + ROOM_BYTES_PER_BYTE * weights_bytes) / (PACKED * weights_bytes))
    return max(1, room - problem.num_devices - 1)


@in_confinement("profiling.execution.tournament:Tournament", on_hosts=True)
def _raced(
    model: Model,
    entrants: Sequence[Entrant],
    limit_s: float,
    seed: int,
    *,
    emit: Emit,
    stop: Callable[[], bool],
) -> Tournament:
    from profiling.execution.tournament import tournament

    machine = entrants[0].machine
    with quiet("placements of", model, machine, emit):
        return tournament(
            entrants,
            model=model,
            limit_s=limit_s,
            timeout_s=STEP_TIMEOUT_S,
            seed=seed,
            emit=emit,
            stop=stop,
        )


def _entries(
    model: Model,
    problem: Problem,
    finalists: Sequence[Finalist],
    placer: str,
    keep: Placement | None,
) -> Iterator[Final]:
    """Everything that takes part, each placement once, the finalists first."""
    from placement.constraints.fusion import mended
    from placement.schedule.order import moved

    seen, named = set[tuple[object, ...]](), Counter[str]()

    def entry(name: str, placement: Placement) -> Iterator[Final]:
        key = tuple(placement.device_of.items()), placement.order
        if key not in seen:
            seen.add(key)
            named[name] += 1
            number = f" {named[name]}" if named[name] > 1 else ""
            yield Final(f"{name}{number}", problem, placement, None)

    alone = {} if keep is not None else dict(_alone(problem))
    taken = [dict(placement.device_of) for placement in alone.values()]
    for finalist in finalists:
        name, placement = finalist.name or placer, finalist.placement
        if keep is not None:
            placement = moved(problem, mended(problem, keep), placement.device_of)
        if dict(placement.device_of) not in taken:
            yield from entry(name, placement)
    if keep is not None:
        yield from entry("as it was", mended(problem, keep))
        return
    for device, placement in alone.items():
        yield from entry(f"{device} alone", placement)
    whole = whole_cpu(model, problem)
    if whole is not None:
        measured = stored_profile(model, problem.machine)
        step_s = measured.all_cores_s if measured is not None else None
        changed = one_device(problem, whole, step_s or 1.0)
        everything = changed.placement_of(np.zeros(changed.num_units, dtype=np.int64))
        placement = replace(everything, machine=WHOLE_CPU)
        yield Final(WHOLE_CPU_NAME, changed, placement, step_s, machine=WHOLE_CPU)


def _alone(problem: Problem) -> Iterator[tuple[str, Placement]]:
    """Each device with everything on it, as far as it may be."""
    for number, device in enumerate(problem.machine.devices):
        if problem.allowed[:, number].all():
            yield device.name, problem.placement_of(np.full(problem.num_units, number))


def whole_cpu(model: Model, problem: Problem) -> Machine | None:
    """The machine of one device that the lanes of a problem are parts of; None where there is none,
    or where pins say which lane is for what."""
    from placement.api.machines import machine, machine_for
    from profiling import backends

    devices = problem.machine.devices
    lanes = backends.cpu_lanes(devices)
    if len(devices) < 2 or len(lanes) < len(devices) or problem.pins:
        return None
    if backends.emulated(devices):
        return None
    found = machine_for(model, machine(WHOLE_CPU))
    cpus = tuple(backends.cpu_lanes(found.devices).values())
    return replace(found, devices=cpus, links=()) if len(cpus) == 1 else None


def one_device(problem: Problem, machine: Machine, step_s: float) -> Problem:
    """The problem on a machine of one device on which a whole step takes so long.

    How the step is shared among the kernels is as on the first device.
    """
    share = np.where(np.isfinite(problem.costs.compute_s), problem.costs.compute_s, 0.0)[:, :1]
    total = float(share.sum())
    scaled = share * (step_s / total) if total else np.full_like(share, step_s / max(1, len(share)))
    costs = replace(
        problem.costs,
        compute_s=scaled,
        call_s=np.zeros(1),
        latency_s=np.zeros((1, 1)),
        s_per_byte=np.zeros((1, 1)),
        overhead=np.zeros((2, 1, 1)),
        contention=0.0,
        spread=None,
    )
    return replace(problem, machine=machine, costs=costs, pins=(), sequences=())
