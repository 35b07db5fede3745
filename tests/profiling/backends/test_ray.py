"""What the nodes of a cluster are to the studio: names, shares of a computer, versions, clocks."""

import itertools
import socket
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.core.machine import Device
from profiling.backends._ray import alive
from profiling.backends._ray.hosts import (
    Accelerator,
    Facts,
    accelerators_of,
    hosts_of,
    require_same_versions,
    share,
)

NODE = {
    "Alive": True,
    "NodeID": "1",
    "NodeName": "10.0.0.1",
    "NodeManagerHostname": "one",
    "NodeManagerAddress": "10.0.0.1",
    "Resources": {"CPU": 2.0},
}


def test_the_head_comes_first_and_the_dead_do_not():
    head = {**NODE, "NodeID": "9", "NodeName": "zulu"}
    head["Resources"] = {"CPU": 1.0, "node:__internal_head__": 1.0}
    dead = {**NODE, "NodeID": "2", "Alive": False}
    assert [h.name for h in hosts_of([NODE, dead, head])] == ["zulu", "one"]


def test_nodes_of_one_computer_share_its_cores_out():
    named = [{**NODE, "NodeID": str(i), "NodeName": name} for i, name in enumerate("ab")]
    other = {**NODE, "NodeManagerHostname": "two", "NodeName": "c"}
    hosts = hosts_of([*named, other])
    assert [(h.name, h.first_core, h.num_cores) for h in hosts] == [
        ("a", 0, 2),
        ("b", 2, 2),
        ("c", 0, 2),
    ]
    assert share((4, 5, 6, 7), hosts[1].first_core, hosts[1].num_cores) == (6, 7)
    assert share((4,), 1, 1) == (4,), "a computer with fewer cores than its nodes promise"


def test_a_slash_in_a_name_does_not_look_like_a_device():
    assert hosts_of([{**NODE, "NodeName": "rack/1"}])[0].name == "rack-1"


def test_a_host_that_stays_keeps_its_name_and_none_that_comes_gets_it():
    nodes = [{**NODE, "NodeID": i} for i in "1234"]
    first = hosts_of(nodes[:2])
    assert [host.name for host in first] == ["one", "one-2"]
    later = hosts_of(nodes[1:3], first)
    assert later[0] is first[1] and [host.name for host in later] == ["one-2", "one"]
    last = hosts_of(nodes[1:], later)
    assert [host.name for host in last] == ["one-2", "one", "one-3"]


def test_a_host_that_comes_gets_cores_that_nobody_beside_has():
    nodes = [{**NODE, "NodeID": name, "NodeName": name} for name in "abcd"]
    first = hosts_of(nodes[:2])
    later = hosts_of(nodes[1:], first)
    assert later[0] is first[1]
    assert {host.name: host.first_core for host in later} == {"b": 2, "c": 0, "d": 4}
    # Where c was there is room for one of these, and then for no other.
    small = {**NODE, "NodeID": "e", "NodeName": "e", "Resources": {"CPU": 1.0}}
    last = hosts_of([nodes[1], nodes[3], small, {**NODE, "NodeID": "f", "NodeName": "f"}], later)
    assert {host.name: host.first_core for host in last} == {"b": 2, "d": 4, "e": 0, "f": 6}
    elsewhere = {**NODE, "NodeID": "g", "NodeName": "g", "NodeManagerHostname": "two"}
    assert hosts_of([*nodes[1:], elsewhere], later)[-1].first_core == 0


@given(st.lists(st.lists(st.integers(0, 3), max_size=5), min_size=1, max_size=5))
def test_hosts_never_share_names_or_cores_whoever_comes_and_goes(sizes):
    hosts, numbers = (), itertools.count()
    for joining in sizes:
        # Every other one of those that were there stays.
        kept = hosts[::2]
        nodes = [{**NODE, "NodeID": h.node_id, "Resources": {"CPU": h.num_cores}} for h in kept]
        nodes += [
            {**NODE, "NodeID": f"{next(numbers):03d}", "Resources": {"CPU": size}}
            for size in joining
        ]
        hosts = hosts_of(nodes, hosts)
        assert set(kept) <= set(hosts) and len(hosts) == len(nodes)
        assert len({host.name for host in hosts}) == len(hosts)
        cores = [core for h in hosts for core in range(h.first_core, h.first_core + h.num_cores)]
        assert len(set(cores)) == len(cores)


@pytest.mark.parametrize("says", [b"settings", b""])
def test_a_server_that_answers_or_hangs_up_is_alive(says):
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            connection, _ = server.accept()
            with connection:
                assert connection.recv(64).startswith(b"PRI * HTTP/2.0")
                connection.sendall(says)

        thread = threading.Thread(target=serve)
        thread.start()
        assert alive.answers(server.getsockname(), 10.0)
        thread.join()


def test_a_port_that_nobody_serves_is_no_sign_of_life():
    with socket.create_server(("127.0.0.1", 0)) as server:
        # The system takes the connection; whoever made the socket does not.
        address = server.getsockname()
        assert not alive.answers(address, 0.05)
    assert not alive.answers(address, 10.0)


def test_who_watches_tells_an_end_once_after_several_looks(monkeypatch):
    monkeypatch.setattr(alive, "WATCH_S", 0.0)
    found, ended = iter([True, False, False, True, False, False, False]), threading.Event()
    alive.watch(found.__next__, ended.set)
    assert ended.wait(10.0)
    assert next(found, None) is None


def test_an_accelerator_that_two_hosts_of_one_computer_see_is_the_first_ones():
    """And names say nothing on other computers, or where processes may see others by them."""

    def facts(boot, **slots):
        seen = (Accelerator(Device(name, "gpu"), f"cuda:{slot}") for name, slot in slots.items())
        return Facts((), 1, 1, "", boot, tuple(seen))

    found = accelerators_of(
        {
            "a": facts("one", first=0, second=3),
            "b": facts("one", first=3, second=5),
            "c": facts("two", first=0),
            "d": facts("", first=0),
        }
    )
    named = [(host, device.name) for host, device in found]
    assert named == [
        ("a", "first"),
        ("a", "second"),
        ("b", "second"),
        ("c", "first"),
        ("d", "first"),
    ]


def test_mixed_versions_are_refused_by_host_and_library():
    def facts(version):
        return Facts((("numpy", "2.4"), ("onnxruntime", version)), 1, 1, "")

    require_same_versions({"a": facts("1.31"), "b": facts("1.31")})
    with pytest.raises(ValueError, match=r"'b' has onnxruntime 1\.30 and host 'a' has 1\.31"):
        require_same_versions({"a": facts("1.31"), "b": facts("1.30")})
