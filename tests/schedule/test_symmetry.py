"""Equal devices against brute force: every renaming of devices that leaves the problem as it is."""

import itertools
import random
from dataclasses import replace

import numpy as np
import pytest

import placement as pl
from placement.core.costs import Costs
from placement.core.machine import Device, Link, Machine
from placement.core.problem import Problem
from placement.schedule.symmetry import aligned, num_changed, renaming, symmetry_of, with_names
from tests.instances import random_devices, random_problem
from tests.thorough import either


def on_devices(seed, groups, *, fast=(), host=True, cards=()):
    """A random problem on a host and groups of equal GPUs; pairs in `fast` have faster links, and
    all links out of the devices of each of some `cards` share one, by number."""
    rng = random.Random(seed)
    base = random_problem(seed, num_ops=12, num_devices=2)
    kinds = [g for g, size in enumerate(groups) for _ in range(size)]
    rng.shuffle(kinds)
    devices = (Device("cpu"),) * host + tuple(
        Device(f"gpu:{i}", kind="gpu", memory_bytes=10_000 + 100 * kind)
        for i, kind in enumerate(kinds)
    )
    columns = np.array([[rng.randrange(1, 9) for _ in groups] for _ in base.kernels.ops], float)
    own = np.ones((len(base.kernels.ops), 1)) * 7.0
    compute = np.hstack([own] * host + [columns[:, [kind]] for kind in kinds])
    num = len(devices)
    latency, per_byte = 2.0 * (1 - np.eye(num)), 0.5 * (1 - np.eye(num))
    for a, b in fast:
        per_byte[a + host, b + host] = per_byte[b + host, a + host] = 0.125
    costs = Costs(compute, np.zeros(num), latency, per_byte, "given")
    card_of = {d: f"card {card}" for card, members in enumerate(cards) for d in members}
    links = tuple(
        Link(devices[a].name, devices[b].name, latency[a, b], 1 / per_byte[a, b], card_of[a])
        for a, b in itertools.permutations(range(num), 2)
        if a in card_of
    )
    machine = Machine("random", devices, links)
    return Problem(base.graph, machine, costs, base.kernels, base.sources, execution="segment")


def automorphisms(problem):
    """By definition: all permutations of devices under which everything is as it was."""
    devices, costs = problem.machine.devices, problem.costs
    host = next((i for i, d in enumerate(devices) if d.on_host), -1)
    crosses = not all(d.on_host for d in devices)
    for order in itertools.permutations(range(len(devices))):
        to = list(order)
        same = all(
            replace(devices[a], name="x", label="", core_ids=())
            == replace(devices[b], name="x", label="", core_ids=())
            for a, b in enumerate(to)
        )
        same = same and not (crosses and host >= 0 and to[host] != host)
        same = same and (costs.compute_s[:, to] == costs.compute_s).all()
        same = same and (problem.allowed[:, to] == problem.allowed).all()
        same = same and (costs.call_s[to] == costs.call_s).all()
        for links in (costs.latency_s, costs.s_per_byte, *costs.overhead):
            same = same and (links[np.ix_(to, to)] == links).all()
        if same and together(problem, range(len(to))) == together(problem, to):
            yield to


def together(problem, to):
    """Pairs of pairs of devices, as they are called then, whose links lie on one card."""
    index = problem.machine.index
    on_card = {}
    for link in problem.machine.links:
        if link.card:
            ends = (to[index[link.src]], to[index[link.dst]])
            on_card.setdefault(link.card, set()).add(ends)
    return {frozenset(ends) for ends in on_card.values()}


def fewest_changes(problem, here, there):
    names = [d.name for d in problem.machine.devices]
    index = problem.machine.index
    return min(
        sum(names[to[index[there.device_of[op]]]] != d for op, d in here.device_of.items())
        for to in automorphisms(problem)
    )


SHAPES = [
    ((4,), (), ()),
    ((2, 2), (), ()),
    ((3, 1), (), ()),
    ((1, 1, 1), (), ()),
    ((4,), ((0, 1), (2, 3)), ()),
    ((4,), ((0, 1), (1, 2), (2, 3), (3, 0)), ()),
    ((4,), ((0, 1),), ()),
    ((4,), (), ((1,), (2,))),
    ((4,), (), ((1, 2), (3, 4))),
    ((4,), (), ((0, 1, 2, 3),)),
    ((4,), ((0, 1), (2, 3)), ((1, 3), (2, 4))),
    ((4,), ((0, 1), (2, 3)), ((1, 2),)),
]


