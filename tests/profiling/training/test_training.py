"""Training on a virtual clock whose devices become slower and faster: the placement follows."""

import itertools
import random
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from placement import place
from placement.advice.replacing import Policy, Slowdown, prepare, unslowed, updated
from placement.core.costs import Costs
from placement.core.graph import Graph, Op, Tensor
from placement.core.machine import Device, Link, Machine, link_arrays
from placement.core.problem import Problem, own_kernels
from placement.schedule.segments import make_schedule
from placement.simulator.simulate import step_time_s
from profiling.training.loop import Adjust, train
from profiling.training.monitor import Monitor, Watch, in_words
from profiling.training.sites import VirtualSite
from tests.thorough import either

BUSY_FROM, BUSY_UNTIL, STEPS = 50, 200, 400


@cache
def problem() -> Problem:
    """Three towers of twelve ops between a first and a last one, on two lanes of one CPU."""
    names = [f"t{t}.{i}" for t in range(3) for i in range(12)]
    ops = tuple(Op(n, "op", param_bytes=1000, phase="update") for n in ("first", *names, "last"))
    tensors = [Tensor("in", "first", tuple(f"t{t}.0" for t in range(3)), 10_000)]
    for t in range(3):
        for i in range(12):
            after = f"t{t}.{i + 1}" if i < 11 else "last"
            tensors.append(Tensor(f"v{t}.{i}", f"t{t}.{i}", (after,), 10_000))
    graph = Graph("towers", ops, tuple(tensors))
    lanes = tuple(Device(f"cpu:{i}", runtime="given", provider="cpu") for i in range(2))
    links = (Link("cpu:0", "cpu:1", 2e-5, 1e10), Link("cpu:1", "cpu:0", 2e-5, 1e10))
    machine = Machine("two lanes", lanes, links)
    latency_s, s_per_byte = link_arrays(machine)
    seconds = np.full((len(ops), 2), 2e-3)
    costs = Costs(seconds, np.full(2, 1e-5), latency_s, s_per_byte, "measured", contention=0.05)
    return Problem(graph, machine, costs, graph, own_kernels(graph))


@cache
def start():
    prepare(problem(), Policy())
    return place(problem(), "heft").placement


CALM = unslowed(problem())
LOADED = Slowdown(np.array([2.0, 1.0]), 1.0, CALM.contention)


def loaded_between(number):
    return LOADED if BUSY_FROM <= number < BUSY_UNTIL else CALM


def trained(world, *, steps=STEPS, adjust=True, jitter=lambda: 1.0, **settings):
    wanted = Adjust(policy=Policy(time_limit_s=60.0, max_moves=500), **settings)
    site = VirtualSite(problem(), world, jitter)
    return train(problem(), start(), site, steps=steps, adjust=wanted if adjust else None)


@cache
def best_s(slowdown):
    """Of what any quick method places for a machine that is so from the start."""
    slowed = updated(problem(), slowdown)
    placers = ("heft", "ceft_pbqp", "single", "local_search")
    return min(place(slowed, name).value for name in placers)


def test_a_placement_follows_a_load_and_returns_when_it_ends():
    followed = trained(loaded_between)
    calm_s = followed.step_s[BUSY_FROM - 1]
    recovered = followed.step_s[BUSY_FROM + 30 : BUSY_UNTIL]
    assert max(recovered) <= 1.15 * best_s(LOADED)
    stayed = trained(loaded_between, adjust=False)
    assert min(stayed.step_s[BUSY_FROM:BUSY_UNTIL]) > 1.5 * calm_s
    assert followed.step_s[-1] <= 1.05 * calm_s, "returned"
    first, second = followed.moves
    assert BUSY_FROM < first.step <= BUSY_FROM + 30
    assert first.reason.startswith("cpu:0 takes 2.0 times as long as before; predicted ")
    assert second.step > BUSY_UNTIL and "cpu:0 is 2.0 times as fast as before" in second.reason
    assert first.after_s == pytest.approx(followed.step_s[first.step], rel=0.01)
    assert first.bytes_moved == 1000 * len(first.ops_moved) > 0


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(either(1, 4)))
def test_noise_moves_nothing_in_500_steps(seed):
    """Every step and probe off by up to a fifth, and one in thirty three times as long."""
    rng = random.Random(seed)

    def jitter():
        return rng.uniform(0.8, 1.2) * (3.0 if rng.random() < 1 / 30 else 1.0)

    found = trained(lambda number: CALM, steps=500, jitter=jitter)
    assert len(found.step_s) == 500
    assert not found.moves


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(either(1, 3)))
def test_a_load_is_followed_through_noise(seed):
    rng = random.Random(seed)
    found = trained(loaded_between, jitter=lambda: rng.uniform(0.8, 1.2))
    assert len(found.moves) == 2
    late = np.median(found.step_s[BUSY_FROM + 30 : BUSY_UNTIL])
    assert late <= 1.15 * best_s(LOADED)


