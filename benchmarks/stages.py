"""Pipelines of model graphs: exact contiguous stages beside layers in equal numbers and searches.

    python -m benchmarks.stages [--json] [--seconds S] [CASE ...]

A case is a model on a machine, for throughput, with estimated times. "even" deals the layers in
equal numbers to the accelerators (or the ops in equal work, where there are no numbered layers);
`linear_dp` and `ideals_dp` stand with the seconds inside `place` after a warm-up that compiles, and
with what `ideals_dp` says of its answer; "auto" has a time limit. The bound holds for every
placement. Times are predicted.
"""

import re
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import placement as pl
from benchmarks._shared.figures import named, show
from placement.advice.warming import warm_up
from placement.core.formatting import percent
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.placers import placer_class
from placement.schedule.segments import make_schedule
from placement.search.feasible import final_s
from placement.search.progress import in_words

CASES = (
    "onnx-resnet50 on pcie-4gpu",
    "onnx-inception-v2 on pcie-4gpu",
    "llama-3.2-1b on desktop-2x24gb",
    "gemma-2-27b on pcie-4gpu",
    "mixtral-8x7b on nvlink-8gpu",
    "llama-3.1-70b on nvlink-8gpu",
    "llama-3.1-70b on two-hosts-16gpu",
    "bert_base:training on pcie-4gpu",
)
LENGTH = 512
COLUMNS = {
    "model on machine": "{case}",
    "ops": "{num_ops}",
    "even": "{even}",
    "linear_dp": "{linear} in {linear_s:.2f} s",
    "ideals_dp": "{ideals} in {ideals_s:.2f} s",
    "of its kind": "{note}",
    "auto": "{auto}",
    "bound": "{bound}",
    "gap": "{gap}",
    "calls": "{num_calls}",
}
# A numbered layer in a scope: its stack and its number.
LAYER = re.compile(r"(?:^|/)(?:layers?|h|blocks?)[./](\d+)(?:/|$)")


def row(case: str, limit_s: float) -> dict[str, Any]:
    name, _, machine = case.partition(" on ")
    model = pl.load(name, {"batch": 1, "length": LENGTH} if _reads_words(name) else {})
    problem = pl.make_problem(model, pl.machine(machine), objective="throughput")
    found = {placer: _placed(problem, placer) for placer in ("linear_dp", "ideals_dp")}
    auto = pl.place(problem, "auto", time_limit_s=limit_s)
    ideals, linear = found["ideals_dp"], found["linear_dp"]
    best_s = min(ideals["value_s"], linear["value_s"], auto.value)
    return {
        "case": case,
        "num_ops": len(model.graph.ops),
        "even": in_words(final_s(problem, _even(problem))),
        "linear": in_words(linear["value_s"]),
        "linear_s": linear["took_s"],
        "ideals": in_words(ideals["value_s"]),
        "ideals_s": ideals["took_s"],
        "note": ideals["note"],
        "auto": in_words(auto.value),
        "bound": in_words(auto.lower_bound),
        "gap": percent(best_s / auto.lower_bound - 1),
        "num_calls": ideals["num_calls"],
    }


def _reads_words(name: str) -> bool:
    return not name.startswith("onnx-") and ":" not in name


def _placed(problem: Problem, name: str) -> dict[str, Any]:
    placer, notes = placer_class(name)(), list[str]()
    warm_up(placer, problem)
    begun_s = time.perf_counter()
    try:
        placement = placer.place(problem, lambda progress: not notes.append(progress.note))
    except ValueError as error:
        return {"value_s": float("inf"), "took_s": 0.0, "note": str(error), "num_calls": 0}
    took_s = time.perf_counter() - begun_s
    num_calls = len(make_schedule(problem, placement).segments)
    value_s = final_s(problem, placement)
    return {"value_s": value_s, "took_s": took_s, "note": notes[-1], "num_calls": num_calls}


def _even(problem: Problem) -> Placement:
    """Layers in equal numbers; what stands before or behind them goes with the nearest one."""
    accelerators = [i for i, d in enumerate(problem.machine.devices) if not d.on_host]
    shares = np.array(list(_positions(problem)))
    numbers = np.minimum(shares * len(accelerators), len(accelerators) - 1).astype(int)
    of_unit = np.zeros(problem.num_units, dtype=np.int64)
    for unit, ops in enumerate(problem.ops_of_unit):
        of_unit[unit] = accelerators[int(numbers[ops[0]])]
    return problem.placement_of(of_unit)


def _positions(problem: Problem) -> Iterator[float]:
    """How far along the stack of layers, or along all work, each op stands: 0 to 1."""
    ops = problem.graph.ops
    layers = [LAYER.search(op.scope) for op in ops]
    numbered = [int(found.group(1)) for found in layers if found]
    if numbered:
        last = 0
        for op, found in zip(ops, layers, strict=True):
            last = int(found.group(1)) if found else last
            at_end = not found and op.param_bytes and last > 0
            yield 1.0 if at_end else last / (max(numbered) + 1)
        return
    work = np.cumsum([op.flops for op in ops])
    yield from (work / max(1.0, float(work[-1]))).tolist()


def main() -> None:
    options = named(__doc__, CASES, seconds=10.0)
    show(options.json, COLUMNS, [row(case, options.seconds) for case in options.names])


if __name__ == "__main__":
    main()
