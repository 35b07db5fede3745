"""m-TOPO: devices filled one after another in topological order, each up to an equal share.

Jeon et al., "Baechi: fast device placement of machine learning graphs", SoCC 2020. The cap of a
device is all memory over the number of devices plus the largest op; the next device is taken when
the cap or the device's own memory would be passed. Where no device has a limit there is nothing to
share out in bytes: seconds of compute take the place of memory.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placement.core.costs import Floats
from placement.core.formatting import percent
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.placers._lists.lists import lanes_for
from placement.placers.base import Placer, Progress, Report, Step, quiet
from placement.search.feasible import within_memory
from placement.search.step_parts import device_names, table, unit_called
from placement.search.steps import Kind
from placement.simulator.flat import flatten

if TYPE_CHECKING:
    from placement.placers._steps.filling import Put


@dataclass(frozen=True, kw_only=True)
class MTopo(Placer):
    summary = "Devices filled in topological order, each with an equal share of memory (Baechi)"
    paper = "Jeon et al.: Baechi, SoCC 2020"
    quick_up_to = 1_000_000
    tells_up_to = 300
    pseudo_code = (
        "cap of a device = an even share of what all ops need, and the largest op besides",
        "take the ops in the order of the model",
        "    go on to the next device where the current one's cap would be passed",
        "    put the op there, or on the next one that may run it and has room",
        "predict the step",
    )

    def place(self, problem: Problem, report: Report = quiet) -> Placement:
        def attempt(scale: float) -> Placement:
            load, cap = loads_and_caps(problem, scale)
            report(Progress(step=problem.num_units, of=problem.num_units))
            return problem.placement_of(fill(problem, load, cap))

        return within_memory(problem, attempt)

    def steps(self, problem: Problem, most: int, report: Report = quiet) -> Iterator[Step]:
        from placement.placers._steps.filling import walk

        scales: list[float] = []

        def attempt(scale: float) -> Placement:
            scales.append(scale)
            return problem.placement_of(fill(problem, *loads_and_caps(problem, scale)))

        answer = within_memory(problem, attempt)
        load, cap = loads_and_caps(problem, scales[-1])
        first, puts = _caps(problem, cap, scales[-1]), _puts(problem, load, cap)
        return walk(problem, puts, [first], answer, most, line=3, last_line=4)


def _caps(problem: Problem, cap: Floats, scale: float) -> Step:
    """The step that works out how much each device takes at most."""
    limited = _is_limited(problem)
    rows = list(zip(device_names(problem), cap.tolist(), strict=True))
    what = "bytes" if limited else "seconds"
    why = (
        f"Each device takes an even share of the {what} that all ops need, and as much as the"
        " largest op besides, but no more than it has."
    )
    if scale < 1:
        why += f" With more it did not fit, so devices count with {percent(scale)} of memory."
    caps = table("Caps", {"device": "text", "cap": "bytes" if limited else "seconds"}, rows)
    return Step(line=0, why=why, devices=(-1,) * problem.num_units, tables=(caps,))


def _is_limited(problem: Problem) -> bool:
    """Whether bytes are shared out, and not seconds."""
    return bool(np.isfinite(flatten(problem).limit_bytes).any())


def _puts(problem: Problem, load: Floats, cap: Floats) -> Iterator["Put"]:
    from placement.placers._steps.filling import Put

    names, kind = device_names(problem), "bytes" if _is_limited(problem) else "seconds"
    columns: dict[str, Kind] = {"device": "text"}
    columns |= dict.fromkeys(("it needs", "room before"), "bytes" if kind == "bytes" else "seconds")
    current = 0
    left = cap.tolist()
    for each in filling(problem, load, cap):
        op = unit_called(problem, each.unit)
        rows = [
            (name, float(load[each.unit, d]), room)
            for d, (name, room) in enumerate(zip(names, left, strict=True))
        ]
        here = names[each.device]
        why = f"{op} goes to {here}, the current device, which has room for it."
        if each.device != each.current:
            why = f"{op} cannot be on {names[each.current]}, so it goes to {here}."
        elif each.current != current:
            why = f"{names[current]} is full up to its cap, so {here} is next and takes {op}."
        current, left = each.current, each.left.tolist()
        rooms = table(f"Room for {op}", columns, rows, (each.device,))
        yield Put(each.unit, each.device, why, (rooms,))


def loads_and_caps(problem: Problem, scale: float = 1.0) -> tuple[Floats, Floats]:
    """What each unit adds to each device (U, D), and what each device takes at most (D,)."""
    flat = flatten(problem)
    shape = flat.allowed.shape
    if np.isfinite(flat.limit_bytes).any():
        lanes = lanes_for(flat, insertion=False, scale=scale)
        load = np.broadcast_to(lanes.needed_bytes[:, None], shape)
        share = lanes.needed_bytes.sum() / shape[1] + lanes.needed_bytes.max(initial=0.0)
        return load, np.minimum(share, lanes.limit_bytes)
    mean_s = np.where(flat.allowed, problem.unit_s, 0.0).sum(axis=1) / flat.allowed.sum(axis=1)
    load = np.where(flat.allowed, problem.unit_s, mean_s[:, None])
    # Equal times on devices of unequal speed: T with sum over devices of T / (all on it) = 1.
    equal_s = 1.0 / np.sum(1.0 / np.maximum(load.sum(axis=0), 1e-300))
    return load, equal_s + load.max(axis=0, initial=0.0)


class Filled(NamedTuple):
    """A unit that was put on a device, the device at hand, and what is left of each cap (D,)."""

    unit: int
    device: int
    current: int
    left: Floats


def fill(problem: Problem, load: Floats, cap: Floats) -> list[int]:
    """Device of each unit."""
    return [each.device for each in filling(problem, load, cap)]


def filling(problem: Problem, load: Floats, cap: Floats) -> Iterator[Filled]:
    """Units in declared order, each on the current device until its cap, then on the next.

    A unit that the current device may not run goes to the next that may and has room, as does
    everything when the last device is full; where none has room, to the one with the most.
    """
    current, num_devices = 0, problem.num_devices
    left = cap.copy()
    allowed = problem.allowed
    for unit in range(problem.num_units):
        while current < num_devices - 1 and load[unit, current] > left[current]:
            current += 1
        d = current
        if not (allowed[unit, d] and load[unit, d] <= left[d]):
            fitting = np.flatnonzero(allowed[unit] & (load[unit] <= left))
            # Those behind the current one come first, in a ring.
            ring = fitting[np.argsort(fitting < current, kind="stable")]
            roomiest = np.where(allowed[unit], left, -np.inf).argmax()
            d = int(ring[0] if ring.size else roomiest)
        left[d] -= load[unit, d]
        yield Filled(unit, d, current, left)


PLACER = MTopo
