"""Contiguous stages of models against every split there is, by the project's own evaluator."""

import itertools
import random
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from placement import place, simulate
from placement.bounds.lower_bound import lower_bound
from placement.core.costs import Costs
from placement.core.graph import Graph, Op, Tensor
from placement.core.machine import Device, Link, Machine, link_arrays
from placement.core.problem import Problem, own_kernels
from placement.core.violations import violations
from placement.costs.offload import with_offload
from placement.placers import placer_class
from placement.schedule.segments import make_schedule
from placement.search.feasible import final_s
from placement.splits.exact.linear import linear_orders
from placement.splits.stages.blocks import blocks_of
from placement.splits.stages.chains import best_chains, chains_up_to
from placement.splits.stages.coarsening import FIRST_SHARE, coarser
from placement.splits.stages.kinds import kinds_of
from placement.splits.stages.pools import Pools, pools_of
from placement.splits.stages.search import best_of_orders, best_split
from placement.splits.stages.table import beginnings
from tests.contiguity import forward_units
from tests.instances import hosts_problem, random_problem
from tests.thorough import either


def machine_of(num_gpus, *, memory_bytes=None, bytes_per_s=20.0):
    """A host and equal accelerators that are linked alike."""
    devices = (
        Device("cpu:0"),
        *(Device(f"gpu:{i}", kind="gpu", memory_bytes=memory_bytes) for i in range(num_gpus)),
    )
    links = tuple(
        Link(a.name, b.name, 0.5, bytes_per_s) for a in devices for b in devices if a != b
    )
    return Machine("alike", devices, links)


def problem_of(graph, machine, seed, *, slow_host=9.0):
    """Random times, equal on all accelerators; those of the host are longer."""
    rng = random.Random(seed)
    times = [float(rng.randrange(4, 20)) for _ in graph.ops]
    factors = [slow_host if d.on_host else 1.0 for d in machine.devices]
    latency_s, s_per_byte = link_arrays(machine)
    calls = np.array([0.25 for _ in machine.devices])
    costs = Costs(np.outer(times, factors), calls, latency_s, s_per_byte, "given")
    return Problem(graph, machine, costs, graph, own_kernels(graph), objective="throughput")


def inference(seed, num_ops):
    """A chain in which some ops also read of ops further above."""
    rng = random.Random(seed)
    ops = tuple(Op(f"f{i}", "op", param_bytes=rng.randrange(1, 9)) for i in range(num_ops))
    tensors = [Tensor("in", None, ("f0",), 4)]
    for i in range(num_ops):
        later = [j for j in range(i + 1, num_ops) if j == i + 1 or rng.random() < 0.25]
        readers = tuple(f"f{j}" for j in later)
        tensors.append(Tensor(f"t{i}", f"f{i}", readers, rng.randrange(1, 30), is_output=not later))
    return Graph("inference", ops, tuple(tensors))


def branches(seed, num_ops):
    """Ops of which each reads one or two of those before, so that there are many linear orders."""
    rng = random.Random(seed)
    ops = tuple(Op(f"f{i}", "op", param_bytes=rng.randrange(1, 9)) for i in range(num_ops))
    reads = [set(rng.sample(range(i), min(i, 1 + (rng.random() < 0.4)))) for i in range(num_ops)]
    tensors = [Tensor("in", None, ("f0",), 4)]
    for i in range(num_ops):
        readers = tuple(f"f{j}" for j in range(num_ops) if i in reads[j])
        num_bytes = rng.randrange(1, 30)
        tensors.append(Tensor(f"t{i}", f"f{i}", readers, num_bytes, is_output=not readers))
    return Graph("branches", ops, tuple(tensors))


def training(seed, num_ops):
    """The same with a backward op for each, named after its forward op, that reads what that one
    made and the gradients of those who read it."""
    forward = inference(seed, num_ops)
    after = [forward.successors[i] for i in range(num_ops)]
    ops = [*forward.ops]
    tensors = [t for t in forward.tensors if t.producer is None]
    for i in reversed(range(num_ops)):
        mate = (("derived from", f"f{i}"),)
        ops.append(Op(f"b{i}", "op", phase="backward", attributes=mate))
    for i, t in enumerate(forward.tensors[1:]):
        tensors.append(replace(t, consumers=(*t.consumers, f"b{i}"), is_output=False))
    for j in reversed(range(num_ops)):
        before = tuple(f"b{i}" for i in range(num_ops) if j in after[i])
        num_bytes = forward.tensors[1 + j].num_bytes
        tensors.append(Tensor(f"g{j}", f"b{j}", before, num_bytes, is_output=not before))
    return Graph("training", tuple(ops), tuple(tensors))


