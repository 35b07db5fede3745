"""List schedulers against published schedules, slow and clear twins of themselves, and memory."""

import random
from dataclasses import replace

import numpy as np
import pytest

from placement import place
from placement.core.problem import Problem
from placement.core.problem_json import problem_from_json
from placement.core.violations import violations
from placement.placers import placer_class
from placement.placers._lists.earliest_compiled import Favourites, earliest_start, new_pairs
from placement.placers._lists.gaps_compiled import find_gap, idle, take_gap
from placement.placers._lists.lanes_compiled import earliest_finish
from placement.placers._lists.lists import falling, lanes_for, no_children, static_ranks, way_back_s
from placement.placers.cpop import critical_kernels, paths_through
from placement.placers.heft import mean_upward_ranks
from placement.placers.m_sct import children_of, edges_of, favourites_by_program, longest_first
from placement.placers.m_topo import fill, loads_and_caps
from placement.placers.peft import cost_table
from placement.schedule.segments import make_schedule
from placement.search.feasible import within_memory
from placement.simulator.flat import flatten
from tests.instances import (
    CANONICAL_EDGES,
    canonical_file,
    hosts_problem,
    peft_file,
    random_problem,
)
from tests.placers.slow_lists import slow_etf, slow_heft
from tests.thorough import either

LISTS = ("heft", "cpop", "peft", "etf", "m_etf", "m_sct", "m_topo")
SIMPLE = ("single", "round_robin", "manual")


def canonical() -> Problem:
    return problem_from_json(canonical_file(), "canonical")


def instance(seed):
    """A small problem of any shape; every third has kernels that take no time."""
    rng = random.Random(seed)
    problem = random_problem(
        seed,
        num_ops=rng.randrange(2, 19),
        num_devices=rng.randrange(1, 5),
        execution=rng.choice(("op", "segment")),
        link_contention=rng.random() < 0.6,
        with_groups=rng.random() < 0.5,
        with_cards=seed % 5 == 2,
    )
    if seed % 3 == 0:
        compute_s = problem.costs.compute_s.copy()
        compute_s[np.array([rng.random() < 0.4 for _ in compute_s])] = 0.0
        problem = replace(problem, costs=replace(problem.costs, compute_s=compute_s))
    if seed % 4 == 1 and problem.num_devices > 1:
        compute_s = problem.costs.compute_s.copy()
        compute_s[rng.randrange(len(compute_s)), rng.randrange(1, problem.num_devices)] = np.inf
        problem = replace(problem, costs=replace(problem.costs, compute_s=compute_s))
    return problem


def hosts(seed):
    """A problem whose devices are alike but for a few."""
    rng = random.Random(seed)
    return hosts_problem(
        seed,
        num_hosts=rng.randrange(1, 5),
        per_host=rng.randrange(1, 5),
        num_ops=rng.randrange(2, 19),
        num_odd=rng.choice((0, 1, 4)),
        execution=rng.choice(("op", "segment")),
        link_contention=rng.random() < 0.6,
        with_groups=rng.random() < 0.5,
    )


@pytest.mark.thorough
def test_heft_is_heft_by_the_book():
    for problem in (*map(instance, range(either(80, 200))), *map(hosts, range(either(20, 40)))):
        flat = flatten(problem)
        order = falling(problem, mean_upward_ranks(flat))
        lanes = lanes_for(flat, insertion=True)
        anywhere = np.full(order.size, -1, dtype=np.int64)
        earliest_finish(flat, lanes, order, way_back_s(flat), anywhere)
        slow_heft(problem, order.tolist()).same_as(lanes)


@pytest.mark.thorough
def test_etf_takes_the_pair_that_starts_first():
    num = either(40, 200)
    for problem in (*map(instance, range(num)), *map(hosts, range(num))):
        flat = flatten(problem)
        rank, children = static_ranks(flat), no_children(flat.compute_s.shape[0])
        lanes = lanes_for(flat, insertion=False)
        last = np.full(problem.num_devices, -1, dtype=np.int64)
        earliest_start(flat, lanes, new_pairs(flat, rank), Favourites(False, *children, last))
        slow_etf(problem, rank.tolist()).same_as(lanes)


def test_static_levels_are_longest_paths_of_mean_compute():
    flat = flatten(canonical())
    mean = [sum(row) / 3 for row in flat.compute_s.tolist()]
    successors = canonical().kernels.successors
    level = [0.0] * 10
    for k in reversed(range(10)):
        level[k] = mean[k] + max((level[j] for j in successors[k]), default=0.0)
    by_level = sorted(range(10), key=lambda k: (-level[k], k))
    assert np.argsort(static_ranks(flat)).tolist() == by_level


