"""How much slower two lanes are together: of models whose steps are exactly as simulated."""

import itertools
import time
from dataclasses import replace

import numpy as np
import pytest

from placement.schedule.order import kernel_order
from profiling.devices import heap
from profiling.devices.lanes import Lanes, Step
from profiling.measuring.contention import (
    by_rank,
    contention_of_parts,
    contention_of_wholes,
    cost_of_rank_order,
    cut,
    list_scheduled,
)
from profiling.measuring.siblings import Siblings
from tests.instances import random_problem
from tests.profiling.live import two_lanes
from tests.profiling.simulated import Idle, Simulated, SimulatedProgram, of_one_kind

CROSSING_S = 1e-5


@pytest.mark.parametrize("seed", range(10))
def test_lanes_are_timed_together_in_the_order_in_which_placements_run(seed):
    problem = random_problem(seed, num_ops=20, num_devices=1)
    kernel_s = problem.costs.compute_s[:, 0]
    on_one = problem.placement_of([0] * problem.num_units)
    ranked = kernel_order(problem, on_one, problem.kernel_devices(on_one))
    assert by_rank(problem.kernels, kernel_s) == ranked
    assert ranked != sorted(ranked), "or this shows nothing"


class World(Simulated):
    """Lane 1 may be slower than lane 0 by itself, a byte that crosses may hold up its reader, and
    steps may be disturbed now and then."""

    def __init__(self, problem, *, slow=1.0, s_per_byte=0.0, disturbed=()):
        super().__init__(problem)
        self.slow, self.s_per_byte, self.disturbed = slow, s_per_byte, disturbed

    def open(self, schedule, feeds):
        return Told(self, schedule)


class Told(SimulatedProgram):
    """A program whose segments start when they do and take what the world makes of them."""

    def __init__(self, world, schedule):
        super().__init__(world.problem, schedule)
        self._disturbed, self._num_steps = world.disturbed, 0
        kernels, machine = world.problem.kernels, world.problem.machine.index
        self._slow = [world.slow if machine[s.device] == 1 else 1.0 for s in schedule.segments]
        segment_of = {name: i for i, s in enumerate(schedule.segments) for name in s.kernels}
        devices = [segment.device for segment in schedule.segments]
        self._longer_s = [0.0] * len(devices)
        for tensor in (t for t in kernels.tensors if t.producer is not None):
            made_at = devices[segment_of[tensor.producer]]
            for device in {*devices} - {made_at}:
                readers = {segment_of[name] for name in tensor.consumers}
                there = [s for s in readers if devices[s] == device]
                if there:
                    self._longer_s[min(there)] += tensor.num_bytes * world.s_per_byte

    def step(self, timeout_s):
        self._num_steps += 1
        step, times = super().step(timeout_s), 1.0 + (self._num_steps % 5 in self._disturbed)
        rows = zip(step.start_s, step.end_s, self._slow, self._longer_s, strict=True)
        end_s = [start + (end - start) * slow * times + more for start, end, slow, more in rows]
        return replace(step, end_s=tuple(end_s))


def contending(seed, contention, num_ops=120):
    problem = random_problem(
        seed,
        num_ops=num_ops,
        num_devices=2,
        execution="op",
        contention=contention,
        link_contention=False,
    )
    return of_one_kind(problem, CROSSING_S)


def parts(problem, world, bytes_per_s=np.inf, crossing=True):
    return contention_of_parts(
        world,
        problem.machine.devices,
        {},
        problem.costs.compute_s[:, 0],
        (CROSSING_S, bytes_per_s) if crossing else None,
        Siblings(()),
    )


