"""Lanes keep what others read until these have ended: no shorter, and no longer than planned."""

import itertools
import random
import time
import weakref
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache

import networkx as nx
import numpy as np
import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import placement as pl
from placement.core.machine import Device, Machine
from placement.core.schedule import Schedule, Segment
from placement.core.verb_options import StreamOptions
from placement.formats.torch.source import shared_values
from placement.simulator.executions import lower
from profiling import backends
from profiling.backends._ancestors import ancestors
from profiling.backends._joined import Joined
from profiling.backends._ray.part import Part
from profiling.backends._torch.lifetimes import lifetimes
from profiling.backends._torch.run import PlacedTorch
from profiling.backends.torch import Torch
from profiling.devices.lanes import Lanes
from profiling.devices.local import nominal_links
from profiling.execution.execute import lanes_of
from profiling.execution.stream import stream
from profiling.measuring.outputs import compare
from tests.exporters.torch_models import seeing
from tests.profiling.live import problem_of, random_schedule
from tests.thorough import either

LANES = tuple(Device(f"cpu:{i}", "cpu", "torch", "cpu") for i in range(3))
THREE = Machine("three", LANES, nominal_links(LANES))
KINDS = ("sum", "product", "matmul", "turned", "halves", "row", "statistics", "flat")
SIDE = 8


class Drawn(nn.Module):
    """Square matrices made of earlier ones by ops drawn by chance; some are views of others."""

    def __init__(self, seed, number=16):
        super().__init__()
        rng = random.Random(seed)
        self.plan = [
            (rng.choice(KINDS), rng.randrange(2**20), rng.randrange(2**20)) for _ in range(number)
        ]

    def forward(self, x):
        values = [torch.sin(x)]
        for kind, one, other in self.plan:
            # The newer the likelier, so that what is made is read.
            a, b = (values[-1 - pick % min(4, len(values))] for pick in (one, other))
            if kind == "sum":
                values.append(a + b)
            elif kind == "product":
                values.append(torch.sin(a) * b)
            elif kind == "matmul":
                values.append(torch.tanh(a @ b))
            elif kind == "turned":
                values += [a.t(), torch.cos(a.t())]
            elif kind == "halves":
                low, high = a.chunk(2)
                values.append(torch.cat([high, low]))
            elif kind == "row":
                values.append(a[one % SIDE : one % SIDE + 1].expand(SIDE, SIDE))
            elif kind == "statistics":
                spread, mean = torch.var_mean(a, 1, keepdim=True)
                values += [a - mean, spread.expand(SIDE, SIDE)]
            else:
                values.append(a.reshape(-1)[: SIDE * SIDE].reshape(SIDE, SIDE))
        return torch.stack(values[-3:]).sum(0), values[len(values) // 2]


@cache
def drawn(seed):
    """Captured once for all tests."""
    torch.manual_seed(seed)
    return pl.from_torch(Drawn(seed), torch.randn(SIDE, SIDE))


def trained(seed):
    return seeing(("sgd", "momentum", "adam")[seed % 3])


def schedule_of(program, rng, devices=LANES):
    """Kernels in an order and on devices drawn by chance; neighbours on one device are a call."""
    makers = {
        k.name: {program.maker[v.name].name for v in program.reads(k) if v.name in program.maker}
        for k in program.kernels
    }
    done, parts = set(), []
    while len(done) < len(makers):
        ready = [n for n, before in makers.items() if n not in done and before <= done]
        name, device = rng.choice(ready), rng.choice(devices).name
        done.add(name)
        if parts and parts[-1][0] == device:
            parts[-1][1].append(name)
        else:
            parts.append((device, [name]))
    return Schedule(tuple(Segment(device, tuple(names)) for device, names in parts))


def awaited_by(program, schedule):
    """Per segment the segments that make what it reads, straight from the graph."""
    found = [set() for _ in schedule.segments]
    for kernel in program.kernels:
        for value in program.reads(kernel):
            if value.name in program.maker:
                maker = program.maker[value.name].name
                found[schedule.segment_of[kernel.name]].add(schedule.segment_of[maker])
    return [makers - {i} for i, makers in enumerate(found)]


def course(program, schedule, rng):
    """("start" or "end", segment) in an order that lanes might come to, drawn by chance."""
    awaited, ended = awaited_by(program, schedule), set()
    lanes = {}
    for i, segment in enumerate(schedule.segments):
        lanes.setdefault(segment.device, []).append(i)
    running = dict.fromkeys(lanes)
    while any(lanes.values()) or any(i is not None for i in running.values()):
        device = rng.choice([*lanes])
        if running[device] is not None:
            ended.add(running[device])
            yield "end", running[device]
            running[device] = None
        elif lanes[device] and awaited[lanes[device][0]] <= ended:
            running[device] = lanes[device].pop(0)
            yield "start", running[device]


def order(program, schedule, rng):
    """Segments one after another as they end in such a course, which lanes might come to, too."""
    return [i for what, i in course(program, schedule, rng) if what == "end"]


def steps(program, orders):
    """Outputs of steps, each from the state that the one before has made."""
    found = []
    for segments in orders:
        for segment in segments:
            program.run(segment)
        found.append(program.outputs())
        program.advance()
    return found


def expected_of(compiled, feeds, number):
    return steps(compiled.unplaced(LANES[0], feeds), [[0]] * number)


def same(found, wanted):
    return all(
        list(a) == list(b) and all(np.array_equal(a[name], b[name]) for name in b)
        for a, b in zip(found, wanted, strict=True)
    )


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(either(4, 10)))
def test_ancestors_are_those_of_the_graph(seed):
    program, rng = drawn(seed).executable, random.Random(seed)
    schedule = schedule_of(program, rng)
    arcs, last = nx.DiGraph(), {}
    arcs.add_nodes_from(range(len(schedule.segments)))
    for i, makers in enumerate(awaited_by(program, schedule)):
        arcs.add_edges_from((maker, i) for maker in makers)
        device = schedule.segments[i].device
        if device in last:
            arcs.add_edge(last[device], i)
        last[device] = i
    for i, bits in enumerate(ancestors(schedule, awaited_by(program, schedule))):
        assert {j for j in arcs if bits >> j & 1} == nx.ancestors(arcs, i)


