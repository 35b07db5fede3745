"""Worker threads: order, hand-over, errors and hanging steps."""

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from placement.core.machine import Device
from profiling.devices import native, waiting
from profiling.devices.cores import usable_cores
from profiling.devices.lanes import Lane, Lanes, pin
from profiling.devices.lanes_compiled import take_for_python
from profiling.devices.native import ENDLESS, NativeLock
from profiling.devices.waiting import AwakeLane

A, B = Device("a"), Device("b")


def chain(run, awake=False):
    """Segments 0 and 2 on a, 1 and 3 on b, each waiting for the one before."""
    both = [Lane(A, (0, 2), ((), (1,))), Lane(B, (1, 3), ((0,), (2,)))]
    return Lanes(both, 4, run, awake=awake)


either = pytest.mark.parametrize("awake", [False, True], ids=["asleep", "awake"])


@either
def test_segments_run_in_the_order_of_their_data(awake):
    ran = []
    lanes = chain(ran.append, awake)
    for number in range(20):
        step = lanes.step(10.0)
        assert ran == [0, 1, 2, 3] * (number + 1)
        assert list(step.start_s) == sorted(step.start_s)
        assert all(a <= b for a, b in zip(step.end_s, step.start_s[1:], strict=False))
        assert step.began_s <= step.start_s[0] and step.end_s[3] <= step.ended_s
    assert lanes.close()


@either
def test_one_producer_wakes_every_device_once(awake):
    three = (Lane(A, (0,), ((),)), Lane(B, (1, 2), ((0,), ())), Lane(Device("c"), (3,), ((0,),)))
    ran = []
    lanes = Lanes(three, 4, ran.append, awake=awake)
    lanes.step(10.0)
    lanes.step(10.0)
    assert len(ran) == 8 and ran[0] == ran[4] == 0
    lanes.close()


def test_one_lane_counts_a_short_step_once_others_are_over(monkeypatch):
    monkeypatch.setattr("profiling.devices.lanes.SHORT_S", 10.0)
    said = []
    run, finish = (lambda s: said.append(("run", s))), (lambda s: said.append(("finish", s)))
    one = [Lane(A, (0, 1), ((), ()))]
    once = [("run", 0), ("finish", 0), ("run", 1), ("finish", 1)]
    for is_repeatable, wanted in ((False, once), (True, 3 * once)):
        lanes = Lanes(one, 2, run, finish=finish, is_repeatable=is_repeatable)
        lanes.step(10.0)
        said.clear()
        lanes.step(10.0)
        assert said == wanted
        lanes.close()


def test_two_lanes_and_what_comes_from_elsewhere_run_once(monkeypatch):
    monkeypatch.setattr("profiling.devices.lanes.SHORT_S", 10.0)
    two = [Lane(A, (0,), ((),)), Lane(B, (1,), ((),))]
    for lanes, once in ((two, [0, 1]), ([Lane(A, (1,), ((0,),))], [1])):
        ran = []
        threads = Lanes(lanes, 2, ran.append, is_repeatable=True)
        for number in range(1, 4):
            threads.arrive(0)
            threads.step(10.0)
            assert sorted(ran) == sorted(number * once)
        threads.close()


def test_readers_go_on_while_a_segment_finishes_and_the_step_does_not():
    """Segment 0 on a is over for its reader on b before a is through with it."""
    has_read, said = threading.Event(), []

    def run(segment):
        said.append(("run", segment))
        if segment == 1:
            has_read.set()

    def finish(segment):
        assert segment == 1 or has_read.wait(10.0), "its reader waited for it to finish"
        said.append(("finish", segment))

    lanes = Lanes([Lane(A, (0,), ((),)), Lane(B, (1,), ((0,),))], 2, run, finish=finish)
    for _ in range(5):
        has_read.clear()
        said.clear()
        lanes.step(20.0)
        assert sorted(said) == [("finish", 0), ("finish", 1), ("run", 0), ("run", 1)]
        assert said.index(("run", 1)) < said.index(("finish", 0))
    lanes.close()