def mates_of(problem):
    """The forward op of each backward op, by number."""
    return {
        i: problem.graph.index[mate]
        for i, op in enumerate(problem.graph.ops)
        for key, mate in op.attributes
        if key == "derived from"
    }


def stages_follow_each_other(problem, devices):
    """Whether forward data never leads from device to device in a circle, and mates lie together.

    This is the definition of stages: each is what is between two ideals of the forward graph.
    """
    unit = problem.unit_of_op
    if any(devices[unit[i]] != devices[unit[mate]] for i, mate in mates_of(problem).items()):
        return False
    after = {
        (devices[u], devices[v])
        for u, readers in enumerate(forward_units(problem))
        for v in readers
        if devices[u] != devices[v]
    }
    left = set(range(problem.num_devices))
    while left:
        first = [d for d in left if not any((a, d) in after for a in left)]
        if not first:
            return False
        left -= set(first)
    return True


def best_by_force(problem):
    """Least value of all placements in stages, within memory."""
    mates = mates_of(problem)
    free = [i for i in range(len(problem.graph.ops)) if i not in mates]
    best = float("inf")
    for chosen in itertools.product(range(problem.num_devices), repeat=len(free)):
        of_op = dict(zip(free, chosen, strict=True))
        of_op |= {i: of_op[mate] for i, mate in mates.items()}
        devices = [0] * problem.num_units
        for i, d in of_op.items():
            devices[problem.unit_of_op[i]] = d
        if stages_follow_each_other(problem, devices):
            best = min(best, final_s(problem, problem.placement_of(devices)))
    return best


def best_interval_by_force(problem, order, block_of_unit=None):
    """Least value of all ways to divide blocks in this order into stages, each by a device.

    Blocks are units where nothing else is said. A device, or what streams to it, has one stage.
    """
    of_unit = np.arange(problem.num_units) if block_of_unit is None else block_of_unit
    place = np.empty(len(order), dtype=int)
    place[list(order)] = range(len(order))
    engine = problem.machine.places.engine
    best = float("inf")
    for num_stages in range(1, len(set(engine.tolist())) + 1):
        ways = [
            devices
            for devices in itertools.permutations(range(problem.num_devices), num_stages)
            if len({int(engine[d]) for d in devices}) == num_stages
        ]
        for borders in itertools.combinations(range(1, len(order)), num_stages - 1):
            stage = np.searchsorted(borders, place[of_unit], side="right")
            for devices in ways:
                chosen = np.array(devices)[stage]
                if problem.allowed[np.arange(problem.num_units), chosen].all():
                    best = min(best, final_s(problem, problem.placement_of(chosen)))
    return best


def placed(problem, name, **settings):
    """The value that a placer finds, and its account; whatever it finds is in stages and valid."""
    told = []
    placer = placer_class(name)(**settings)
    placement = placer.place(problem, lambda progress: not told.append(progress.note))
    assert violations(problem, make_schedule(problem, placement)) == ()
    devices = np.zeros(problem.num_units, dtype=int)
    devices[problem.unit_of_kernel] = problem.kernel_devices(placement)
    assert stages_follow_each_other(problem, devices.tolist())
    return final_s(problem, placement), told[-1]


# Two accelerators and three by turns.
@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(either(2, 6)))
def test_no_contiguous_split_of_a_model_is_better(seed):
    num_ops = either(5, 6)
    problem = problem_of(inference(seed, num_ops), machine_of(2 + seed % 2), seed, slow_host=2.0)
    best_s = best_by_force(problem)
    value_s, note = placed(problem, "ideals_dp")
    assert note == "the best contiguous split"
    assert value_s == pytest.approx(best_s)
    # Each op reads the one before, so there is one linear order.
    assert placed(problem, "linear_dp")[0] == pytest.approx(best_s)
    assert value_s >= lower_bound(problem) * (1 - 1e-9)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(either(1, 4)))
def test_no_contiguous_split_of_branches_is_better(seed):
    problem = problem_of(branches(seed, 6), machine_of(2), seed, slow_host=2.0)
    best_s = best_by_force(problem)
    value_s, note = placed(problem, "ideals_dp")
    assert note == "the best contiguous split"
    assert value_s == pytest.approx(best_s)
    # Of one linear order it finds the best intervals.
    blocks = blocks_of(problem)
    (order,) = linear_orders(*blocks.successors, 1, 0)
    in_order_s = best_interval_by_force(problem, order, blocks.block_of_unit)
    assert placed(problem, "linear_dp", orders=1)[0] == pytest.approx(in_order_s)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(either(2, 4)))