@pytest.mark.thorough
@pytest.mark.parametrize("make", [drawn, trained])
@pytest.mark.parametrize("seed", range(either(3, 6)))
def test_nothing_that_can_still_be_read_is_let_go_of(make, seed):
    """In any course that lanes may take, over two steps, by the definition."""
    program, rng = make(seed).executable, random.Random(seed)
    schedule = schedule_of(program, rng)
    parts = [segment.kernels for segment in schedule.segments]
    shared = shared_values(program, parts)
    found = lifetimes(program, schedule, shared, [True] * len(parts))
    readers = {name: set() for name in shared}
    for kernel in program.kernels:
        for value in program.reads(kernel):
            readers.get(value.name, set()).add(schedule.segment_of[kernel.name])
    handed_back = {name for _, name in (*program.outputs, *program.updates)}
    maker = {n: schedule.segment_of[program.maker[n].name] for n in shared if n in program.maker}
    assert sum(map(len, found.after)) > 0
    for _ in range(20):
        there = set(shared) - set(maker)
        for _ in range(2):
            ended, begun = set(), set()

            def let_go(names, there=there, ended=ended, begun=begun):
                for name in names:
                    assert maker[name] not in begun or readers[name] <= ended, name
                    assert maker[name] not in begun or name not in handed_back, name
                there.difference_update(names)

            for what, i in course(program, schedule, rng):
                if what == "start":
                    let_go(found.before[i])
                    begun.add(i)
                    there.update(name for name, made_by in maker.items() if made_by == i)
                else:
                    ended.add(i)
                    let_go(found.after[i])
                running = begun - ended
                assert all(name in there for name in readers if readers[name] & running)
            assert handed_back <= there


