"""Links between hosts after the model's own kernels have crossed them."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.core.machine import Device, Link, Machine
from profiling.measuring import between_hosts
from profiling.measuring.sending import Sending

GIB = 2**30


def host(name, **changed):
    return Device(name, runtime="ray", memory_bytes=GIB, **changed)


def machine(*devices, missing=()):
    names = [device.name for device in devices]
    ways = [(a, b) for a in names for b in names if a != b and (a, b) not in missing]
    return Machine("hosts", devices, tuple(Link(a, b, 1e-3, 1e9) for a, b in ways))


def compiled(param_bytes=0):
    return SimpleNamespace(kernels=SimpleNamespace(param_bytes=param_bytes))


def after(found, linked, monkeypatch, param_bytes=0, share=0.0):
    """The links by their ends, where each pair of hosts shows the next of these ratios; and what
    was asked of them. Each pair is told, whether it says something or not."""
    said, asked = [], []

    def sent(compiled, pair, feeds, timeout_s, message, contention):
        asked.append((*(device.name for device in pair), *message))
        ratio = found[len(asked) - 1]
        return None if ratio is None else Sending(ratio, share, 0.0)

    monkeypatch.setattr(between_hosts, "sending", sent)
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


@pytest.mark.parametrize("share", [0.25, 1.0])
def test_a_share_of_what_crosses_is_its_sender_s_and_none_of_a_copy(share, monkeypatch):
    """From an accelerator, a copy comes before it; to one, a copy comes after, in no lane."""
    away = host("b/cuda:0", kind="gpu")
    linked = machine(host("a/cpu:0"), host("b/cpu:0"), away)
    links = tuple(
        replace(link, latency_s=4e-3) if away.name in (link.src, link.dst) else link
        for link in linked.links
    )
    monkeypatch.setattr(between_hosts, "sending", lambda *_: Sending(2.0, share / 2, share / 2))
    made = between_hosts.between_hosts(
        replace(linked, links=links), compiled(), {}, 1.0, lambda _: None
    )
    found = {
        (link.src, link.dst): (link.send_overhead, link.receive_overhead) for link in made.links
    }
    both = (share / 2, share / 2)
    assert found["a/cpu:0", "b/cpu:0"] == found["b/cpu:0", "a/cpu:0"] == both
    # Of 4 ms and 1 ms more for what crosses, and what its bytes take, that is 2 ms and so.
    bytes_s = between_hosts.PART_BYTES * 1e-9
    part = share / 2 * (2e-3 + 2 * bytes_s) / (5e-3 + 2 * bytes_s)
    assert found["a/cpu:0", "b/cuda:0"] == (pytest.approx(part, rel=1e-3), 0.0)
    assert found["b/cuda:0", "a/cpu:0"] == (0.0, pytest.approx(part, rel=1e-3))
    assert found["b/cuda:0", "b/cpu:0"] == found["b/cpu:0", "b/cuda:0"] == (0.0, 0.0)


def computing(contention, gap_s, ahead_s, num_steps):
    """When two hosts compute a second's work at a time, slower while both do, and wait between."""
    done = [[], []]
    now_s, left_s, since_s = 0.0, [1.0, 1.0], [0.0, ahead_s]
    while min(map(len, done)) < num_steps:
        computes = [since <= now_s for since in since_s]
        rate = 1 / (1 + contention) if all(computes) else 1.0
        ends_s = [
            now_s + left / rate if busy else since
            for left, busy, since in zip(left_s, computes, since_s, strict=True)
        ]
        passed_s = min(ends_s) - now_s
        now_s = min(ends_s)
        for h in (0, 1):
            left_s[h] -= passed_s * rate if computes[h] else 0.0
            if computes[h] and ends_s[h] == now_s:
                done[h].append((since_s[h], now_s))
                left_s[h], since_s[h] = 1.0, now_s + gap_s
    return done


@given(
    contention=st.floats(0.0, 1.0),
    gap_s=st.floats(0.0, 0.4),
    ahead_s=st.floats(0.0, 0.9),
)
def test_steps_beside_others_say_how_much_slower_they_are(contention, gap_s, ahead_s):
    alone = [[(2.0 * i, 2.0 * i + 1.0) for i in range(5)]] * 2
    together = computing(contention, gap_s, ahead_s, 12)
    assert between_hosts.slowed(alone, together) == pytest.approx(contention, abs=1e-3)


def test_steps_that_hardly_met_say_nothing():
    alone = [[(0.0, 1.0)] * 5] * 2
    apart = [[(2.0 * i + h, 2.0 * i + h + 1.0) for i in range(5)] for h in (0, 1)]
    assert between_hosts.slowed(alone, apart) == 0.0


def test_more_than_two_processors_have_no_contention_that_all_would_share():
    class Unopened:
        kernels = SimpleNamespace(param_bytes=0, ops=[SimpleNamespace(name="a")])

        def open(self, schedule, feeds):
            raise AssertionError("nothing was to be run")

    several = machine(host("a/cpu:0"), host("a/cpu:1"), host("b/cpu:0"))
    three = machine(host("a/cpu:0"), host("b/cpu:0"), host("c/cpu:0"))
    here = machine(Device("cpu:0"), host("a/cpu:0"))
    for linked in (several, three, here, machine(host("a/cpu:0"))):
        assert between_hosts.contention_between(Unopened(), linked, {}, 1.0) == 0.0


def test_programs_are_closed_where_a_second_host_cannot_open_one():
    closed = []

    class Program:
        def carried(self, lanes, num):
            return self

        def stop(self):
            pass

        def close(self):
            closed.append(self)
            return True

    class Once:
        kernels = SimpleNamespace(param_bytes=0, ops=[SimpleNamespace(name="a")])

        def __init__(self):
            self.left = 1

        def open(self, schedule, feeds):
            if not self.left:
                raise MemoryError("the second host is full")
            self.left -= 1
            return Program()

    linked = machine(host("a/cpu:0"), host("b/cpu:0"))
    with pytest.raises(MemoryError, match="full"):
        between_hosts.contention_between(Once(), linked, {}, 1.0)
    assert closed
