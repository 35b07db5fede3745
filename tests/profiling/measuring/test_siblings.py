"""Siblings: what was measured while a core was shared, or elsewhere than before, is made anew."""

import itertools
import math
import os
import threading
import time

import numpy as np
import pytest

from placement.core.machine import Device
from profiling.devices.cores import can_pin
from profiling.devices.native import functions_of, why_not
from profiling.measuring import siblings as module
from profiling.measuring.siblings import Look, Siblings, siblings

ALONE, BESIDE = 4.0, 6.0
# What a core has shown is kept for the whole process, so each test has cores of its own.
cores = itertools.count(10_000)


class Computer:
    """Two cores whose siblings are busy in stretches of time; a step takes half as long again then.

    Looks are off by up to a hundredth.
    """

    def __init__(self, *busy):
        self.cores, self.busy, self.now_s, self.looks = (next(cores), next(cores)), busy, 0.0, 0

    def clock(self):
        return self.now_s

    def sleep(self, seconds):
        self.now_s += seconds

    def is_busy(self):
        return any(start <= self.now_s < end for start, end in self.busy)

    def look(self, asked):
        self.now_s += 1e-4
        self.looks += 1
        noise = 0.01 * (self.looks % 7) / 7
        ratio = (1 + noise) * (BESIDE if self.is_busy() else ALONE)
        # Only the second core has a busy sibling.
        return Look({core: ratio if core == self.cores[1] else ALONE for core in asked})

    def step(self):
        seconds = 0.03 if self.is_busy() else 0.02
        self.now_s += seconds
        return seconds

    def beside(self, patience_s=10.0):
        return Siblings(
            self.cores,
            patience_s=patience_s,
            look=self.look,
            clock=self.clock,
            sleep=self.sleep,
        )


def test_steps_beside_a_busy_sibling_are_made_anew():
    computer = Computer((0.1, 0.35))
    beside = computer.beside()
    assert beside.measured(computer.step, 10) == [0.02] * 10
    assert beside.share == 0.0 and computer.now_s > 0.35


def test_one_that_was_busy_from_the_first_look_on_is_known_once_it_has_gone():
    computer = Computer((0.0, 0.2))
    assert computer.beside().measured(computer.step, 10) == [0.02] * 10


class Moving(Computer):
    """Two cores that are alone, and which a host puts far apart in stretches of time."""

    near_ns, far_ns = 40.0, 160.0

    def look(self, asked):
        self.now_s += 1e-4
        latency_ns = self.far_ns if self.is_busy() else self.near_ns
        return Look(dict.fromkeys(asked, ALONE), latency_ns)


def test_steps_while_cores_are_far_apart_are_made_anew():
    computer = Moving((0.1, 0.35))
    beside = computer.beside()
    assert beside.measured(computer.step, 10) == [0.02] * 10 and computer.now_s > 0.35
    assert beside.share == 0.0 and beside.core_to_core_s == pytest.approx(40e-9)


def test_cores_that_stay_far_apart_are_told_and_beside_nothing():
    computer = Moving()
    beside, computer.busy = computer.beside(), ((computer.now_s, 1e9),)
    assert beside.measured(computer.step, 10) == [0.03] * 10
    assert beside.share == 0.0 and beside.core_to_core_s == pytest.approx(160e-9)


def beside_of(computer, earlier_ns):
    return Siblings(
        computer.cores,
        core_to_core_s=earlier_ns * 1e-9,
        patience_s=10.0,
        look=computer.look,
        clock=computer.clock,
        sleep=computer.sleep,
    )


@pytest.mark.parametrize("wanted", [1, 10, 50])
@pytest.mark.parametrize(
    ("earlier_ns", "far_ns", "waits"),
    [(40.0, 160.0, True), (160.0, 160.0, False), (15.0, 60.0, False)],
)
def test_the_latency_of_an_earlier_measurement_is_waited_for(earlier_ns, far_ns, waits, wanted):
    """A process that has only seen cores far apart knows of nothing better, but a profile does.

    What threads of one core take, 15 ns, says nothing of cores.
    """
    computer = Moving((0.0, 6.0))
    computer.far_ns = far_ns
    found = beside_of(computer, earlier_ns).measured(computer.step, wanted)
    assert found == [0.02 if waits else 0.03] * wanted and (computer.now_s > 6.0) is waits


def test_it_is_waited_for_no_longer_than_patience_lasts():
    computer = Moving((0.0, 1e9))
    beside = beside_of(computer, 40.0)
    assert beside.measured(computer.step, 30) == [0.03] * 30
    assert 10.0 < computer.now_s < 12.0 and beside.core_to_core_s == pytest.approx(160e-9)


