"""What hosts send to each other, over connections of this process with itself."""

import socket
import threading
from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from placement.core.machine import Device
from profiling.backends._ray import channels
from profiling.backends._ray.channels import Door, Entry, Head, Laid, Named, Outgoing
from profiling.backends._ray.hosts import Host
from profiling.backends._ray.part import Part
from profiling.backends._ray.worker import Worker
from profiling.devices.lanes import Lane
from tests.thorough import either

HERE, LONG_S = "127.0.0.1", 60.0


class Heard:
    """Messages that have come, copied, for their memory is the channel's."""

    def __init__(self):
        self.messages, self._new = [], threading.Condition()
        self.unsent, self.broken = [], []

    def __call__(self, host, number, segment, values):
        copies = {
            n: [*map(np.copy, v)] if isinstance(v, list) else v.copy() for n, v in values.items()
        }
        with self._new:
            self.messages.append((host, number, segment, copies))
            self._new.notify_all()
        if number < 0:
            raise KeyError(number)

    def broke(self, host, error):
        with self._new:
            self.broken.append((host, error))
            self._new.notify_all()

    def of_broken(self):
        """The first that could not be read."""
        with self._new:
            assert self._new.wait_for(lambda: self.broken, LONG_S)
        return self.broken[0]

    def of(self, num):
        """The first so many, once they have come."""
        with self._new:
            assert self._new.wait_for(lambda: len(self.messages) >= num, LONG_S)
        return self.messages[:num]


@pytest.fixture
def heard():
    return Heard()


@pytest.fixture
def door(heard):
    opened = Door(HERE, heard, heard.broke)
    yield opened
    opened.close()


@pytest.fixture
def outgoing(door, heard):
    made = Outgoing("alpha", door.entry, heard.unsent.append)
    yield made
    made.close()


NUMBERS = st.one_of(
    arrays.boolean_dtypes(),
    arrays.integer_dtypes(endianness="="),
    arrays.unsigned_integer_dtypes(endianness="="),
    arrays.floating_dtypes(endianness="=", sizes=(16, 32, 64)),
    arrays.complex_number_dtypes(endianness="=", sizes=(64, 128)),
)
ANY = arrays.arrays(NUMBERS, arrays.array_shapes(min_dims=0, min_side=0, max_side=5))
VALUES = st.dictionaries(st.text(max_size=8), ANY | st.lists(ANY, max_size=3), max_size=4)


@pytest.mark.thorough
@given(st.lists(VALUES, min_size=1, max_size=5))
@settings(max_examples=either(30, 100))
def test_values_come_in_order_as_they_were_to_the_bit(sent):
    heard = Heard()
    door = Door(HERE, heard, heard.broke)
    outgoing = Outgoing("alpha", door.entry, heard.unsent.append)
    for segment, values in enumerate(sent):
        # As well those of which memory holds every second number.
        assert outgoing.send(7, segment, {n: _apart(v) for n, v in values.items()})
    for segment, (host, number, found, values) in enumerate(heard.of(len(sent))):
        assert (host, number, found) == ("alpha", 7, segment) and values.keys() == sent[
            segment
        ].keys()
        for name, value in sent[segment].items():
            both = (value, values[name]) if isinstance(value, list) else ([value], [values[name]])
            assert len(both[0]) == len(both[1])
            for one, other in zip(*both, strict=True):
                assert one.dtype == other.dtype and one.shape == other.shape
                assert one.tobytes() == other.tobytes()
    outgoing.close()
    door.close()


def _apart(value):
    if isinstance(value, list):
        return [_apart(each) for each in value]
    return np.stack([value, value], axis=-1)[..., 0] if value.ndim else value


def test_large_values_of_many_threads_come_whole(heard, outgoing):
    size, threads, each = 300_000, 4, 10

    def send(number):
        for segment in range(each):
            assert outgoing.send(number, segment, {"x": np.full(size, number + segment / 100)})

    senders = [threading.Thread(target=send, args=(n,)) for n in range(threads)]
    for sender in senders:
        sender.start()
    found = heard.of(threads * each)
    for _, number, segment, values in found:
        assert values["x"].shape == (size,) and np.all(values["x"] == number + segment / 100)
    for sender in senders:
        sender.join()
    assert sorted((n, s) for _, n, s, _ in found) == [
        (n, s) for n in range(threads) for s in range(each)
    ]


