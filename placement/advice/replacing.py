"""Adjusting a placement to a machine whose speed has changed, starting from the current one.

Huang, Fu and Hsu, SAMOS 2019: the profile is kept up to date while a model is trained, and CEFT
with PBQP places it anew when the profile has changed. What they leave open is decided here: every
candidate is simulated at the speeds of now, beside staying, and a move must bring more than a
margin and more than it costs in the steps that are left.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from placement.advice.warming import warm_up
from placement.core.costs import Floats
from placement.core.formatting import percent
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.core.verb_options import TrainOptions
from placement.placers import placer_class
from placement.placers.base import Progress, quiet
from placement.placers.single import everything_on
from placement.search.chain import Chain, start_of
from placement.search.coarsening import blocks
from placement.search.feasible import final_s
from placement.search.improvement import improve
from placement.search.progress import in_words

Clock = Callable[[], float]
PLACER = TrainOptions.placer


@dataclass(frozen=True, eq=False)
class Slowdown:
    """Factors on the times of a profile, 2 for twice as long.

    `device` (D,) is on all that a device computes and on its calls, `link` on all hand-overs;
    `contention` stands in place of the profile's. `kernels` (K, D) and `links` (D, D, from and to)
    are on single kernels and on hand-overs between two devices, beside those; None for all 1.
    """

    device: Floats
    link: float
    contention: float
    kernels: Floats | None = None
    links: Floats | None = None


@dataclass(frozen=True, kw_only=True)
class Policy:
    """When a move is worth it, and how long to look for a better placement.

    A move must save more than `margin` of the step. The placer and then a local search from the
    best placement known have `time_limit_s` together, and at most `max_moves` trial moves.
    """

    placer: str = PLACER
    margin: float = TrainOptions.margin
    time_limit_s: float = 0.6
    max_moves: int = 4000

    def __post_init__(self) -> None:
        placer_class(self.placer)
        if not 0.0 <= self.margin < 1.0:
            raise ValueError(f"The margin is {self.margin}; use a share from 0 to below 1.")
        if not self.time_limit_s > 0.0 or self.max_moves < 1:
            raise ValueError("Looking for a better placement needs some time and some moves.")


@dataclass(frozen=True)
class Decision:
    """Whether to move, and why in words.

    `placement` is the one to go on with. `before_s` and `after_s` are predicted at the speeds of
    now, `method` says who found the best candidate, `seconds` how long the search took.
    """

    moves: bool
    reason: str
    placement: Placement
    method: str
    before_s: float
    after_s: float
    seconds: float


@dataclass(frozen=True)
class _Candidate:
    method: str
    placement: Placement
    value_s: float


def unslowed(problem: Problem) -> Slowdown:
    """The machine as the profile has it."""
    return Slowdown(np.ones(problem.num_devices), 1.0, problem.costs.contention)


def updated(problem: Problem, slowdown: Slowdown) -> Problem:
    """The problem with the profile brought up to date."""
    costs = problem.costs
    kernels = 1.0 if slowdown.kernels is None else slowdown.kernels
    link = slowdown.link * (1.0 if slowdown.links is None else slowdown.links)
    return replace(
        problem,
        costs=replace(
            costs,
            compute_s=costs.compute_s * slowdown.device * kernels,
            call_s=costs.call_s * slowdown.device,
            latency_s=costs.latency_s * link,
            s_per_byte=costs.s_per_byte * link,
            contention=slowdown.contention,
        ),
    )


def prepare(problem: Problem, policy: Policy) -> None:
    """Have compiled whatever `decide` may need, so that it takes no time between steps."""
    for name in (policy.placer, "local_search"):
        warm_up(placer_class(name)(), problem)


def decide(
    problem: Problem,
    current: Placement,
    *,
    known: Mapping[str, Placement],
    remaining_steps: int,
    switch_s: float,
    policy: Policy,
    clock: Clock = time.perf_counter,
) -> Decision:
    """The best placement at the costs of now, if it is worth moving to from the current one.

    `known` are placements to try by a name for people, such as the one that training began with;
    `switch_s` is what a move takes.
    """
    begun_s = clock()
    staying = _Candidate("the current placement", current, final_s(problem, current))
    best = staying
    for found in _candidates(problem, staying, known, policy, lambda: clock() - begun_s):
        if found.value_s < best.value_s * (1 - 1e-9):
            best = found
    saved_s = staying.value_s - best.value_s
    why_not = _why_not(staying, best, saved_s, remaining_steps, switch_s, policy)
    change = f"{in_words(best.value_s)} per step instead of {in_words(staying.value_s)}"
    return Decision(
        moves=not why_not,
        reason=why_not or f"predicted {change} ({best.method})",
        placement=current if why_not else best.placement,
        method=best.method,
        before_s=staying.value_s,
        after_s=staying.value_s if why_not else best.value_s,
        seconds=clock() - begun_s,
    )


def _why_not(
    staying: _Candidate,
    best: _Candidate,
    saved_s: float,
    remaining_steps: int,
    switch_s: float,
    policy: Policy,
) -> str:
    """Why to stay, empty where moving is worth it."""
    if best is staying:
        return "no other placement is predicted to be faster"
    share = saved_s / staying.value_s if math.isfinite(staying.value_s) else 1.0
    if share <= policy.margin:
        return (
            f"the best other placement saves {percent(share)} of a step, and a move must save"
            f" more than {percent(policy.margin)}"
        )
    if saved_s * remaining_steps <= switch_s:
        return (
            f"the best other placement saves {in_words(saved_s)} per step, which in"
            f" {remaining_steps} more steps does not pay for moving ({in_words(switch_s)})"
        )
    return ""


def _candidates(
    problem: Problem,
    staying: _Candidate,
    known: Mapping[str, Placement],
    policy: Policy,
    spent_s: Clock,
) -> Iterator[_Candidate]:
    """Cheap ones first; the last one is a search from the best before it."""
    best = staying

    def tried(method: str, placement: Placement) -> _Candidate:
        nonlocal best
        found = _Candidate(method, placement, final_s(problem, placement))
        best = min(best, found, key=lambda candidate: candidate.value_s)
        return found

    for name, placement in known.items():
        yield tried(name, placement)
    for device, placement in alone(problem):
        yield tried(f"{device} alone", placement)

    def in_time(progress: Progress) -> bool:
        return spent_s() < policy.time_limit_s

    placed = _placed(problem, policy, in_time)
    if placed is not None:
        yield tried(policy.placer, placed)
    left_s = policy.time_limit_s - spent_s()
    if left_s > 0:
        chain = Chain(problem, start_of(problem, best.placement), blocks(problem), seed=0, kick=3)
        improve(problem, [chain], quiet, max_iterations=policy.max_moves, time_limit_s=left_s)
        yield tried(f"local search from {best.method}", chain.placement)


def alone(problem: Problem) -> Iterator[tuple[str, Placement]]:
    """Everything on one device, for each in turn; what it may not run goes where it is cheapest."""
    for d, device in enumerate(problem.machine.devices):
        yield device.name, everything_on(problem, d)


def _placed(
    problem: Problem, policy: Policy, in_time: Callable[[Progress], bool]
) -> Placement | None:
    """What the placer finds; none where nothing fits, or where the graph is too large for it to be
    quick, because training waits."""
    kind = placer_class(policy.placer)
    if kind.quick_up_to and not kind.is_quick(problem):
        return None
    try:
        return kind(time_limit_s=policy.time_limit_s).place(problem, in_time)
    except ValueError:
        return None