@pytest.mark.parametrize("crossing", [True, False])
@pytest.mark.parametrize("contention", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("seed", range(5))
def test_lanes_of_a_simulation_contend_as_it_was_told(seed, contention, crossing):
    problem = contending(seed, contention)
    found = parts(problem, Simulated(problem), crossing=crossing)
    assert found == pytest.approx(contention, abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_steps_that_somebody_disturbed_are_no_contention(seed):
    problem = contending(seed, 0.2)
    world = World(problem, disturbed=(0, 3))
    assert parts(problem, world) == pytest.approx(0.2, abs=1e-9)


@pytest.mark.parametrize(("asking", "warm"), [(0, 3), (5, 6), (99, 10)])
def test_lanes_are_timed_once_their_steps_ask_for_no_pages(monkeypatch, asking, warm):
    """GPT-2's steps on both lanes took 1.7 s instead of 1.0 while they did, and it was 1.5."""
    problem, asked, before = contending(0, 0.2), itertools.count(), heap.asks_for_pages

    def pretends(turn):
        return before(turn)[0], next(asked) < asking

    monkeypatch.setattr(heap, "asks_for_pages", pretends)
    assert parts(problem, Simulated(problem)) == pytest.approx(0.2, abs=1e-9)
    assert next(asked) == warm


@pytest.mark.parametrize("seed", range(3))
def test_what_crossing_takes_is_no_contention(seed):
    """But for what it makes segments overlap that start where the simulation had them start."""
    problem, s_per_byte = contending(seed, 0.2), 2e-6
    world = World(problem, s_per_byte=s_per_byte)
    told = parts(problem, world, bytes_per_s=1.0 / s_per_byte)
    assert told == pytest.approx(0.2, abs=0.01)
    assert parts(problem, world) > told + 0.01, "or nothing crossed"


@pytest.mark.parametrize("slow", [0.9, 1.1])
def test_a_lane_that_is_slower_by_itself_is_no_contention(slow):
    problem = contending(0, 0.0)
    assert parts(problem, World(problem, slow=slow)) == pytest.approx(0.0, abs=1e-9)


def test_a_chain_has_no_parts_that_could_run_beside_something_else():
    class Unopened:
        def __init__(self, kernels):
            self.kernels = kernels

    made = (contending(seed, 0.25, num_ops=2) for seed in range(20))
    problem = next(p for p in made if p.kernels.successors[0])
    assert parts(problem, Unopened(problem.kernels)) is None


class Timed(Idle):
    """A compiled model whose steps take what its order says, of a few steps some more."""

    def __init__(self, kernels, seconds):
        self.kernels, self.seconds = kernels, seconds

    def open(self, schedule, feeds):
        (segment,) = schedule.segments
        return Carrying(self.seconds[segment.kernels])


class Carrying(Idle):
    def __init__(self, seconds):
        self._seconds, self._num = seconds, 0

    def carried(self, lanes, num_segments):
        return self

    def step(self, timeout_s):
        self._num += 1
        took_s = self._seconds * (1.5 if self._num % 4 == 0 else 1.0)
        return Step(0.0, took_s, (0.0,), (took_s,), {})


@pytest.mark.parametrize("ratio", [0.9, 1.0, 1.1])
def test_what_an_order_by_rank_costs_is_held_against_the_one_that_is_declared(ratio):
    problem = random_problem(3, num_ops=20, num_devices=1)
    names = tuple(op.name for op in problem.kernels.ops)
    kernel_s = problem.costs.compute_s[:, 0]
    ranked = tuple(names[k] for k in by_rank(problem.kernels, kernel_s))
    compiled = Timed(problem.kernels, {names: 0.5, ranked: 0.5 * ratio})
    first = two_lanes().devices[0]
    assert cost_of_rank_order(compiled, first, {}, kernel_s, Siblings(())) == pytest.approx(ratio)


def test_whole_models_that_do_not_share_anything_do_not_contend(monkeypatch):
    """Two lanes that sleep instead of computing, each the whole model."""
    problem = random_problem(3, num_ops=20, num_devices=1)
    names = tuple(op.name for op in problem.kernels.ops)
    opened = []

    class Sleeping(Idle):
        kernels = problem.kernels

        def open(self, schedule, feeds):
            opened.extend((segment.device, segment.kernels) for segment in schedule.segments)
            return self

        def pinned(self, lanes):
            return [replace(lane, device=replace(lane.device, core_ids=(77,))) for lane in lanes]

        def carried(self, lanes, num_segments):
            return Lanes(lanes, num_segments, self.run)

        def run(self, segment):
            time.sleep(0.02)

    stay = []
    monkeypatch.setattr("profiling.devices.lanes.pin", stay.append)

    found = contention_of_wholes(Sleeping(), two_lanes().devices, {}, Siblings(()))
    assert opened == [("cpu:0", names), ("cpu:1", names)]
    assert 0.0 <= found < 0.5
    assert stay.count((77,)) == 2, "together each has the cores that its program wants"


@pytest.mark.parametrize("seed", range(10))
def test_segments_are_cut_where_something_crosses_and_nowhere_else(seed):
    kernels = random_problem(seed, num_ops=40, num_devices=1).kernels
    order = by_rank(kernels, np.ones(40))
    lane_of = np.random.default_rng(seed).integers(0, 2, 40)
    segments, lanes = cut(kernels, lane_of, order)
    assert sorted(k for own in segments for k in own) == list(range(40))
    place = {k: s for s, own in enumerate(segments) for k in own}
    makers = {k: [p for p in range(40) if k in kernels.successors[p]] for k in range(40)}
    for s, own in enumerate(segments):
        assert {int(lane_of[k]) for k in own} == {int(lanes[s])}
        assert sorted(own, key=order.index) == list(own)
        for k in own:
            crosses = [p for p in makers[k] if lane_of[p] != lane_of[k]]
            assert all(place[p] < s or p in own for p in makers[k]), "a maker comes later"
            assert k == own[0] or not crosses
            assert k == own[-1] or all(lane_of[r] == lane_of[k] for r in kernels.successors[k])
    by_lane = [[own for own, at in zip(segments, lanes, strict=True) if at == n] for n in (0, 1)]
    for listed in by_lane:
        for before, after in itertools.pairwise(listed):
            reads = any(lane_of[p] != lane_of[after[0]] for p in makers[after[0]])
            sends = any(lane_of[r] != lane_of[before[-1]] for r in kernels.successors[before[-1]])
            assert reads or sends, "nothing crosses between them"


@pytest.mark.parametrize("crossing_s", [0.0, 1.0, 100.0])
@pytest.mark.parametrize("seed", range(5))
def test_a_kernel_goes_where_it_ends_first(seed, crossing_s):
    """By starting all anew on each lane, as a reader would do it by hand."""
    kernels = random_problem(seed, num_ops=25, num_devices=1).kernels
    kernel_s = np.random.default_rng(seed).integers(1, 9, 25).astype(float)
    order = by_rank(kernels, kernel_s)
    crossed_s = np.full(len(kernels.tensors), crossing_s)
    lane_of, step_s = list_scheduled(kernels, kernel_s, order, crossed_s)
    makers = {k: [] for k in order}
    index = {op.name: k for k, op in enumerate(kernels.ops)}
    for tensor in kernels.tensors:
        for reader in tensor.consumers if tensor.producer is not None else ():
            makers[index[reader]].append(index[tensor.producer])

    def ends_s(listed, lanes):
        """Of each kernel, of a list on these lanes."""
        found, free_s = {}, [0.0, 0.0]
        for k in listed:
            there_s = [found[p] + (crossing_s if lanes[p] != lanes[k] else 0) for p in makers[k]]
            found[k] = free_s[lanes[k]] = max([free_s[lanes[k]], *there_s]) + kernel_s[k]
        return found

    for i, k in enumerate(order):
        by_lane = [ends_s(order[: i + 1], {**dict(enumerate(lane_of)), k: n})[k] for n in (0, 1)]
        assert lane_of[k] == int(by_lane[1] < by_lane[0])
    assert set(lane_of.tolist()) == {0, 1}
    assert step_s == max(ends_s(order, lane_of).values())