def test_what_fails_while_it_finishes_fails_the_step():
    def finish(segment):
        raise MemoryError("no room")

    lanes = Lanes([Lane(A, (0,), ((),))], 1, lambda _: None, finish=finish)
    with pytest.raises(MemoryError, match="no room"):
        lanes.step(10.0)
    lanes.close()


@either
def test_a_segment_that_fails_ends_the_step_on_all_lanes(awake):
    def run(segment):
        if segment == 1:
            raise ArithmeticError("no")

    lanes = chain(run, awake)
    with pytest.raises(ArithmeticError):
        lanes.step(10.0)
    assert lanes.close()


@either
def test_a_step_that_hangs_is_given_up(awake):
    release = threading.Event()
    lanes = chain(lambda segment: release.wait(20.0) if segment == 2 else None, awake)
    start_s = time.monotonic()
    with pytest.raises(TimeoutError, match=r"longer than 0\.2 s"):
        lanes.step(0.2)
    assert time.monotonic() - start_s < 5.0
    assert not lanes.close(timeout_s=0.05), "one thread is still inside its segment"
    release.set()
    assert lanes.close()


@either
def test_hand_over_is_noted_where_somebody_waited(awake):
    lanes = chain(lambda segment: time.sleep(0.01), awake)
    step = lanes.step(10.0)
    assert set(step.resumed_s) == {(0, "b"), (1, "a"), (2, "b")}
    for (producer, _), resumed_s in step.resumed_s.items():
        assert resumed_s >= step.end_s[producer]
    lanes.close()


@pytest.mark.parametrize(("patience_ns", "awake"), [(0, False), (10**10, True)])
def test_an_awake_lane_computes_while_it_waits_as_long_as_it_has_patience(
    monkeypatch, patience_ns, awake
):
    """In some step at least: whoever has to share its core sleeps at once, for ten steps."""
    monkeypatch.setattr(native, "PATIENCE_NS", patience_ns)
    used_s = []

    def run(segment):
        if segment == 0:
            time.sleep(0.01)
        else:
            used_s.append(time.thread_time())

    until_s, found = time.monotonic() + 60.0, not awake
    while found != awake and time.monotonic() < until_s:
        used_s.clear()
        lanes = Lanes([Lane(A, (0,), ((),)), Lane(B, (1,), ((0,),))], 2, run, awake=True)
        for _ in range(5):
            lanes.step(10.0)
        assert lanes.close()
        computed = np.diff(used_s) > 0.002
        found = bool(computed.any() if awake else computed.all())
    assert found == awake


def test_an_awake_lane_comes_back_once_the_others_have_let_go_of_the_interpreter(monkeypatch):
    """Lane 1 is between two segments for good: lane 0 waits as long as it may, and no longer."""
    most_ns = 20_000_000
    monkeypatch.setattr(waiting, "MOST_CLEAR_NS", most_ns)
    until_ns = np.array([0, ENDLESS])
    lane = AwakeLane(0, until_ns)
    assert take_for_python.signatures, "compiled before a step waits for it"
    lane.begin()

    def taken_ns():
        lock, released_ns = lane.made(), []

        def release():
            while until_ns[0] != 0:  # until it waits
                time.sleep(0.0001)
            released_ns.append(time.perf_counter_ns())
            lock.release()

        thread = threading.Thread(target=release)
        thread.start()
        assert lane.take(lock)
        taken = time.perf_counter_ns()
        thread.join()
        return taken - released_ns[0]

    assert taken_ns() >= most_ns
    assert until_ns.tolist() == [ENDLESS, ENDLESS]
    until_ns[1] = 0
    lane.compute(lambda segment: None, 7)
    assert min(taken_ns() for _ in range(20)) < most_ns, "nobody was in the interpreter"
    lane.end()
    assert until_ns.tolist() == [0, 0]


def test_a_native_lock_is_taken_at_once_or_not():
    lock = NativeLock()
    assert not lock.take_if_free()
    lock.release()
    assert lock.take_if_free() and not lock.take_if_free()


