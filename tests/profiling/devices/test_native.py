"""Hand-over between native lanes: order, times, three lanes, slots, errors, an end from outside.

The native function is one of Python's here, so that the tests see what runs.
"""

import ctypes
import inspect
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import numpy as np
import pytest

from placement.core.machine import Device
from profiling.devices import native
from profiling.devices.lanes import Lane, Lanes
from profiling.devices.lanes_compiled import LaneRecord, LaneSegments, run_step
from profiling.devices.native import NativeCalls, NativeRounds, NativeSteps
from profiling.devices.stream_lanes import StreamLanes

A, B, C = Device("a"), Device("b"), Device("c")
# For so long it is tried whether lanes stay awake: beside other tests they are seldom let.
TRIED_S = 60.0
FUNCTION = ctypes.CFUNCTYPE(ctypes.c_ssize_t, *(ctypes.c_ssize_t,) * 3)


class Calls:
    """Segments that write down their number and slot; `run` may answer with what is no zero."""

    def __init__(self, num_segments, run=lambda segment: 0, slots=1):
        self.ran, self._run = [], run
        self._function = FUNCTION(self._called)
        address = ctypes.cast(self._function, ctypes.c_void_p).value
        self.slots = [
            NativeCalls(
                address,
                np.array([[segment, slot, 7] for segment in range(num_segments)], np.int64),
                lambda status: ArithmeticError(f"status {status}"),
            )
            for slot in range(slots)
        ]

    def _called(self, segment, slot, seven):
        assert seven == 7
        self.ran.append((segment, slot))
        return self._run(segment) or 0


def forbidden(segment):
    raise AssertionError(f"segment {segment} is a native call")


def lanes_of(lanes, calls, **given):
    num = sum(len(lane.segments) for lane in lanes)
    return Lanes(lanes, num, forbidden, native=calls.slots[0], **given)


def chain(calls, **given):
    """Segments 0 and 2 on a, 1 and 3 on b, each waiting for the one before."""
    lanes = [Lane(A, (0, 2), ((), (1,))), Lane(B, (1, 3), ((0,), (2,)))]
    return lanes_of(lanes, calls, **given)


@pytest.mark.parametrize("patience_ns", [0, 1_000_000])
def test_many_small_segments_run_in_the_order_of_their_data(monkeypatch, patience_ns):
    """Sixty hand-overs a step, for waits that are over at once and for threads that sleep."""
    monkeypatch.setattr(native, "PATIENCE_NS", patience_ns)
    num = 60
    calls = Calls(num)
    both = [
        Lane(
            device, tuple(range(i, num, 2)), tuple((s - 1,) if s else () for s in range(i, num, 2))
        )
        for i, device in enumerate((A, B))
    ]
    lanes = lanes_of(both, calls)
    for number in range(3):
        step = lanes.step(60.0)
        assert [segment for segment, _ in calls.ran] == [*range(num)] * (number + 1)
        assert list(step.start_s) == sorted(step.start_s)
        assert all(a <= b for a, b in zip(step.end_s, step.start_s[1:], strict=False))
        assert step.began_s <= step.start_s[0] and step.end_s[-1] <= step.ended_s
    assert lanes.close()


@pytest.mark.parametrize(("patience_ns", "awake"), [(0, False), (10**10, True)])
def test_a_lane_that_is_done_stays_awake_until_all_are(monkeypatch, patience_ns, awake):
    """In some step at least: whoever has to share its core sleeps at once, for ten steps."""
    monkeypatch.setattr(native, "PATIENCE_NS", patience_ns)
    calls = Calls(2, lambda segment: time.sleep(0.005 * segment))
    lanes = NativeSteps([Lane(A, (0,), ((),)), Lane(B, (1,), ((),))], calls.slots[0])
    stayed, until_s = not awake, time.monotonic() + TRIED_S
    with ThreadPoolExecutor(1) as pool:
        while stayed != awake and time.monotonic() < until_s:
            other = pool.submit(lanes.run, 1)
            lanes.run(0)
            returned_s = time.perf_counter()
            assert other.result()
            stayed = returned_s >= lanes.by_lane[1].record.end_s[0]
    assert stayed == awake


