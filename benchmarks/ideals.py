"""How fast are exact contiguous splits, and the linearised ones that large graphs need?

    python -m benchmarks.ideals [--folder DIR] [--rounds N]

`ideals_dp` on the throughput files together, on gnmt training with its 6 accelerators and with 16,
and on a made-up network of fork-join modules with more than 36 000 ideals; `linear_dp` on a made-up
network of 10 000 ops. Seconds inside `place`, after a warm-up that compiles.
"""

import itertools
import json
import random
import statistics
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks._shared.figures import Figure, parser, show_figures
from placement import place
from placement.core.problem import Problem
from placement.loaders import load
from placement.splits.exact.ideals import all_ideals
from placement.splits.model.contract import contiguous_units
from placement.splits.model.instance import from_problem

FOLDER = Path(__file__).parents[2] / "shared" / "workloads" / "throughput"
MOST_IDEALS = 10**6


def figures(folder: Path, rounds: int) -> Iterator[Figure]:
    files = {path.stem: problem_of(path) for path in sorted(folder.glob("*.json"))}
    if files:
        yield figure(f"ideals_dp, {len(files)} files together", *files.values(), wanted="5 at most")
    gnmt = folder / "layer_gnmt_training.json"
    if gnmt.exists():
        yield figure("ideals_dp, gnmt training", problem_of(gnmt), wanted="1.5 at most")
        many = problem_of(gnmt, maxFPGAs=16)
        yield figure("ideals_dp, gnmt training, 16 accelerators", many, wanted="30 at most")
    wide = made_up(num_modules=10)
    ideals = f"{num_ideals(wide)} ideals"
    yield figure(f"ideals_dp, {len(wide.kernels.ops)} ops, {ideals}", wide, wanted="3 at most")
    long = made_up(num_modules=333)
    what = f"linear_dp, {len(long.kernels.ops)} ops"
    yield figure(what, long, placer="linear_dp", rounds=rounds, wanted="seconds")


def figure(
    what: str, *problems: Problem, placer: str = "ideals_dp", rounds: int = 5, wanted: str = ""
) -> Figure:
    """Seconds of a placer on all problems, one after another."""
    times_s = [sum(place(p, placer).seconds for p in problems) for _ in range(rounds)]
    return Figure(what, "s", statistics.median(times_s), min(times_s), max(times_s), wanted)


def problem_of(path: Path, **changed: int) -> Problem:
    """The throughput problem of a workload file, with some of its numbers changed."""
    content = json.loads(path.read_text()) | changed
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        copy.write_text(json.dumps(content))
        problem = load(str(copy)).problem
    assert problem is not None
    return replace(problem, objective="throughput")


def num_ideals(problem: Problem) -> int:
    units = contiguous_units(from_problem(problem))
    return len(all_ideals(units.succ_ptr, units.succ, MOST_IDEALS))


def made_up(num_modules: int, branches: int = 4, length: int = 7) -> Problem:
    """Modules in a row, each a fork into branches of some length and a join, as in Inception."""
    rng = random.Random(0)
    edges: list[tuple[int, int]] = []
    num, ends = 0, []
    for _ in range(num_modules):
        fork, join = num, num + branches * length + 1
        edges += [(end, fork) for end in ends]
        for b in range(branches):
            row = [fork, *range(fork + 1 + b * length, fork + 1 + (b + 1) * length), join]
            edges += list(itertools.pairwise(row))
        num, ends = join + 1, [join]
    cost = [rng.uniform(0.01, 0.5) for _ in range(num)]
    content: dict[str, Any] = {
        "maxSizePerFPGA": num,
        "maxFPGAs": 6,
        "maxCPUs": 1,
        "nodes": [_node(i, rng) for i in range(num)],
        "edges": [{"sourceId": a, "destId": b, "cost": cost[a]} for a, b in edges],
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "made_up.json"
        path.write_text(json.dumps(content))
        return problem_of(path)


def _node(number: int, rng: random.Random) -> dict[str, Any]:
    seconds = rng.uniform(0.1, 2.0)
    return {
        "id": number,
        "supportedOnFpga": 1,
        "fpgaLatency": seconds,
        "cpuLatency": seconds * rng.uniform(5, 15),
        "isBackwardNode": 0,
        "size": 1,
    }


def main() -> None:
    options = parser(__doc__, folder=str(FOLDER), rounds=5).parse_args()
    show_figures(options.json, figures(Path(options.folder), options.rounds))


if __name__ == "__main__":
    main()