def test_no_contiguous_split_of_a_training_step_is_better(seed):
    problem = problem_of(training(seed, 5), machine_of(2), seed, slow_host=2.0)
    best_s = best_by_force(problem)
    value_s, note = placed(problem, "ideals_dp")
    assert note == "the best contiguous split"
    assert value_s == pytest.approx(best_s)
    assert placed(problem, "linear_dp")[0] == pytest.approx(best_s)


# With groups and without.
@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(either(2, 4)))
def test_devices_and_links_that_all_differ(seed):
    problem = replace(
        random_problem(seed, num_ops=6, num_devices=3, with_groups=seed % 2 == 1),
        objective="throughput",
    )
    value_s, note = placed(problem, "ideals_dp")
    best_s = best_by_force(problem)
    assert note == "the best contiguous split"
    assert value_s == pytest.approx(best_s)


@pytest.mark.thorough
@pytest.mark.parametrize("state", [False, True], ids=["weights", "state"])
@pytest.mark.parametrize("seed", range(either(1, 4)))
def test_memory_decides_where_borders_lie(seed, state):
    graph = inference(seed, 5)
    if state:
        # Not what an op reads as weights, but what it keeps from step to step.
        ops = tuple(replace(o, param_bytes=0, state_bytes=30 * o.param_bytes) for o in graph.ops)
        graph = replace(graph, ops=ops)
    wide = problem_of(graph, machine_of(2), seed)
    # What the accelerator with most of the best split needs is not there.
    free_s, _ = placed(wide, "ideals_dp")
    peaks = simulate(wide, place(wide, "ideals_dp").placement).peak_bytes
    most = int(max(peaks["gpu:0"], peaks["gpu:1"])) - 1
    tight = replace(wide, machine=machine_of(2, memory_bytes=most))
    best_s = best_by_force(tight)
    value_s, _ = placed(tight, "ideals_dp")
    assert value_s == pytest.approx(best_s)
    assert best_s >= free_s * (1 - 1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_devices_that_were_left_out_leave_nothing_proven(seed, monkeypatch):
    problem = replace(random_problem(seed, num_ops=6, num_devices=4), objective="throughput")
    assert kinds_of(problem).is_complete
    monkeypatch.setattr("placement.splits.stages.kinds.MOST_STATES", 4)
    assert not kinds_of(problem).is_complete
    assert placed(problem, "ideals_dp")[1] == "contiguous stages"


@pytest.mark.parametrize("objective", ["latency", "throughput"])
@pytest.mark.parametrize("seed", range(6))
def test_states_are_left_out_where_fewer_devices_are_as_good(seed, objective):
    """And what is left is what it would be with all of them, to the bit."""
    alike = seed % 2 == 0
    problem = (
        problem_of(inference(seed, 7), machine_of(3), seed, slow_host=2.0)
        if alike
        else random_problem(seed, num_ops=7, num_devices=3)
    )
    problem = replace(problem, objective=objective)
    kinds, blocks = kinds_of(problem), blocks_of(problem)
    ideals = beginnings(blocks, kinds, np.arange(blocks.num_blocks))
    used = kinds.used
    few = best_chains(ideals, np.inf)
    all_of_them = chains_up_to(ideals, few.cap_s / (1 + 1e-12))
    assert np.isfinite(few.least_s) and few.least_s == all_of_them.least_s
    np.testing.assert_array_equal(few.device_of_block(), all_of_them.device_of_block())
    for ideal in range(blocks.num_blocks + 1):
        row, every = few.by_state_s(ideal), all_of_them.by_state_s(ideal)
        for state in range(kinds.num_states):
            no_more = (used <= used[state]).all(axis=1)
            no_more[state] = False
            is_beaten = (every[no_more] <= every[state]).any()
            assert row[state] == (np.inf if is_beaten else every[state])


def without_pools(table, kinds):
    return Pools(kinds, np.arange(len(kinds.engines)))


ODD = [*itertools.product(range(4), (0, 1), ("latency", "throughput"))]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("seed", "num_odd", "objective"), either([(0, 0, "throughput"), (0, 1, "latency")], ODD)
)
def test_kinds_of_one_pool_are_counted_together(seed, num_odd, objective, monkeypatch):
    """And all is what it is with every kind for itself, to the bit: values, stages, answers."""
    problem = hosts_problem(seed, num_hosts=3, per_host=3, num_ops=9, num_odd=num_odd)
    problem = replace(problem, objective=objective)
    kinds, blocks = kinds_of(problem), blocks_of(problem)
    ideals = beginnings(blocks, kinds, np.arange(blocks.num_blocks))

    def found():
        cap_s = best_chains(ideals).least_s * 1.5
        chains = (
            best_chains(ideals),
            best_chains(ideals, most_stages=2),
            chains_up_to(ideals, cap_s),
        )
        rows = [each.by_state_s(i).tolist() for each in chains for i in range(len(each.best_s))]
        stages = [
            (s.ideal, s.state, s.device, s.blocks.tolist()) for c in chains for s in c.stages()
        ]
        told = []
        placed_by = placer_class("linear_dp")()
        placement = placed_by.place(problem, lambda progress: not told.append(progress))
        return rows, stages, placement, told

    pooled, pools = found(), best_chains(ideals).pools
    assert num_odd or pools.num_used.size < kinds.num_states
    monkeypatch.setattr("placement.splits.stages.chains.pools_of", without_pools)
    assert found() == pooled


