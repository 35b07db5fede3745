"""Problems of two equal lanes, and runs of them as they would be if the world had other costs."""

from dataclasses import replace

import numpy as np

from placement.core.costs import Costs
from placement.core.machine import Device, Link, Machine
from placement.core.problem import Problem
from placement.core.profile import Profile, RefiningRun
from placement.core.schedule import Schedule
from placement.schedule.segments import make_schedule
from placement.simulator.executions import lower
from placement.simulator.simulate import simulate
from profiling.devices.lanes import Step
from profiling.execution.observing import observed
from tests.instances import random_devices, random_problem

LANES = tuple(Device(f"cpu:{i}", "cpu", "null", "lane") for i in range(2))


def lanes_problem(
    seed: int, *, num_ops: int = 40, crossing_s: float = 0.0, contention: float = 0.0
) -> Problem:
    """Kernels of 0.1 to 2 ms that were measured on two lanes."""
    drawn = random_problem(seed, num_ops=num_ops)
    links = tuple(Link(a.name, b.name, crossing_s, 1e9) for a in LANES for b in LANES if a != b)
    kernel_s = 1e-4 * drawn.costs.compute_s[:, :1]
    apart = 1.0 - np.eye(2)
    costs = Costs(
        compute_s=np.repeat(kernel_s, 2, axis=1),
        call_s=np.full(2, 5e-6),
        latency_s=crossing_s * apart,
        s_per_byte=1e-9 * apart,
        origin="measured",
        contention=contention,
        spread=np.zeros((num_ops, 2)),
    )
    machine = Machine("lanes", LANES, links)
    return Problem(drawn.graph, machine, costs, drawn.graph, drawn.sources)


def with_kinds(problem: Problem, factors: dict[str, float]) -> Problem:
    """The same where kernels of some kinds take so many times as long."""
    factor = np.array([factors.get(op.kind, 1.0) for op in problem.kernels.ops])
    costs = replace(problem.costs, compute_s=problem.costs.compute_s * factor[:, None])
    return replace(problem, costs=costs)


def random_schedule(problem: Problem, seed: int) -> Schedule:
    return make_schedule(problem, problem.placement_of(random_devices(problem, seed)))


def run_of(
    world: Problem,
    schedule: Schedule,
    key: str = "",
    *,
    scatter: float = 0.0,
    num_steps: int = 20,
    seed: int = 0,
) -> RefiningRun:
    """A live run in a world that the simulator knows exactly, but for how far segments scatter."""
    timeline, chance = simulate(world, schedule), np.random.default_rng(seed)
    spans = {s.segment: s for s in timeline.spans if s.kind == "compute"}
    start_s = np.array([spans[i].start_s for i in range(len(spans))])
    end_s = np.array([spans[i].end_s for i in range(len(spans))])
    steps = []
    for _ in range(num_steps):
        longer = np.maximum(0.01, 1 + scatter * chance.standard_normal(end_s.size))
        ends_s = start_s + longer * (end_s - start_s)
        steps.append(Step(0.0, timeline.step_s, tuple(start_s), tuple(ends_s), {}))
    seen = observed(schedule, world.machine, lower(world, schedule), steps)
    return RefiningRun(key, key, "2026-01-02T03:04:05+00:00", timeline.step_s, schedule, seen)


def profile_of(problem: Problem) -> Profile:
    """The profile that a problem's costs may have come from."""
    costs, names = problem.costs, [op.name for op in problem.graph.ops]
    return Profile(
        graph=problem.graph.fingerprint,
        machine=problem.machine,
        kernels=problem.kernels,
        sources=tuple(tuple(names[i] for i in ops) for ops in problem.sources),
        compute_s=tuple(map(tuple, costs.compute_s.tolist())),
        spread=tuple((0.0,) * problem.num_devices for _ in costs.compute_s),
        call_s=tuple(costs.call_s.tolist()),
        step_s=tuple(costs.compute_s.sum(axis=0).tolist()),
        contention=costs.contention,
    )
