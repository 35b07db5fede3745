"""The steps of critical paths against the definition: consecutive work on one longest path."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement import place, simulate
from placement.core.costs import Costs
from placement.core.graph import Graph, Op, Tensor
from placement.core.machine import Device, Machine
from placement.core.problem import Problem
from placement.core.problem_json import problem_from_json
from placement.simulator.path_steps import path_steps, waits
from tests.instances import canonical_file, random_devices, random_problem
from tests.pages.problems import diamond, everywhere
from tests.thorough import either

problems = st.builds(
    random_problem,
    st.integers(0, 10_000),
    num_ops=st.integers(1, 20),
    num_devices=st.integers(1, 4),
    execution=st.sampled_from(("op", "segment")),
    link_contention=st.booleans(),
    with_groups=st.booleans(),
    with_cards=st.booleans(),
)


def steps_of(problem, placement):
    predicted = simulate(problem, placement)
    return predicted, path_steps(problem, predicted.schedule, predicted.critical_path)


def through_s(problem, predicted):
    """By pair of spans (indices) that had to follow each other: the longest path through both."""
    spans, segments = predicted.timeline.spans, predicted.schedule.segments
    at = {
        (s.kind, s.segment if s.kind == "compute" else (s.name, s.device)): i
        for i, s in enumerate(spans)
    }
    segment_of = {k: i for i, segment in enumerate(segments) for k in segment.kernels}
    pairs = set()
    for device in problem.machine.devices:
        lane = [i for i, s in enumerate(segments) if s.device == device.name]
        pairs |= {(at["compute", a], at["compute", b]) for a, b in pairwise(lane)}
    if problem.link_contention:
        cards = {f"{link.src}->{link.dst}": link.card for link in problem.machine.links}
        channels: dict[str, list[int]] = {}
        for i, s in sorted(enumerate(spans), key=lambda each: each[1].start_s):
            if s.kind == "transfer":
                channels.setdefault(cards.get(s.device) or s.device, []).append(i)
        for passing in channels.values():
            pairs |= set(pairwise(passing))
    for tensor in problem.kernels.tensors:
        made = segment_of.get(tensor.producer)
        for (kind, what), i in at.items():
            if kind == "transfer" and what[0] == tensor.name and made is not None:
                pairs.add((at["compute", made], i))
        for reader in {segment_of[c] for c in tensor.consumers} - {made}:
            there = segments[reader].device
            sent = [
                i
                for (kind, what), i in at.items()
                if kind == "transfer" and what[0] == tensor.name and what[1].endswith(f">{there}")
            ]
            first = sent or ([] if made is None else [at["compute", made]])
            pairs |= {(i, at["compute", reader]) for i in first}
    head, tail = [0.0] * len(spans), [s.duration_s for s in spans]
    for _ in spans:
        for a, b in pairs:
            head[b] = max(head[b], head[a] + spans[a].duration_s)
            tail[a] = max(tail[a], spans[a].duration_s + tail[b])
    return {(a, b): head[a] + spans[a].duration_s + tail[b] for a, b in pairs}


@settings(max_examples=either(60, 200), deadline=None)
@given(problems, st.integers(0, 1000))
def test_steps_are_consecutive_on_one_longest_path(problem, seed):
    placement = problem.placement_of(random_devices(problem, seed))
    predicted, steps = steps_of(problem, placement)
    spans, path = predicted.timeline.spans, predicted.critical_path
    longest = through_s(problem, predicted)
    number = {(s.kind, s.name, s.device): i for i, s in enumerate(spans)}
    ids = [number[s.kind, s.name, s.device] for s in path]
    assert all(longest[pair] == predicted.timeline.step_s for pair in pairwise(ids))
    computing = [s for s in path if s.kind == "compute"]
    kernels = [predicted.schedule.segments[s.segment].kernels for s in computing]
    index, reads = problem.graph.index, readings(problem.graph)
    allowed, needed = set(), []
    for own in kernels:
        for a, b in pairwise(own):
            needed.append({(index[a], index[b])})
    for before, after in pairwise(kernels):
        needed.append({(index[a], index[b]) for a in before for b in after})
    for pairs in needed:
        allowed |= pairs
        edges, queues = (
            pairs & steps.edges,
            [q for q in steps.queues if (q.before, q.after) in pairs],
        )
        # Each hand-over is told once, as data if there are any.
        assert bool(edges) != bool(queues) and len(queues) <= 1
    assert steps.edges <= allowed & reads
    queued = waits(problem, predicted.schedule, path)
    # What is told of a span agrees with how its ops are drawn, wherever it followed another.
    for (before, after), waited in zip(pairwise(path), queued[1:], strict=True):
        if before.kind == after.kind == "compute":
            pairs = {
                (index[a], index[b])
                for a in predicted.schedule.segments[before.segment].kernels
                for b in predicted.schedule.segments[after.segment].kernels
            }
            assert bool(waited) == any((q.before, q.after) in pairs for q in steps.queues)
        else:
            assert bool(waited) == (before.kind == after.kind)
    assert len(steps.queues) == sum(not pairs & steps.edges for pairs in needed)


def readings(graph):
    index = graph.index
    return {(index[t.producer], index[c]) for t in graph.tensors if t.producer for c in t.consumers}


def canonical(placer):
    problem = problem_from_json(canonical_file(), name="canonical")
    return problem, place(problem, placer).placement


def test_the_canonical_example_waits_for_a_device_between_n4_and_n6():
    problem, placement = canonical("heft")
    predicted, steps = steps_of(problem, placement)
    names = [op.name for op in problem.graph.ops]
    assert predicted.value == 80.0
    assert {(names[a], names[b]) for a, b in steps.edges} == {
        ("n1", "n4"),
        ("n6", "n8"),
        ("n8", "n10"),
    }
    assert [(names[q.before], names[q.after], q.place) for q in steps.queues] == [
        ("n4", "n6", "P2")
    ]
    path = predicted.critical_path
    told = waits(problem, predicted.schedule, path)
    assert [s.name for s, waited in zip(path, told, strict=True) if waited] == ["n6"]


def test_what_a_kernel_fuses_is_one_piece_of_the_path():
    problem = diamond()
    _, steps = steps_of(problem, everywhere(problem, c="cpu:1"))
    names = [op.name for op in problem.graph.ops]
    found = {(names[a], names[b]) for a, b in steps.edges}
    assert {("a_conv", "a_relu"), ("a_relu", "c_conv"), ("c_relu", "d_conv")} <= found
    assert not steps.queues and ("a_relu", "b_conv") not in found


@pytest.mark.parametrize("num_folded", [1, 3000])
def test_what_was_folded_away_hands_the_path_on(num_folded):
    graph = chain_with_folded(num_folded)
    _, steps = steps_of(graph, graph.placement_of([0] * graph.num_units))
    index = graph.graph.index
    names = ["first", *(f"folded{i}" for i in range(num_folded)), "last"]
    assert steps.edges == {(index[a], index[b]) for a, b in pairwise(names)}
    assert not steps.queues


def chain_with_folded(num_folded):
    """Two kernels with ops in between that no kernel does, and a folded one that feeds the last."""
    names = ["first", *(f"folded{i}" for i in range(num_folded)), "aside", "last"]
    chain = [n for n in names if n != "aside"]
    tensors = [Tensor(f"{a}>", a, (b,), 1) for a, b in pairwise(chain)]
    graph = Graph(
        "g", tuple(Op(n, "Op") for n in names), (*tensors, Tensor("w", "aside", ("last",), 1))
    )
    kernels = Graph("k", (Op("a", "K"), Op("b", "K")), (Tensor("ab", "a", ("b",), 1),))
    costs = Costs(np.ones((2, 1)), np.zeros(1), np.zeros((1, 1)), np.zeros((1, 1)), "given")
    sources = ((0,), (len(names) - 1,))
    return Problem(graph, Machine("one", (Device("cpu:0"),)), costs, kernels, sources)


def test_a_kernel_of_the_runtimes_own_is_passed_over():
    """It does the work of no op, so no step to or from it can be shown."""
    ops = tuple(Op(name, "Relu") for name in ("a", "b"))
    kernels = tuple(Op(name, "Relu") for name in ("a", "own", "b"))
    graph = Graph("g", ops, (Tensor("t", "a", ("b",), 4),))
    links = tuple(
        Tensor(f"{one}-{two}", one, (two,), 4) for one, two in (("a", "own"), ("own", "b"))
    )
    machine = Machine("m", (Device("d"),), ())
    zeros = np.zeros((1, 1))
    costs = Costs(np.ones((3, 1)), np.zeros(1), zeros, zeros, "given")
    made = Graph("k", kernels, links)
    problem = Problem(graph, machine, costs, made, ((0,), (), (1,)), execution="op")
    for queued in (made, Graph("k", kernels, ())):
        posed = replace(problem, kernels=queued)
        _, found = steps_of(posed, place(posed, "single").placement)
        assert found.edges <= {(0, 1)} and not found.queues
