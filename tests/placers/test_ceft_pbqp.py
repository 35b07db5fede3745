"""CEFT and PBQP: the program adds up what it should, and the best of its variants is taken."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from placement import place
from placement.bounds.ceft import ceft
from placement.core.problem_json import problem_from_json
from placement.core.violations import violations
from placement.pbqp.problem import solve_packed
from placement.pbqp.unit_net import fixed, joined, rivals, unit_net, weighted
from placement.placers._relief import relieved
from placement.placers.ceft_pbqp import (
    CeftPbqp,
    alone,
    critical_devices,
    loads_s,
    stages,
    value_s,
)
from placement.schedule.segments import make_schedule
from placement.search.feasible import unit_bytes
from placement.simulator.throughput import loads_s as simulated_loads_s
from tests.instances import canonical_file, random_devices, random_problem


def net_cost(net, devices):
    total = sum(net.node_s[u, d] for u, d in enumerate(devices))
    return total + sum(
        m[devices[a], devices[b]] for (a, b), m in zip(net.ends, net.edge_s, strict=True)
    )


def traffic_s(problem, devices):
    """Compute, the ways from and to the host, and each tensor once per unit that reads it."""
    unit, costs = problem.unit_of_kernel, problem.costs
    on_host = [d.on_host for d in problem.machine.devices]
    total = sum(costs.compute_s[k, devices[unit[k]]] for k in range(len(unit)))
    for tensor in problem.kernels.tensors:
        readers = {int(unit[problem.kernels.index[c]]) for c in tensor.consumers}
        if tensor.producer is None:
            for b in readers:
                if not on_host[devices[b]]:
                    total += costs.transfer_s(0, devices[b], tensor.num_bytes)
            continue
        a = int(unit[problem.kernels.index[tensor.producer]])
        for b in readers - {a}:
            total += costs.transfer_s(devices[a], devices[b], tensor.num_bytes)
        if tensor.is_output and not on_host[devices[a]]:
            total += costs.transfer_s(devices[a], 0, tensor.num_bytes)
    return total


@pytest.mark.parametrize("seed", range(12))
def test_the_program_adds_up_compute_and_transfers(seed):
    problem = random_problem(seed, num_ops=12, num_devices=3, with_groups=seed % 2 == 1)
    problem = replace(problem, costs=replace(problem.costs, call_s=np.zeros(3)))
    devices = random_devices(problem, seed)
    assert net_cost(unit_net(problem), devices) == pytest.approx(traffic_s(problem, devices))


def test_the_plain_program_is_solved_to_its_optimum():
    for seed in range(6):
        problem = random_problem(seed, num_ops=8, num_devices=2, with_gaps=seed % 2 == 1)
        net = unit_net(problem)
        found = solve_packed(net.packed())
        every = itertools.product(range(2), repeat=problem.num_units)
        assert found.optimal
        assert found.cost == pytest.approx(min(net_cost(net, devices) for devices in every))


@pytest.mark.parametrize("seed", range(8))
def test_fixed_units_are_on_the_devices_of_ceft(seed):
    problem = random_problem(seed, num_ops=20, num_devices=3, with_gaps=True)
    found = ceft(problem)
    device = critical_devices(problem, found)
    choice = solve_packed(fixed(unit_net(problem), device).packed()).choice
    for k, d in zip(found.path, found.devices, strict=True):
        assert choice[problem.unit_of_kernel[k]] == d
    assert (device >= 0).sum() == len(found.path)


def test_a_unit_that_ceft_splits_goes_where_most_of_its_work_is():
    problem = random_problem(7, num_ops=30, num_devices=3, with_groups=True)
    device = critical_devices(problem, ceft(problem))
    assert device.shape == (problem.num_units,)
    assert {int(problem.unit_of_kernel[k]) for k in ceft(problem).path} == set(
        np.flatnonzero(device >= 0).tolist()
    )


def test_weights_multiply_critical_units_and_the_edges_between_them():
    problem = random_problem(3, num_ops=15, num_devices=2)
    net, critical = unit_net(problem), np.arange(problem.num_units) < 4
    heavy = weighted(net, critical, 3.0)
    assert np.array_equal(heavy.node_s[:4], 3.0 * net.node_s[:4])
    assert np.array_equal(heavy.node_s[4:], net.node_s[4:])
    for (a, b), before, after in zip(net.ends, net.edge_s, heavy.edge_s, strict=True):
        assert np.array_equal(after, before * (3.0 if a < 4 and b < 4 else 1.0))


def test_rivals_overlap_and_never_depend_on_each_other():
    num_pairs = 0
    for seed in range(10):
        problem = random_problem(seed, num_ops=16, num_devices=3)
        after = [set(s) for s in problem.kernels.successors]
        for k in reversed(range(len(after))):
            after[k] = after[k].union(*(after[r] for r in after[k]))
        pairs = rivals(problem, ceft(problem).table, 8)
        for (a, b), cost in zip(pairs.ends.tolist(), pairs.edge_s, strict=True):
            ka, kb = problem.kernels_of_unit[a][0], problem.kernels_of_unit[b][0]
            assert kb not in after[ka] and ka not in after[kb]
            both = np.minimum(problem.costs.compute_s[ka], problem.costs.compute_s[kb])
            assert np.count_nonzero(cost - np.diag(np.diag(cost))) == 0
            assert (np.diag(cost) <= both + 1e-9).all()
            num_pairs += 1
    assert num_pairs > 50


@pytest.mark.parametrize("objective", ["latency", "throughput"])
@pytest.mark.parametrize("execution", ["op", "segment"])
def test_never_worse_than_any_of_its_variants(objective, execution):
    for seed in range(4):
        problem = replace(
            random_problem(seed, num_ops=20, num_devices=3, execution=execution),
            objective=objective,
        )
        placer = CeftPbqp(adjusting=0)
        best = value_s(problem, placer.place(problem))
        assert value_s(problem, CeftPbqp().place(problem)) <= best * (1 + 1e-9)
        net = unit_net(problem)
        for _, _, devices in itertools.islice(placer._variants(problem, net, 12), 12):
            assert best <= value_s(problem, problem.placement_of(devices))
        fewer = replace(placer, max_variants=2).place(problem)
        assert best <= value_s(problem, fewer)


def test_two_equal_branches_use_both_devices():
    """The plain program would leave all on one device; rivals that share one pay for it."""
    times = [[1.0, 1.0], [10.0, 10.0], [10.0, 10.0], [1.0, 1.0]]
    content = canonical_file() | {
        "devices": [{"name": "a"}, {"name": "b"}],
        "links": [
            {"src": s, "dst": d, "latency_s": 1.0, "bytes_per_s": 1.0} for s, d in ("ab", "ba")
        ],
        "ops": [{"name": f"n{i}", "times_s": row} for i, row in enumerate(times)],
        "tensors": [
            {"producer": f"n{a}", "consumers": [f"n{b}"], "bytes": 1}
            for a, b in ((0, 1), (0, 2), (1, 3), (2, 3))
        ],
    }
    problem = problem_from_json(content, "diamond")
    assert len(set(solve_packed(unit_net(problem).packed()).choice)) == 1
    assert len(set(solve_packed(_shared(problem).packed()).choice)) == 2
    assert place(problem, "ceft_pbqp", settings={"adjusting": 0}).value == 16.0
    # The last op waits less where the later of both branches runs.
    assert place(problem, "ceft_pbqp").value == 14.0


def _shared(problem):
    return joined(unit_net(problem), rivals(problem, ceft(problem).table, 4), 1.0)


def test_loads_are_those_of_the_simulation_where_tensors_have_one_reader():
    problem = problem_from_json(canonical_file(), "canonical")
    devices = np.array(random_devices(problem, 3))
    schedule = make_schedule(problem, problem.placement_of(devices))
    simulated = simulated_loads_s(problem, schedule)
    wanted = [simulated[d.name] for d in problem.machine.devices]
    assert loads_s(unit_net(problem), devices).tolist() == pytest.approx(wanted)


def test_stages_follow_declared_order_and_speed():
    node_s = np.ones((12, 2))
    assert stages(node_s, np.array([0.5, 0.5])).tolist() == [0] * 6 + [1] * 6
    assert stages(node_s, np.array([1.0, 2.0])).tolist() == [0] * 8 + [1] * 4


def test_pipelines_share_the_work():
    """A chain of equal ops over three devices: four each, and both borders are paid."""
    content = canonical_file()
    content["ops"] = [{"name": f"n{i}", "times_s": [10.0] * 3} for i in range(12)]
    content["tensors"] = [
        {"producer": f"n{i}", "consumers": [f"n{i + 1}"], "bytes": 1} for i in range(11)
    ]
    problem = replace(problem_from_json(content, "chain"), objective="throughput")
    assert place(problem, "ceft_pbqp").value == 42.0


def test_tight_memory_is_kept():
    content = canonical_file()
    for row in content["ops"]:
        row["memory_bytes"] = 10
    for device in content["devices"]:
        device["memory_bytes"] = 40
    problem = problem_from_json(content, "tight")
    placement = CeftPbqp().place(problem)
    assert violations(problem, make_schedule(problem, placement)) == ()
    for device in content["devices"]:
        device["memory_bytes"] = 30
    with pytest.raises(ValueError, match=r"need 100 B, all devices together have 90 B"):
        CeftPbqp().place(problem_from_json(content, "too tight"))


def test_a_slow_device_with_room_for_everything_is_not_the_way_out_of_tight_memory():
    content = canonical_file()
    for row in content["ops"]:
        row["memory_bytes"] = 10
        row["times_s"][2] = 1000.0
    for device, room in zip(content["devices"], (60, 60, 1000), strict=True):
        device["memory_bytes"] = room
    problem = problem_from_json(content, "tight")
    # No two devices are alike here, so that nothing but their room speaks for the slow one.
    assert place(problem, "single").value >= 10_000.0
    for placer in (CeftPbqp(), CeftPbqp(adjusting=0)):
        placement = placer.place(problem)
        assert violations(problem, make_schedule(problem, placement)) == ()
        assert value_s(problem, placement) < 1000.0


def with_limits(machine, limits):
    pairs = zip(machine.devices, limits, strict=True)
    return replace(machine, devices=tuple(replace(d, memory_bytes=int(b)) for d, b in pairs))


@pytest.mark.parametrize("seed", range(6))
def test_units_leave_full_devices_by_what_they_cost_by_byte(seed):
    problem = random_problem(seed, num_ops=12, num_devices=3)
    net, begun = unit_net(problem), (0,) * problem.num_units
    size = unit_bytes(problem)
    roomy = replace(problem, machine=with_limits(problem.machine, [size.sum() // 2 + 49] * 3))
    chosen = relieved(roomy, net, begun, 1.0)
    held = np.bincount(chosen, size, 3)
    assert (held <= size.sum() // 2 + 49).all()

    def dearer(unit, device):
        moved = tuple(device if u == unit else d for u, d in enumerate(begun))
        return (net_cost(net, moved) - net_cost(net, begun)) / size[unit]

    first = min(
        ((dearer(u, d), u, d) for u in range(len(begun)) if size[u] for d in (1, 2)),
        key=lambda found: found[0],
    )
    barely = replace(problem, machine=with_limits(problem.machine, [size.sum() - 1, 1e9, 1e9]))
    once = relieved(barely, net, begun, 1.0)
    assert [u for u, d in enumerate(once) if d] == [first[1]]
    assert once[first[1]] == first[2]


def test_what_reads_a_cast_weight_leaves_with_it():
    content = canonical_file()
    # Two weights of 100 bytes become values of 100 bytes, each read by one op of a chain.
    content["ops"] = [
        {"name": name, "times_s": [1.0, 1.0, 1.5], "memory_bytes": size}
        for name, size in (("cast0", 100), ("cast1", 100), ("read0", 0), ("read1", 0), ("end", 0))
    ]
    content["tensors"] = [
        {"producer": a, "consumers": [b], "bytes": num}
        for a, b, num in (
            ("cast0", "read0", 100),
            ("cast1", "read1", 100),
            ("read0", "read1", 1),
            ("read1", "end", 2),
        )
    ]
    for device, room in zip(content["devices"], (150, 0, 400), strict=True):
        device["memory_bytes"] = room
    problem = problem_from_json(content, "cast")
    at = [problem.kernels.index[name] for name in ("cast0", "read0", "cast1", "read1", "end")]
    devices = [relieved(problem, unit_net(problem), (0,) * 5, 1.0)[u] for u in at]
    # Of both pairs the first has less to send: its result, once, where the other sends and gets.
    assert devices == [2, 2, 0, 0, 0]


def test_one_device_alone_is_the_last_resort():
    problem = random_problem(2, num_ops=10, num_devices=3, with_gaps=True)
    net = unit_net(problem)
    for d, devices in enumerate(alone(net)):
        for unit, chosen in enumerate(devices):
            wanted = d if problem.allowed[unit, d] else int(net.node_s[unit].argmin())
            assert chosen == wanted


@pytest.mark.parametrize("seed", range(6))
def test_calls_have_no_violations(seed):
    problem = replace(random_problem(seed, num_ops=12, num_devices=3), execution="call")
    placement = CeftPbqp().place(problem)
    assert violations(problem, make_schedule(problem, placement)) == ()


def test_a_report_that_says_stop_gets_the_best_so_far():
    problem = random_problem(1, num_ops=20, num_devices=2)
    seen = []
    stopped = CeftPbqp().place(problem, lambda p: seen.append(p) or False)
    assert len(seen) == 1
    first = CeftPbqp(max_variants=1, adjusting=0).place(problem)
    assert stopped.device_of == first.device_of


@pytest.mark.parametrize("settings", [{"critical_weight": 0.0}, {"max_variants": 0}, {"reach": -1}])
def test_settings_out_of_range_are_refused(settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        CeftPbqp(**settings)
