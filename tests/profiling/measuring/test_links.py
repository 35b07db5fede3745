"""The line fit finds what made the data; real links come out as finite, sane figures."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.core.machine import Device, Link, Machine
from profiling.devices.cores import usable_cores
from profiling.devices.local import load_machine, local_machine
from profiling.measuring.links import (
    MEASURED_NOTE,
    MOST_BYTES_PER_S,
    SIZES,
    fit,
    measure_links,
    one_way_s,
)


@given(latency_s=st.floats(1e-6, 1e-3), bytes_per_s=st.floats(1e8, 5e11))
def test_fit_recovers_an_exact_line(latency_s, bytes_per_s):
    found = fit(SIZES, [latency_s + size / bytes_per_s for size in SIZES])
    assert found[0] == pytest.approx(latency_s, rel=1e-3)
    assert found[1] == pytest.approx(bytes_per_s, rel=1e-3)


@given(st.integers(0, 1000), st.integers(0, len(SIZES) - 1))
def test_fit_withstands_noise_and_one_disturbed_size(seed, disturbed):
    generator = np.random.default_rng(seed)
    seconds = [(20e-6 + size / 10e9) * generator.uniform(0.98, 1.02) for size in SIZES]
    seconds[disturbed] *= 10
    latency_s, bytes_per_s = fit(SIZES, seconds)
    assert latency_s == pytest.approx(20e-6, rel=0.25)
    assert bytes_per_s == pytest.approx(10e9, rel=0.35)


def test_a_falling_line_is_a_very_fast_link():
    latency_s, bytes_per_s = fit(SIZES, [30e-6 - i * 1e-6 for i in range(len(SIZES))])
    assert bytes_per_s == MOST_BYTES_PER_S
    assert 23e-6 <= latency_s <= 30e-6


def test_a_negative_latency_is_none():
    latency_s, bytes_per_s = fit((1000, 2000, 4000), (0.5e-6, 2.5e-6, 6.5e-6))
    assert latency_s == 0.0
    assert bytes_per_s > 0


@pytest.mark.skipif(len(usable_cores()) < 2, reason="needs two cores")
def test_one_round_trip_that_is_held_up_makes_no_other_way_free():
    round_trips_s = [10e-3, 1e-3, 1e-3, 1.5e-3, 2e-3, 4e-3, 8e-3]
    ways_s = one_way_s(round_trips_s)
    assert all(way_s >= trip_s / 2 for way_s, trip_s in zip(ways_s, round_trips_s, strict=True))
    latency_s, _ = fit(SIZES[:7], ways_s)
    assert latency_s == pytest.approx(0.5e-3, rel=0.5)


def test_lanes_of_this_cpu():
    said = []
    machine = local_machine(2)
    measured = measure_links(machine, said.append)
    assert said[0] == "measuring cpu:0 with cpu:1"
    assert [(k.src, k.dst) for k in measured.links] == [(k.src, k.dst) for k in machine.links]
    for link in (k for k in measured.links if {k.src, k.dst} == {"cpu:0", "cpu:1"}):
        assert 0 <= link.latency_s < 0.1
        assert 1e7 < link.bytes_per_s <= MOST_BYTES_PER_S
    assert measured.note == MEASURED_NOTE
    assert measured.fingerprint == machine.fingerprint


def test_what_is_not_here_stays_as_stated():
    for name in ("null-2", "nvlink-8gpu"):
        machine = load_machine(name)
        assert measure_links(machine) == machine


def test_unpinned_lanes_are_measured_too():
    devices = tuple(
        Device(f"cpu:{i}", "cpu", "onnxruntime", "CPUExecutionProvider") for i in range(2)
    )
    machine = Machine("m", devices, (Link("cpu:0", "cpu:1", 0.5, 1.0),))
    (link,) = measure_links(machine).links
    assert link.latency_s < 0.5 and link.bytes_per_s > 1.0