@pytest.mark.parametrize(("patience_ns", "together"), [(0, False), (10**10, True)])
def test_lanes_begin_when_all_are_awake(monkeypatch, patience_ns, together):
    """In some step at least: whoever has to share its core does not wait for the others."""
    monkeypatch.setattr(native, "PATIENCE_NS", patience_ns)
    lanes = NativeSteps([Lane(A, (0,), ((),)), Lane(B, (1,), ((),))], Calls(2).slots[0])
    found, until_s = not together, time.monotonic() + TRIED_S
    with ThreadPoolExecutor(1) as pool:
        while found != together and time.monotonic() < until_s:
            met = lanes._met[0]
            other = pool.submit(lanes.run, 0)
            while lanes._met[0] == met:
                time.sleep(0.001)
            time.sleep(0.005)
            called_s = time.perf_counter()
            assert lanes.run(1) and other.result()
            began_s, began_last_s = (lane.bounds_s[0] for lane in lanes.by_lane)
            assert called_s <= began_last_s
            found = called_s <= began_s
    assert found == together
    assert all(lane.bounds_s[0] <= lane.record.start_s[0] for lane in lanes.by_lane)


def test_a_step_takes_the_arrays_of_a_lane_in_their_order():
    """They are given one by one, and two of one type might change places unseen."""
    names = list(inspect.signature(run_step.py_func).parameters)
    fields = [*LaneSegments._fields, *LaneRecord._fields]
    assert names[: len(fields)] == fields
    assert names[len(fields) : len(fields) + 2] == ["functions", "over"]


def test_times_are_those_of_the_interpreters_clock():
    lanes = chain(Calls(4, lambda segment: time.sleep(0.002)))
    before_s = time.perf_counter()
    step = lanes.step(10.0)
    assert before_s <= step.began_s and step.ended_s <= time.perf_counter()
    assert min(b - a for a, b in zip(step.start_s, step.end_s, strict=True)) >= 0.002
    # A lane whose thread came too late has not waited.
    assert set(step.resumed_s) <= {(0, "b"), (1, "a"), (2, "b")}
    for (producer, _), resumed_s in step.resumed_s.items():
        assert step.end_s[producer] <= resumed_s <= step.start_s[producer + 1]
    lanes.close()


def test_three_lanes_with_one_that_all_wait_for_and_one_that_waits_for_all():
    three = (
        Lane(A, (0, 3), ((), (1, 2))),
        Lane(B, (1,), ((0,),)),
        Lane(C, (2, 4), ((0,), (3,))),
    )
    calls = Calls(5)
    lanes = lanes_of(three, calls)
    for number in range(50):
        lanes.step(10.0)
        ran = [segment for segment, _ in calls.ran[5 * number :]]
        assert ran[0] == 0 and {*ran[1:3]} == {1, 2} and ran[3:] == [3, 4]
    assert lanes.close()


def test_a_segment_that_fails_ends_the_step_on_all_lanes():
    lanes = chain(Calls(4, lambda segment: 5 * (segment == 1)))
    with pytest.raises(ArithmeticError, match="status 5"):
        lanes.step(10.0)
    assert lanes.close()


