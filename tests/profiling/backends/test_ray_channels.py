"""What hosts send to each other, over channels by hand in place of Ray's."""

import sys
import threading
import weakref
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.core.machine import Device
from profiling.backends._ray import worker
from profiling.backends._ray.channels import NOTHING, WINDOW, Attention, Incoming, Outgoing
from profiling.backends._ray.hosts import Host
from profiling.backends._ray.part import Part
from profiling.backends._ray.worker import GREETED, Worker
from profiling.devices.lanes import Lane

LONG_S = 60.0


class RayError(Exception):
    """What Ray raises where a channel was closed."""


class RayChannelTimeoutError(RayError):
    """What it raises where nobody reads."""


class GetTimeoutError(RayError):
    """What it raises where nobody writes."""


class Channel:
    """Messages by hand, closed after the last."""

    def __init__(self, *messages):
        self.messages, self.closed, self.kept = list(messages), threading.Event(), []

    def ensure_registered_as_reader(self):
        """Nothing is missed here."""

    def read(self, timeout=None):
        if not self.messages:
            self.closed.set()
            raise RayError
        message = self.messages.pop(0)
        # As with Ray's, memory of a message is the channel's again before the next is read.
        self.kept.append([weakref.ref(value) for value in message[2].values()])
        assert not any(ref() is not None for row in self.kept[:-1] for ref in row)
        return message

    def write(self, message, timeout=None):
        assert not self.messages, "a node with two messages of one channel waits for its reader"
        self.messages.append(message)


@pytest.fixture(autouse=True, scope="module")
def ray():
    """As much of Ray as channels ask for, be it installed or not."""
    shared = "ray.experimental.channel.shared_memory_channel"
    names = ("ray", "ray.exceptions", "ray.experimental", "ray.experimental.channel", shared)
    found = {name: ModuleType(name) for name in names}
    context = SimpleNamespace(current_actor=None)
    found["ray"].get_runtime_context = lambda: context
    for error in (RayError, RayChannelTimeoutError, GetTimeoutError):
        setattr(found["ray.exceptions"], error.__name__, error)
    found[shared].Channel = lambda *settings: Channel()
    with pytest.MonkeyPatch.context() as patched:
        for name, module in found.items():
            patched.setitem(sys.modules, name, module)
        yield


def values():
    return {"x": np.ones(3)}


def test_a_channel_is_read_on_after_a_message_that_fails():
    heard = []

    def told(number, segment, values, read):
        heard.append(number)
        if number < 2:
            raise KeyError(number)

    channel, attention = Channel(*((n, 0, values(), NOTHING) for n in range(4))), Attention()
    with attention.held():
        Incoming([channel], 0, told, [].append, attention)
        assert channel.closed.wait(LONG_S) and heard == [0, 1, 2, 3]


def test_channels_are_read_by_turns_and_half_a_window_is_said():
    heard, said, attention = [], [], Attention()
    channels = [Channel(*((n, 0, {}, NOTHING) for n in range(i, 9, 4))) for i in range(WINDOW)]
    with attention.held():
        incoming = Incoming(channels, 5, lambda n, *_: heard.append(n), said.append, attention)
        assert channels[1].closed.wait(LONG_S) and heard == list(range(9))
    assert said == [(5, 2), (5, 4), (5, 6), (5, 8)] and incoming.read == (5, 9)


@given(st.lists(st.sampled_from(["send", "read", "hear", "hear of others"]), max_size=60))
def test_no_node_gets_a_second_message_before_the_first_was_read(events):
    """Whenever a reader ends: its channels refuse a second message."""
    outgoing = Outgoing(None, "node", 2**20, 7)
    sent = num_read = heard = 0
    for event in events:
        if event == "send":
            is_sent = outgoing.send(0, sent, values(), NOTHING)
            assert is_sent == (sent - heard < WINDOW), "no more and no fewer than fit"
            sent += is_sent
        elif event == "read" and num_read < sent:
            message = outgoing.channels[num_read % WINDOW].messages.pop()
            assert message[1] == num_read, "read in the order in which they were sent"
            num_read += 1
        elif event == "hear":
            heard = num_read
            outgoing.was_read((7, num_read))
        else:
            outgoing.was_read((6, sent))


@pytest.fixture
def hosts():
    """Workers of two hosts, sender and reader."""
    found = [Worker(Host(name, name, "127.0.0.1", 0, 1)) for name in ("alpha", "beta")]
    yield found
    for each in found:
        each._models._folder.cleanup()


def test_first_messages_that_come_late_are_not_taken_for_those_of_another_pair(hosts, monkeypatch):
    monkeypatch.setattr(worker, "GREETING_S", 0.0)
    own, channel = hosts[0], Channel((GREETED, 5, {}, NOTHING), (GREETED, 5, {}, NOTHING))
    with own._attention.held():
        own.listen("beta", Actor(hosts[1]), [channel], 5)
        assert channel.closed.wait(LONG_S)
    assert not own.was_greeted(6, 2) and own.was_greeted(5, 2)


class Refusing:
    """A program that takes no value."""

    native = None

    def run(self, segment):
        """Nothing is computed."""

    def value(self, name):
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
def test_a_value_that_does_not_fit_ends_the_step_that_waits_for_it(hosts, way):
    sender, reader = hosts
    leaving, others = {0: (("beta", ("x",)),)}, {"beta": Actor(reader)}
    sender._parts[7] = Part(7, Refusing(), {0: ()}, leaving, others)
    reader._parts[7] = Part(7, Refusing(), {1: ()}, {}, {})
    reader.carry(7, [Lane(Device("beta/cpu:0"), (1,), ((0,),))], 2, True)
    if way == "call":
        sender.carry(7, [Lane(Device("alpha/cpu:0"), (0,), ((),))], 2, True)
        sender.step(7, LONG_S)
    else:
        channel = Channel((7, 0, values(), NOTHING), (7, 0, values(), NOTHING))
        with reader._attention.held():
            reader.listen("alpha", Actor(sender), [channel], 1)
            assert channel.closed.wait(LONG_S)
    with pytest.raises(ValueError, match="x does not fit"):
        reader.step(7, 1.0)
    for each in hosts:
        each.close(7)