class Watch(TorchDispatchMode):
    """The most bytes of tensors that were there at once, of those made meanwhile."""

    def __init__(self):
        super().__init__()
        self.num_bytes = self.peak_bytes = 0
        self._known = weakref.WeakSet()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        given = [v.untyped_storage() for v in tree_leaves((args, kwargs)) if is_tensor(v)]
        for value in filter(is_tensor, tree_leaves(made)):
            memory = value.untyped_storage()
            if memory not in self._known and all(memory is not other for other in given):
                self._known.add(memory)
                self.num_bytes += memory.nbytes()
                weakref.finalize(memory, self._free, memory.nbytes())
        self.peak_bytes = max(self.peak_bytes, self.num_bytes)
        return made

    def _free(self, num_bytes):
        self.num_bytes -= num_bytes


def is_tensor(value):
    return isinstance(value, torch.Tensor)


@pytest.mark.thorough
@pytest.mark.parametrize("in_python", [False, True])
@pytest.mark.parametrize("seed", range(either(4, 8)))
def test_what_is_held_is_at_most_what_was_planned(seed, in_python):
    """Counted by the library's calls, in some of the orders that lanes may come to."""
    model, rng = drawn(seed), random.Random(seed)
    compiled = backends.compiled(model, THREE)
    feeds = compiled.feeds(0, {})
    expected = expected_of(compiled, feeds, 3)
    for _ in range(4):
        schedule = schedule_of(model.executable, rng)
        opener = compiled.in_python() if in_python else compiled
        program = opener.open(schedule, feeds)
        orders = [order(model.executable, schedule, rng) for _ in range(3)]
        with Watch() as watch:
            found = steps(program, orders)
        assert same(found, expected)
        assert 0 < watch.peak_bytes <= sum(program.peak_bytes.values()), schedule
        program.close()


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(either(4, 6)))
def test_what_lies_between_segments_is_at_most_what_was_planned(seed):
    """By device, and in training, where state and what it is updated with are there, too."""
    model, rng = (trained if seed % 2 else drawn)(seed), random.Random(seed)
    content, compiled = model.executable, backends.compiled(model, THREE)
    feeds = compiled.feeds(0, {})
    schedule = schedule_of(content, rng)
    program = compiled.open(schedule, feeds)
    device_of = {k: s.device for s in schedule.segments for k in s.kernels}
    makers = {n: content.maker[n].name for n in program._shared if n in content.maker}
    outside = {
        program._values[program._shared[n]].untyped_storage().data_ptr() for n in content.inputs
    }
    most = 0
    for _ in range(3):
        for segment in order(content, schedule, rng):
            program.run(segment)
            held = {device: {} for device in program.peak_bytes}
            for name, kernel in makers.items():
                value = program._values[program._shared[name]]
                if is_tensor(value):
                    memory = value.untyped_storage()
                    held[device_of[kernel]][memory.data_ptr()] = memory.nbytes()
            for device, sizes in held.items():
                lying = sum(size for at, size in sizes.items() if at not in outside)
                assert lying <= program.peak_bytes[device]
                most = max(most, lying)
        program.advance()
    assert most > 0 or len(schedule.segments) == 1


def chain(number, side):
    names = itertools.cycle((torch.sin, torch.cos))
    functions = list(itertools.islice(names, number))

    class Chain(nn.Module):
        def forward(self, x):
            for function in functions:
                x = function(x)
            return x

    return pl.from_torch(Chain(), torch.zeros(side, side))


@pytest.mark.parametrize("number", [2, 9, 40])
def test_a_chain_that_goes_to_and_fro_holds_two_values(number):
    """However often it crosses: one on each lane, and one each for every other sample in flight."""
    side = 32
    model = chain(number, side)
    compiled = backends.compiled(model, THREE)
    names = [op.name for op in compiled.kernels.ops]
    pairs = zip(itertools.cycle(("cpu:0", "cpu:1")), names, strict=False)
    schedule = Schedule(tuple(Segment(device, (name,)) for device, name in pairs))
    feeds = compiled.feeds(0, {})
    program = compiled.open(schedule, feeds)
    size = side * side * 4
    assert program.peak_bytes == {"cpu:0": size, "cpu:1": size}
    with Watch() as watch:
        found = steps(program, [range(number)] * 3)
    assert watch.peak_bytes == 2 * size
    assert same(found, expected_of(compiled, feeds, 3))
    first, *_ = compiled.open_ring(schedule, [feeds], 5)
    assert first.peak_bytes == {"cpu:0": 5 * size, "cpu:1": 5 * size}


