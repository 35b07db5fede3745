"""What PyTorch's lanes gain by waiting awake, and the whole CPU by one team of threads. Live.

    python -m benchmarks.live.torch_waits [--json] [--rounds N] [--seed N] [MODEL ...]

Of each network two one-core lanes run HEFT's placement, moves as by hand and random placements as
`benchmarks.live.fidelity` draws them, by lanes that try while they wait for each other and by ones
that sleep, turn by turn in one process. Then the whole CPU runs all of it, by turns with and
without an idle team of threads that another thread of the process keeps, as before each had to let
go of it. Ratios below 1 are gains. Files are opened in this process: give it those of people you
trust.
"""

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import placement as pl
from benchmarks._fidelity.placements import schedules
from benchmarks._shared import turns
from benchmarks._shared.figures import named, show
from benchmarks.live.fidelity import models
from placement.core.model import Model
from placement.simulator.executions import lower
from profiling.backends.base import Compiled, Program
from profiling.devices.cores import usable_cores
from profiling.devices.lanes import Lane
from profiling.execution.execute import compiled_for, lanes_of
from profiling.measuring.lock import measuring
from profiling.measuring.timing import ratio_interval

# After so long a team sleeps.
IDLE_S = 0.02
COLUMNS = {
    "model": "{model}",
    "placement": "{placement}",
    "segments": "{num_segments}",
    "before ms": "{before_ms:.3g}",
    "now ms": "{now_ms:.3g}",
    "now / before (95 %)": "{ratio:.3f} ({low:.3f} to {high:.3f})",
}


def rows(model: Model, rounds: int, seed: int) -> list[dict[str, Any]]:
    machine = pl.machine_for(model, pl.machine("two-lanes"))
    problem = pl.make_problem(model, machine, pl.profile(model, machine))
    compiled = compiled_for(problem, model)
    placed = {name: s for _, name, s in schedules(problem, seed) if len(s.segments) > 1}
    num_segments = {name: len(s.segments) for name, s in placed.items()} | {"whole CPU": 1}
    feeds = compiled.feeds(0, {})
    with ExitStack() as stack:
        steps: dict[str, Callable[[], float]] = {}
        for name, schedule in placed.items():
            lanes = lanes_of(problem, lower(problem, schedule))
            for awake in (False, True):
                program = compiled.open(schedule, feeds)
                program.waits_awake = awake
                step = stack.enter_context(_stepped(program, lanes, len(schedule.segments)))
                steps[_key(name, awake)] = step
        times_s = turns.turn_by_turn(steps, rounds)
    with _whole_cpu(compiled, feeds) as steps:
        times_s |= turns.turn_by_turn(steps, rounds)
    return [_row(model, name, num, times_s) for name, num in num_segments.items()]


def _key(name: str, now: bool) -> str:
    return f"{name} {'now' if now else 'before'}"


@contextmanager
def _stepped(
    program: Program, lanes: Sequence[Lane], num_segments: int
) -> Iterator[Callable[[], float]]:
    with closing(program):
        threads = program.carried(lanes, num_segments)
        try:
            yield lambda: threads.step(turns.TIMEOUT_S).seconds
        finally:
            threads.close()


@contextmanager
def _whole_cpu(
    compiled: Compiled, feeds: Mapping[str, Any]
) -> Iterator[dict[str, Callable[[], float]]]:
    """With a team that a thread of its own keeps, idle, and once it has let go of it."""
    import torch

    from profiling.backends._torch.run import use_threads
    from profiling.backends._torch.teams import let_go

    def keep_a_team() -> None:
        use_threads(len(usable_cores()))
        torch.ones(1 << 20).add_(1.0)
        time.sleep(IDLE_S)

    def have_none() -> None:
        let_go()
        time.sleep(IDLE_S)

    with turns.alone(compiled, {"whole CPU": None}) as alone, ThreadPoolExecutor(1) as other:

        def step_beside(kept: Callable[[], None]) -> float:
            other.submit(kept).result()
            return alone["whole CPU"]()

        yield {
            _key("whole CPU", False): partial(step_beside, keep_a_team),
            _key("whole CPU", True): partial(step_beside, have_none),
        }


def _row(
    model: Model, name: str, num_segments: int, times_s: Mapping[str, Sequence[float]]
) -> dict[str, Any]:
    before_s, now_s = times_s[_key(name, False)], times_s[_key(name, True)]
    ratio, low, high = ratio_interval(now_s, before_s, 0)
    return {
        "model": model.graph.name,
        "placement": name,
        "num_segments": num_segments,
        "before_ms": statistics.median(before_s) * 1e3,
        "now_ms": statistics.median(now_s) * 1e3,
        "ratio": ratio,
        "low": low,
        "high": high,
    }


def main() -> None:
    options = named(__doc__, ["inception_v3", "nmt"], rounds=25, seed=0)
    found = []
    with measuring("torch_waits"), tempfile.TemporaryDirectory() as folder:
        for model in models(options.names, Path(folder)):
            found += rows(model, options.rounds, options.seed)
    show(options.json, COLUMNS, found)


if __name__ == "__main__":
    main()
