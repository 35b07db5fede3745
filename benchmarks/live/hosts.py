"""What hosts of a Ray cluster cost: hand-overs by size, and steps over two nodes.

    python -m benchmarks.live.hosts [--json] [--rounds N] [--all] [MODEL ...]

Starts two nodes on this computer, one core each. First a value goes from an actor of one node to
one of the other and both are done: by the call that carries values in a run, and by a compiled
graph of Ray's own, turn by turn. Then steps of bundled samples: a random placement over both nodes,
and the same one on two local lanes, with what was predicted of it from a profile right before.
`--all` takes every bundled ONNX sample.
"""

import argparse
import json
import statistics
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

import placement as pl
from benchmarks._shared.figures import parser, table
from placement.core.machine import Machine
from placement.core.model import Model
from placement.core.verb_options import RunOptions
from profiling import backends
from profiling.execution.execute import execute
from tests.hosts.two_nodes import nodes

SIZES = (4 * 2**10, 64 * 2**10, 2**20, 4 * 2**20, 16 * 2**20)
MODELS = ("onnx-squeezenet", "onnx-inception-v1", "onnx-resnet50")
HAND_OVER = {
    "bytes": "{num_bytes}",
    "call ms": "{call_ms:.2f}",
    "compiled graph ms": "{graph_ms:.2f}",
    "ratio": "{ratio:.2f}",
}
STEPS = {
    "model": "{model}",
    "segments": "{num_segments}",
    "two lanes ms": "{local_ms:.2f}",
    "two nodes ms": "{nodes_ms:.2f}",
    "predicted ms": "{predicted_ms:.2f}",
    "error": "{error:+.1%}",
    "outputs": "{outputs}",
}


class Hop:
    """An actor that has a value of a size, and one that takes it."""

    def make(self, num_bytes: int) -> Any:
        self._value = getattr(self, "_value", None)
        if self._value is None or self._value.nbytes != num_bytes:
            self._value = np.ones(num_bytes, np.uint8)
        return self._value

    def take(self, value: Any) -> int:
        return int(value.nbytes)

    def send(self, other: Any, num_bytes: int) -> int:
        import ray

        return int(ray.get(other.take.remote(self.make(num_bytes))))


def hand_overs(rounds: int) -> list[dict[str, Any]]:
    """A row per size: both ways turn by turn, the median of each."""
    import ray
    from ray.dag import InputNode
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    cluster = backends.get("ray").cluster()  # type: ignore[attr-defined]
    near, far, first, second = (
        ray.remote(Hop)
        .options(
            num_cpus=0,
            scheduling_strategy=NodeAffinitySchedulingStrategy(host.node_id, soft=False),
        )
        .remote()
        for host in (*cluster.hosts.values(), *cluster.hosts.values())
    )
    with InputNode() as size:
        graph = second.take.bind(first.make.bind(size)).experimental_compile(
            _buffer_size_bytes=2 * SIZES[-1]
        )
    rows = []
    try:
        for num_bytes in SIZES:
            call_s, graph_s = [], []
            for _ in range(rounds + 3):
                began_s = time.perf_counter()
                ray.get(near.send.remote(far, num_bytes))
                middle_s = time.perf_counter()
                ray.get(graph.execute(num_bytes))
                call_s.append(middle_s - began_s)
                graph_s.append(time.perf_counter() - middle_s)
            call, compiled = (statistics.median(s[3:]) * 1e3 for s in (call_s, graph_s))
            rows.append(
                {
                    "num_bytes": num_bytes,
                    "call_ms": call,
                    "graph_ms": compiled,
                    "ratio": call / compiled,
                }
            )
    finally:
        graph.teardown()
    return rows


def steps(model: Model, over: Machine, here: Machine, rounds: int) -> dict[str, Any]:
    """One model on two nodes and on two lanes of this process, each by its own profile."""
    found = {}
    for machine in (here, over):
        problem = pl.make_problem(model, machine, pl.profile(model, machine, refresh=True))
        rng = np.random.default_rng(0)
        placed = problem.placement_of(rng.integers(0, 2, problem.num_units))
        schedule = pl.simulate(problem, placed)
        run = execute(
            problem,
            schedule.schedule,
            RunOptions(steps=rounds),
            model=model,
            baselines=False,
        )
        found[machine.name] = (schedule, run)
    (_, local), (predicted, run) = found[here.name], found[over.name]
    return {
        "model": model.graph.name,
        "num_segments": len(predicted.schedule.segments),
        "local_ms": local.median_s * 1e3,
        "nodes_ms": run.median_s * 1e3,
        "predicted_ms": predicted.value * 1e3,
        "error": predicted.value / run.median_s - 1,
        "outputs": "match" if run.outputs_match else "differ",
    }


def main(arguments: argparse.Namespace, names: Sequence[str]) -> None:
    with nodes():
        # Not before the nodes have said by which address they are reached.
        import ray

        over, here = pl.machine("ray"), pl.machine("two-lanes")
        sent = hand_overs(arguments.rounds)
        rows = [steps(pl.load(name), over, here, arguments.rounds) for name in names]
        ray.shutdown()
    if arguments.json:
        print(json.dumps({"hand_overs": sent, "steps": rows}))
    else:
        print(table(HAND_OVER, sent), table(STEPS, rows), sep="\n\n")


if __name__ == "__main__":
    options = parser(__doc__, rounds=30)
    options.add_argument("--all", action="store_true", help="every bundled ONNX sample")
    options.add_argument("names", nargs="*", default=list(MODELS))
    given = options.parse_args()
    every = [row["name"] for row in pl.samples() if row["name"].startswith("onnx-")]
    main(given, every if given.all else given.names)
