"""CEFT against its definition, and against simulations: no placement is faster."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.bounds.ceft import ceft, rows, through_s
from placement.core.problem_json import problem_from_json
from placement.schedule.segments import make_schedule
from placement.simulator.simulate import step_time_s
from tests.instances import canonical_file, random_devices, random_problem
from tests.thorough import either

problems = st.builds(
    random_problem,
    st.integers(0, 10**6),
    num_ops=st.integers(1, 16),
    num_devices=st.integers(2, 4),
    execution=st.sampled_from(("op", "segment")),
    link_contention=st.booleans(),
    contention=st.sampled_from((0.0, 0.3)),
    with_groups=st.booleans(),
    with_gaps=st.booleans(),
)


def by_definition(problem):
    """The recurrence written over tensors by name; (K, D)."""
    machine, costs, graph = problem.machine, problem.costs, problem.kernels
    devices = range(problem.num_devices)
    host = next((d for d in devices if machine.devices[d].on_host), None)
    table = np.full((len(graph.ops), problem.num_devices), math.inf)
    for k, op in enumerate(graph.ops):
        reads = [t for t in graph.tensors if op.name in t.consumers]
        for d in devices:
            if not problem.allowed[problem.unit_of_kernel[k], d]:
                continue
            ready = 0.0
            for t in reads:
                if t.producer is not None:
                    arrivals = [
                        table[graph.index[t.producer], p] + costs.transfer_s(p, d, t.num_bytes)
                        for p in devices
                    ]
                    ready = max(ready, min(arrivals))
                elif host is not None and not machine.devices[d].on_host:
                    ready = max(ready, costs.transfer_s(host, d, t.num_bytes))
            table[k, d] = ready + costs.compute_s[k, d]
    return table


@settings(max_examples=either(20, 60), deadline=None)
@given(problems)
def test_the_table_is_the_recurrence(problem):
    assert np.array_equal(ceft(problem).table, by_definition(problem))


@settings(max_examples=either(50, 150), deadline=None)
@given(problems, st.integers(0, 1000), st.booleans())
def test_no_placement_is_faster(problem, seed, merge):
    devices = random_devices(problem, seed)
    schedule = make_schedule(problem, problem.placement_of(devices), merge=merge)
    simulated_s = step_time_s(problem, schedule) * (1 + 1e-12)
    assert ceft(problem).length_s <= simulated_s
    through = through_s(problem)
    assert through[np.arange(problem.num_units), devices].max() <= simulated_s
    assert ceft(problem).length_s <= through.min(axis=1).max() * (1 + 1e-12)


@settings(max_examples=either(25, 80), deadline=None)
@given(problems)
def test_the_path_adds_up_to_the_length(problem):
    found = ceft(problem)
    machine, costs, arrays = problem.machine, problem.costs, problem.kernels.arrays
    k, d = found.path[0], found.devices[0]
    end_s = found.table[k, d]
    for before, (k, d) in zip(
        zip(found.path, found.devices, strict=True),
        list(zip(found.path, found.devices, strict=True))[1:],
        strict=False,
    ):
        tensors = [
            t
            for t in arrays.in_tensors[arrays.in_ptr[k] : arrays.in_ptr[k + 1]]
            if arrays.producer[t] == before[0]
        ]
        assert tensors, "each kernel of the path reads from the one before"
        move_s = max(costs.transfer_s(before[1], d, arrays.tensor_bytes[t]) for t in tensors)
        end_s += move_s + costs.compute_s[k, d]
        assert end_s == pytest.approx(found.table[k, d])
    outputs = [t.num_bytes for t in problem.kernels.tensors if t.is_output and t.producer]
    assert outputs
    assert found.length_s >= end_s * (1 - 1e-12)
    if machine.devices[d].on_host:
        assert found.length_s == pytest.approx(end_s)
    assert all(problem.allowed[problem.unit_of_kernel[list(found.path)], list(found.devices)])


@pytest.mark.parametrize("seed", range(10))
def test_on_one_device_it_is_the_plain_longest_path(seed):
    problem = random_problem(seed, num_ops=20, num_devices=1)
    longest = problem.costs.compute_s[:, 0].tolist()
    for k in reversed(range(len(longest))):
        longest[k] += max((longest[r] for r in problem.kernels.successors[k]), default=0.0)
    found = ceft(problem)
    assert found.length_s == max(longest)
    assert set(found.devices) == {0}
    assert math.fsum(problem.costs.compute_s[k, 0] for k in found.path) == found.length_s


def test_the_canonical_example():
    """HEFT's 80 is no less; the path starts at the entry task and ends at the exit task."""
    found = ceft(problem_from_json(canonical_file(), "canonical"))
    assert found.path[0] == 0
    assert found.path[-1] == 9
    assert (
        found.length_s == by_definition(problem_from_json(canonical_file(), "canonical"))[9].min()
    )
    assert found.length_s <= 80.0


def test_inputs_and_outputs_go_by_the_host():
    problem = random_problem(3, num_ops=1, num_devices=2)
    (incoming, outgoing), costs = problem.graph.tensors, problem.costs
    pinned = replace(problem, pins=(("op0", "d1"),))
    there = costs.transfer_s(0, 1, incoming.num_bytes) + costs.transfer_s(1, 0, outgoing.num_bytes)
    assert ceft(pinned).length_s == costs.compute_s[0, 1] + there


def test_pins_in_the_middle_lengthen_the_path_through_them():
    problem = random_problem(8, num_ops=10, num_devices=3, execution="op")
    pinned = replace(problem, pins=(("op4", "d2"),))
    unit = int(problem.unit_of_op[4])
    assert np.isinf(through_s(pinned)[unit, :2]).all()
    assert through_s(pinned)[unit, 2] == through_s(problem)[unit, 2]


def test_the_table_row_by_row_leads_back_along_the_critical_path():
    for seed in range(20):
        problem = random_problem(seed, num_ops=14, num_devices=3, with_gaps=seed % 2 == 0)
        found, by_kernel = ceft(problem), list(rows(problem))
        assert [row.kernel for row in by_kernel] == list(range(len(found.table)))
        assert all((row.finish_s == found.table[row.kernel]).all() for row in by_kernel)
        for before, (k, d) in pairwise(zip(found.path, found.devices, strict=True)):
            assert by_kernel[k].origins[d] == before