def test_nobody_waits_for_what_no_earlier_measurement_has_seen():
    """A turn of a tournament would take all the time there is."""
    computer = Moving()
    beside, computer.busy = computer.beside(), ((computer.now_s, 1e9),)
    assert beside.measured(computer.step, 1) == [0.03] and computer.now_s < 1.0


def test_those_that_were_alone_count_where_all_were_far_apart():
    computer = Moving((0.0, 1e9))

    def look(asked):
        ratio = BESIDE if computer.now_s > 0.05 and computer.now_s % 0.5 < 0.1 else ALONE
        return Look(dict.fromkeys(asked, ratio), 160.0)

    beside = Siblings(
        computer.cores,
        core_to_core_s=40e-9,
        patience_s=2.0,
        look=look,
        clock=computer.clock,
        sleep=computer.sleep,
    )
    beside.measured(computer.step, 5)
    assert beside.share == 0.0 and beside.num_again > 5


def test_threads_of_one_core_are_no_measure_for_cores():
    """Three looks while they were those would make all others far apart."""
    computer = Moving()
    computer.near_ns = 60.0
    found = iter([15.0] * 5)
    near = computer.look
    computer.look = lambda asked: Look(near(asked).ratios, next(found, 60.0))
    beside = computer.beside()
    assert beside.measured(computer.step, 10) == [0.02] * 10
    assert beside.num_again == 0 and beside.core_to_core_s == pytest.approx(60e-9)


def test_a_line_that_came_from_no_core_in_time_is_no_distance():
    computer = Moving()
    beside, computer.far_ns = computer.beside(), float("inf")
    computer.busy = ((computer.now_s, 1e9),)
    assert beside.measured(computer.step, 3) == [0.03] * 3 and beside.core_to_core_s is None