def test_a_branch_that_many_read_goes_before_they_are_joined():
    """No reader has awaited the other, but who joins them has awaited both."""

    class Branches(nn.Module):
        def forward(self, x):
            x = torch.sin(x)
            return torch.cos(x) + torch.tanh(x)

    content = pl.from_torch(Branches(), torch.zeros(4)).executable
    sine, cosine, tangent, total = (kernel.name for kernel in content.kernels)
    pairs = ((0, sine), (1, cosine), (2, tangent), (0, total))
    schedule = Schedule(tuple(Segment(LANES[i].name, (name,)) for i, name in pairs))
    shared = shared_values(content, [segment.kernels for segment in schedule.segments])
    found = lifetimes(content, schedule, shared, [True] * 4)
    assert found.before == ((total,), (), (), (sine,))
    assert found.after == ((), (), (), (cosine, tangent))
    assert found.to_the_end().before == found.to_the_end().after == ((),) * 4


@pytest.mark.parametrize("make", [drawn, trained])
def test_lanes_that_are_late_by_chance_compute_the_same(make):
    model = make(1)
    problem = problem_of(model, THREE)
    compiled = backends.compiled(model, THREE)
    feeds = compiled.feeds(0, {})
    expected = expected_of(compiled, feeds, 4)
    rng = random.Random(1)
    for seed in range(3):
        schedule = random_schedule(problem, np.random.default_rng(seed))
        program = compiled.open(schedule, feeds)

        def late(segment, run=program.run):
            time.sleep(rng.choice((0.0, 0.0, 0.001)))
            run(segment)
            time.sleep(rng.choice((0.0, 0.0, 0.001)))

        lanes = Lanes(lanes_of(problem, lower(problem, schedule)), len(schedule.segments), late)
        found = []
        for _ in range(4):
            lanes.step(60.0)
            found.append(program.outputs())
            program.advance()
        assert lanes.close() and same(found, expected), schedule
        program.close()


def test_samples_that_are_late_by_chance_come_out_as_they_should(monkeypatch):
    model, rng, run = drawn(2), random.Random(2), PlacedTorch.run
    problem = replace(problem_of(model, THREE), objective="throughput")

    def late(self, segment):
        time.sleep(rng.choice((0.0, 0.0, 0.001)))
        run(self, segment)

    monkeypatch.setattr(PlacedTorch, "run", late)
    for seed in range(2):
        schedule = random_schedule(problem, np.random.default_rng(seed))
        found = stream(problem, schedule, StreamOptions(samples=15), model=model, baselines=False)
        assert found.bit_equal and found.num_samples == 15 and found.distinct_outputs > 1


class Twin(Torch):
    name = "twin"


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(either(4, 8)))
def test_what_another_runtime_reads_is_handed_over_before_it_goes(seed):
    """Each runtime knows only when its own segments end."""
    model, rng = drawn(seed), random.Random(seed)
    devices = (*LANES[:2], *(replace(d, name=f"twin:{d.name}", runtime="twin") for d in LANES[:2]))
    machine = Machine("twins", devices, nominal_links(devices))
    parts = {backend.name: backend.compile(model, machine) for backend in (Torch(), Twin())}
    compiled = Joined.of(parts, machine)
    feeds = compiled.feeds(0, {})
    expected = expected_of(parts["torch"], feeds, 3)
    for _ in range(3):
        schedule = schedule_of(model.executable, rng, devices)
        program = compiled.open(schedule, feeds)
        for found, wanted in zip(
            steps(program, [order(model.executable, schedule, rng) for _ in range(3)]),
            expected,
            strict=True,
        ):
            assert compare(wanted, found, program.tolerance).match, schedule
        program.close()


