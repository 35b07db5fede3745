"""Does a placement follow the machine while training? A busy loop takes one of two cores a while.

    python -m benchmarks.dynamic [--json] [--model NAME] [--dim KEY=N ...] [--steps 300]

Three training runs of the same placed step on two one-core lanes: undisturbed; with a process that
keeps the first lane's core busy from step 50 on until two thirds are over; and the same without
adjusting. Then, with the process still there, steps of placements made for a machine whose first
lane is half as fast run turn by turn: the fastest of them is the best static one. All losses are
compared with those of the undisturbed run.
"""

import json
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

import placement as pl
from benchmarks._shared import turns
from benchmarks._shared.figures import parser
from placement.advice.replacing import alone, unslowed, updated
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.core.verb_options import TrainOptions
from placement.schedule.segments import make_schedule
from profiling.execution.execute import compiled_for
from profiling.measuring.lock import measuring
from profiling.training.loop import Trained

BUSY_FROM, RECOVER_IN, WITHIN, RTOL = 50, 30, 0.15, 1e-4
SIZES = ("batch=4", "length=64", "depth=4", "width=256")
PLACERS = ("heft", "ceft_pbqp", "local_search")


@contextmanager
def loaded(core: int) -> Iterator[None]:
    """With a process that keeps one core busy."""
    code = f"import os\nos.sched_setaffinity(0, {{{core}}})\nwhile True: pass"
    child = subprocess.Popen([sys.executable, "-c", code])
    try:
        yield
    finally:
        child.kill()
        child.wait()


class Bench:
    """One model on two lanes, placed by HEFT."""

    def __init__(self, name: str, dims: dict[str, int], steps: int) -> None:
        self.model = pl.load(name, dims)
        machine = pl.machine_for(self.model, pl.machine("two-lanes"))
        measured = pl.profile(self.model, machine, refresh=True)
        self.problem = pl.make_problem(self.model, machine, measured)
        self.begun = pl.place(self.problem, "heft").placement
        self.steps, self.busy_until = steps, BUSY_FROM + 2 * (steps - BUSY_FROM) // 3
        core_ids = self.problem.machine.devices[0].core_ids
        if not core_ids:
            raise SystemExit("This computer does not let a process keep to one core.")
        self.core = core_ids[0]

    def train(self, *, disturbed: bool, adjust: bool, steps: int = 0) -> Trained:
        with ExitStack() as load:

            def hear(event: dict[str, Any]) -> None:
                if disturbed and event["event"] == "step":
                    if event["index"] == BUSY_FROM - 1:
                        load.enter_context(loaded(self.core))
                    elif event["index"] == self.busy_until - 1:
                        load.close()

            asked = TrainOptions(steps=steps or self.steps, adjust=adjust)
            return pl.train(self.model, self.problem, self.begun, asked, emit=hear)[1]

    def static_s(self, followed: Trained, rounds: int) -> dict[str, float]:
        """Median seconds beside the load, of placements made for it."""
        slowed = half_as_fast(self.problem)
        placements: dict[str, Placement] = {"as at the start": self.begun}
        placements |= {f"{name} alone": placement for name, placement in alone(slowed)}
        for name in PLACERS:
            placements[name] = pl.place(slowed, name).placement
        if followed.moves:
            placements["what adjusting chose"] = followed.moves[0].placement
        schedules = {n: make_schedule(slowed, p) for n, p in placements.items()}
        compiled = compiled_for(self.problem, self.model)
        with turns.opened(self.problem, compiled, schedules) as steps, loaded(self.core):
            times_s = turns.turn_by_turn(steps, rounds)
        return {name: statistics.median(seconds) for name, seconds in times_s.items()}


def half_as_fast(problem: Problem) -> Problem:
    """The problem where the first device takes twice as long."""
    factors = np.ones(problem.num_devices)
    factors[0] = 2.0
    return updated(problem, replace(unslowed(problem), device=factors))