def test_pools_have_kinds_that_no_load_tells_apart():
    """Accelerators get model inputs faster on the host that has them; those of all others are
    alike, but for one that has more memory, and so are processors."""
    problem = replace(hosts_problem(1, num_hosts=4, per_host=3), objective="throughput")
    devices = list(problem.machine.devices)
    devices[11] = replace(devices[11], memory_bytes=10**6)
    problem = replace(problem, machine=replace(problem.machine, devices=tuple(devices)))
    blocks, kinds = blocks_of(problem), kinds_of(problem)
    assert kinds.engines == ((0,), (1, 2), (3,), (4, 5), (6,), (7, 8), (9,), (10,), (11,))
    table = beginnings(blocks, kinds, np.arange(blocks.num_blocks)).table
    pools = pools_of(table, kinds)
    assert pools.of_kind.tolist() == [0, 1, 0, 2, 0, 2, 0, 2, 3]
    assert pools.most.tolist() == [4, 2, 5, 1]
    assert pools.table(table).work_s.shape == (blocks.num_blocks + 1, 4)


def test_a_chain_is_one_linear_order():
    rng = random.Random(5)
    names = [f"f{i}" for i in range(60)]
    tensors = [Tensor("in", None, ("f0",), 4)]
    tensors += [
        Tensor(f"t{a}", a, (b,), rng.randrange(1, 30)) for a, b in itertools.pairwise(names)
    ]
    tensors.append(Tensor("out", names[-1], (), 4, is_output=True))
    graph = Graph("chain", tuple(Op(name, "op") for name in names), tuple(tensors))
    problem = problem_of(graph, machine_of(4), 5)
    exact_s, note = placed(problem, "ideals_dp")
    assert note == "the best contiguous split"
    assert placed(problem, "linear_dp", orders=1)[0] == pytest.approx(exact_s)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(either(1, 3)))
def test_of_joined_blocks_the_best_split_is_found_and_its_borders_moved(seed):
    """Between the best split into the joined blocks and the best one of all, and the bound is of
    the former."""
    problem = problem_of(inference(seed, 12), machine_of(2), seed)
    best_s = best_interval_by_force(problem, range(12))
    assert placed(problem, "ideals_dp", max_model_ideals=5_000)[0] == pytest.approx(best_s)
    blocks, share = blocks_of(problem), FIRST_SHARE
    while blocks.num_blocks >= 8:
        blocks, share = coarser(blocks, share), 2.0 * share
    joined_s = best_interval_by_force(problem, range(blocks.num_blocks), blocks.block_of_unit)
    value_s, note = placed(problem, "ideals_dp", max_model_ideals=8)
    assert f"{blocks.num_blocks} joined blocks" in note
    assert best_s * (1 - 1e-9) <= value_s <= joined_s * (1 + 1e-9)
    split = best_split(problem, partial(valued, problem), most_ideals=8, num_orders=1)
    assert split.num_blocks == blocks.num_blocks and not split.is_finest
    assert 0.0 < split.bound_s <= joined_s * (1 + 1e-9)


