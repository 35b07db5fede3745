"""The machine as a graph: what stands on one host, and which links are one line."""

import json
import random
from dataclasses import replace

import pytest

from placement.core.machine import Device, Link, Machine
from placement.core.objective import CallRules, Objective
from placement.drawing.machine_graph import MOST_LEVELS, machine_graph
from placement.loaders.workload import problem_from_workload
from placement.simulator.call_costs import clusters_of
from profiling.devices.local import load_machine, presets
from tests.workloads import diamond


def machine(devices, rate_of):
    """Devices by name, those that begin with "cpu" on the host, with links as `rate_of` says."""
    made = tuple(Device(name, "cpu" if name.startswith("cpu") else "gpu") for name in devices)
    links = tuple(
        Link(a, b, 1e-5, rate_of(a, b))
        for a in devices
        for b in devices
        if a != b and rate_of(a, b)
    )
    return Machine("m", made, links)


def rails_of(graph):
    names = [d.name for d in graph.machine.devices]
    return [
        (rail.side, tuple(names[end] for end in rail.ends), rail.text)
        for rail in (*(r for host in graph.hosts for r in host.rails), *graph.between)
    ]


def all_links(graph):
    return [link for rail in graph.rails.values() for link in rail.links]


@pytest.mark.parametrize("name", presets())
def test_every_device_and_every_link_of_a_preset_is_drawn_once(name):
    known = load_machine(name)
    graph = machine_graph(known)
    placed = [i for host in graph.hosts for i in (*host.processors, *host.accelerators)]
    assert sorted(placed) == list(range(len(known.devices)))
    ends = [(link.src, link.dst) for link in all_links(graph)]
    assert sorted(ends) == sorted((link.src, link.dst) for link in known.links)
    json.dumps(graph.to_data(known.devices[0].name), allow_nan=False)


def test_two_hosts_have_their_own_accelerators_and_one_line_between_them():
    graph = machine_graph(load_machine("two-hosts-16gpu"))
    names = [d.name for d in graph.machine.devices]
    assert [[names[i] for i in host.accelerators] for host in graph.hosts] == [
        [f"cuda:{i}" for i in range(8)],
        [f"cuda:{i}" for i in range(8, 16)],
    ]
    assert [(side, len(ends), text) for side, ends, text in rails_of(graph)] == [
        ("cross", 9, "50 GB/s, 10 µs"),
        ("accelerators", 8, "400 GB/s, 5 µs"),
        ("cross", 9, "50 GB/s, 10 µs"),
        ("accelerators", 8, "400 GB/s, 5 µs"),
        ("between", 18, "45 GB/s, 10 µs"),
    ]


def test_accelerators_with_fast_links_in_pairs_show_the_pairs():
    pairs = {frozenset(("cuda:0", "cuda:1")), frozenset(("cuda:2", "cuda:3"))}

    def rate_of(a, b):
        return 4e11 if frozenset((a, b)) in pairs else 2e10

    graph = machine_graph(machine(("cpu:0", "cuda:0", "cuda:1", "cuda:2", "cuda:3"), rate_of))
    assert [(ends, text[:8]) for side, ends, text in rails_of(graph) if side != "cross"] == [
        (("cuda:0", "cuda:1"), "400 GB/s"),
        (("cuda:2", "cuda:3"), "400 GB/s"),
        (("cuda:0", "cuda:1", "cuda:2", "cuda:3"), "20 GB/s,"),
    ]


@pytest.mark.parametrize("seed", range(5))
def test_measured_links_that_all_differ_are_a_few_lines_with_their_ranges(seed):
    rng = random.Random(seed)
    names = ("cpu:0", *(f"cuda:{i}" for i in range(12)))
    found = machine(names, lambda a, b: 10 ** rng.uniform(6, 12) if "cpu" not in a + b else 1e10)
    graph = machine_graph(found)
    among = [rail for rail in graph.rails.values() if rail.side == "accelerators"]
    assert sorted(all_links(graph), key=str) == sorted(found.links, key=str)
    # A line joins two devices or more, so that a level of twelve has six at most.
    assert len(among) <= MOST_LEVELS * 6


def test_what_shares_a_memory_is_on_one_host_and_one_device_alone_needs_no_lines():
    shared = load_machine("apple-unified")
    assert len(machine_graph(replace(shared, links=())).hosts) == 1
    alone = machine_graph(Machine("m", (Device("cpu:0"),)))
    assert [host.processors for host in alone.hosts] == [(0,)] and not alone.rails


def around_one_memory(num_accelerators, num_processors):
    """The machine of a workload file."""
    content = {**diamond(), "maxFPGAs": num_accelerators, "maxCPUs": num_processors}
    return problem_from_workload(content, "w")


def boxes(graph):
    names = [d.name for d in graph.machine.devices]
    return [
        (host.name, *([names[i] for i in side] for side in (host.processors, host.accelerators)))
        for host in graph.hosts
    ]


def test_devices_around_one_memory_are_one_host_without_lines():
    problem = around_one_memory(3, 2)
    graph = machine_graph(problem.machine, clusters_of(problem).tolist())
    assert boxes(graph) == [("", ["cpu:0", "cpu:1"], ["acc:0", "acc:1", "acc:2"])]
    assert not graph.rails
    for num_accelerators, num_processors in ((2, 0), (0, 2)):
        problem = around_one_memory(num_accelerators, num_processors)
        (host,) = machine_graph(problem.machine, clusters_of(problem).tolist()).hosts
        assert (len(host.accelerators), len(host.processors)) == (num_accelerators, num_processors)


@pytest.mark.parametrize(("size", "num_clusters"), [(2, 3), (3, 2), (4, 2), (6, 1), (1, 6)])
def test_clusters_of_accelerators_are_drawn_as_they_are(size, num_clusters):
    problem = around_one_memory(6, 1)
    rules = CallRules(cluster_size=size, slow_link_factor=4.0)
    problem = replace(problem, objective=Objective.THROUGHPUT, rules=rules)
    clusters = clusters_of(problem).tolist()
    graph = machine_graph(problem.machine, clusters)
    drawn = [host.accelerators for host in graph.hosts if host.accelerators]
    assert len(drawn) == num_clusters
    # Two stand in one box where no tensor takes longer between them, and only there.
    of = {i: number for number, inside in enumerate(drawn) for i in inside}
    assert all((of[a] == of[b]) == (clusters[a] == clusters[b]) for a in of for b in of)
    assert sorted(of) == [i for i, d in enumerate(problem.machine.devices) if not d.on_host]
    placed = sorted(i for host in graph.hosts for i in (*host.processors, *host.accelerators))
    assert placed == list(range(7))
    if num_clusters > 1:
        names = ["Host", *(f"Cluster {n}" for n in range(1, num_clusters + 1))]
        assert [host.name for host in graph.hosts] == names
    json.dumps(graph.to_data("acc:0"), allow_nan=False)


def test_a_cluster_of_128_devices_is_its_16_hosts():
    names = [f"{'cpu' if i % 8 == 0 else 'cuda'}:{i}" for i in range(128)]
    host = {name: i // 8 for i, name in enumerate(names)}
    graph = machine_graph(machine(names, lambda a, b: 5e10 if host[a] == host[b] else 2.5e10))
    assert len(graph.hosts) == 16 and len(graph.rails) == 16 * 2 + 1
    assert len(json.dumps(graph.to_data())) < 40_000
