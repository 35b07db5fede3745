"""What crosses between lanes by hand, and the line through what kernels take longer."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

import placement as pl
from placement.core.graph import Graph, Op, Tensor
from placement.loaders import load
from profiling import backends
from profiling.devices.lanes import Step
from profiling.measuring import crossings
from profiling.measuring.crossings import (
    FEWEST_CROSSINGS,
    crossing_cost,
    crossings_of,
    crossings_of_segments,
    line,
    straight_line,
)
from tests.profiling.live import diamond, two_lanes


def test_each_kernel_is_where_its_largest_input_was_not_made():
    graph = Graph(
        "hand",
        tuple(Op(name, "Any") for name in "abcde"),
        (
            Tensor("input", None, ("a",), 7),
            Tensor("x", "a", ("b", "c"), 100),
            Tensor("y", "b", ("d",), 10),
            Tensor("z", "c", ("d", "e"), 20),
            Tensor("w", "d", ("e",), 5, is_output=True),
        ),
    )
    plan = crossings_of(graph)
    assert plan.kernels == ((0,), (1,), (2,), (3,), (4,))
    assert plan.lane_of.tolist() == [0, 1, 1, 0, 0]
    # c finds x where b has read it; e has z from d's lane, to which it came once.
    assert plan.num_bytes.tolist() == [0, 100, 0, 30, 0]
    assert plan.awaits == ((), (0,), (), (1, 2), ())


@given(
    constant=st.floats(1e-6, 1e-4),
    slope=st.floats(1e-12, 1e-9),
    disturbed=st.integers(0, 19),
)
def test_the_line_is_found_though_one_kernel_was_disturbed(constant, slope, disturbed):
    num_bytes = np.linspace(1e3, 1e6, 20)
    longer_s = constant + slope * num_bytes
    longer_s[disturbed] *= 3
    found = line(num_bytes, longer_s)
    assert found[0] + found[1] * 5e5 == pytest.approx(constant + slope * 5e5, rel=0.1)


@given(
    longer_s=st.lists(st.floats(1e-6, 1e-4), min_size=3, max_size=20),
    slope=st.floats(0.0, 1e-9),
)
def test_by_least_squares_all_crossings_together_cost_what_they_took(longer_s, slope):
    num_bytes = np.linspace(0.0, 1e6, len(longer_s))
    took_s = np.array(longer_s) + slope * num_bytes
    constant_s, s_per_byte = straight_line(num_bytes, took_s)
    assert constant_s >= 0.0 and s_per_byte >= 0.0
    told_s = constant_s * len(took_s) + s_per_byte * num_bytes.sum()
    assert told_s == pytest.approx(took_s.sum(), rel=1e-4)


def of_layers(num):
    """A chain of layers of several sizes, compiled, and the machine of two lanes."""
    widths = (16, 64, 16, 256)
    layers = [nn.Linear(widths[i % 4], widths[(i + 1) % 4]) for i in range(num)]
    model = pl.from_torch(nn.Sequential(*layers), torch.zeros(1, widths[0]))
    machine = pl.machine_for(model, two_lanes())
    return backends.compiled(model, machine), machine


class MadeUp:
    """Steps behind whose crossings a segment takes 3 us longer and 2 ns more for each byte, and
    begins some seconds `gap_s` (S,) after what it has awaited; one lane is slower than the other.
    One that is `disturbed` takes 50 us longer.
    """

    def __init__(self, plan, gap_s, disturbed=None):
        waits = np.array([bool(awaits) for awaits in plan.awaits])
        self.plan, self.gap_s = plan, gap_s * waits
        self.mean_gap_s = float(gap_s[waits].mean())
        self.disturbed_s = np.zeros(len(waits))
        if disturbed is not None:
            self.disturbed_s[disturbed] = 50e-6

    def in_turns(self, compiled, pair, feeds, timeout_s, ways, beside=None):
        return [[self.step(pair, lanes)] * 3 for _, lanes in ways]

    def step(self, pair, lanes):
        plan, crosses = self.plan, len(lanes) > 1
        on_second = plan.lane_of if crosses else np.array(lanes[0].device == pair[1])
        longer_s = (plan.num_bytes > 0) * (3e-6 + 2e-9 * plan.num_bytes) + self.disturbed_s
        longer_s *= crosses
        took_s = 1e-4 * (1.0 + 0.5 * on_second) + longer_s
        end_s = np.cumsum(took_s + self.gap_s * crosses)
        resumed_s = {
            (producer, pair[lane].name): 0.0
            for lane, awaits in zip(plan.lane_of, plan.awaits, strict=True)
            for producer in awaits
        }
        return Step(0.0, end_s[-1], tuple(end_s - took_s), tuple(end_s), resumed_s)


@pytest.mark.parametrize("keeps_order", [True, False])
def test_segments_alternate_and_are_held_against_their_own_lane(keeps_order, monkeypatch):
    compiled, machine = of_layers(120)
    monkeypatch.setattr(type(compiled), "keeps_order", keeps_order)
    plan = crossings_of_segments(compiled.kernels)
    assert [k for own in plan.kernels for k in own] == list(range(120))
    assert len(plan.kernels) < 60 and set(np.abs(np.diff(plan.lane_of))) == {1}
    assert len(set(plan.num_bytes)) > 3
    steps = MadeUp(plan, np.where(np.arange(len(plan.awaits)) % 3, 5e-6, 35e-6))
    monkeypatch.setattr(crossings, "in_turns", steps.in_turns)
    latency_s, bytes_per_s = crossing_cost(compiled, machine.devices, {}, 60.0)
    assert latency_s == pytest.approx(3e-6 + steps.mean_gap_s, rel=1e-3)
    assert bytes_per_s == pytest.approx(0.5e9, rel=1e-3)


def test_where_segments_are_too_few_single_kernels_cross(monkeypatch):
    compiled, machine = of_layers(20)
    plan = crossings_of(compiled.kernels)
    by_segment = crossings_of_segments(compiled.kernels)
    assert np.count_nonzero(by_segment.num_bytes) < FEWEST_CROSSINGS
    assert np.count_nonzero(plan.num_bytes) >= FEWEST_CROSSINGS
    gap_s = np.where(np.arange(len(plan.awaits)) % 3, 5e-6, 35e-6)
    steps = MadeUp(plan, gap_s, disturbed=7)
    monkeypatch.setattr(crossings, "in_turns", steps.in_turns)
    latency_s, bytes_per_s = crossing_cost(compiled, machine.devices, {}, 60.0)
    # The usual hand-over, though their mean is 15 us; of 50 us of one kernel next to nothing.
    assert latency_s == pytest.approx(8e-6, rel=0.1)
    assert bytes_per_s == pytest.approx(0.5e9, rel=0.1)


def test_nothing_costs_less_than_nothing():
    num_bytes = np.array([1e3, 1e4, 1e5, 1e6])
    assert line(num_bytes, np.full(4, -1e-6)) == (0.0, 0.0)
    falling = line(num_bytes, 1e-5 - 1e-12 * num_bytes)
    assert falling[1] == 0.0 and falling[0] > 0
    through = line(num_bytes, 1e-10 * num_bytes - 1e-6)
    assert through[0] == 0.0 and through[1] > 0


def test_a_sample_says_what_crossing_costs_and_a_small_model_says_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(crossings, "BUDGET_S", 0.0)
    machine = two_lanes()
    sample = load("onnx-squeezenet")
    compiled = backends.compiled(sample, machine)
    found = crossing_cost(compiled, machine.devices, compiled.feeds(0, {}), 60.0)
    assert found is not None
    latency_s, bytes_per_s = found
    assert 0.0 <= latency_s < 1.0 and bytes_per_s > 1e6
    diamond(tmp_path)
    small = load(str(tmp_path / "small.onnx"))
    assert len(small.graph.ops) < FEWEST_CROSSINGS
    compiled = backends.compiled(small, machine)
    assert crossing_cost(compiled, machine.devices, compiled.feeds(0, {}), 60.0) is None