def test_after_a_move_there_is_none_for_a_while():
    """A load that comes and goes all the time is not run after."""

    def restless(number):
        return LOADED if number >= 40 and number // 25 % 2 else CALM

    found = trained(restless, steps=200)
    at = [m.step for m in found.moves] + [s.step for s in found.stays]
    assert at and all(b - a >= Watch().pause for a, b in itertools.pairwise(at))


def test_a_machine_that_is_loaded_from_the_start_is_seen_by_its_probes():
    found = trained(lambda number: LOADED, steps=100)
    assert found.moves[0].step < 40
    assert found.step_s[-1] <= 1.15 * best_s(LOADED)


def test_the_last_steps_do_not_pay_for_a_move():
    site = VirtualSite(problem(), loaded_between)
    clock = iter(range(10_000))
    wanted = Adjust(policy=Policy(time_limit_s=1e6, max_moves=100))
    found = train(
        problem(),
        start(),
        site,
        steps=BUSY_FROM + 20,
        adjust=wanted,
        clock=lambda: float(next(clock)),
    )
    assert not found.moves
    assert "does not pay for moving" in found.stays[0].reason


def test_a_placement_that_cannot_be_opened_leaves_training_as_it_is():
    class Full(VirtualSite):
        opened = 0

        def open(self, schedule):
            self.opened += 1
            if self.opened > 1:
                raise ValueError("no memory is left")
            super().open(schedule)

    site = Full(problem(), loaded_between)
    wanted = Adjust(policy=Policy(time_limit_s=60.0, max_moves=500))
    steps = BUSY_FROM + 50
    found = train(problem(), start(), site, steps=steps, adjust=wanted)
    assert len(found.step_s) == steps and not found.moves
    assert "cannot be opened: no memory is left" in found.stays[0].reason
    assert found.placement == start()


def test_training_stops_when_asked():
    heard = []
    site = VirtualSite(problem())
    found = train(
        problem(), start(), site, steps=50, emit=heard.append, stop=lambda: len(heard) == 7
    )
    assert len(found.step_s) == 7 == len(heard)
    assert heard[3] == {
        "event": "step",
        "index": 3,
        "seconds": found.step_s[3],
        "loss": None,
        "predicted_s": pytest.approx(found.step_s[3], rel=1e-9),
    }


def heard(monitor, schedule, world, number):
    """The monitor after some steps and probes in such a world."""
    site = VirtualSite(problem(), lambda _: world)
    site.open(schedule)
    for _ in range(number):
        monitor.hear(site.step())
    return site


def test_only_a_probe_ends_what_a_probe_has_found():
    """A lane that waits a lot is served at once beside a load, so its segments look quick."""
    schedule = make_schedule(problem(), start())
    monitor = Monitor(problem())
    monitor.begin(schedule)
    site = heard(monitor, schedule, CALM, 30)
    for _ in range(5):
        monitor.hear_probe(site.probe())
    heard(monitor, schedule, LOADED, 10)
    for _ in range(5):
        monitor.hear_probe({"cpu:0": 0.02, "cpu:1": 0.01})
    drift = monitor.drift()
    assert drift.by_probe == (True, False)
    assert in_words(problem(), drift) == "cpu:0 takes 2.0 times as long as before"
    monitor.accept(drift)
    monitor.begin(schedule)
    assert monitor.slowdown.device.tolist() == [2.0, 1.0]
    heard(monitor, schedule, LOADED, 60)
    heard(monitor, schedule, CALM, 20)
    assert monitor.suspects and monitor.drift() is None
    for _ in range(5):
        monitor.hear_probe({"cpu:0": 0.01, "cpu:1": 0.01})
    monitor.accept(monitor.drift())
    assert monitor.slowdown.device.tolist() == [1.0, 1.0]


def test_segments_alone_decide_where_nothing_can_be_probed():
    schedule = make_schedule(problem(), start())
    monitor = Monitor(problem())
    monitor.begin(schedule)
    heard(monitor, schedule, CALM, 30)
    assert not monitor.suspects
    heard(monitor, schedule, LOADED, 10)
    assert monitor.suspects
    assert monitor.drift().factor == pytest.approx([2.0, 1.0], rel=0.1)


def test_what_all_devices_take_too_long_together_is_their_slowing_each_other():
    schedule = make_schedule(problem(), start())
    crowded = Slowdown(np.ones(2), 1.0, 0.3)
    monitor = Monitor(problem())
    monitor.begin(schedule)
    heard(monitor, schedule, crowded, 20)
    assert monitor.slowdown.contention == pytest.approx(0.3, rel=0.05)
    slowed = updated(problem(), monitor.slowdown)
    wanted_s = step_time_s(updated(problem(), crowded), schedule)
    assert step_time_s(slowed, schedule) == pytest.approx(wanted_s, rel=0.02)


def slow_parts(kernels=(), links=()):
    """A world where single ops on a device, or links, take so many times as long."""
    by_kernel, by_link = np.ones(problem().costs.compute_s.shape), np.ones((2, 2))
    for op, device, factor in kernels:
        by_kernel[problem().kernels.index[op], device] = factor
    for src, dst, factor in links:
        by_link[src, dst] = factor
    return replace(CALM, kernels=by_kernel, links=by_link)


