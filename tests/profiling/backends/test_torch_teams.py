"""Threads that OpenMP keeps for one that has computed with several, and whoever lets go of them."""

import os
import threading
import time

import numpy as np
import pytest
import torch
from torch import nn

import placement as pl
from placement.core.machine import Device, Machine
from placement.core.schedule import Schedule, Segment
from profiling import backends
from profiling.backends._torch.run import use_threads
from profiling.backends._torch.teams import _pause, let_go
from profiling.devices.lanes import Lane
from profiling.measuring.reference import release

GNU = pytest.mark.skipif(_pause() is None, reason="the library of threads is not GNU's")
LARGE = 1 << 20


def threads():
    """Of this process, by the system's numbers."""
    return set(os.listdir("/proc/self/task"))


def ended(some):
    """Whether all of these threads have ended; those that were told to may take a moment."""
    until_s = time.monotonic() + 20.0
    while some & threads() and time.monotonic() < until_s:
        time.sleep(0.01)
    return not some & threads()


def in_a_thread(compute):
    """What a new thread finds, or the exception that it meets."""
    found = []

    def run():
        try:
            found.append(compute())
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if isinstance(found[0], BaseException):
        raise found[0]
    return found[0]


@GNU
def test_a_thread_keeps_its_team_until_it_lets_go():
    def compute():
        use_threads(2)
        x = torch.ones(LARGE)
        let_go()
        before = threads()
        made = x + x
        team = threads() - before
        let_go()
        gone = ended(team)
        # And computes with a new one.
        return bool(team), gone, torch.equal(made, x * 2)

    assert in_a_thread(compute) == (True, True, True)


def program_of(cores):
    """A network on one device, placed and whole."""
    model = pl.from_torch(nn.Tanh(), torch.zeros(LARGE))
    device = Device("cpu:0", "cpu", "torch", "cpu", cores=cores)
    compiled = backends.compiled(model, Machine("one", (device,), ()))
    feeds = compiled.feeds(0, {})
    names = tuple(op.name for op in model.graph.ops)
    schedule = Schedule((Segment("cpu:0", names),))
    return compiled.open(schedule, feeds), compiled.unplaced(device, feeds), device


@pytest.mark.parametrize("cores", [1, 2])
def test_what_computes_with_several_threads_lets_go_of_them(cores):
    for program in program_of(cores)[:2]:
        assert program.rest is (let_go if cores > 1 else None)
        program.close()


@GNU
def test_at_any_time_only_one_program_keeps_a_team():
    """Steps of two programs by turns, from a thread that has computed with a team."""
    placed, whole, device = program_of(2)
    lanes = [program.carried([Lane(device, (0,), ((),))], 1) for program in (placed, whole)]

    def compute():
        use_threads(2)
        let_go()
        before = threads()
        torch.ones(LARGE) + torch.ones(LARGE)
        team, before = threads() - before, threads()
        turns = [bool(team)]
        for lane in 3 * lanes:
            lane.step(60.0)
            # Whoever had a team has let go of it for the one of these lanes.
            turns.append(ended(team))
            team, before = threads() - before, threads()
            turns.append(bool(team))
        return turns

    try:
        assert all(in_a_thread(compute))
        outputs = [next(iter(program.outputs().values())) for program in (placed, whole)]
        assert np.array_equal(*outputs)
    finally:
        release([placed, whole], lanes)
