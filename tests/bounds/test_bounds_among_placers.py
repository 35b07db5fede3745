"""No placer's bound is above what any placer finds, nor above any placement drawn by chance.

Instances are drawn of every kind there is: workload files for either objective, of training too,
under each rule of the cost model and with several calls, and graphs of ops under each execution,
with groups, gaps, links that share a card, little memory and weights that stream.
"""

from dataclasses import fields, replace

import numpy as np
import pytest

from placement import place, simulate
from placement.advice import warming
from placement.core.objective import CallRules
from placement.core.violations import violations
from placement.costs.offload import with_offload
from placement.loaders.workload import problem_from_workload
from placement.placers import names, placer_class
from placement.schedule.segments import make_schedule
from tests.instances import random_devices, random_problem
from tests.thorough import either
from tests.workloads import random_workload

# So many have each of the rules, three calls, and little memory.
NUM_INSTANCES = either(18, 2000)
NUM_PARTS = either(1, 8)
NUM_DRAWN = 20
# Learners find what others find, only later; two follow what a person wrote down.
PLACERS = [n for n in names() if n not in ("expert", "manual") and not placer_class(n).learns_live]
QUICK = {"max_iterations": 300, "chains": 1, "population": 8}
# A generation is many placements, so a few take as long.
GENERATIONS = either({"max_iterations": 10}, {})
RULES = (
    CallRules(),
    CallRules(overlap=True),
    CallRules(gpipe=True),
    CallRules(cluster_size=1, slow_link_factor=2.5),
    CallRules(sync_bytes_per_ms=3.0),
    CallRules(overlap=True, gpipe=True, cluster_size=2, slow_link_factor=1.5),
)


def file_for(seed, objective, rules):
    """A small workload file, every other one of training, every third with little memory."""
    content = random_workload(seed, num_nodes=4 + seed % 7, training=seed % 2 == 1)
    if seed % 3 == 0:
        total = sum(node["size"] for node in content["nodes"])
        content["maxSizePerFPGA"] = max(8, int(0.6 * total))
    problem = problem_from_workload(content, f"workload {seed}")
    return replace(problem, objective=objective, rules=rules)


def graph_for(seed):
    """Ops on two to four devices; every fifth holds its weights only in part, or streams them."""
    problem = random_problem(
        seed,
        num_ops=3 + seed % 10,
        num_devices=2 + seed % 3,
        execution=("op", "segment")[seed % 2],
        link_contention=seed % 4 < 2,
        contention=0.2 * (seed % 3 == 0),
        with_groups=seed % 7 < 2,
        with_gaps=seed % 6 < 2,
        with_cards=seed % 8 < 2,
    )
    problem = replace(problem, objective=("latency", "throughput")[seed % 9 < 3])
    if seed % 5:
        return problem
    total = sum(op.param_bytes for op in problem.kernels.ops)
    devices = [
        d if d.on_host else replace(d, memory_bytes=40 + total // 2)
        for d in problem.machine.devices
    ]
    problem = replace(problem, machine=replace(problem.machine, devices=tuple(devices)))
    return with_offload(problem) if seed % 2 and problem.objective == "latency" else problem


def drawn(number):
    """The instance of a number, and how many calls an accelerator makes."""
    seed, kind = divmod(number, 3)
    if kind == 0:
        return graph_for(seed), 1
    if kind == 1:
        return file_for(seed, "throughput", RULES[seed % len(RULES)]), 1
    return file_for(seed, "latency", RULES[0]), 1 + seed % 3


def answers(problem, calls_each):
    """What each placer finds, in turn; one that says that it finds nothing is left out."""
    for name in PLACERS:
        kind = placer_class(name)
        if problem.execution in kind.executions and problem.objective in kind.objectives:
            known = {field.name for field in fields(kind)}
            wanted = QUICK | ({"calls": calls_each} if calls_each > 1 else {})
            wanted |= GENERATIONS if name == "genetic" else {}
            chosen = {key: value for key, value in wanted.items() if key in known}
            try:
                yield place(problem, name, settings=chosen)
            except ValueError:
                continue


def by_chance(problem, number):
    """Values of placements that nobody chose and that break no rule."""
    for seed in range(NUM_DRAWN):
        placement = problem.placement_of(random_devices(problem, 1000 * number + seed))
        try:
            schedule = make_schedule(problem, placement)
            if not violations(problem, schedule):
                yield simulate(problem, placement).value
        except ValueError:
            continue


def question(placed):
    """What placements of other questions may beat: copies of stages, and calls of each device."""
    return placed.placement.replicas is not None, max(
        (placed.placement.calls or {}).values(), default=1
    )


@pytest.mark.thorough
@pytest.mark.parametrize("part", range(NUM_PARTS))
def test_no_bound_is_above_a_value_that_somebody_finds(part, monkeypatch):
    # Nobody looks at times here, for which each method would be run once more, ahead.
    monkeypatch.setattr(warming, "warm_up", lambda placer, problem: None)
    num_compared = 0
    for number in range(part, NUM_INSTANCES, NUM_PARTS):
        problem, calls_each = drawn(number)
        placed = list(answers(problem, calls_each))
        values = {question(p): [] for p in placed}
        for p in placed:
            if not p.violations:
                values[question(p)].append(p.value)
        if (False, 1) in values:
            values[False, 1] += by_chance(problem, number)
        for p in placed:
            # More calls find what fewer find, and copies of a stage may be one.
            of_less = [v for q, found in values.items() if q <= question(p) for v in found]
            best = min(of_less, default=np.inf)
            assert p.lower_bound <= best * (1 + 1e-9), (number, p.placer)
            num_compared += best < np.inf
    assert num_compared > 4 * NUM_INSTANCES / NUM_PARTS
