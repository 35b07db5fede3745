"""A profile: what running a graph on a machine's devices was measured to cost, kernel by kernel.

The kernels belong here and not to the graph, because a runtime decides them: it fuses, reorders and
folds source ops, differently from machine to machine and version to version.
"""

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from placement.core.amounts import MOST, is_amount
from placement.core.costs import ORIGINS, Costs
from placement.core.decoding import decode, shown
from placement.core.graph import Graph, graph_to_json
from placement.core.load import Load
from placement.core.machine import Machine, link_arrays
from placement.core.schedule import Schedule
from placement.core.timeline import Observed

FORMAT = "placement-profile"
Rows = tuple[tuple[float | None, ...], ...]
# Runs that refine a profile, each of another placement; more say little that is new.
MOST_RUNS = 8


@dataclass(frozen=True)
class RefiningRun:
    """A live run that refines a profile: of which placement, when, and what it took.

    `placement` is its name for people, `key` stands for what it is; `measured_at` is ISO 8601, UTC.
    """

    placement: str
    key: str
    measured_at: str
    step_s: float
    schedule: Schedule
    observed: Observed

    def __post_init__(self) -> None:
        if len(self.observed.computes) != len(self.schedule.segments):
            raise ValueError("A run that refines has other parts than segments; run it again.")
        if not (is_amount(self.step_s) and self.step_s > 0):
            raise ValueError(f"A run that refines has step_s {self.step_s!s:.20}; run it again.")

    def require(self, kernels: Collection[str], devices: Collection[str]) -> None:
        """ValueError unless it ran these kernels, each once, on these devices."""
        named = [kernel for segment in self.schedule.segments for kernel in segment.kernels]
        other = next((k for k in named if k not in kernels), None)
        other = other or next(
            (s.device for s in self.schedule.segments if s.device not in devices), None
        )
        if other is not None:
            raise ValueError(
                f"A run that refines names {shown(other)}, which the profile does not have; run it"
                " again."
            )
        if len(set(named)) != len(kernels) or len(named) != len(kernels):
            raise ValueError("A run that refines did not run each kernel once; run it again.")


@dataclass(frozen=True)
class Refinement:
    """Runs that a profile is refined by, and how far: 0 leaves it as it was measured, 1 goes all
    the way to what they say."""

    runs: tuple[RefiningRun, ...]
    strength: float = 1.0

    def __post_init__(self) -> None:
        if not 1 <= len(self.runs) <= MOST_RUNS:
            raise ValueError(f"A profile is refined by 1 to {MOST_RUNS} runs; run it again.")
        if not 0 <= self.strength <= 1:
            raise ValueError(f"A refinement has strength {self.strength!s:.20}; use 0 to 1.")


@dataclass(frozen=True)
class Profile:
    """Measured seconds of every kernel on every device of a machine.

    `sources[k]` names the source ops that kernel k does the work of, empty for one of the runtime's
    own (a change of layout). `compute_s[k][d]` is the median, None where the device cannot run the
    kernel, and `spread[k][d]` its interquartile range over the median. `step_s[d]` is the whole
    model on that device alone, `all_cores_s` on the whole CPU where the devices are its lanes.
    The machine's links carry the measured latencies and bandwidths. `measured_at` is ISO 8601, UTC;
    `load` says what others computed meanwhile. `refined_by` are live runs since then that say more
    about the costs (`placement/costs/refined.py`); the figures here stay as they were measured.
    """

    graph: str
    machine: Machine
    kernels: Graph
    sources: tuple[tuple[str, ...], ...]
    compute_s: Rows
    spread: tuple[tuple[float, ...], ...]
    call_s: tuple[float, ...]
    step_s: tuple[float | None, ...]
    all_cores_s: float | None = None
    contention: float = 0.0
    measured_at: str = ""
    origin: str = "measured"
    load: Load | None = None
    refined_by: Refinement | None = None

    def __post_init__(self) -> None:
        num_kernels, num_devices = len(self.kernels.ops), len(self.machine.devices)
        for name, rows in (("compute_s", self.compute_s), ("spread", self.spread)):
            if len(rows) != num_kernels or any(len(row) != num_devices for row in rows):
                raise ValueError(
                    f"The profile's {name} is not {num_kernels} kernels by {num_devices} devices;"
                    " measure it again."
                )
        if not is_amount(self.contention):
            raise ValueError(f"The profile has contention {self.contention}; measure it again.")
        if self.origin not in ORIGINS:
            raise ValueError(
                f"The profile has origin {shown(self.origin)}; use one of {tuple(ORIGINS)}."
            )
        if len(self.sources) != num_kernels or len(self.call_s) != num_devices:
            raise ValueError(
                "The profile's lists do not match its kernels and devices; measure again."
            )
        for run in runs_of(self):
            run.require(self.kernels.index.keys(), self.machine.index.keys())
        for name, rows in self._seconds().items():
            wrong = next(
                (s for row in rows for s in row if s is not None and not is_amount(s)), None
            )
            if wrong is not None:
                raise ValueError(
                    f"The profile's {name} has {wrong!s:.20}; use 0 to {MOST:g}, or measure again."
                )

    def _seconds(self) -> dict[str, Rows]:
        """Everything measured, by name: rows of times, and of spreads."""
        return {
            "compute_s": self.compute_s,
            "spread": self.spread,
            "call_s": (self.call_s,),
            "step_s": (self.step_s,),
            "all_cores_s": ((self.all_cores_s,),),
        }

    @property
    def coverage(self) -> float:
        """Share of (kernel, device) pairs that have a time."""
        cells = [cell for row in self.compute_s for cell in row]
        return sum(cell is not None for cell in cells) / len(cells) if cells else 1.0

    def costs(self) -> Costs:
        """The same as arrays, as they were measured."""
        latency_s, s_per_byte = link_arrays(self.machine)
        compute = [[np.inf if cell is None else cell for cell in row] for row in self.compute_s]
        return Costs(
            compute_s=np.array(compute, dtype=np.float64).reshape(len(compute), len(self.call_s)),
            call_s=np.array(self.call_s, dtype=np.float64),
            latency_s=latency_s,
            s_per_byte=s_per_byte,
            origin=self.origin,
            contention=self.contention,
            load=self.load,
            overhead=self.machine.overheads,
            spread=np.array(self.spread, dtype=np.float64).reshape(len(compute), len(self.call_s)),
        )

    def to_json(self) -> dict[str, Any]:
        content = asdict(self)
        content["kernels"] = graph_to_json(self.kernels)
        content["format"] = FORMAT
        return content


def runs_of(profile: Profile) -> tuple[RefiningRun, ...]:
    """The live runs that refine a profile."""
    return () if profile.refined_by is None else profile.refined_by.runs


def profile_from_json(content: Any) -> Profile:
    """A profile from its JSON object; a ValueError says what is missing or wrong."""
    if not isinstance(content, Mapping) or content.get("format") != FORMAT:
        raise ValueError(
            f'A profile file needs "format": "{FORMAT}"; write one with'
            " `python -m placement profile INPUT --out FILE`."
        )
    return decode({"origin": "given", **content}, Profile, remedy="measure it again")