def test_a_short_step_counts_once_others_are_over_on_all_lanes(monkeypatch):
    """The first one is taken for long; the last segment is late, and all wait for it."""
    monkeypatch.setattr("profiling.devices.lanes.SHORT_S", 10.0)
    # Nobody stays at the places where lanes may meet, so it is the barrier that holds them.
    monkeypatch.setattr(native, "PATIENCE_NS", 0)
    over_s = []

    def late(segment):
        time.sleep(0.002 * (segment == 3))
        over_s.append(time.perf_counter())

    calls = Calls(4, late)
    lanes = chain(calls, is_repeatable=True)
    lanes.step(10.0)
    assert [segment for segment, _ in calls.ran] == [0, 1, 2, 3]
    for _ in range(20):
        calls.ran.clear()
        over_s.clear()
        step = lanes.step(10.0)
        assert [segment for segment, _ in calls.ran] == [0, 1, 2, 3] * 3
        assert over_s[7] <= step.began_s <= min(step.start_s)
        assert all(a >= b for a, b in zip(step.end_s, over_s[8:], strict=True))
    assert lanes.close()


@pytest.mark.parametrize(("is_repeatable", "short_s"), [(False, 10.0), (True, 0.0)])
def test_long_steps_and_what_may_not_run_again_run_once(monkeypatch, is_repeatable, short_s):
    monkeypatch.setattr("profiling.devices.lanes.SHORT_S", short_s)
    calls = Calls(4)
    lanes = chain(calls, is_repeatable=is_repeatable)
    for number in range(1, 4):
        lanes.step(10.0)
        assert len(calls.ran) == 4 * number
    lanes.close()


def test_what_fails_or_hangs_before_it_counts_ends_the_step(monkeypatch):
    monkeypatch.setattr("profiling.devices.lanes.SHORT_S", 10.0)
    calls = Calls(4, lambda segment: 5 * (segment == 3 and len(calls.ran) > 4))
    lanes = chain(calls, is_repeatable=True)
    lanes.step(10.0)
    with pytest.raises(ArithmeticError, match="status 5"):
        lanes.step(10.0)
    assert len(calls.ran) == 8 and lanes.close()

    release, waits = threading.Event(), lambda segment: segment == 3 and len(hanging.ran) > 4
    hanging = Calls(4, lambda segment: release.wait(60.0) and 0 if waits(segment) else 0)
    lanes = chain(hanging, is_repeatable=True)
    lanes.step(10.0)
    with pytest.raises(TimeoutError, match="longer than 3 s"):
        lanes.step(3.0)
    assert not lanes.close(timeout_s=0.05), "one thread is still inside its segment"
    release.set()
    assert lanes.close() and len(hanging.ran) == 8


def test_a_step_that_hangs_is_given_up():
    release = threading.Event()
    lanes = chain(Calls(4, lambda segment: release.wait(20.0) and 0 if segment == 2 else 0))
    with pytest.raises(TimeoutError, match=r"longer than 0\.2 s"):
        lanes.step(0.2)
    assert not lanes.close(timeout_s=0.05), "one thread is still inside its segment"
    release.set()
    assert lanes.close()


@contextmanager
def ended(rounds):
    """Whatever fails, no thread is left that waits for a sample."""
    try:
        yield
    finally:
        rounds.stop()


def begin(rounds, *slots):
    for go in rounds.go:
        for slot in slots:
            go[slot].release()


def test_rounds_pass_over_samples_that_are_not_there_and_take_each_its_slot():
    calls = Calls(3, slots=2)
    rounds = NativeRounds([Lane(A, (0, 1, 2), ((), (), ()))], (0, 1, 1), calls.slots)
    rounds.limit[0] = 3
    begin(rounds, 0, 1)
    assert rounds.run(0, 0, 2) == 2
    first, second, third = [(0, 0)], [(0, 1), (1, 0), (2, 0)], [(0, 0), (1, 1), (2, 1)]
    assert calls.ran == [*first, *second]
    assert rounds.done[0][0].acquire(timeout=0) and not rounds.done[0][1].acquire(timeout=0)
    begin(rounds, 0)
    # The third sample's last round is the fourth; of what was asked for beyond nothing is left.
    assert rounds.run(0, 2, 9) == 2
    assert calls.ran == [*first, *second, *third, (1, 0), (2, 0)]
    assert rounds.done[0][1].acquire(timeout=0) and rounds.done[0][0].acquire(timeout=0)
    start_s, end_s = rounds.times_s(0, range(4)).transpose(2, 0, 1)
    ran = np.array([[True, False, False], [True] * 3, [True] * 3, [False, True, True]])
    order = np.stack([start_s[ran], end_s[ran]], axis=1).ravel()
    assert list(order) == sorted(order) and len(order) == 2 * 9
    assert rounds.ended_s[0].tolist() == [end_s[3, 2], end_s[2, 2]]