def test_threads_rest_before_other_lanes_have_their_turn():
    said = []

    def lanes_called(name):
        def rest():
            said.append((f"{name} rests", threading.current_thread().name))

        both = [Lane(A, (0,), ((),)), Lane(B, (1,), ((0,),))]
        return Lanes(both, 2, lambda segment: said.append((name, segment)), rest=rest)

    def next_are(*expected):
        """Whatever was said since, in any order."""
        found = said.copy()
        said.clear()
        return sorted(found) == sorted(expected)

    me = threading.current_thread().name
    first, second = lanes_called("first"), lanes_called("second")
    plain = chain(lambda segment: said.append(("plain", segment)))
    ran = {name: [(name, 0), (name, 1)] for name in ("first", "second")}
    # Who asks for a step rests, too.
    mine = {name: [(f"{name} rests", me)] for name in ran}
    rested = {name: [(f"{name} rests", "a"), (f"{name} rests", "b")] for name in ran}
    for _ in range(2):
        first.step(10.0)
        assert next_are(*mine["first"], *ran["first"])
    plain.step(10.0)
    assert next_are(*(("plain", segment) for segment in range(4)))
    second.step(10.0)
    assert next_are(*rested["first"], *mine["second"], *ran["second"])
    first.step(10.0)
    assert next_are(*rested["second"], *mine["first"], *ran["first"])
    Lanes.have_others_rest(time.monotonic() + 10.0)
    assert next_are(*rested["first"])
    assert first.close() and plain.close()
    second.step(10.0)
    assert next_are(*mine["second"], *ran["second"]), "what is closed, or has rested, rests no more"
    assert second.close()


def test_threads_that_cannot_rest_fail_the_next_step_of_their_own_lanes():
    def rest():
        if threading.current_thread().name == "a":
            raise ArithmeticError("no rest")

    one = [Lane(A, (0,), ((),))]
    broken = Lanes(one, 1, lambda segment: None, rest=rest)
    other = Lanes(one, 1, lambda segment: None, rest=lambda: None)
    broken.step(10.0)
    assert other.step(10.0).end_s
    for _ in range(2):
        with pytest.raises(ArithmeticError, match="no rest"):
            broken.step(10.0)
    assert broken.close() and other.close()


def test_threads_that_do_not_come_to_rest_are_given_up():
    come = threading.Event()
    one = [Lane(A, (0,), ((),))]

    def rest():
        if threading.current_thread().name == "a":
            come.wait(20.0)

    slow = Lanes(one, 1, lambda segment: None, rest=rest)
    slow.step(10.0)
    slow.rest(time.monotonic() + 0.05)
    come.set()
    with pytest.raises(TimeoutError, match="do not come to rest"):
        slow.step(10.0)
    assert slow.close()


def test_nobody_rests_in_the_middle_of_a_step():
    inside, go_on, rested = threading.Event(), threading.Event(), []

    def run(segment):
        inside.set()
        go_on.wait(20.0)

    def rest():
        if threading.current_thread().name == "a":
            rested.append(1)

    one = [Lane(A, (0,), ((),))]
    busy = Lanes(one, 1, run, rest=rest)
    other = Lanes(one, 1, lambda segment: None, rest=rest)
    with ThreadPoolExecutor(1) as pool:
        step = pool.submit(busy.step, 20.0)
        assert inside.wait(20.0)
        other.step(20.0)
        assert rested == []
        go_on.set()
        assert step.result().end_s
    assert busy.close() and other.close()


def test_pinning_to_cores_that_are_not_there_does_nothing():
    before = usable_cores()
    pin((100_000,))
    pin(())
    assert usable_cores() == before


def test_a_lane_that_fails_at_once_does_not_disturb_the_start_of_the_others():
    def run(segment):
        if segment == 0:
            raise ArithmeticError("no")

    lanes = [Lane(Device(str(i)), (i,), ((),)) for i in range(8)]
    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(300):
            threads = Lanes(lanes, len(lanes), run)
            with pytest.raises(ArithmeticError):
                threads.step(10.0)
            assert threads.close()
    finally:
        sys.setswitchinterval(interval_s)
