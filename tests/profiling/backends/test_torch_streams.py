"""Streams, events and pinned memory as asked of a GPU's library, here a small fake."""

import threading
import time
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import placement as pl
from placement.core.verb_options import RunOptions
from profiling import backends
from profiling.backends._torch import streams
from profiling.execution.execute import execute
from tests.profiling.backends.pretend import put_in_place, with_pretended, work_briefly
from tests.profiling.backends.test_torch import lanes
from tests.profiling.backends.test_torch_memories import differences, network, trained

CLOCK_AHEAD_S = 1000.0


class FakeLibrary:
    """A device library whose streams work at once, and whose clock is another than the host's."""

    def __init__(self):
        self.current, self.waits, self.worked, self.peak = None, [], [], 0
        library = self

        class Event:
            def __init__(self, enable_timing=False):
                assert enable_timing
                self.time_s = None

            def record(self, stream):
                self.time_s = time.perf_counter() + CLOCK_AHEAD_S

            def synchronize(self):
                assert self.time_s is not None, "waited for an event that was never recorded"

            def elapsed_time(self, end):
                return (end.time_s - self.time_s) * 1e3

        class Stream:
            def __init__(self, device):
                self.device = device

            def wait_event(self, event):
                event.synchronize()
                library.waits.append(self)

        self.Event, self.Stream = Event, Stream

    @contextmanager
    def stream(self, stream):
        self.current, before = stream, self.current
        self.worked.append(stream)
        yield
        self.current = before

    def current_stream(self, device):
        return self.current

    def reset_peak_memory_stats(self, device):
        self.peak = 100

    def memory_allocated(self, device):
        return 100

    def max_memory_allocated(self, device):
        return self.peak + 23


@pytest.fixture
def fake(monkeypatch):
    """Devices "pretend:N" with the streams of a fake library; memory counts as pinned if asked."""
    library, pinned = FakeLibrary(), []
    empty_like = torch.empty_like

    def any_empty_like(value, *, pin_memory=False, **more):
        made = empty_like(value, **more)
        pinned.extend([made] if pin_memory else [])
        return made

    monkeypatch.setattr(streams, "torch", SimpleNamespace(**vars(torch)))
    monkeypatch.setattr(streams.torch, "empty_like", any_empty_like)
    monkeypatch.setattr(streams.torch, "get_device_module", lambda device: library)
    places = put_in_place(monkeypatch, lambda name: streams.Streams("cpu"))
    return SimpleNamespace(library=library, pinned=pinned, places=places)


def test_training_over_streams_is_training_unplaced(fake):
    model = network("training")
    machine = with_pretended(lanes(model))
    compiled = backends.usable("torch").compile(model, machine)
    feeds = compiled.feeds(0, {})
    problem = pl.make_problem(model, machine)
    placement = problem.placement_of(np.arange(problem.num_units) % 4)
    schedule = pl.simulate(problem, placement).schedule
    expected = trained(compiled.unplaced(machine.devices[0], feeds), 1)
    program = compiled.open(schedule, feeds)
    assert not differences(trained(program, len(schedule.segments)), expected)
    assert program.peak_bytes["pretend:0"] == 23
    for place in fake.places.values():
        used = {place.compute._stream, place.inbound._stream, place.outbound._stream}
        assert len(used) == 3 and used <= set(fake.library.worked)
        assert {place.compute._stream, place.outbound._stream} <= set(fake.library.waits)
    assert len(fake.places) == 2 and fake.pinned


def test_events_become_spans_on_the_clock_of_the_host(fake):
    model = network("training")
    machine = with_pretended(lanes(model), 1)
    problem = pl.make_problem(model, machine)
    placement = problem.placement_of(np.arange(problem.num_units) % 3)
    schedule = pl.simulate(problem, placement).schedule
    run = execute(problem, schedule, RunOptions(steps=2, warmup=1), model=model, baselines=False)
    assert run.outputs_match
    spans = [s for s in run.timeline.spans if "pretend:0" in s.device]
    assert {s.kind for s in spans} == {"compute", "transfer"}
    assert all(s.start_s <= s.end_s for s in spans)
    assert all(abs(t) < CLOCK_AHEAD_S / 2 for s in spans for t in (s.start_s, s.end_s))


def test_the_peak_is_asked_for_in_the_first_steps_and_at_the_end(fake):
    """Whoever counts memory takes a while to say, so that later steps are not held up."""
    model = network("inference")
    machine = with_pretended(lanes(model), 1)
    compiled = backends.usable("torch").compile(model, machine)
    whole = compiled.unplaced(machine.devices[-1], compiled.feeds(0, {}))
    asked = []
    peak = fake.library.max_memory_allocated
    fake.library.max_memory_allocated = lambda device: asked.append(device) or peak(device)
    for _ in range(10):
        whole.run(0)
    assert 1 <= len(asked) <= 3
    assert whole.peak_bytes["pretend:0"] == 23
    fake.library.peak += 7
    whole.close()
    assert whole.peak_bytes["pretend:0"] == 30


def test_a_copy_s_seconds_and_what_holds_up_its_sender(fake, monkeypatch):
    """More bytes take longer; who sends from the host is busy for a share of it."""
    work_briefly(monkeypatch)
    host, *_, away = with_pretended(lanes(network("inference")), 1).devices
    for src, dst in ((host, away), (away, host)):
        seconds = streams.copy_seconds(src, dst, (1 << 10, 1 << 23))
        assert 0 < seconds[0] < seconds[1]
    assert 0 < streams.send_overhead(host, away, 1 << 20) <= 1
    assert streams.send_overhead(away, host, 1 << 20) == 0


def test_a_copy_that_fails_where_it_is_read_says_so(fake, monkeypatch):
    host, *_, away = with_pretended(lanes(network("inference")), 1).devices

    def fail(self, mark):
        raise RuntimeError("the stream is broken")

    monkeypatch.setattr(streams._Stream, "after", fail)
    with pytest.raises(RuntimeError, match="broken"):
        streams.copy_seconds(host, away, (1024,))


def test_no_thread_is_left_behind_where_a_copy_fails(fake, monkeypatch):
    host, *_, away = with_pretended(lanes(network("inference")), 1).devices

    def fail(value, src, dst):
        raise RuntimeError("no pinned memory is left")

    monkeypatch.setattr(streams, "copied", fail)
    before = set(threading.enumerate())
    with pytest.raises(RuntimeError, match="pinned"):
        streams.copy_seconds(host, away, (1024,))
    left = set(threading.enumerate()) - before
    for thread in left:
        thread.join(10.0)
    assert not any(thread.is_alive() for thread in left)