def test_a_channel_is_read_on_after_a_message_that_fails(heard, outgoing):
    for number in (-1, -2, 3):
        assert outgoing.send(number, 0, {"x": np.ones(3)})
    assert [number for _, number, _, _ in heard.of(3)] == [-1, -2, 3]


@pytest.mark.parametrize(
    "value", [np.array(["a"], dtype=object), np.array(["a"]), [np.ones(1), None], None, {"a": 1}]
)
def test_what_is_no_array_of_numbers_goes_another_way(heard, outgoing, value):
    assert not outgoing.send(7, 0, {"x": np.ones(1), "y": value})
    assert outgoing.send(7, 1, {"x": np.ones(1)})
    assert [segment for _, _, segment, _ in heard.of(1)] == [1]


def test_nobody_without_the_secret_comes_in(heard, door, outgoing, monkeypatch):
    wrong = Entry(door.entry.address, door.entry.port, bytes(channels.SECRET_BYTES))
    with pytest.raises(OSError):
        Outgoing("alpha", wrong, print)
    # Nor who says nothing, or half of it.
    monkeypatch.setattr(channels, "GREETING_S", 0.1)
    for said in (b"", door.entry.secret[:-1], door.entry.secret[:-1] + b"?"):
        with socket.create_connection((door.entry.address, door.entry.port)) as silent:
            silent.sendall(said)
            assert silent.recv(1) == b""
    assert door.hosts == ["alpha"] and outgoing.send(7, 0, {}) and len(heard.of(1)) == 1
    monkeypatch.undo()
    with socket.create_connection((door.entry.address, door.entry.port)) as strange:
        strange.sendall(bytes(channels.SECRET_BYTES) + (5).to_bytes(4, "big") + b"gamma")
        with suppress(ConnectionResetError):
            assert strange.recv(1) == b""
    assert door.hosts == ["alpha"]


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(b"\xff" * 64, id="too long"),
        pytest.param(b"\0\0\0\x04abcd", id="no head"),
        pytest.param(b"\0\0\0\0", id="nothing"),
        pytest.param(b"\0\0", id="half"),
    ],
)
def test_a_message_of_another_kind_ends_its_connection_alone(heard, door, said):
    name = b"gamma"
    with socket.create_connection((door.entry.address, door.entry.port)) as strange:
        strange.sendall(door.entry.secret + len(name).to_bytes(4, "big") + name)
        assert strange.recv(1) == channels.HELLO and door.hosts == ["gamma"]
        strange.sendall(said)
        # It may have been reset already, for something is left that nobody reads.
        with suppress(OSError):
            strange.shutdown(socket.SHUT_WR)
            assert strange.recv(1) == b""
    other = Outgoing("alpha", door.entry, print)
    assert other.send(7, 0, {}) and heard.of(1)[0][0] == "alpha"
    other.close()


def test_a_message_that_cannot_be_read_is_told_of(heard, door):
    name, array = b"gamma", Laid("<f1", (1,))
    head = msgspec.msgpack.encode(Head(7, 0, (Named("x", False, (array,)),)))
    with socket.create_connection((door.entry.address, door.entry.port)) as strange:
        strange.sendall(door.entry.secret + len(name).to_bytes(4, "big") + name)
        assert strange.recv(1) == channels.HELLO
        strange.sendall(len(head).to_bytes(4, "big") + head)
        host, error = heard.of_broken()
        assert host == "gamma" and "<f1" in str(error)


def test_whoever_sends_to_a_host_that_has_ended_is_told_so(door, outgoing):
    door.forget("alpha")
    while door.hosts or outgoing.is_open:
        # It has closed its end, which the next one finds.
        outgoing.send(7, 0, {"x": np.ones(1000)})
    assert not outgoing.send(7, 0, {})
    door.close()
    with pytest.raises(OSError):
        Outgoing("alpha", door.entry, print)