def device_of(placement, op):
    return int(placement.device_of[op][-1])


def test_an_op_that_becomes_slow_alone_is_seen_named_and_moved():
    """Ten times as long on its device, as fast as ever on the other one."""
    schedule = make_schedule(problem(), start())
    lone = min(schedule.segments, key=lambda s: (len(s.kernels), s.kernels))
    op, device = lone.kernels[0], int(lone.device[-1])
    world = slow_parts([(op, device, 10.0)])
    found = trained(lambda number: world if number >= BUSY_FROM else CALM, steps=BUSY_FROM + 100)
    first = found.moves[0]
    assert BUSY_FROM < first.step <= BUSY_FROM + 30
    assert first.reason.startswith(f"'{op}' on cpu:{device} takes 10.0 times as long as before; ")
    assert device_of(found.placement, op) != device
    assert found.step_s[-1] <= 1.15 * best_s(world)
    assert found.predicted_s[-1] == pytest.approx(found.step_s[-1], rel=0.02)


def test_what_a_segment_shows_is_put_down_to_its_kernels_on_that_device():
    schedule = make_schedule(problem(), start())
    monitor = Monitor(problem())
    monitor.begin(schedule)
    heard(monitor, schedule, CALM, 30)
    slow = max(schedule.segments, key=lambda s: len(s.kernels))
    device = int(slow.device[-1])
    world = slow_parts([(op, device, 4.0) for op in slow.kernels])
    heard(monitor, schedule, world, 10)
    drift = monitor.drift()
    assert [part.factor for part in drift.parts] == pytest.approx([4.0], rel=0.05)
    assert drift.factor.tolist() == [1.0, 1.0]
    monitor.accept(drift)
    monitor.begin(schedule)
    factors = monitor.slowdown.kernels.copy()
    on = [problem().kernels.index[op] for op in slow.kernels]
    assert factors[on, device] == pytest.approx(np.full(len(on), 4.0), rel=0.05)
    factors[on, device] = 1.0
    assert (factors == 1.0).all()
    heard(monitor, schedule, world, 30)
    assert not monitor.suspects, "known by now"
    heard(monitor, schedule, CALM, 10)
    monitor.accept(monitor.drift())
    assert monitor.slowdown.kernels == pytest.approx(np.ones_like(factors))


def test_a_link_that_becomes_slow_alone_is_told_from_its_way_back():
    schedule = make_schedule(problem(), start())
    monitor = Monitor(problem())
    monitor.begin(schedule)
    heard(monitor, schedule, CALM, 30)
    heard(monitor, schedule, slow_parts(links=[(0, 1, 400.0)]), 10)
    drift = monitor.drift()
    assert in_words(problem(), drift).startswith("handing over from cpu:0 to cpu:1 takes ")
    monitor.accept(drift)
    monitor.begin(schedule)
    slowdown = monitor.slowdown
    assert slowdown.links[0, 1] == pytest.approx(400.0, rel=0.1)
    assert slowdown.links[1, 0] == 1.0 and slowdown.link == 1.0 and (slowdown.device == 1.0).all()


@pytest.mark.parametrize("what", ["op", "link"])
def test_a_device_that_becomes_slow_together_with_a_part_is_seen_as_well(what):
    schedule = make_schedule(problem(), start())
    monitor = Monitor(problem())
    monitor.begin(schedule)
    heard(monitor, schedule, CALM, 30)
    op = next(s.kernels[0] for s in schedule.segments if s.device == "cpu:0")
    part = {"kernels": [(op, 0, 10.0)]} if what == "op" else {"links": [(0, 1, 400.0)]}
    slow = 1 if what == "op" else 0
    device = np.where(np.arange(2) == slow, 1.8, 1.0)
    heard(monitor, schedule, replace(slow_parts(**part), device=device), 10)
    drift = monitor.drift()
    assert drift.factor == pytest.approx(device, rel=0.1) and len(drift.parts) == 1
    monitor.accept(drift)
    assert monitor.slowdown.device == pytest.approx(device, rel=0.1)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(either(1, 3)))
def test_noise_of_single_segments_moves_nothing(seed):
    """Each segment off by up to a third in every step, and one in ten three times as long."""
    rng = np.random.default_rng(seed)

    class Noisy(VirtualSite):
        def step(self):
            step = super().step()
            start_s, end_s = np.array(step.start_s), np.array(step.end_s)
            longer = rng.uniform(0.75, 1.33, len(start_s))
            longer[rng.random(len(start_s)) < 0.1] = 3.0
            return replace(step, end_s=tuple(start_s + (end_s - start_s) * longer))

    wanted = Adjust(policy=Policy(time_limit_s=60.0, max_moves=500))
    found = train(problem(), start(), Noisy(problem()), steps=300, adjust=wanted)
    assert len(found.step_s) == 300 and not found.moves and not found.stays
