"""How fast are list scheduling, the simulator, its moves and the PBQP solver?

    python -m benchmarks.schedulers [--json] [--rounds N] [--ops N] [--large N] [--only NAME,NAME]

Both sides of a ratio run turn by turn in this process, after a warm-up that compiles. Where the
library anrg-saga (Coleman and Krishnamachari, "PISA: an adversarial approach to comparing task
graph scheduling algorithms") is installed, its HEFT runs on the same graph, with one speed per
device instead of a time for each op on each.
"""

import argparse
import importlib.util
import random
import time
from collections.abc import Callable, Iterator

import numpy as np

from benchmarks._shared.figures import Figure, parser, ratio_of, show_figures, time_of
from benchmarks._shared.graphs import layered, net
from placement.core.graph import Ints
from placement.core.problem import Problem
from placement.pbqp.problem import solve_packed
from placement.placers import placer_class
from placement.schedule.order import by_priority
from placement.search.chain import start_of
from placement.simulator.evaluator import Evaluator, values_s
from profiling.measuring.lock import measuring
from profiling.measuring.timing import interleaved

NUM_DEVICES = 8
BATCH = 64
NUM_MOVES = 400
SAGA_ROUNDS = 3
NUM_NODES, NUM_ALTS = 10_000, 8


def heft(options: argparse.Namespace) -> Iterator[Figure]:
    """One graph, and the growth from a small to a large one."""
    place = placer_class("heft")().place
    problem = layered(options.ops, NUM_DEVICES, execution="op")
    calls: dict[str, Callable[[], object]] = {"own": lambda: place(problem)}
    if importlib.util.find_spec("saga"):
        calls["saga"] = _saga(problem)
    place(problem)
    rounds = SAGA_ROUNDS if "saga" in calls else options.rounds
    times = interleaved(calls, rounds, warmup=0)
    size = f"{options.ops} ops, {NUM_DEVICES} devices"
    yield time_of(f"HEFT, {size}", times["own"], "ms", 1e3, "50 at most")
    if "saga" in calls:
        yield time_of(f"HEFT of anrg-saga, {size}", times["saga"], "ms", 1e3)
        yield ratio_of("anrg-saga over ours", times["saga"].times_s, times["own"].times_s)
    small, large = (layered(n, NUM_DEVICES, execution="op") for n in (1_000, options.large))
    pair = {"small": lambda: place(small), "large": lambda: place(large)}
    times = interleaved(pair, max(3, options.rounds // 4), warmup=1)
    yield ratio_of(
        f"HEFT, time per op, {options.large} ops over 1000",
        times["large"].times_s,
        times["small"].times_s,
        "2 at most",
        1_000 / options.large,
    )


def _saga(problem: Problem) -> Callable[[], object]:
    """The same graph for the library: mean times as costs, one speed per device."""
    from saga import Network, TaskGraph  # type: ignore[import-not-found]
    from saga.schedulers.heft import HeftScheduler  # type: ignore[import-not-found]

    mean_s = problem.costs.compute_s.mean(axis=1).tolist()
    speeds = (1.0 / problem.costs.compute_s.mean(axis=0)).tolist()
    names = [d.name for d in problem.machine.devices]
    tasks = [(op.name, cost) for op, cost in zip(problem.graph.ops, mean_s, strict=True)]
    edges = [
        (t.producer, c, float(t.num_bytes))
        for t in problem.graph.tensors
        if t.producer is not None
        for c in t.consumers
    ]
    ways = [(a, b, 1.0 / problem.costs.s_per_byte[0, 1]) for a in names for b in names if a < b]
    same = [(name, name, float("inf")) for name in names]
    network = Network.create(list(zip(names, speeds, strict=True)), [*ways, *same])
    # The library remembers the ranks of graphs that it has seen: every round gets its own.
    fresh = iter(
        [
            TaskGraph.create([(name, cost * (1 + 1e-9 * i)) for name, cost in tasks], edges)
            for i in range(SAGA_ROUNDS)
        ]
    )
    return lambda: HeftScheduler().schedule(network, next(fresh))


def simulator(options: argparse.Namespace) -> Iterator[Figure]:
    """Whole evaluations on one core, and batches on all."""
    for name, problem in _machines(options.ops).items():
        order = _order(problem)
        rng = np.random.default_rng(0)
        placements = rng.integers(0, NUM_DEVICES, (BATCH, problem.num_units))
        own = Evaluator(problem, order)

        def one_by_one(own: Evaluator = own, placements: Ints = placements) -> None:
            for devices in placements:
                own.value_s(devices)

        def batch(problem: Problem = problem, order: Ints = order, p: Ints = placements) -> None:
            values_s(problem, order, p)

        times = interleaved({"one": one_by_one, "batch": batch}, options.rounds, warmup=2)
        visits = BATCH * (order.size + problem.kernels.arrays.consumers.size)
        what = f"simulator, one core, per op and edge, {name}"
        yield time_of(what, times["one"], "ns", 1e9 / visits, "150 at most")
        one, many = times["one"].times_s, times["batch"].times_s
        yield ratio_of(f"one core over all cores, batch of {BATCH}, {name}", one, many, "cores")


def moves(options: argparse.Namespace) -> Iterator[Figure]:
    """A whole evaluation over the re-evaluation after one op has moved."""
    for name, problem in _machines(options.ops).items():
        rng = np.random.default_rng(0)
        order, anyhow = _order(problem), rng.integers(0, NUM_DEVICES, problem.num_units)
        places = range(order.size)
        late = places[-(order.size // 10) :]
        for where, chosen, least in (("anywhere", places, 2), ("last tenth", late, 10)):
            full, moved = _timed_moves(problem, order, anyhow, list(chosen), limited=False)
            what = f"full over incremental, moves {where}, {name}"
            yield ratio_of(what, full, moved, f"{least} at least")
        good = start_of(problem, placer_class("heft")().place(problem))
        full, moved = _timed_moves(problem, good.order, good.devices, list(places), limited=True)
        yield ratio_of(f"the same from HEFT's, moves that may stop early, {name}", full, moved)


def _timed_moves(
    problem: Problem, order: Ints, devices: Ints, places: list[int], *, limited: bool
) -> tuple[list[float], list[float]]:
    """Seconds of full and of incremental evaluation of the same moves, turn by turn.

    The base has units on `devices` (U,); `places` are the positions in the order whose kernels may
    move; with `limited` what is worse than the base may stop early.
    """
    rng = random.Random(0)
    whole, own = Evaluator(problem, order), Evaluator(problem, order)
    base_s = own.value_s(devices)
    limit_s = base_s if limited else np.inf
    full_s, moved_s = [], []
    for number in range(-20, NUM_MOVES):
        unit = int(problem.unit_of_kernel[order[rng.choice(places)]])
        dest = (int(devices[unit]) + rng.randrange(1, NUM_DEVICES)) % NUM_DEVICES
        after, units = devices.copy(), np.array([unit])
        after[unit] = dest
        start_s = time.perf_counter()
        expected_s = whole.value_s(after)
        middle_s = time.perf_counter()
        found_s = own.after_move_s(units, dest, limit_s)
        end_s = time.perf_counter()
        assert found_s == np.inf or abs(found_s - expected_s) <= 1e-9 * expected_s
        if number >= 0:
            full_s.append(middle_s - start_s)
            moved_s.append(end_s - middle_s)
    return full_s, moved_s


def pbqp(options: argparse.Namespace) -> Iterator[Figure]:
    """Chains and trees, which reduction solves exactly."""
    rng = np.random.default_rng(0)
    nodes = np.arange(1, NUM_NODES)
    nets = {
        "chain": net(nodes - 1, NUM_ALTS),
        "tree": net((rng.random(nodes.size) * nodes).astype(np.int64), NUM_ALTS),
    }
    assert all(solve_packed(packed).optimal for packed in nets.values())
    calls = {name: lambda packed=packed: solve_packed(packed) for name, packed in nets.items()}
    for name, sample in interleaved(calls, options.rounds, warmup=1).items():
        what = f"PBQP, {name} of {NUM_NODES} nodes with {NUM_ALTS} alternatives"
        yield time_of(what, sample, "s", 1.0, "1 at most")


def _machines(num_ops: int) -> dict[str, Problem]:
    return {
        "accelerators": layered(num_ops, NUM_DEVICES),
        "host lanes with contention": layered(num_ops, NUM_DEVICES, on_host=True, contention=0.1),
    }


def _order(problem: Problem) -> Ints:
    keys = list(range(len(problem.kernels.ops)))
    return np.array(by_priority(problem.kernels, keys), dtype=np.int64)


PARTS = {"heft": heft, "simulator": simulator, "moves": moves, "pbqp": pbqp}


def main() -> None:
    defaults = {"rounds": 20, "ops": 3_000, "large": 100_000, "only": ",".join(PARTS)}
    options = parser(__doc__, **defaults).parse_args()
    with measuring("schedulers"):
        found = [f for name in options.only.split(",") for f in PARTS[name](options)]
    show_figures(options.json, found)


if __name__ == "__main__":
    main()