class Held:
    """A host that reads nothing before it is let go."""

    def __init__(self):
        self.heard, self.go = Heard(), threading.Event()

    def __call__(self, *message):
        assert self.go.wait(LONG_S)
        self.heard(*message)


LARGE = {"x": np.ones(4_000_000)}


def test_nobody_waits_who_sends_to_a_host_that_reads_late():
    held = Held()
    door = Door(HERE, held, held.heard.broke)
    outgoing = Outgoing("alpha", door.entry, held.heard.unsent.append)
    # More than any socket takes; to wait for it would be for ever.
    for segment in range(4):
        values = {"x": LARGE["x"].copy()}
        assert outgoing.send(7, segment, values)
        values["x"][:] = -1.0
    assert outgoing.send(7, 4, {"x": np.zeros(3)}) and held.heard.messages == []
    held.go.set()
    found = held.heard.of(5)
    assert [segment for _, _, segment, _ in found] == [0, 1, 2, 3, 4]
    assert all(np.array_equal(values["x"], LARGE["x"]) for *_, values in found[:4])
    outgoing.close()
    door.close()


def test_what_could_not_be_sent_goes_another_way_once_each(monkeypatch):
    monkeypatch.setattr(channels, "SEND_S", 0.2)
    held, unsent, new = Held(), [], threading.Condition()
    door = Door(HERE, held, held.heard.broke)

    def otherwise(message):
        with new:
            unsent.append(message[1])
            new.notify_all()

    outgoing = Outgoing("alpha", door.entry, otherwise)
    # On a busy computer it may be over before all of them are taken.
    taken = [segment for segment in range(6) if outgoing.send(7, segment, LARGE)]
    assert taken == list(range(len(taken))) and len(taken) > 1
    with new:
        assert new.wait_for(lambda: unsent and unsent[-1] == taken[-1], LONG_S)
    assert not outgoing.send(7, 6, LARGE)
    held.go.set()
    while door.hosts:
        """What had left whole is read still."""
    read = [segment for _, _, segment, _ in held.heard.messages]
    assert read + unsent == taken
    door.close()


def test_two_hosts_that_answer_each_other_with_large_values_wait_for_neither():
    """Whoever reads sends meanwhile."""
    # Four of them together are more than what connections hold.
    large = {"x": LARGE["x"][::2].copy()}
    out, heard = {}, {"alpha": Heard(), "beta": Heard()}

    def answering(own):
        def told(host, number, segment, values):
            if number == 0:
                out[own].send(1, segment, {"x": values["x"].copy()})
            else:
                heard[own](host, number, segment, values)

        return told

    doors = {own: Door(HERE, answering(own), heard[own].broke) for own in heard}
    out["alpha"] = Outgoing("alpha", doors["beta"].entry, print)
    out["beta"] = Outgoing("beta", doors["alpha"].entry, print)
    for segment in range(4):
        for own in out:
            assert out[own].send(0, segment, large)
    for own in heard:
        assert [segment for _, _, segment, _ in heard[own].of(4)] == [0, 1, 2, 3]
    for own in heard:
        out[own].close()
        doors[own].close()


def test_a_host_that_connects_again_is_heard_by_both_until_the_first_ends(heard, door, outgoing):
    again = Outgoing("alpha", door.entry, print)
    assert outgoing.send(7, 0, {}) and heard.of(1) == [("alpha", 7, 0, {})]
    assert again.send(7, 1, {}) and heard.of(2)[1][2] == 1 and door.hosts == ["alpha"]
    outgoing.close()
    assert again.send(7, 2, {}) and heard.of(3)[2][2] == 2
    again.close()
    while door.hosts:
        """Nobody is left."""


def test_the_door_stays_open_whatever_knocks(heard, door, outgoing, monkeypatch):
    """Too many who say nothing are sent away, those who were let in stay."""
    there = door.entry.address, door.entry.port
    strangers = [socket.create_connection(there) for _ in range(channels.MOST_STRANGERS + 5)]
    assert strangers[-1].recv(1) == b"" and outgoing.send(7, 0, {}) and len(heard.of(1)) == 1
    for each in strangers:
        each.close()
    while True:
        with suppress(OSError):
            other = Outgoing("beta", door.entry, print)
            break
    assert other.send(7, 1, {}) and heard.of(2)[1][0] == "beta"
    other.close()