@pytest.mark.parametrize("number", [6, 30])
def test_runtimes_let_go_of_what_they_have_handed_over(number):
    """On its way to and fro between two runtimes a value is there once, and as one copy."""
    side = 16
    model = chain(number, side)
    devices = (LANES[0], replace(LANES[1], name="twin:0", runtime="twin"))
    machine = Machine("twins", devices, nominal_links(devices))
    parts = {backend.name: backend.compile(model, machine) for backend in (Torch(), Twin())}
    compiled = Joined.of(parts, machine)
    names = [op.name for op in compiled.kernels.ops]
    pairs = zip(itertools.cycle(("cpu:0", "twin:0")), names, strict=False)
    schedule = Schedule(tuple(Segment(device, (name,)) for device, name in pairs))
    program = compiled.open(schedule, compiled.feeds(0, {}))
    size = side * side * 4
    assert program.peak_bytes == {"cpu:0": size, "twin:0": size}
    counts = Counter()
    for segment in [*range(number)] * 2:
        program.run(segment)
        for one in program._programs:
            tensors = [v for v in one._values if is_tensor(v)]
            # The model's input is in both, its output in the first one.
            counts[len(tensors)] += 1
    assert max(counts) <= 4


@pytest.mark.parametrize("seed", range(3))
def test_hosts_that_send_each_other_what_they_make_train_as_one(seed):
    """Shares of a step as hosts of a cluster have them, which here lie in one process."""
    model = trained(seed)
    content, compiled = model.executable, backends.compiled(model, THREE)
    feeds = compiled.feeds(0, {})
    expected = expected_of(compiled, feeds, 3)
    problem = problem_of(model, THREE)
    schedule = random_schedule(problem, np.random.default_rng(seed))
    host_of = {"cpu:0": "alpha", "cpu:1": "alpha", "cpu:2": "beta"}
    on = [host_of[segment.device] for segment in schedule.segments]
    leaving = {host: {} for host in ("alpha", "beta")}
    goes = [(t.name, t.producer, t.consumers) for t in compiled.kernels.tensors if t.producer]
    goes += [(renewal.made, renewal.maker, renewal.readers) for renewal in compiled.renewals]
    for name, maker, readers in goes:
        segment = schedule.segment_of[maker]
        for other in {on[schedule.segment_of[reader]] for reader in readers} - {on[segment]}:
            leaving[on[segment]].setdefault(segment, {}).setdefault(other, []).append(name)
    due = {
        host: frozenset(
            schedule.segment_of[renewal.maker]
            for renewal in compiled.renewals
            if on[schedule.segment_of[renewal.maker]] != host
            and host in {on[schedule.segment_of[reader]] for reader in renewal.readers}
        )
        for host in leaving
    }
    parts = {}
    for host, sent in leaving.items():
        devices = [d if host_of[d.name] == host else replace(d, runtime="ray") for d in LANES]
        program = compiled.among(replace(THREE, devices=tuple(devices))).open(schedule, feeds)
        own = {i: () for i, here in enumerate(on) if here == host}
        messages = {i: tuple((to, tuple(n)) for to, n in them.items()) for i, them in sent.items()}
        parts[host] = Part(0, program, own, messages, {}, due[host])

    def send(host, number, segment, values):
        parts[host].deliver(segment, values)
        return True

    lanes = lanes_of(problem, lower(problem, schedule))
    for host, part in parts.items():
        here = [lane for lane in lanes if host_of[lane.device.name] == host]
        part.carry(here, len(schedule.segments), send)
    made_by = dict((*content.outputs, *((content.labels.get(a, a), b) for a, b in content.updates)))
    for wanted in expected:
        with ThreadPoolExecutor(len(parts)) as pool:
            list(pool.map(lambda part: part.step(60.0, lambda _: True), parts.values()))
        found = {host: part.program.outputs() for host, part in parts.items()}
        for label, value in wanted.items():
            maker = content.maker[made_by[label]].name
            assert np.array_equal(found[on[schedule.segment_of[maker]]][label], value), label
        for part in parts.values():
            part.program.advance()
    assert all(leaving.values())
    for part in parts.values():
        part.close()