def test_a_sample_is_waited_for_until_it_begins_and_no_longer_than_there_are_any():
    calls = Calls(1, slots=3)
    rounds = NativeRounds([Lane(A, (0,), ((),))], (0,), calls.slots)
    with ThreadPoolExecutor(1) as pool, ended(rounds):
        running = pool.submit(rounds.run, 0, 0)
        for sample in range(5):
            assert not rounds.done[0][sample % 3].acquire(timeout=0.02) and not running.done()
            begin(rounds, sample % 3)
            assert rounds.done[0][sample % 3].acquire(timeout=20.0)
        # The lane waits for the sixth, which there is not.
        rounds.limit[0] = 5
        begin(rounds, 5 % 3)
        assert running.result(20.0) == 5
    assert calls.ran == [(0, slot) for slot in (0, 1, 2, 0, 1)]


def test_two_lanes_stream_in_the_order_of_their_data():
    """Each sample goes from a to b and back to a, three of them at a time."""
    calls = Calls(3, slots=5)
    both = [Lane(A, (0, 2), ((), (1,))), Lane(B, (1,), ((0,),))]
    rounds, num = NativeRounds(both, (0, 1, 2), calls.slots), 400
    with ThreadPoolExecutor(2) as pool, ended(rounds):
        running = [pool.submit(_all_rounds, rounds, lane) for lane in (0, 1)]
        for sample in range(num + 5):
            if sample >= 5:
                for done in rounds.done:
                    assert done[sample % 5].acquire(timeout=20.0)
            if sample < num:
                begin(rounds, sample % 5)
            elif sample == num:
                rounds.limit[0] = num
                begin(rounds, num % 5)
        assert [lane.result(20.0) for lane in running] == [num + 2, num + 1]
    for slot in range(5):
        ran = [segment for segment, where in calls.ran if where == slot]
        assert ran == [0, 1, 2] * (num // 5)


def _all_rounds(rounds, lane):
    number = 0
    while num_run := rounds.run(lane, number):
        number += num_run
    return number


def test_what_fails_in_a_round_is_told_and_a_stop_ends_the_rest():
    calls = Calls(2, lambda segment: 3 if segment == 1 else 0, slots=1)
    rounds = NativeRounds([Lane(A, (0, 1), ((), ()))], (0, 0), calls.slots)
    begin(rounds, 0)
    with pytest.raises(ArithmeticError, match="status 3"):
        rounds.run(0, 0)
    assert calls.ran == [(0, 0), (1, 0)]
    again = NativeRounds([Lane(A, (0,), ((),))], (0,), calls.slots)
    with ThreadPoolExecutor(1) as pool, ended(again):
        running = pool.submit(again.run, 0, 0)
        begin(again, 0)
        assert again.done[0][0].acquire(timeout=20.0)
        # It waits for the second, and tells of the first.
        assert not again.done[0][0].acquire(timeout=0.02)
        again.stop()
        assert running.result(20.0) == 1
    assert again.run(0, 1) == 0 and len(calls.ran) == 3


def streaming(calls, num, depth=5, **given):
    """Lanes of a pipeline from a to b and back to a, of which each sample is awaited."""
    both = [Lane(A, (0, 2), ((), (1,))), Lane(B, (1,), ((0,),))]
    watched = range(num)
    lanes = StreamLanes(
        both,
        (0, 1, 2),
        depth,
        lambda segment, slot: forbidden(segment),
        native=calls.slots,
        watched=watched,
        **given,
    )
    return closing(lanes)


def test_whoever_awaits_samples_is_told_what_each_of_them_did():
    """By several threads, each with the samples of its slot, as hosts of a cluster are asked."""
    num, depth, turn = 200, 5, threading.Condition()
    begun = []

    def all_of(slot):
        for sample in range(slot, num, depth):
            with turn:
                assert turn.wait_for(lambda: len(begun) == sample, 20.0)  # noqa: B023
                lanes.begin(sample)
                begun.append(sample)
                if len(begun) == num:
                    lanes.end(num)
                turn.notify_all()
            assert lanes.completed_s(sample, 20.0) == ended_s(sample)

    def ended_s(sample):
        told[sample] = {ran.segment: (ran.start_s, ran.end_s) for ran in lanes.ran_by(sample)}
        return told[sample][2][1]

    told = {}
    calls = Calls(3, slots=depth)
    with streaming(calls, num) as lanes:
        with ThreadPoolExecutor(depth) as pool:
            for slot in [pool.submit(all_of, slot) for slot in range(depth)]:
                slot.result(60.0)
        end_s = time.monotonic() + 20.0
        while any(t.is_alive() for t in lanes._threads) and time.monotonic() < end_s:
            time.sleep(0.01)
        assert [len(each) for each in lanes.busy_s.values()] == [num + 2, num + 1]
    assert sorted(told) == list(range(num)) and all(len(each) == 3 for each in told.values())
    for sample, each in told.items():
        times = [second for segment in (0, 1, 2) for second in each[segment]]
        assert times == sorted(times), sample
        assert sample == 0 or all(told[sample - 1][i][1] <= each[i][0] for i in range(3)), sample
    for lane, segments in (("a", (0, 2)), ("b", (1,))):
        took_s = sum(each[i][1] - each[i][0] for each in told.values() for i in segments)
        assert sum(lanes.busy_s[lane]) == pytest.approx(took_s)


def test_a_segment_of_a_pipeline_that_fails_ends_it_with_its_error():
    seen = []
    calls = Calls(3, lambda segment: seen.append(segment) or (9 if len(seen) == 8 else 0), slots=5)
    with streaming(calls, 0) as lanes:
        for sample in range(5):
            lanes.begin(sample)
        with pytest.raises(ArithmeticError, match="status 9"):
            for sample in range(5):
                lanes.completed_s(sample, 20.0)
        assert lanes.is_over


def test_who_waits_is_let_go_by_a_stop():
    lanes = NativeSteps([Lane(A, (0,), ((),)), Lane(B, (1,), ((0,),))], Calls(2).slots[0])
    said = []
    waiting = threading.Thread(target=lambda: said.append(lanes.run(1)), daemon=True)
    waiting.start()
    lanes.stop()
    waiting.join(20.0)
    assert said == [False] and not lanes.run(0)


def test_lanes_share_cores_where_they_are_pinned_to_the_same_or_have_too_few(monkeypatch):
    monkeypatch.setattr(native, "usable_cores", lambda: (0, 1, 2))
    pinned = [Device(f"cpu:{i}", core_ids=(i,)) for i in range(4)]
    assert native.share_cores(pinned[:3]) == native.share_cores([A, B, C, A]) == ""
    assert native.share_cores([Device("all", cores=3)]) == ""
    assert native.share_cores(pinned) == "4 lanes of 4 threads share 3 cores"
    wide = Device("wide", cores=2, core_ids=(1, 2))
    assert native.share_cores([wide, pinned[0]]) == ""
    assert native.share_cores([A, wide, pinned[0]]) == "3 lanes of 4 threads share 3 cores"
    assert native.share_cores([wide, pinned[2]]) == "wide and cpu:2 share core 2"


def test_an_interpreter_without_a_clock_is_told_of(monkeypatch):
    assert native.why_not() == ""
    monkeypatch.setattr(ctypes, "pythonapi", object())
    assert native.why_not() == (
        "this interpreter does not offer its locks and its clock to native code"
    )
