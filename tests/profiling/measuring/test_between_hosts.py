"""Links between hosts after the model's own kernels have crossed them."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from placement.core.machine import Device, Link, Machine
from profiling.measuring import between_hosts

GIB = 2**30


def host(name, **changed):
    return Device(name, runtime="ray", memory_bytes=GIB, **changed)


def machine(*devices, missing=()):
    names = [device.name for device in devices]
    ways = [(a, b) for a in names for b in names if a != b and (a, b) not in missing]
    return Machine("hosts", devices, tuple(Link(a, b, 1e-3, 1e9) for a, b in ways))


def compiled(param_bytes=0):
    return SimpleNamespace(kernels=SimpleNamespace(param_bytes=param_bytes))


def after(found, linked, monkeypatch, param_bytes=0):
    """The links by their ends, where each pair of hosts shows the next of these ratios; and what
    was asked of them. Each pair is told, whether it says something or not."""
    said, asked = [], []

    def ratio(compiled, pair, feeds, timeout_s, message):
        asked.append((*(device.name for device in pair), *message))
        return found[len(asked) - 1]

    monkeypatch.setattr(between_hosts, "sending_ratio", ratio)
    made = between_hosts.between_hosts(linked, compiled(param_bytes), {}, 1.0, said.append)
    assert len(said) == len(between_hosts.pairs_of(linked))
    figures = {
        (link.src, link.dst): (float(f"{link.latency_s:.9g}"), float(f"{link.bytes_per_s:.9g}"))
        for link in made.links
    }
    return figures, asked


def test_links_between_hosts_cost_as_many_times_as_much_as_kernels_show(monkeypatch):
    linked = machine(host("a/cpu:0"), host("a/cpu:1"), host("b/cpu:0"), host("c/cpu:0"))
    links, asked = after([4.0, 1.0], linked, monkeypatch)
    assert asked == [("a/cpu:0", "b/cpu:0", 1e-3, 1e-9), ("b/cpu:0", "c/cpu:0", 1e-3, 1e-9)]
    within = {("a/cpu:0", "a/cpu:1"), ("a/cpu:1", "a/cpu:0")}
    assert {way for way, cost in links.items() if cost == (1e-3, 1e9)} == within
    assert {cost for way, cost in links.items() if way not in within} == {(2e-3, 5e8)}


def test_what_is_copied_before_and_after_takes_as_long_as_it_did(monkeypatch):
    accelerator = host("b/cuda:0", kind="gpu")
    linked = machine(host("a/cpu:0"), host("b/cpu:0"), accelerator)
    slower = [
        replace(link, latency_s=3e-3, bytes_per_s=2.5e8)
        if {link.src, link.dst} == {"a/cpu:0", "b/cuda:0"}
        else link
        for link in linked.links
    ]
    links, _ = after([2.0], replace(linked, links=tuple(slower)), monkeypatch)
    assert links["a/cpu:0", "b/cuda:0"] == pytest.approx((4e-3, 2e8))
    assert links["b/cpu:0", "b/cuda:0"] == (1e-3, 1e9)


def test_what_is_of_no_other_host_keeps_its_links(monkeypatch):
    linked = machine(Device("cpu:0"), host("a/cpu:0"), host("b/cpu:0"))
    links, _ = after([2.0], linked, monkeypatch)
    assert links["cpu:0", "a/cpu:0"] == links["b/cpu:0", "cpu:0"] == (1e-3, 1e9)
    assert links["a/cpu:0", "b/cpu:0"] == links["b/cpu:0", "a/cpu:0"] == (2e-3, 5e8)


@pytest.mark.parametrize(
    ("found", "missing", "param_bytes"),
    [
        ([None], (), 0),
        ([], {("b/cpu:0", "a/cpu:0")}, 0),
        # Neither could run the whole model.
        ([], (), 2 * GIB),
    ],
)
def test_what_cannot_be_measured_leaves_links_alone(found, missing, param_bytes, monkeypatch):
    linked = machine(host("a/cpu:0"), host("b/cpu:0"), missing=missing)
    links, asked = after(found, linked, monkeypatch, param_bytes)
    assert set(links.values()) == {(1e-3, 1e9)} and len(asked) == len(found)


def test_a_disturbed_measurement_makes_no_link_free_or_endless(monkeypatch):
    linked = machine(host("a/cpu:0"), host("b/cpu:0"))
    links, _ = after([1e-9], linked, monkeypatch)
    assert set(links.values()) == {(5e-4, 2e9)}
    links, _ = after([1e9], linked, monkeypatch)
    assert set(links.values()) == {(8e-3, 1.25e8)}


def test_a_computer_of_its_own_has_no_pairs():
    assert between_hosts.pairs_of(machine(Device("cpu:0"), Device("cpu:1"))) == []
