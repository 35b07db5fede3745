"""Worker threads: order, hand-over, errors and hanging steps."""

import sys
import threading
import time

import pytest

from placement.core.machine import Device
from profiling.devices.cores import usable_cores
from profiling.devices.lanes import Lane, Lanes, pin

A, B = Device("a"), Device("b")


def chain(run):
    """Segments 0 and 2 on a, 1 and 3 on b, each waiting for the one before."""
    return Lanes([Lane(A, (0, 2), ((), (1,))), Lane(B, (1, 3), ((0,), (2,)))], 4, run)


def test_segments_run_in_the_order_of_their_data():
    ran = []
    lanes = chain(ran.append)
    for number in range(20):
        step = lanes.step(10.0)
        assert ran == [0, 1, 2, 3] * (number + 1)
        assert list(step.start_s) == sorted(step.start_s)
        assert all(a <= b for a, b in zip(step.end_s, step.start_s[1:], strict=False))
        assert step.began_s <= step.start_s[0] and step.end_s[3] <= step.ended_s
    assert lanes.close()


def test_one_producer_wakes_every_device_once():
    three = (Lane(A, (0,), ((),)), Lane(B, (1, 2), ((0,), ())), Lane(Device("c"), (3,), ((0,),)))
    ran = []
    lanes = Lanes(three, 4, ran.append)
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


def test_a_segment_that_fails_ends_the_step_on_all_lanes():
    def run(segment):
        if segment == 1:
            raise ArithmeticError("no")

    lanes = chain(run)
    with pytest.raises(ArithmeticError):
        lanes.step(10.0)
    assert lanes.close()


def test_a_step_that_hangs_is_given_up():
    release = threading.Event()
    lanes = chain(lambda segment: release.wait(20.0) if segment == 2 else None)
    start_s = time.monotonic()
    with pytest.raises(TimeoutError, match=r"longer than 0\.2 s"):
        lanes.step(0.2)
    assert time.monotonic() - start_s < 5.0
    assert not lanes.close(timeout_s=0.05), "one thread is still inside its segment"
    release.set()
    assert lanes.close()


def test_hand_over_is_noted_where_somebody_waited():
    lanes = chain(lambda segment: time.sleep(0.01))
    step = lanes.step(10.0)
    assert set(step.resumed_s) == {(0, "b"), (1, "a"), (2, "b")}
    for (producer, _), resumed_s in step.resumed_s.items():
        assert resumed_s >= step.end_s[producer]
    lanes.close()


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