def valued(problem, devices):
    return final_s(problem, problem.placement_of(devices))


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(either(1, 4)))
def test_a_split_says_what_bounds_it(seed):
    problem = problem_of(branches(seed, 6), machine_of(2), seed, slow_host=2.0)
    best_s = best_by_force(problem)
    split = best_split(problem, partial(valued, problem), most_ideals=5_000, num_orders=1)
    assert split.is_best and split.is_finest
    assert split.bound_s == pytest.approx(best_s)
    found = best_of_orders(problem, partial(valued, problem), num_orders=3)
    assert found.bound_s == 0.0, "one order says nothing of the others"
    assert found.value_s == valued(problem, found.device_of_unit)


@pytest.mark.parametrize("seed", range(6))
def test_coarser_blocks_hold_the_same_and_have_no_cycle(seed):
    problem = problem_of(training(seed, 30), machine_of(2), seed)
    finest = blocks_of(problem)
    for share in (0.01, 0.1, 0.5, 1.0):
        blocks = coarser(finest, share)
        assert blocks.num_blocks <= finest.num_blocks
        assert (blocks.edges[:, 0] < blocks.edges[:, 1]).all()
        each_s, finest_s = (b.compute_s(np.arange(3)).sum(axis=0) for b in (blocks, finest))
        assert each_s == pytest.approx(finest_s)
        assert blocks.sizes.sum(axis=0) == pytest.approx(finest.sizes.sum(axis=0))
        together = np.unique(np.stack([finest.block_of_unit, blocks.block_of_unit]), axis=1)
        assert together.shape[1] == finest.num_blocks
    assert coarser(coarser(finest, 1.0), 1.0).num_blocks == 1


def test_backward_ops_lie_with_their_forward_ops():
    problem = problem_of(training(1, 12), machine_of(3), 1)
    placement = place(problem, "ideals_dp").placement
    for i in range(12):
        assert placement.device_of[f"f{i}"] == placement.device_of[f"b{i}"]


def test_a_sum_of_gradients_lies_where_its_readers_are():
    """A trace notes the forward op that came last for it, which may be at the other end."""
    names = [f"f{i}" for i in range(6)]
    ops = [Op(name, "op") for name in names]
    tensors = [Tensor("in", None, ("f0",), 4)]
    tensors += [Tensor(f"t{i}", f"f{i}", (f"f{i + 1}", f"b{i + 1}"), 4) for i in range(5)]
    # The first value is read twice, so that its gradient is a sum.
    tensors[1] = Tensor("t0", "f0", ("f1", "b1", "f2"), 4)
    tensors.append(Tensor("loss", "f5", ("b5",), 4))
    for i in reversed(range(6)):
        if i == 0:
            ops.append(Op("sum", "add", phase="backward", attributes=(("derived from", "f5"),)))
        mate = (("derived from", f"f{i}"),)
        ops.append(Op(f"b{i}", "op", phase="backward", attributes=mate))
    readers = {5: "b4", 4: "b3", 3: "b2", 2: "b1", 1: "sum", 0: ""}
    for i, reader in readers.items():
        read = tuple(name for name in (reader, "sum" if i == 2 else "") if name)
        tensors.append(Tensor(f"g{i}", f"b{i}", read, 4, is_output=not read))
    tensors.append(Tensor("gs", "sum", ("b0",), 4))
    graph = Graph("sum of gradients", tuple(ops), tuple(tensors))
    blocks = blocks_of(problem_of(graph, machine_of(2), 0))
    of_op = blocks.block_of_unit[blocks.problem.unit_of_op]
    assert blocks.num_blocks == 7
    at = {name: int(of_op[graph.index[name]]) for name in ("f0", "sum", "f1", "f2", "f5")}
    assert at["f0"] < at["sum"] < at["f1"] < at["f2"] < at["f5"]