def test_gaps_are_found_as_in_a_list_of_busy_intervals():
    """Thousands of random intervals, some without length, so that blocks fill, halve and empty."""
    for shortest in (0.0, 1.0):
        rng = random.Random(1)
        gaps, busy = idle(4000, np.array([shortest])), []
        for _ in range(1200):
            ready, length = float(rng.randrange(3000)), float(rng.randrange(int(shortest), 5))
            place_of, i, start = find_gap(gaps, 0, ready, length)
            expected = ready
            for a, b in sorted(busy):
                if expected + length <= a:
                    break
                expected = max(expected, b)
            assert start == expected
            take_gap(gaps, 0, place_of, i, start, start + length)
            busy.append((start, start + length))


def test_cpop_on_the_canonical_example_is_the_published_schedule():
    """Topcuoglu et al. 2002, figure 3(b): makespan 86, critical path n1 n2 n9 n10 on P2."""
    problem = canonical()
    flat = flatten(problem)
    through_s = paths_through(flat)
    assert through_s[0] == pytest.approx(108.0)
    assert critical_kernels(flat, through_s).tolist() == [0, 1, 8, 9]
    placed = place(problem, "cpop")
    assert placed.value == 86.0
    for name in ("n1", "n2", "n9", "n10"):
        assert placed.placement.device_of[name] == "P2"


def test_the_optimistic_cost_table_is_the_best_case_by_definition():
    for seed in range(40):
        problem = replace(instance(seed), link_contention=False)
        flat = flatten(problem)
        table, arrays = cost_table(flat), problem.kernels.arrays
        pairs = max(1, problem.num_devices * (problem.num_devices - 1))
        devices = range(problem.num_devices)
        back = way_back_s(flat)
        for k in reversed(range(flat.compute_s.shape[0])):
            for p in devices:
                worst = max([0.0, back[k, p]])
                for t in range(arrays.producer.size):
                    if arrays.producer[t] != k:
                        continue
                    move = flat.move_s.sum() / pairs
                    move += arrays.tensor_bytes[t] * flat.s_per_byte.sum() / pairs
                    for j in arrays.consumers[arrays.consumer_ptr[t] : arrays.consumer_ptr[t + 1]]:
                        onward = [
                            table[j, q] + flat.compute_s[j, q] + (move if p != q else 0.0)
                            for q in devices
                            if problem.allowed[problem.unit_of_kernel[j], q]
                        ]
                        worst = max(worst, min(onward))
                assert table[k, p] == pytest.approx(worst)


def test_favourite_children_are_one_to_one():
    flat = flatten(canonical())
    edges = edges_of(flat)
    assert edges.move_s.tolist() == [float(c) for _, _, c in CANONICAL_EDGES]
    for chosen in (favourites_by_program(flat, edges), longest_first(flat, edges)):
        assert len(set(edges.src[chosen].tolist())) == len(chosen) > 0
        assert len(set(edges.dst[chosen].tolist())) == len(chosen)
    assert edges.move_s[longest_first(flat, edges)[0]] == 27.0
    children = children_of(flat, edges, longest_first(flat, edges))
    assert children.child[3] == 7


def test_a_device_waits_for_the_favourite_child():
    """Of a's readers b takes longest to reach elsewhere; ETF takes c first for its higher level."""
    content = {
        "format": "placement-problem",
        "devices": [{"name": "P1"}, {"name": "P2"}],
        "links": [
            {"src": s, "dst": d, "latency_s": 10.0, "bytes_per_s": 1.0}
            for s, d in (("P1", "P2"), ("P2", "P1"))
        ],
        "ops": [
            {"name": "a", "times_s": [2.0, 2.0]},
            {"name": "b", "times_s": [2.0, 2.0]},
            {"name": "c", "times_s": [9.0, 9.0]},
        ],
        "tensors": [
            {"producer": "a", "consumers": ["b"], "bytes": 50},
            {"producer": "a", "consumers": ["c"], "bytes": 1},
        ],
        "execution": "op",
    }
    problem = problem_from_json(content, "fork")
    etf, sct = place(problem, "etf"), place(problem, "m_sct")
    assert etf.placement.order == ("a", "c", "b")
    assert sct.placement.order == ("a", "b", "c")
    assert set(sct.placement.device_of.values()) == {"P1"}


def test_m_topo_fills_devices_in_turn_up_to_its_cap():
    problem = random_problem(5, num_ops=40, num_devices=4)
    load, cap = loads_and_caps(problem)
    total, largest = load[:, 0].sum(), load[:, 0].max()
    assert cap.tolist() == [total / 4 + largest] * 4
    devices = fill(problem, load, cap)
    assert devices == sorted(devices)
    assert len(set(devices)) > 1
    for d in range(4):
        assert load[np.array(devices) == d, d].sum() <= cap[d]


def filled_in_a_ring(problem, load, cap):
    """m-TOPO's rule as it is said: the current device, else the next in a ring that may and has
    room, else the roomiest."""
    current, left, found = 0, cap.copy(), []
    num, allowed = problem.num_devices, problem.allowed
    for unit in range(problem.num_units):
        while current < num - 1 and load[unit, current] > left[current]:
            current += 1
        usable = [d for i in range(num) if allowed[unit, d := (current + i) % num]]
        fitting = [d for d in usable if load[unit, d] <= left[d]]
        d = fitting[0] if fitting else max(usable, key=lambda d: (left[d], -d))
        left[d] -= load[unit, d]
        found.append(d)
    return found


