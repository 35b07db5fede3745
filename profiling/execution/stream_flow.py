"""Samples on their way through a pipeline: buffers for each in flight, a source and a sink."""

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from placement.core.events import Emit
from placement.core.problem import Problem
from placement.core.schedule import Schedule
from placement.core.verb_options import MOST_IN_FLIGHT, StreamOptions
from placement.schedule.stages import in_stages
from profiling.backends.base import ClusterEnded, Compiled, DevicesLost, Program, Streamed
from profiling.devices.lanes import Lane
from profiling.execution.stream_outputs import Outputs

# Samples whose spans are shown.
NUM_SHOWN = 4
# Samples in flight beyond one for each stage: a device that is late does not hold up the others.
SPARE = 3


@dataclass(frozen=True)
class Opened:
    """A schedule in order of its stages, ready to run: a program per slot."""

    schedule: Schedule
    stage_of: tuple[int, ...]
    programs: tuple[Program, ...]
    feeds: tuple[dict[str, Any], ...]

    @property
    def depth(self) -> int:
        return len(self.programs)


def opened(
    problem: Problem,
    schedule: Schedule,
    compiled: Compiled,
    options: StreamOptions,
    given: Mapping[str, Any],
) -> Opened:
    """As many programs as asked for; by default fewer where memory does not hold them."""
    wanted, seed = options.depth, options.seed
    if wanted is None:
        _, stage_of = in_stages(problem, schedule)
        wanted = min(max(stage_of, default=0) + 1 + SPARE, MOST_IN_FLIGHT)
    while True:
        staged, stage_of = in_stages(problem, schedule, wanted)
        first = compiled.feeds(seed, given)
        others = 0 if set(given) == set(first) else _num_inputs(wanted) - 1
        feeds = (first, *(compiled.feeds(seed + 1 + i, given) for i in range(others)))
        try:
            programs = compiled.open_ring(staged, feeds, wanted)
        except ValueError:
            if options.depth is not None or wanted == 1:
                raise
            wanted -= 1
            continue
        return Opened(staged, stage_of, programs, feeds)


def _num_inputs(depth: int) -> int:
    """How many inputs take turns: a slot and its neighbours never see one twice running.

    So an output that was left over from the sample before, or belongs to the next, is noticed.
    """
    return next(n for n in range(3, depth + 4) if depth % n)


class Flow:
    """The source and the sink of a pipeline: feeds samples in order, fetches outputs in order.

    Before the measured samples come as many as fill the pipeline (`num_before`, the warm-up at
    least), behind them as many as keep it full until the last of those is out.
    """

    def __init__(
        self,
        made: Opened,
        lanes: Sequence[Lane],
        outputs: Outputs,
        options: StreamOptions,
        emit: Emit,
        stop: Callable[[], bool],
    ) -> None:
        self._made, self._outputs, self._emit, self._stop = made, outputs, emit, stop
        passes = max(program.settles_after for program in made.programs)
        self.num_before, self._samples = max(options.warmup, passes * made.depth), options.samples
        self._total = self.num_before + self._samples + made.depth
        self._timeout_s = options.step_timeout_s
        watched = range(self.num_before, self.num_before + NUM_SHOWN)
        self.lanes: Streamed = made.programs[0].streamed(
            made.programs, lanes, made.stage_of, watched
        )
        self.fed_s: list[float] = []
        self.done_s: list[float] = []

    @property
    def measured(self) -> range:
        """The measured samples that have come out."""
        return range(self.num_before, min(len(self.done_s), self.num_before + self._samples))

    @property
    def cancelled(self) -> bool:
        return len(self.done_s) < self._total

    def run(self) -> None:
        """Until all samples are out, or those in flight when `stop` says so."""
        depth = self._made.depth
        for sample in range(self._total + 1):
            if sample >= depth:
                self._fetch(sample - depth)
            if sample == self._total or self._stop():
                break
            self.fed_s.append(time.perf_counter())
            self.lanes.begin(sample, sample % len(self._made.feeds))
        num_fed = len(self.fed_s)
        self.lanes.end(num_fed)
        for sample in range(len(self.done_s), num_fed):
            self._fetch(sample)
        self._outputs.finish()

    def _fetch(self, sample: int) -> None:
        """Compare the outputs of a sample that has come out."""
        self.done_s.append(self._completed_s(sample))
        self._outputs.compare(sample % len(self._made.feeds), self.lanes.outputs(sample))
        if sample in self.measured:
            self._emit(
                {
                    "event": "step",
                    "index": sample - self.num_before,
                    "seconds": self.done_s[-1] - self.done_s[-2],
                    "latency_s": self.done_s[-1] - self.fed_s[sample],
                }
            )

    def _completed_s(self, sample: int) -> float:
        try:
            return self.lanes.completed_s(sample, self._timeout_s)
        except TimeoutError as error:
            raise RuntimeError(str(error)) from None
        except (ValueError, AssertionError, DevicesLost, ClusterEnded):
            raise
        except Exception as error:  # runtimes raise kinds of their own
            text = " ".join(str(error).split())[:300]
            raise RuntimeError(f"The runtime failed on sample {sample}: {text}") from None


def intervals_s(
    fed_s: Sequence[float], done_s: Sequence[float], before: int, depth: int
) -> tuple[float, ...]:
    """Seconds between outputs while the pipeline was full, of all samples where it never was.

    Not counted are the first samples, as many as `before` (the pipeline fills), and the last
    `depth` (it drains: devices that are through no longer slow the others down).

    >>> intervals_s([0.0] * 7, [4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 9.5], 2, 2)
    (1.0, 1.0, 1.0)
    """
    full = done_s[before - 1 : len(done_s) - depth]
    if len(full) < 2:
        full = [*fed_s[:1], *done_s]
    return tuple(b - a for a, b in itertools.pairwise(full))