@pytest.mark.skipif(bool(why_not()), reason="this interpreter offers nothing to native code")
@pytest.mark.parametrize("num", [2, 3])
def test_a_line_goes_round_all_cores_as_often_as_it_should(num):
    from profiling.measuring.siblings_compiled import pass_on

    lines, now = np.zeros((num, 16), np.int64), np.zeros((num, 1), np.int64)
    took_ns = np.full(2, -1, np.int64)
    given = 5, 20 * 10**9, lines, functions_of()
    threads = [
        threading.Thread(target=pass_on, args=(i, *given, now[i], took_ns)) for i in range(num)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert lines[:, 0].tolist() == [1 + 2 * 5] * num and (took_ns > 0).all()


@pytest.mark.skipif(bool(why_not()), reason="this interpreter offers nothing to native code")
def test_nobody_waits_for_ever_for_a_core_that_never_comes():
    from profiling.measuring.siblings_compiled import pass_on

    lines, now, took_ns = np.zeros((2, 16), np.int64), np.zeros(1, np.int64), np.full(2, -1)
    pass_on(0, 5, 10**6, lines, functions_of(), now, took_ns)
    assert took_ns.tolist() == [-1, -1] and lines[:, 0].tolist() == [0, 1]


def test_what_is_alone_is_not_measured_more_often():
    computer, steps = Computer(), []
    assert computer.beside().measured(lambda: steps.append(computer.step()), 10) == [None] * 10
    assert len(steps) == 10


@pytest.mark.parametrize(("patience_s", "most"), [(10.0, 30), (0.1, 14)])
def test_it_ends_where_a_sibling_stays_busy_and_says_so(patience_s, most):
    computer = Computer()
    beside = computer.beside(patience_s)
    computer.busy, steps = ((computer.now_s, 1e9),), []

    def step():
        steps.append(computer.step())
        return steps[-1]

    assert beside.measured(step, 10) == [0.03] * 10 and len(steps) <= most
    assert beside.share == 1.0


def test_a_few_that_were_alone_count_more_than_many_that_were_not():
    computer = Computer()
    beside = computer.beside(0.1)
    computer.busy = ((computer.now_s + 0.07, 1e9),)
    assert beside.measured(computer.step, 10) == [0.02] * 3
    assert beside.share == 0.0


@pytest.mark.parametrize(("alone_s", "picks"), [(0.1, False), (0.7, True)])
def test_where_a_core_is_seldom_alone_all_counts_as_it_comes(alone_s, picks):
    """Of each second a tenth is alone, or seven."""
    computer, steps = Computer(), []
    computer.is_busy = lambda: computer.now_s % 1.0 > alone_s
    beside = computer.beside()
    # What looks show for some seconds.
    beside.measured(computer.step, 200)

    def step():
        steps.append(computer.step())
        return steps[-1]

    found = beside.measured(step, 60)
    assert found == ([0.02] * 60 if picks else steps) and len(found) == 60
    assert 0.02 in steps and 0.03 in steps


def test_each_core_is_chosen_by_itself():
    """One whose sibling is always busy is no reason to keep what was beside another's."""
    computer, looks = Computer(), itertools.count()
    always, seldom = computer.cores
    kept = Siblings(
        computer.cores,
        patience_s=10.0,
        # The first one is alone in a few looks, so that it is known what that is like.
        look=lambda asked: Look(
            {
                always: ALONE if next(looks) < 10 else BESIDE,
                seldom: BESIDE if computer.is_busy() else ALONE,
            }
        ),
        clock=computer.clock,
        sleep=computer.sleep,
    )
    computer.busy = ((computer.now_s + 0.1, computer.now_s + 0.35),)
    assert kept.measured(computer.step, 10) == [0.02] * 10
    assert kept.share == 1.0


def test_a_look_or_two_that_are_too_low_do_not_make_all_others_high():
    computer, looks = Computer(), itertools.count()
    beside = Siblings(
        computer.cores,
        patience_s=10.0,
        look=lambda asked: Look(dict.fromkeys(asked, 0.7 * ALONE if next(looks) == 20 else ALONE)),
        clock=computer.clock,
        sleep=computer.sleep,
    )
    assert beside.measured(computer.step, 10) == [0.02] * 10
    assert beside.share == 0.0


def test_rows_take_turns_until_each_has_enough():
    computer = Computer((0.05, 0.3))
    beside, rows = computer.beside(), ([], [])
    while beside.goes_on(5, *rows):
        for row in rows:
            row.append(beside.around(computer.step))
    assert len(rows[0]) == len(rows[1]) > 5
    assert all(beside.kept(row, 5) == [0.02] * 5 for row in rows)


def test_short_steps_are_looked_at_together_after_one_that_does_not_count():
    computer = Computer((0.1, 0.35))
    beside, taken = computer.beside(), []

    def step():
        taken.append(computer.step() / 10)
        computer.now_s -= 9 * taken[-1]
        return taken[-1]

    stretch = beside.stretch(step, 0.002, 100)
    assert (stretch.num, stretch.num_before) == (10, 1)
    found = beside.measured(stretch, 10)
    assert [len(steps) for steps in found] == [10] * 10
    assert all(seconds == 0.002 for steps in found for seconds in steps)
    assert len(taken) % 11 == 0 and len(taken) > 110
    assert beside.stretch(step, 0.5, 100)() == [taken[-1]]
    assert beside.stretch(step, 0.0, 7).num == 7


def test_without_patience_nothing_is_looked_at():
    computer = Computer((0.0, 1e9))
    beside = computer.beside(0.0)
    assert beside.measured(computer.step, 4) == [0.03] * 4
    assert computer.looks == 0 and beside.share is None


def test_cores_are_those_of_devices_that_compute_here(monkeypatch):
    asked = []

    def look(found):
        asked.append(tuple(found))
        return Look(dict.fromkeys(found, 1.0))

    monkeypatch.setenv("PLACEMENT_STUDIO_PATIENCE_S", "1")
    monkeypatch.setattr(module, "can_pin", lambda: True)
    monkeypatch.setattr(module, "_FIRST_LOOKS", 0)
    monkeypatch.setattr(module, "_look", look)
    lanes = [Device(f"cpu:{i}", "cpu", core_ids=(i,)) for i in (3, 1)]
    for devices in (lanes, lanes[:1], [Device("cuda:0", "cuda", runtime="torch")]):
        siblings(devices).around(lambda: None)
    assert asked == [(1, 3)] * 2 + [(3,)] * 2


@pytest.mark.skipif(not can_pin(), reason="threads choose no cores on this system")
def test_a_look_is_at_each_core_and_leaves_this_thread_where_it_may_be():
    usual = os.sched_getaffinity(0)
    asked = sorted(usual)[:2]
    found = module._look(asked)
    assert list(found.ratios) == asked and all(ratio > 0 for ratio in found.ratios.values())
    assert os.sched_getaffinity(0) == usual
    if len(asked) == 1:
        assert found.latency_ns is None
        return
    # Nobody waits longer than 10 ms, within which both may not get their cores on a busy computer.
    ends_s = time.monotonic() + 60
    while found.latency_ns == math.inf and time.monotonic() < ends_s:
        found = module._look(asked)
    # Light goes a foot in a nanosecond.
    assert 0.5 < found.latency_ns < 1e7