def measured(bench: Bench, calm_steps: int, rounds: int) -> dict[str, Any]:
    """All of it as one JSON object."""
    calm = bench.train(disturbed=False, adjust=True, steps=calm_steps)
    followed = bench.train(disturbed=True, adjust=True)
    stayed = bench.train(disturbed=True, adjust=False)
    static_s = bench.static_s(followed, rounds)
    best = min(static_s, key=lambda name: static_s[name])
    limit_s = (1 + WITHIN) * static_s[best]
    busy = slice(BUSY_FROM + RECOVER_IN, bench.busy_until)
    return {
        "model": bench.model.graph.name,
        "ops": len(bench.model.graph.ops),
        "predicted_s": calm.predicted_s[0],
        "undisturbed": {"steps": len(calm.step_s), "moves": len(calm.moves)},
        "before_s": statistics.median(followed.step_s[20:BUSY_FROM]),
        "busy_s": {"adjusted": _median(followed, busy), "not adjusted": _median(stayed, busy)},
        "best_static": best,
        "static_s": static_s,
        "recovered_within": recovered_within(followed.step_s[BUSY_FROM:], limit_s),
        "of_best_static": _median(followed, busy) / static_s[best],
        "after_s": {
            "adjusted": statistics.median(followed.step_s[-30:]),
            "not adjusted": statistics.median(stayed.step_s[-30:]),
        },
        "moves": [
            {
                "step": m.step,
                "ops": len(m.ops_moved),
                "bytes": m.bytes_moved,
                "reason": m.reason,
                "solve_s": m.solve_s,
                "switch_s": m.switch_s,
            }
            for m in followed.moves
        ],
        "stays": [{"step": s.step, "reason": s.reason} for s in followed.stays],
        "between_steps_s": followed.probe_s + followed.solve_s + followed.switch_s,
        "losses_equal": all(_alike(calm.losses, run.losses) for run in (followed, stayed)),
        "loss": [calm.losses[0], calm.losses[-1]],
        "steps_s": {"adjusted": list(followed.step_s), "not adjusted": list(stayed.step_s)},
    }


def recovered_within(step_s: Sequence[float], limit_s: float) -> int | None:
    """Steps until the median of five is below a limit; None where it never is."""
    for i in range(len(step_s) - 4):
        if statistics.median(step_s[i : i + 5]) <= limit_s:
            return i
    return None


def _median(run: Trained, part: slice) -> float:
    return statistics.median(run.step_s[part])


def _alike(a: Sequence[float], b: Sequence[float]) -> bool:
    shared = min(len(a), len(b))
    return bool(np.allclose(a[:shared], b[:shared], rtol=RTOL, atol=0.0))


def lines(found: dict[str, Any]) -> Iterator[str]:
    """The table."""
    yield f"{found['model']}, {found['ops']} ops, predicted {found['predicted_s'] * 1e3:.1f} ms"
    yield ""
    yield "| step, ms | adjusted | not adjusted | best static |"
    yield "|---|---|---|---|"
    busy, after, best = found["busy_s"], found["after_s"], found["best_static"]
    yield f"| before the load | {found['before_s'] * 1e3:.1f} | | |"
    yield (
        f"| beside it, from {RECOVER_IN} steps on | {busy['adjusted'] * 1e3:.1f} |"
        f" {busy['not adjusted'] * 1e3:.1f} | {found['static_s'][best] * 1e3:.1f} ({best}) |"
    )
    yield (f"| after it | {after['adjusted'] * 1e3:.1f} | {after['not adjusted'] * 1e3:.1f} | |")
    yield ""
    steps = found["recovered_within"]
    yield (
        f"Within {100 * WITHIN:.0f} % of the best static placement after"
        f" {'no number of' if steps is None else steps} steps; adjusted / best static"
        f" {found['of_best_static']:.2f}"
    )
    calm = found["undisturbed"]
    yield f"Moves in {calm['steps']} undisturbed steps: {calm['moves']}"
    yield f"Losses as undisturbed (rtol {RTOL:g}): {'yes' if found['losses_equal'] else 'NO'}"
    yield f"Between the steps, seconds in all: {found['between_steps_s']:.2f}"
    for move in found["moves"]:
        yield (
            f"- before step {move['step']}: {move['ops']} ops, {move['bytes']} bytes moved in"
            f" {move['switch_s'] * 1e3:.0f} ms, found in {move['solve_s'] * 1e3:.0f} ms;"
            f" {move['reason']}"
        )
    for stay in found["stays"]:
        yield f"- before step {stay['step']}: stayed; {stay['reason']}"
    for name, seconds in found["static_s"].items():
        yield f"- static beside the load: {name} {seconds * 1e3:.1f} ms"


def main() -> None:
    made = parser(__doc__, model="bert_base:training", steps=300, calm_steps=500, rounds=20)
    made.add_argument("--dim", action="append", default=None, metavar="KEY=N")
    options = made.parse_args()
    dims = {k: int(n) for k, _, n in (text.partition("=") for text in options.dim or SIZES)}
    with measuring("dynamic"):
        bench = Bench(options.model, dims, options.steps)
        found = measured(bench, options.calm_steps, options.rounds)
    print(json.dumps(found) if options.json else "\n".join(lines(found)))


if __name__ == "__main__":
    main()
