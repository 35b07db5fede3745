"""A step read against the profile: how much longer its parts took than that says."""

from dataclasses import dataclass

import numpy as np

from placement.core.costs import Floats
from placement.core.problem import Problem
from placement.core.schedule import Schedule
from placement.simulator.executions import lower
from profiling.devices.lanes import Step


@dataclass(frozen=True, eq=False)
class Reading:
    """One step. By device (D,), nan for those without work: `ratio` of the seconds in its segments
    to those of the profile, and `overlap`, for how much of them others on the host computed too
    (2 where always two of them did). `hand_over` is the same ratio of hand-overs that somebody
    waited for, None without any. `segments` (S,) and `links` (D, D, from and to) are these ratios
    one by one. `step_s` is the step's length.
    """

    ratio: Floats
    overlap: Floats
    hand_over: float | None
    segments: Floats
    links: Floats
    step_s: float


class Reader:
    """Reads steps of one schedule."""

    def __init__(self, problem: Problem, schedule: Schedule) -> None:
        tasks = lower(problem, schedule)
        self._lanes = [np.array(lane, dtype=np.int64) for lane in tasks.lanes]
        # What the profile says that a step takes: by segment (S,), and on each link (D, D).
        self.segments_s = np.array(tasks.work_s)
        self.device = np.array(tasks.device, dtype=np.int64)
        self.links_s = np.zeros((problem.num_devices, problem.num_devices))
        self._work_s = [sum(tasks.work_s[s] for s in lane) for lane in tasks.lanes]
        self._on_host = [d.on_host for d in problem.machine.devices]
        names = [d.name for d in problem.machine.devices]
        self._expected_s: dict[tuple[int, str], float] = {}
        self._ends: dict[tuple[int, str], tuple[int, int]] = {}
        for move in tasks.transfers:
            if move.segment >= 0:
                key = (move.segment, names[move.dst])
                self._expected_s[key] = max(move.duration_s, self._expected_s.get(key, 0.0))
                self._ends[key] = (tasks.device[move.segment], move.dst)
        for key, seconds in self._expected_s.items():
            self.links_s[self._ends[key]] += seconds

    def read(self, step: Step) -> Reading:
        start_s, end_s = np.array(step.start_s), np.array(step.end_s)
        spans = [(start_s[lane], end_s[lane]) for lane in self._lanes]
        busy_s = [float((end - start).sum()) for start, end in spans]
        ratio, overlap = np.full((2, len(spans)), np.nan)
        for d, (start, end) in enumerate(spans):
            if busy_s[d] <= 0.0 or self._work_s[d] <= 0.0:
                continue
            ratio[d] = busy_s[d] / self._work_s[d]
            beside = (
                spans[e]
                for e in range(len(spans))
                if e != d and busy_s[e] > 0.0 and self._on_host[e] and self._on_host[d]
            )
            beside_s = sum(_busy_within(*other, start, end) for other in beside)
            overlap[d] = beside_s / busy_s[d]
        return Reading(
            ratio,
            overlap,
            self._hand_over(step),
            _ratio(end_s - start_s, self.segments_s),
            self._by_link(step),
            step.seconds,
        )

    def _hand_over(self, step: Step) -> float | None:
        measured_s = expected_s = 0.0
        for (segment, device), resumed_s in step.resumed_s.items():
            wanted_s = self._expected_s.get((segment, device), 0.0)
            if wanted_s > 0.0:
                measured_s += max(0.0, resumed_s - step.end_s[segment])
                expected_s += wanted_s
        return measured_s / expected_s if expected_s else None

    def _by_link(self, step: Step) -> Floats:
        """Ratios (D, D) of hand-overs, each from when the one before on its link was through."""
        measured_s, expected_s, through_s = np.zeros((3, *self.links_s.shape))
        waited = (key for key in step.resumed_s if self._expected_s.get(key, 0.0) > 0.0)
        for key in sorted(waited, key=lambda key: step.resumed_s[key]):
            link = self._ends[key]
            since_s = max(step.end_s[key[0]], through_s[link])
            measured_s[link] += max(0.0, step.resumed_s[key] - since_s)
            expected_s[link] += self._expected_s[key]
            through_s[link] = step.resumed_s[key]
        return _ratio(measured_s, expected_s)


def _ratio(measured_s: Floats, expected_s: Floats) -> Floats:
    """One by the other, nan where nothing is expected."""
    known = expected_s > 0.0
    return np.where(known, measured_s / np.where(known, expected_s, 1.0), np.nan)


def _busy_within(start_s: Floats, end_s: Floats, since_s: Floats, until_s: Floats) -> float:
    """Seconds of one lane's segments, one after the other, inside those of another.

    >>> _busy_within(np.array([0.0, 4.0]), np.array([2.0, 5.0]), np.array([1.0]), np.array([4.5]))
    1.5
    """
    border_s = np.stack([start_s, end_s], axis=1).ravel()
    done_s = np.stack([np.cumsum(end_s - start_s)] * 2, axis=1).ravel()
    done_s[0::2] -= end_s - start_s
    until, since = np.interp(until_s, border_s, done_s), np.interp(since_s, border_s, done_s)
    return float((until - since).sum())