@pytest.mark.thorough
@pytest.mark.parametrize(("groups", "fast", "cards"), SHAPES)
@pytest.mark.parametrize("seed", range(either(3, 8)))
def test_placements_differ_by_the_least_that_any_renaming_leaves(groups, fast, cards, seed):
    problem = on_devices(seed, groups, fast=fast, cards=cards)
    here, there = (problem.placement_of(random_devices(problem, 2 * seed + i)) for i in (0, 1))
    assert num_changed(problem, here, there) == fewest_changes(problem, here, there)


@pytest.mark.thorough
@pytest.mark.parametrize(("groups", "fast", "cards"), SHAPES)
@pytest.mark.parametrize("seed", range(either(3, 8)))
def test_nothing_differs_where_equal_devices_exchange_their_names(groups, fast, cards, seed):
    problem = on_devices(seed, groups, fast=fast, cards=cards)
    here = problem.placement_of(random_devices(problem, seed))
    names = [d.name for d in problem.machine.devices]
    to = random.Random(seed).choice(list(automorphisms(problem)))
    there = with_names(here, {names[a]: names[b] for a, b in enumerate(to)})
    assert num_changed(problem, here, there) == 0
    assert aligned(problem, here, there).device_of == here.device_of
    if not cards:
        values = [pl.simulate(problem, p).value for p in (here, there)]
        assert values[0] == pytest.approx(values[1], rel=1e-9), "they are worth the same"


def test_sixteen_equal_devices_are_matched_at_once():
    problem = on_devices(3, (16,))
    here = problem.placement_of(random_devices(problem, 3))
    gpus = [d.name for d in problem.machine.devices if d.name != "cpu"]
    shuffled = random.Random(5).sample(gpus, len(gpus))
    there = with_names(here, dict(zip(gpus, shuffled, strict=True)))
    assert here.device_of != there.device_of and num_changed(problem, here, there) == 0


def test_names_stay_where_nothing_is_gained():
    problem = on_devices(1, (4,))
    here = problem.placement_of(random_devices(problem, 1))
    assert renaming(problem, here, here) == {}


def test_a_pin_tells_equal_devices_apart():
    problem = on_devices(2, (2,))
    here = problem.placement_of([1] * problem.num_units)
    there = problem.placement_of([2] * problem.num_units)
    num = len(problem.graph.ops)
    assert num_changed(problem, here, there) == 0
    pinned = replace(problem, pins=((problem.graph.ops[0].name, "gpu:0"),))
    assert num_changed(pinned, here, there) == num


def test_the_host_is_like_no_other_unless_nothing_crosses_a_link_to_it():
    """Inputs start on the host, so on a machine with GPUs its second lane is another device."""
    lanes = (Device("cpu:0"), Device("cpu:1"))
    problem = random_problem(0, num_ops=8, num_devices=2)
    times = np.ones((8, 2))
    away = 1.0 - np.eye(2)
    costs = Costs(times, np.zeros(2), away, away, "given")
    alone = replace(problem, machine=Machine("two", lanes), costs=costs)
    assert symmetry_of(alone).classes == ((0, 1),)
    away = 1.0 - np.eye(3)
    costs = Costs(np.ones((8, 3)), np.zeros(3), away, away, "given")
    machine = Machine("three", (*lanes, Device("gpu", kind="gpu")))
    beside = replace(problem, machine=machine, costs=costs)
    assert symmetry_of(beside).is_trivial


def test_calls_and_replicas_go_with_their_devices():
    problem = on_devices(2, (2,))
    here = problem.placement_of([1] * problem.num_units)
    there = replace(
        problem.placement_of([2] * problem.num_units), calls={"gpu:1": 2}, replicas={"gpu:1": 3}
    )
    found = aligned(problem, here, there)
    assert (found.calls, found.replicas) == ({"gpu:0": 2}, {"gpu:0": 3})