def test_a_training_pipeline_goes_there_and_back():
    """With values that skip stages, too, each stage but the last has two calls."""
    problem = problem_of(training(3, 12), machine_of(4), 3)
    devices = np.zeros(problem.num_units, dtype=int)
    for i in range(12):
        # Not in the order in which the machine lists them.
        device = (3, 1, 4, 2)[i // 3]
        for name in (f"f{i}", f"b{i}"):
            devices[problem.unit_of_op[problem.graph.index[name]]] = device
    schedule = make_schedule(problem, problem.placement_of(devices))
    gpus = [segment.device for segment in schedule.segments]
    there = [f"gpu:{i - 1}" for i in (3, 1, 4, 2)]
    assert gpus == [*there, *there[-2::-1]]


def test_equal_devices_are_one_kind():
    machine = machine_of(4)
    problem = problem_of(inference(0, 8), machine, 0)
    assert kinds_of(problem).engines == ((0,), (1, 2, 3, 4))
    # Two hosts: fast links inside of each.
    near = {frozenset(pair) for pair in (("gpu:0", "gpu:1"), ("gpu:2", "gpu:3"))}
    links = tuple(
        replace(link, latency_s=0.1) if frozenset((link.src, link.dst)) in near else link
        for link in machine.links
    )
    split = problem_of(inference(0, 8), replace(machine, links=links), 0)
    assert kinds_of(split).engines == ((0,), (1, 2), (3, 4))
    pinned = replace(problem, pins=(("f3", "gpu:2"),))
    assert kinds_of(pinned).engines == ((0,), (1, 2, 4), (3,))


def test_pins_decide_who_gets_a_stage():
    problem = replace(
        problem_of(inference(2, 10), machine_of(3), 2), pins=(("f2", "gpu:2"), ("f8", "gpu:0"))
    )
    for name in ("ideals_dp", "linear_dp"):
        found = place(problem, name)
        assert found.violations == ()
        assert found.placement.device_of["f2"] == "gpu:2"
        assert found.placement.device_of["f8"] == "gpu:0"


def test_pins_that_no_stages_keep_are_refused_in_a_sentence():
    names = {"f1": "gpu:0", "f3": "gpu:1", "f5": "gpu:0"}
    problem = problem_of(inference(2, 8), machine_of(2), 2)
    problem = replace(problem, pins=tuple(names.items()))
    with pytest.raises(ValueError, match="No contiguous split was found that keeps to"):
        place(problem, "ideals_dp")


def test_a_graph_that_is_too_wide_is_refused_in_a_sentence():
    ops = tuple(Op(f"f{i}", "op") for i in range(20))
    tensors = tuple(Tensor(f"t{i}", f"f{i}", (), 4, is_output=True) for i in range(20))
    problem = problem_of(Graph("wide", ops, tensors), machine_of(2), 0)
    with pytest.raises(ValueError, match=r"more than 6000 downward-closed sets.*use linear_dp"):
        place(problem, "ideals_dp")
    assert place(problem, "linear_dp").violations == ()


def test_latency_of_a_model_takes_as_few_devices_as_memory_allows():
    wide = replace(problem_of(inference(4, 12), machine_of(3), 4), objective="latency")
    found = place(wide, "linear_dp")
    assert len(set(found.placement.device_of.values())) == 1
    assert found.value == pytest.approx(place(wide, "single").value)
    most = int(max(simulate(wide, found.placement).peak_bytes.values())) - 1
    tight = replace(wide, machine=machine_of(3, memory_bytes=most))
    assert len(set(place(tight, "linear_dp").placement.device_of.values())) == 2


def test_weights_that_stream_are_another_way_to_use_a_device():
    graph = inference(1, 6)
    ops = tuple(replace(op, param_bytes=10 * op.param_bytes) for op in graph.ops)
    machine = machine_of(2, memory_bytes=130)
    problem = problem_of(replace(graph, ops=ops), machine, 1)
    streamed = with_offload(problem)
    assert streamed.offloads
    kinds = kinds_of(streamed)
    assert sum(len(each) for each in kinds.engines) == 3
    best_s = best_interval_by_force(streamed, range(6))
    assert best_s < best_interval_by_force(problem, range(6)), "streaming is worth it"
    for name in ("ideals_dp", "linear_dp"):
        placement = placer_class(name)().place(streamed)
        assert violations(streamed, make_schedule(streamed, placement)) == ()
        assert final_s(streamed, placement) == pytest.approx(best_s)
        assert any(streamed.machine.device(d).engine for d in placement.device_of.values())


def test_orders_end_when_told_with_the_best_so_far():
    problem = random_problem(3, num_ops=30, num_devices=3)

    def told(most):
        heard = []

        def more(best_s):
            heard.append(best_s)
            return len(heard) < most

        evaluate = partial(valued, problem)
        found = best_of_orders(problem, evaluate, num_orders=6, more=more)
        assert found.value_s <= min(heard)
        return heard, found

    everything, best = told(100)
    assert len(everything) >= 6
    for number in (1, 3):
        heard, found = told(number)
        assert heard == everything[:number]
        assert found.value_s == heard[-1] >= best.value_s
        assert found.bound_s == 0.0
