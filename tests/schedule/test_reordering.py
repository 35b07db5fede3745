"""Orders on one device changed by hand, against all orders there are and the slow checker."""

import itertools
import random
from dataclasses import replace

import pytest

from placement.core.violations import violations
from placement.schedule.order import kernel_order
from placement.schedule.reordering import Blocked, run_before
from placement.schedule.segments import make_schedule
from placement.simulator.simulate import simulate
from tests.checker import timeline_faults
from tests.instances import random_devices, random_problem


def lanes_of(problem, placement):
    """Kernels of each device in running order."""
    devices = problem.kernel_devices(placement).tolist()
    order = kernel_order(problem, placement, problem.kernel_devices(placement))
    return {d: [k for k in order if devices[k] == d] for d in sorted(set(devices))}


def is_possible(problem, lanes):
    """Whether some order has all lanes as they are and every kernel behind what it reads."""
    left = {d: list(lane) for d, lane in lanes.items()}
    done = set()
    while any(left.values()):
        heads = [(d, lane[0]) for d, lane in left.items() if lane]
        ready = [(d, k) for d, k in heads if done.issuperset(problem.kernels.predecessors[k])]
        if not ready:
            return False
        done.add(left[ready[0][0]].pop(0))
    return True


def waits(problem, lanes, later, earlier):
    """Whether one op waits for another by data and the sequences of the given lanes."""
    follows = {k: set(problem.kernels.successors[k]) for k in range(len(problem.kernels.ops))}
    for lane in lanes:
        for a, b in itertools.pairwise(lane):
            follows[a].add(b)
    index = problem.kernels.index
    met, todo = set(), [index[earlier]]
    while todo:
        for k in follows[todo.pop()] - met:
            met.add(k)
            todo.append(k)
    return index[later] in met


@pytest.mark.parametrize("seed", range(40))
def test_an_order_is_had_just_if_it_exists_and_no_other_lane_changes(seed):
    rng = random.Random(seed)
    problem = random_problem(seed, num_ops=14, num_devices=2 + seed % 2)
    placement = problem.placement_of(random_devices(problem, seed))
    names = [op.name for op in problem.graph.ops]
    lanes = lanes_of(problem, placement)
    for _ in range(8):
        device = rng.choice(list(lanes))
        lane = lanes[device]
        moving = rng.sample(lane, rng.randint(1, min(3, len(lane))))
        rest = [k for k in lane if k not in moving]
        at = rng.randint(0, len(rest))
        ahead = [k for k in lane if k in moving]
        wanted = {**lanes, device: [*rest[:at], *ahead, *rest[at:]]}
        before = [names[k] for k in rest[at : at + 2]]
        if not is_possible(problem, wanted):
            with pytest.raises(Blocked) as caught:
                run_before(problem, placement, [names[k] for k in moving], before)
            wait, index = caught.value.wait, problem.kernels.index
            place = wanted[device].index
            assert place(index[wait.later]) < place(index[wait.earlier])
            others = [] if not wait.lane else [lane for d, lane in lanes.items() if d != device]
            assert waits(problem, others, wait.later, wait.earlier)
            continue
        order = run_before(problem, placement, [names[k] for k in moving], before)
        changed = replace(placement, order=order)
        assert lanes_of(problem, changed) == wanted
        schedule = make_schedule(problem, changed)
        assert not [v for v in violations(problem, schedule) if "memory" not in v.lower()]
        assert timeline_faults(problem, schedule, simulate(problem, schedule)) == []


def test_what_is_in_its_place_already_stays_and_unknown_ops_move_nothing():
    problem = random_problem(3, num_ops=8, num_devices=1)
    placement = problem.placement_of([0] * problem.num_units)
    lane = [problem.graph.ops[k].name for k in lanes_of(problem, placement)[0]]
    for ops, before in (([lane[2]], [lane[3]]), ([lane[-1]], []), (["nobody"], [lane[0]])):
        assert list(run_before(problem, placement, ops, before)) == lane
