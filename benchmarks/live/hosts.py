"""What hosts of a Ray cluster cost: hand-overs by size, steps over two nodes, and pipelines.

    python -m benchmarks.live.hosts --out ROWS [--part PART] [--most-s 150] [--all] [MODEL ...]
    python -m benchmarks.live.hosts --out ROWS --kills

Starts two nodes on this computer, one core each. `hand-over`: a value goes from one node to the
other and an answer comes back, by the channels of a run and by a compiled graph of Ray's own, turn
by turn. `steps`: placements of bundled samples over both nodes, and the same ones on two local
lanes, each predicted from a profile right before. `pipelines`: samples per second of stages over
both nodes beside the same on one. `bits` (only by name, or with `--all`): outputs of random
placements over both nodes against two local lanes, bit by bit. Rows are kept in a file, and those
that it has are not measured again, so that a run that was ended goes on. `--all` takes every
bundled ONNX sample, for `bits` alone every sample that has weights. `--kills` kills actors, nodes
and heads instead, as kills.py does, 30 of each.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import placement as pl
from benchmarks._shared.figures import parser, table
from benchmarks._shared.hop import Hop
from benchmarks.live import kills
from benchmarks.live.fidelity import models
from placement.api.place import executor_of
from placement.core.machine import Machine
from placement.core.model import Model
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.core.verb_options import CLUSTER, RunOptions, StreamOptions
from placement.parallel.executor import HERE, Threads
from placement.placers.base import quiet
from placement.schedule.segments import make_schedule
from placement.search.chain import Chain, start_of
from placement.search.coarsening import blocks
from placement.search.improvement import improve
from profiling import backends
from profiling.execution.execute import execute
from profiling.execution.stream_outputs import same_bits
from tests.hosts.two_nodes import nodes
from tests.profiling.live import problem_of

Row = dict[str, Any]
SIZES = (2**12, 2**16, 2**18, 2**20, 2**22, 2**23)
TURNS, WARMUP = 40, 5
MODELS = (
    "onnx-squeezenet",
    "onnx-shufflenet",
    "onnx-inception-v1",
    "onnx-inception-v2",
    "onnx-resnet50",
)
SEEDS = range(5)
HAND_OVER = {
    "bytes": "{num_bytes}",
    "ours ms (p95)": "{ours_ms:.2f} ({ours_p95_ms:.2f})",
    "compiled graph ms (p95)": "{graph_ms:.2f} ({graph_p95_ms:.2f})",
    "ratio": "{ratio:.2f}",
}
STEPS = {
    "model": "{model}",
    "placement": "{placement}",
    "segments": "{num_segments}",
    "two lanes ms": "{lanes_ms:.2f}",
    "two nodes ms": "{nodes_ms:.2f}",
    "predicted ms": "{predicted_ms:.2f}",
    "error": "{error:+.1%}",
    "outputs": "{outputs}",
}
PIPELINES = {
    "model": "{model}",
    "one node, samples/s": "{one:.1f}",
    "two nodes, samples/s": "{two:.1f}",
    "ratio": "{ratio:.2f}",
    "predicted ratio": "{predicted:.2f}",
}
SEARCHES = {
    "model": "{model}",
    "units": "{num_units}",
    "one core, chains/s": "{one:.2f}",
    "threads, chains/s": "{threads:.2f}",
    "two nodes, chains/s": "{nodes:.2f}",
    "to one core": "{to_one:.2f}",
    "to threads": "{to_threads:.2f}",
    "placements": "{found}",
}
# Chains of a search and their moves, and how often each side has its turn.
NUM_CHAINS, MOVES, SEARCHES_EACH = 4, 20_000, 3
BITS = {"model": "{model}", "placements": "{num}", "same bits": "{same}"}


class Rows:
    """What was measured so far, in a file with a line for each."""

    def __init__(self, path: Path, most_s: float) -> None:
        self._path, self._until_s = path, time.monotonic() + most_s
        text = path.read_text("utf-8") if path.exists() else ""
        self.rows: list[Row] = [json.loads(line) for line in text.splitlines()]

    def lacks(self, **key: Any) -> bool:
        """Whether there is no such row, and time for it."""
        there = any(all(row.get(k) == v for k, v in key.items()) for row in self.rows)
        return not there and time.monotonic() < self._until_s

    def add(self, row: Row) -> None:
        self.rows.append(row)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")

    def of(self, part: str) -> list[Row]:
        return [row for row in self.rows if row["part"] == part]


def hand_overs(rows: Rows) -> None:
    """A row per size: both ways turn by turn, there with the value and back without."""
    import ray
    from ray.dag import InputNode
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    cluster = backends.get("ray").cluster()  # type: ignore[attr-defined]
    (source, near), (target, far) = cluster.hosts.items()
    first, second = (
        ray.remote(Hop)
        .options(
            num_cpus=0,
            scheduling_strategy=NodeAffinitySchedulingStrategy(host.node_id, soft=False),
        )
        .remote()
        for host in (near, far)
    )
    with InputNode() as size:
        back = first.taken.bind(second.take.bind(first.give.bind(size)))
        graph = back.experimental_compile(_buffer_size_bytes=SIZES[-1] + 2**16)
    with ExitStack() as ending:
        ending.callback(graph.teardown, kill_actors=True)
        cluster.join([(source, target), (target, source)])
        if not (cluster.has_channel(source, target) and cluster.has_channel(target, source)):
            raise ValueError("These nodes do not reach each other.")
        for num_bytes in SIZES:
            if not rows.lacks(part="hand-over", num_bytes=num_bytes):
                continue
            ours_s, graph_s = list[float](), list[float]()
            for _ in range(TURNS + WARMUP):
                # In each turn some in a row, of which the last counts, as with steps.
                ours_s.append(cluster.ask(source, "sent_s", target, None, num_bytes, 3)[-1])
                graph_s.append([ray.get(graph.execute(num_bytes)) for _ in range(3)][-1])
            ours, theirs = ours_s[WARMUP:], graph_s[WARMUP:]
            rows.add(
                {
                    "part": "hand-over",
                    "num_bytes": num_bytes,
                    "ours_ms": statistics.median(ours) * 1e3,
                    "ours_p95_ms": float(np.percentile(ours, 95)) * 1e3,
                    "graph_ms": statistics.median(theirs) * 1e3,
                    "graph_p95_ms": float(np.percentile(theirs, 95)) * 1e3,
                    "ratio": statistics.median(ours) / statistics.median(theirs),
                }
            )


def placements(problem: Problem) -> Iterator[tuple[str, Placement]]:
    """Half and half, HEFT, and ops that change the host seldom or often."""
    num = problem.num_units
    yield "halves", problem.placement_of(np.arange(num) * 2 // num)
    yield "heft", pl.place(problem, "heft").placement
    rng = np.random.default_rng(0)
    yield "seldom", problem.placement_of(np.cumsum(rng.random(num) < 0.1) % 2)
    yield "often", problem.placement_of(rng.integers(0, 2, num))


def on(machine: Machine, placement: Placement, from_: Machine) -> Placement:
    """The same placement with the devices of another machine, number by number."""
    names = [device.name for device in machine.devices]
    moved = {op: names[from_.index[name]] for op, name in placement.device_of.items()}
    return replace(placement, machine=machine.name, device_of=moved)


def steps(model: Model, rows: Rows, over: Machine, here: Machine, rounds: int) -> None:
    """The placements of a model on two nodes and on two lanes of this process."""
    name = model.graph.name
    local, away = (
        pl.make_problem(model, machine, pl.profile(model, machine, refresh=True))
        for machine in (here, over)
    )
    for called, placement in placements(away):
        if not rows.lacks(part="steps", model=name, placement=called):
            continue
        predicted = pl.simulate(away, placement)
        schedule = make_schedule(local, on(local.machine, placement, away.machine))
        options = RunOptions(steps=rounds)
        lanes = execute(local, schedule, options, model=model, baselines=False)
        run = execute(away, predicted.schedule, options, model=model, baselines=False)
        rows.add(
            {
                "part": "steps",
                "model": name,
                "placement": called,
                "num_segments": len(predicted.schedule.segments),
                "lanes_ms": lanes.median_s * 1e3,
                "nodes_ms": run.median_s * 1e3,
                "predicted_ms": predicted.value * 1e3,
                "error": predicted.value / run.median_s - 1,
                "outputs": "match" if run.outputs_match else "DIFFER",
            }
        )


def pipeline(model: Model, over: Machine, num_samples: int) -> Row:
    """Two stages over both nodes, and the whole model on the first."""
    profile = pl.profile(model, over)
    problem = pl.make_problem(model, over, profile, objective="throughput")
    found = {}
    for side, placer in (("one", "single"), ("two", "linear_dp")):
        placed = pl.place(problem, placer)
        options = StreamOptions(samples=num_samples)
        stream = pl.stream(model, problem, placed.placement, options)
        found[side] = (stream.measured.samples_per_s, placed.value)
    (one, one_s), (two, two_s) = found["one"], found["two"]
    return {
        "part": "pipelines",
        "model": model.graph.name,
        "one": one,
        "two": two,
        "ratio": two / one,
        "predicted": one_s / two_s,
    }


def searches(model: Model) -> Row:
    """Chains per second of local search on a machine of three devices, wherever these are."""
    problem = pl.make_problem(model, pl.machine("desktop-2x24gb"))
    hosts = executor_of(CLUSTER, problem, print)
    sides = {"one": Threads(1), "threads": HERE, "nodes": hosts}
    took_s = {side: list[float]() for side in sides}
    ends = set[tuple[str, ...]]()
    for number in range(SEARCHES_EACH + 1):
        for side, executor in sides.items():
            chains, begun_s = _chains(problem), time.perf_counter()
            together = [[chain] for chain in chains] if side == "one" else [chains]
            for some in together:
                improve(problem, some, quiet, max_iterations=MOVES, executor=executor)
            # The first time code is compiled and the problem sent.
            if number:
                took_s[side].append(time.perf_counter() - begun_s)
            ends.add(tuple(str(chain.best.tolist()) for chain in chains))
    per_s = {side: NUM_CHAINS / statistics.median(each) for side, each in took_s.items()}
    return {
        "part": "searches",
        "model": model.graph.name,
        "num_units": problem.num_units,
        **per_s,
        "to_one": per_s["nodes"] / per_s["one"],
        "to_threads": per_s["nodes"] / per_s["threads"],
        "found": "the same" if len(ends) == 1 else "DIFFER",
    }


def _chains(problem: Problem) -> list[Chain]:
    start = start_of(problem, pl.place(problem, "heft").placement)
    together = blocks(problem)
    return [Chain(problem, start, together, seed=seed, kick=3) for seed in range(NUM_CHAINS)]


def bits(model: Model, over: Machine, here: Machine) -> Row:
    """Outputs of random placements over both nodes against those of two local lanes."""
    problem, local = problem_of(model, over), problem_of(model, here)
    apart, lanes = backends.compiled(model, over), backends.compiled(model, here)
    feeds, same = lanes.feeds(0, {}), 0
    for seed in SEEDS:
        placement = problem.placement_of(
            np.random.default_rng(seed).integers(0, 2, problem.num_units)
        )
        moved, outputs = on(here, placement, over), []
        for compiled, posed, placed in ((lanes, local, moved), (apart, problem, placement)):
            schedule = make_schedule(posed, placed)
            program = compiled.open(schedule, feeds)
            for segment in range(len(schedule.segments)):
                program.run(segment)
            outputs.append(program.outputs())
            program.close()
        same += same_bits(*outputs)
    return {"part": "bits", "model": model.graph.name, "num": len(SEEDS), "same": same}


def measure(options: argparse.Namespace, rows: Rows, names: Sequence[str]) -> None:
    # What is searched needs no connection of this process, and would end it.
    only_searches = set(options.part) == {"searches"}
    over, here = pl.machine("two-lanes" if only_searches else "ray"), pl.machine("two-lanes")
    if "hand-over" in options.part:
        hand_overs(rows)
    with tempfile.TemporaryDirectory() as folder:
        for model in models(names, Path(folder)):
            name = model.graph.name
            if "steps" in options.part and rows.lacks(part="steps", model=name, placement="often"):
                steps(model, rows, over, here, options.rounds)
            if "pipelines" in options.part and rows.lacks(part="pipelines", model=name):
                rows.add(pipeline(model, over, options.samples))
            if "searches" in options.part and rows.lacks(part="searches", model=name):
                rows.add(searches(model))
            if "bits" in options.part and rows.lacks(part="bits", model=name):
                rows.add(bits(model, over, pl.machine_for(model, here)))


def show(rows: Rows) -> None:
    parts = {
        "hand-over": HAND_OVER,
        "steps": STEPS,
        "pipelines": PIPELINES,
        "searches": SEARCHES,
        "bits": BITS,
    }
    for part, columns in parts.items():
        if rows.of(part):
            print(table(columns, rows.of(part)), end="\n\n")
    errors = [abs(row["error"]) for row in rows.of("steps")]
    if errors:
        median, p90 = np.percentile(errors, (50, 90)).tolist()
        print(f"Predictions are off by {median:.1%} in the median, 90th percentile {p90:.1%}.")


def main() -> None:
    parts = ("hand-over", "steps", "pipelines", "searches", "bits")
    options = parser(__doc__, rounds=20, samples=40, most_s=150.0)
    options.add_argument("--out", type=Path, required=True, help="keep the rows here, a line each")
    options.add_argument("--part", action="append", choices=parts, help="default: all but bits")
    every = "every bundled ONNX sample, bits too; bits alone of all samples with weights"
    options.add_argument("--all", action="store_true", help=every)
    options.add_argument("--kills", action="store_true", help="kill hosts instead, 30 of each kind")
    options.add_argument("names", nargs="*", default=list(MODELS))
    given = options.parse_args()
    if given.kills:
        kills.count(given.out, kills.ROUNDS, as_json=given.json)
        return
    given.part = given.part or (parts if given.all else parts[:-1])
    rows = Rows(given.out, given.most_s)
    names = given.names
    if given.all:
        of_all = given.part == ["bits"]
        names = [
            row["name"]
            for row in pl.samples()
            if row["has_weights"] and (of_all or row["name"].startswith("onnx-"))
        ]
    with nodes():
        # Not before the nodes have said by which address they are reached.
        import ray

        try:
            measure(given, rows, names)
        finally:
            # Whoever is connected still when the nodes end waits for them.
            backends.get("ray").close_farm()  # type: ignore[attr-defined]
            ray.shutdown()
    if given.json:
        print(json.dumps(rows.rows))
    else:
        show(rows)


if __name__ == "__main__":
    main()