def test_half_a_message_that_cannot_be_kept_ends_the_channel(monkeypatch):
    """Or the next one's bytes would be read as the rest of it."""
    held = Held()
    door = Door(HERE, held, held.heard.broke)
    outgoing = Outgoing("alpha", door.entry, held.heard.unsent.append)

    def fails(value):
        raise MemoryError

    monkeypatch.setattr(channels.copy, "deepcopy", fails)
    with pytest.raises(MemoryError):
        for segment in range(4):
            outgoing.send(7, segment, LARGE)
    assert not outgoing.is_open and not outgoing.send(7, 4, {})
    held.go.set()
    door.close()


def test_a_secret_is_not_printed(door):
    assert repr(door.entry.secret)[2:-1] not in repr(door.entry)


@pytest.fixture
def hosts():
    """Workers of two hosts, sender and reader."""
    found = [Worker(Host(name, name, HERE, 0, 1)) for name in ("alpha", "beta")]
    yield found
    for each in found:
        for host in ("alpha", "beta"):
            each.forget(host)
        if each._door is not None:
            each._door.close()
        each._models._folder.cleanup()


def test_who_is_connected_stays_so(hosts):
    sender, reader = hosts
    assert sender.connect("beta", None, reader.entry())
    first = sender._outgoing["beta"]
    assert sender.connect("beta", None, reader.entry()) and sender._outgoing["beta"] is first
    # What the other end has closed is made anew, be anything sent by it or not.
    reader._door.forget("alpha")
    while not first.has_ended():
        """Its end is on its way."""
    assert sender.connect("beta", None, reader.entry()) and sender._outgoing["beta"] is not first


def test_a_host_that_cannot_be_reached_is_called(hosts):
    sender, reader = hosts
    entry = reader.entry()
    reader._door.close()
    assert not sender.connect("beta", Actor(reader), entry) and not sender.connect(
        "beta", None, None
    )
    # 192.0.2.0/24 is nobody's (RFC 5737).
    reader._host, reader._door = Host("away", "away", "192.0.2.1", 0, 1), None
    assert reader.entry() is None


class Refusing:
    """A program that takes no value."""

    native = rest = None

    def pinned(self, lanes):
        return [replace(lane, device=replace(lane.device, core_ids=(77,))) for lane in lanes]

    def run(self, segment):
        """Nothing is computed."""

    def view(self, name):
        return np.ones(3)

    def take(self, name, value):
        raise ValueError(f"{name} does not fit")

    def device_times(self):
        """Nobody tells any."""

    def stop(self):
        """Nothing runs."""

    close = stop


class Actor:
    """Another host as an actor: called at once, errors kept in an answer that nobody asks for."""

    def __init__(self, worker):
        self._worker = worker

    def __getattr__(self, name):
        def remote(*values):
            try:
                getattr(self._worker, name)(*values)
            except Exception as error:
                return error

        return SimpleNamespace(remote=remote)


@pytest.mark.parametrize("way", ["call", "channel"])
def test_a_value_that_does_not_fit_ends_the_step_that_waits_for_it(hosts, way, monkeypatch):
    stay = []
    monkeypatch.setattr("profiling.devices.lanes.pin", stay.append)
    sender, reader = hosts
    leaving, others = {0: (("beta", ("x",)),)}, {"beta": Actor(reader)}
    sender._parts[7] = Part(7, Refusing(), {0: ()}, leaving, others)
    reader._parts[7] = Part(7, Refusing(), {1: ()}, {}, {})
    if way == "channel":
        assert sender.connect("beta", others["beta"], reader.entry())
    reader.carry(7, [Lane(Device("beta/cpu:0"), (1,), ((0,),))], 2)
    sender.carry(7, [Lane(Device("alpha/cpu:0"), (0,), ((),))], 2)
    sender.step(7, LONG_S)
    with pytest.raises(ValueError, match="x does not fit"):
        reader.step(7, LONG_S)
    assert stay == [(77,), (77,)], "lanes have the cores that their program wants"
    for each in hosts:
        each.close(7)