@pytest.mark.parametrize("share", [0.3, 1.0, 5.0])
def test_m_topo_goes_round_where_the_current_device_may_not_take_an_op(share):
    for seed in range(30):
        problem = random_problem(seed, num_ops=24, num_devices=4, with_gaps=True)
        load, cap = loads_and_caps(problem)
        # Room for less than all, for all, and for all several times.
        cap = cap * share
        assert fill(problem, load, cap) == filled_in_a_ring(problem, load, cap)


def test_m_topo_shares_out_seconds_where_memory_has_no_limit():
    content = canonical_file()
    for row in content["ops"]:
        row["times_s"] = [1.0, 2.0, 2.0]
    problem = problem_from_json(content, "unlimited")
    load, cap = loads_and_caps(problem)
    # All on P1 take 10, on P2 or P3 20: they end together at 1 / (1/10 + 1/20 + 1/20) = 5.
    assert cap.tolist() == [6.0, 7.0, 7.0]
    assert fill(problem, load, cap) == [0] * 6 + [1] * 3 + [2]


def tight(seed, *, share):
    """A problem whose devices hold the weights of all ops barely: `share` of them in total."""
    problem = random_problem(seed, num_ops=24, num_devices=3, with_groups=seed % 2 == 0)
    weights = problem.kernels.param_bytes
    limits = [int(weights * share * part) for part in (0.5, 0.3, 0.2)]
    devices = tuple(
        replace(d, memory_bytes=limit)
        for d, limit in zip(problem.machine.devices, limits, strict=True)
    )
    return replace(problem, machine=replace(problem.machine, devices=devices))


@pytest.mark.thorough
@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("memory_model", ["sum", "live"])
def test_tight_memory_is_kept(name, memory_model):
    for seed in range(either(4, 8)):
        share = 1.25 if memory_model == "sum" else 1.7
        problem = replace(tight(seed, share=share), memory_model=memory_model)
        placement = placer_class(name)().place(problem)
        assert violations(problem, make_schedule(problem, placement)) == (), (name, seed)


@pytest.mark.parametrize("name", (*LISTS, *SIMPLE))
def test_too_little_memory_is_said_by_figures(name):
    problem = tight(3, share=0.9)
    with pytest.raises(ValueError, match=r"\d B\b") as error:
        placer_class(name)().place(problem)
    if name in LISTS:
        limits = sum(d.memory_bytes for d in problem.machine.devices)
        assert f"need {problem.kernels.param_bytes} B," in str(error.value)
        assert f"together have {limits} B;" in str(error.value)
    else:
        assert "lacks" in str(error.value)


def test_single_takes_the_best_device_that_can_hold_it():
    problem = random_problem(1, num_ops=10, num_devices=3)
    best = placer_class("single")().place(problem)
    held = problem.machine.index[best.device_of["op0"]]
    devices = tuple(
        replace(d, memory_bytes=10 if i == held else 10_000)
        for i, d in enumerate(problem.machine.devices)
    )
    smaller = replace(problem, machine=replace(problem.machine, devices=devices))
    assert best.device_of["op0"] not in placer_class("single")().place(smaller).device_of.values()
    with pytest.raises(ValueError, match=f"{devices[held].name!r} lacks"):
        placer_class("single")(device=devices[held].name).place(smaller)


def test_an_op_larger_than_every_device_is_named():
    content = canonical_file()
    for row in content["ops"]:
        row["memory_bytes"] = 30 if row["name"] == "n4" else 1
    for device in content["devices"]:
        device["memory_bytes"] = 20
    with pytest.raises(ValueError, match=r"'n4'.*30 B.*more than 20 B"):
        placer_class("heft")().place(problem_from_json(content, "one too large"))


def test_an_attempt_that_ignores_memory_is_repaired():
    problem = replace(tight(4, share=1.3), memory_model="sum")
    first = [int(problem.allowed[u].argmax()) for u in range(problem.num_units)]
    placement = within_memory(problem, lambda scale: problem.placement_of(first))
    assert violations(problem, make_schedule(problem, placement)) == ()


def test_peft_on_the_example_of_its_paper():
    """Ranks, makespans (122 against HEFT's 133) and processors of Arabnejad and Barbosa 2014."""
    problem = problem_from_json(peft_file(), "peft")
    ranks = cost_table(flatten(problem)).mean(axis=1)
    assert [round(r) for r in ranks] == [73, 41, 37, 44, 31, 42, 17, 21, 16, 0]
    placed = place(problem, "peft")
    assert placed.value == 122.0
    assert placed.placement.ops_per_device() == {"P1": 5, "P2": 3, "P3": 2}
    assert place(problem, "heft").value == 133.0
