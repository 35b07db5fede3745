"""Classes of devices that are alike: by their definition, and what is worked out for them alone."""

from collections import Counter
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.bounds.ceft import ceft, least_through_s, through_s
from placement.bounds.ceft_compiled import earliest_finish, latest_rest
from placement.schedule.symmetry import symmetry_of
from placement.simulator.alike import alone_alike, classes_of, quotient
from placement.simulator.flat import flatten
from tests.instances import hosts_problem
from tests.thorough import either

hosts = st.builds(
    hosts_problem,
    st.integers(0, 10**6),
    num_hosts=st.integers(1, 4),
    per_host=st.integers(1, 4),
    num_odd=st.sampled_from((0, 0, 1, 3)),
    execution=st.sampled_from(("op", "segment")),
    link_contention=st.booleans(),
    contention=st.sampled_from((0.0, 0.3)),
    with_groups=st.booleans(),
    with_cards=st.booleans(),
)


def with_pin(problem, seed):
    """The same with one op pinned, which makes its device unlike all others."""
    op = problem.graph.ops[seed % len(problem.graph.ops)].name
    return replace(problem, pins=((op, problem.machine.devices[seed % problem.num_devices].name),))


def look(problem, d, class_of):
    """What a device shares with those of its class, links counted by their ends' classes."""
    costs, others = problem.costs, [e for e in range(problem.num_devices) if e != d]
    links = costs.latency_s, costs.s_per_byte, *costs.overhead
    return (
        costs.compute_s[:, d].tolist(),
        problem.allowed[:, d].tolist(),
        float(costs.call_s[d]),
        problem.machine.devices[d].on_host,
        *(
            Counter((class_of[e], *(each[ends(e)] for each in links)) for e in others)
            for ends in (lambda e: (d, e), lambda e: (e, d))
        ),
    )


@settings(max_examples=either(25, 80), deadline=None)
@given(hosts, st.sampled_from((None, 0, 1, 5)))
def test_devices_of_a_class_are_alike(problem, pin):
    problem = problem if pin is None else with_pin(problem, pin)
    of_device, first = classes_of(problem)
    looks = [look(problem, d, of_device) for d in range(problem.num_devices)]
    for d in range(problem.num_devices):
        assert looks[d] == looks[first[of_device[d]]]
        assert first[of_device[d]] <= d
    host = flatten(problem).host
    assert (of_device == of_device[host]).sum() == 1
    # Twins may exchange their names, so nothing may tell them apart.
    for members in symmetry_of(problem).classes:
        assert len({int(of_device[d]) for d in members if d != host}) <= 1


def test_hosts_of_one_kind_have_few_kinds_of_device():
    problem = hosts_problem(1, num_hosts=5, per_host=4)
    of_device = classes_of(problem).of_device.tolist()
    assert of_device == [0, 1, 1, 1, *[2, 3, 3, 3] * 4]
    one = classes_of(problem, apart=(9,)).of_device
    assert (one == one[9]).sum() == 1


@settings(max_examples=either(25, 80), deadline=None)
@given(hosts, st.sampled_from((None, 0, 1, 5)))
def test_tables_of_paths_are_those_of_all_devices(problem, pin):
    problem = problem if pin is None else with_pin(problem, pin)
    flat, fewer = flatten(problem), quotient(problem)
    finish, rest = earliest_finish(flat), latest_rest(flat)
    assert np.array_equal(earliest_finish(fewer.flat)[:, fewer.of_device], finish)
    assert np.array_equal(latest_rest(fewer.flat)[:, fewer.of_device], rest)
    assert np.array_equal(ceft(problem).table, finish)
    longest = np.where(problem.allowed, 0.0, np.inf)
    np.maximum.at(longest, problem.unit_of_kernel, finish + rest)
    assert np.array_equal(through_s(problem), longest)
    assert np.array_equal(least_through_s(problem), longest.min(axis=1))


def test_a_best_link_that_depends_on_the_size_keeps_all_devices():
    """From the class of d2 and d3 to d1, one has the least latency and the other the best rate."""
    problem = hosts_problem(3, num_hosts=1, per_host=5)
    latency_s, s_per_byte = (a.copy() for a in (problem.costs.latency_s, problem.costs.s_per_byte))
    for a, b in ((1, 2), (2, 1), (3, 4), (4, 3)):
        latency_s[a, b], s_per_byte[a, b] = 9.0, 0.01
    costs = replace(problem.costs, latency_s=latency_s, s_per_byte=s_per_byte)
    found = quotient(replace(problem, costs=costs))
    # Inside a class values may stay where they are, so here it does not matter.
    assert found.of_device.tolist() == [0, 1, 1, 1, 1]
    compute_s = problem.costs.compute_s.copy()
    compute_s[:, [1, 3]] += 1.0
    split = replace(problem, costs=replace(costs, compute_s=compute_s))
    assert classes_of(split).of_device.tolist() == [0, 1, 2, 1, 2]
    assert quotient(split).of_device.tolist() == [0, 1, 2, 3, 4]
    assert np.array_equal(ceft(split).table, earliest_finish(flatten(split)))


def test_devices_are_not_alike_whose_links_wait_for_other_links():
    """Inputs and outputs of d1 pass one card, those of d2 one each, as those of d3 do."""
    problem = hosts_problem(1, num_hosts=1, per_host=4)
    named = {("d0", "d1"): "one", ("d1", "d0"): "one", ("d0", "d2"): "two", ("d3", "d0"): "three"}
    links = tuple(
        replace(link, card=named.get((link.src, link.dst), "")) for link in problem.machine.links
    )
    on_cards = replace(problem, machine=replace(problem.machine, links=links))
    assert alone_alike(problem, ()).of_device.tolist() == [0, 1, 1, 1]
    assert alone_alike(on_cards, ()).of_device.tolist() == [0, 1, 2, 2]
    assert alone_alike(replace(on_cards, link_contention=False), ()).first.tolist() == [0, 1]
