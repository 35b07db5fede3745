"""What sending between hosts costs, of hosts that are as they were made: chains and simulations."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.core.graph import Graph, Op, Tensor
from placement.core.machine import Device
from profiling.backends.base import Renewal
from profiling.devices.lanes import Step
from profiling.measuring.crossings import FEWEST_CROSSINGS, crossings_of
from profiling.measuring.sending import sending
from tests.instances import random_problem
from tests.profiling.simulated import Idle, Simulated, of_one_kind
from tests.thorough import either

HOSTS = Device("a/cpu:0"), Device("b/cpu:0")


@pytest.mark.thorough
@settings(max_examples=either(30, 100))
@given(
    latency_s=st.floats(1e-5, 1e-2),
    bytes_per_s=st.floats(1e7, 1e11),
    sending_s=st.floats(0.0, 1e-3),
    ahead_s=st.floats(-1.0, 1.0),
)
def test_sending_costs_what_a_chain_over_two_hosts_shows_whatever_their_clocks(
    latency_s, bytes_per_s, sending_s, ahead_s
):
    chain = Chain(41, (latency_s, 1 / bytes_per_s), sending_s, ahead_s)
    # Half of what it costs in the chain, sending included.
    message = (latency_s + sending_s) / 2, 1 / bytes_per_s / 2
    found = sending(chain, HOSTS, {}, 60.0, message)
    assert found.ratio == pytest.approx(2.0, rel=1e-3)
    # Every value but the last is sent on by a kernel that was sent one.
    crossed = crossings_of(chain.kernels).num_bytes
    way_s = latency_s + float(np.mean(crossed[crossed > 0])) / bytes_per_s
    assert found.send == pytest.approx(sending_s / (sending_s + way_s), rel=0.05, abs=1e-3)
    assert found.receive == 0.0, "nobody told the time of cores"


@pytest.mark.parametrize("size", [100.0, 1e6])
def test_values_of_one_size_say_what_they_cost(size):
    chain = Chain(41, (1e-3, 1e-9), 0.0, 0.3, sizes=[size] * 41)
    found = sending(chain, HOSTS, {}, 60.0, (2e-3, 2e-9))
    assert found.ratio == pytest.approx(0.5, rel=1e-6) and found.send == pytest.approx(0.0)


@pytest.mark.parametrize(
    ("num", "changed"),
    [
        (2 * FEWEST_CROSSINGS, {}),
        (41, {"crosses": False}),
        (41, {"cost": (2.0, 0.0)}),
        (41, {"renewing": range(41)}),
    ],
)
def test_what_is_short_or_stays_or_takes_long_or_is_state_says_nothing(num, changed):
    chain = Chain(num, **{"cost": (1e-3, 1e-9), "sending_s": 0.0, "ahead_s": 0.0, **changed})
    assert sending(chain, HOSTS, {}, 60.0, (1e-3, 1e-9)) is None


@pytest.mark.parametrize("busy", [0.2, 0.6, 1.0])
def test_time_of_cores_beyond_the_kernels_holds_up_who_receives(busy):
    """A share of a message's time is work of one host or the other, the rest is on the wire."""
    chain = Chain(41, (1e-3, 1e-9), 2e-4, 0.3, busy=busy)
    found = sending(chain, HOSTS, {}, 60.0, (1e-3, 1e-9))
    crossed = crossings_of(chain.kernels).num_bytes
    way_s = 1e-3 + float(np.mean(crossed[crossed > 0])) * 1e-9
    assert found.send == pytest.approx(2e-4 / (2e-4 + way_s), rel=0.05)
    assert found.receive == pytest.approx(busy * way_s / (2e-4 + way_s), rel=0.1)


@pytest.mark.parametrize("contention", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_what_hosts_slow_each_other_is_no_cost_of_crossing(seed, contention):
    """Two hosts whose steps are exactly as simulated: a message takes what it is said to."""
    problem = random_problem(
        seed,
        num_ops=150,
        num_devices=2,
        execution="op",
        contention=contention,
        link_contention=False,
    )
    problem = of_one_kind(problem, 3e-4)
    devices, world = problem.machine.devices, Simulated(problem)
    found = sending(world, devices, {}, 60.0, (3e-4, 0.0), contention)
    assert found.ratio == pytest.approx(1.0, abs=1e-6)
    assert (found.send, found.receive) == (pytest.approx(0.0, abs=1e-6), 0.0)


class Chain:
    """Kernels in a row, compiled for two hosts, as their clocks tell: (seconds, seconds per byte)
    until a value is there, what sending takes its maker, and what the clock of host b is ahead."""

    def __init__(
        self, num, cost, sending_s, ahead_s, *, sizes=(), crosses=True, renewing=(), busy=None
    ):
        self.sizes = list(sizes) or [1e4 * (1 + 7 * i % 13) for i in range(num)]
        ops = tuple(Op(str(i), "Any") for i in range(num))
        values = (Tensor(f"v{i}", str(i - 1), (str(i),), int(self.sizes[i])) for i in range(1, num))
        self.kernels, self._crosses = Graph("chain", ops, tuple(values)), crosses
        self._cost, self._sending_s, self._ahead_s = cost, sending_s, ahead_s
        self._busy = busy
        self.renewals = tuple(Renewal("s", "m", str(i), (), 1) for i in renewing)

    def exchanges(self, tensor):
        return self._crosses

    def open(self, schedule, feeds):
        return Opened(self, [segment.device for segment in schedule.segments])

    def step(self, at):
        start_s, end_s, resumed_s, now_s = [], [], {}, 0.0
        processor_s = None if self._busy is None else 0.0
        for i, device in enumerate(at):
            if i and at[i - 1] != device:
                way_s = self._cost[0] + self._cost[1] * self.sizes[i]
                now_s += way_s
                if processor_s is not None:
                    processor_s += self._busy * way_s
                resumed_s[i - 1, device] = now_s
            # The hosts are not as fast as each other.
            lasts_s = 1e-4 * (1 + i % 5) * (2 if device.startswith("b") else 1)
            # Whatever is made goes to the other host, where there is one.
            lasts_s += self._sending_s if len(set(at)) > 1 else 0.0
            if processor_s is not None:
                processor_s += lasts_s
            ahead_s = self._ahead_s if device.startswith("b") else 0.0
            start_s.append(now_s + ahead_s)
            now_s += lasts_s
            end_s.append(now_s + ahead_s)
        times = (tuple(start_s), tuple(end_s), resumed_s)
        return Step(0.0, now_s, *times, processor_s=processor_s)


class Opened(Idle):
    """A program of such a chain on these devices, and what carries it."""

    def __init__(self, chain, at):
        self._chain, self._at = chain, at

    def carried(self, lanes, num_segments):
        assert sum(len(lane.segments) for lane in lanes) == num_segments == len(self._at)
        return self

    def step(self, timeout_s):
        return self._chain.step(self._at)
