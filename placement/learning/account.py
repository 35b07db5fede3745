"""What a search by samples tells: its points now and then, its groups, and its account in words.

A `Trace` with room writes its first batches down, for those who follow the search step by step.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from placement.core.costs import Floats
from placement.core.formatting import counted, percent
from placement.core.graph import Ints
from placement.core.problem import Problem
from placement.learning.environment import Environment
from placement.learning.training import Batch, Learned, Point
from placement.search.progress import Progress, Report, in_words

REPORT_EVERY_S = 0.1


class Seen(NamedTuple):
    """A batch that was written down: the best placement (U,) that the policy drew, its seconds, and
    the chance of each unit on each device (U, D) with which it was drawn.

    Without `is_exact` the chances are shares of the `num_drawn` placements.
    """

    point: Point
    environment: Environment
    devices: Ints
    value_s: float
    chances: Floats
    is_exact: bool
    num_drawn: int


class Trace:
    """Has room for so many batches; one without any writes nothing down.

    `answers` are those of the candidates with their seconds, `batches` counts all batches, of which
    `last` is the last point; `found_s` is what the best takes as it was found, `own_s` in the end.
    """

    def __init__(self, room: int = 0) -> None:
        self.room = room
        self.answers: list[tuple[str, float]] = []
        self.seen: list[Seen] = []
        self.num_batches = 0
        self.last: Point | None = None
        self.found_s, self.own_s = math.inf, math.inf

    def answered(self, name: str, value_s: float) -> None:
        """What a candidate has answered, and what that takes."""
        if self.room:
            self.answers.append((name, value_s))

    def in_batches(self, progress: Progress) -> Progress:
        """Progress that counts placements, in batches; the end has as many as there were."""
        of = round(self.num_batches * progress.of / progress.step) if progress.step else 0
        return replace(progress, step=self.num_batches, of=max(of, self.num_batches))

    def end(self, found_s: float, own_s: float) -> None:
        """What the best placement takes as it was found, and with what was made of it."""
        self.found_s, self.own_s = found_s, own_s

    def hear(self, point: Point, batch: Batch) -> None:
        """Write a batch down, while there is room."""
        self.num_batches, self.last = self.num_batches + 1, point
        if len(self.seen) >= self.room:
            return
        own_s = batch.value_s[: batch.num_own]
        best, chances = int(own_s.argmin()), batch.chances()
        found = _shares(batch) if chances is None else chances
        self.seen.append(
            Seen(
                point,
                batch.environment,
                batch.devices[best].copy(),
                float(own_s[best]),
                found.copy(),
                chances is not None,
                batch.num_own,
            )
        )


def _shares(batch: Batch) -> Floats:
    """Of the placements that were drawn, in how many each unit is on each device (U, D)."""
    own = batch.devices[: batch.num_own]
    devices = range(batch.environment.num_devices)
    return np.stack([(own == d).mean(axis=0) for d in devices], axis=1)


class Heard:
    """Tells a report of the points of a search, now and then, and of how it ended. Of
    one that is not timed it says how many placements there will be. A trace hears every batch."""

    def __init__(self, report: Report, is_timed: bool, trace: Trace) -> None:
        self.report, self._is_timed, self._trace = report, is_timed, trace
        self.is_going_on = True
        self._told_s = -math.inf

    def tell(self, point: Point, share: float, batch: Batch) -> bool:
        self._trace.hear(point, batch)
        now_s = time.perf_counter()
        if share < 1.0 and now_s - self._told_s < REPORT_EVERY_S:
            return True
        self._told_s = now_s
        self.is_going_on = self.report(
            Progress(
                best_s=point.best_s,
                step=point.evaluations,
                of=0 if self._is_timed else round(point.evaluations / max(share, 1e-9)),
                evaluations=point.evaluations,
                mean_s=point.mean_s,
                entropy=point.entropy,
            )
        )
        return self.is_going_on

    def conclude(self, learned: Learned, best_s: float, account: str, groups: Ints | None) -> None:
        """Tell how the answer came about."""
        nothing = Point(0, math.inf, math.inf, 0.0)
        last = learned.curve[-1] if learned.curve else nothing
        self.report(
            Progress(
                best_s=best_s,
                evaluations=learned.evaluations,
                mean_s=last.mean_s,
                entropy=last.entropy,
                note=account,
                groups=() if groups is None else tuple(groups.tolist()),
            )
        )


def groups_of(problem: Problem, learned: Learned) -> Ints | None:
    """The group of each op (O,) that a policy formed last; None where it formed none, or every unit
    is one. An environment's units need not be those of the problem, so kernels lead to them."""
    formed = learned.trained.policy.groups() if learned.trained else None
    if learned.trained is None or formed is None:
        return None
    of_kernel = formed[learned.trained.environment.unit_of_kernel]
    of_op_unit, of_kernel_unit = problem.unit_of_op, problem.unit_of_kernel
    num_units = 1 + int(max(of_op_unit.max(initial=-1), of_kernel_unit.max(initial=-1)))
    # What computes nothing is a group beside the others.
    of_unit = np.full(num_units, of_kernel.max(initial=-1) + 1)
    of_unit[of_kernel_unit] = of_kernel
    found: Ints = of_unit[of_op_unit]
    return found if len(np.unique(found)) < problem.num_units else None


def account_of(learned: Learned, own_s: float, offered_s: float, candidates: Sequence[str]) -> str:
    """What a search came to, what its policy learned, and the candidates that it did not beat."""
    tried = counted(learned.evaluations, "placement")
    account = f"{in_words(own_s)} is the best of {tried} tried"
    if learned.remark:
        account += f"; {learned.remark}"
    means_s = [p.mean_s for p in learned.curve if p.entropy > 0 and math.isfinite(p.mean_s)]
    if len(means_s) > 1:
        first, last = in_words(means_s[0]), in_words(means_s[-1])
        account += (
            f"; what the network itself draws took {first} on average at first, {last} at last"
        )
    if math.isinf(offered_s):
        return account
    names = " and ".join(candidates)
    if in_words(own_s) == in_words(offered_s):
        return f"{account}; the best of {names} is as good"
    if own_s < offered_s:
        return f"{account}; that is {percent(1 - own_s / offered_s)} below the best of {names}"
    return f"{account}; the best of {names} is not beaten: {in_words(offered_s)}, the answer"
