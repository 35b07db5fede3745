"""What happens to a program when its threads do not come back."""

import threading

import pytest

from placement.core.machine import Device
from profiling.backends.base import Program
from profiling.devices.lanes import Lane, Lanes
from profiling.measuring import reference


class Hanging(Program):
    """Its only segment runs until it is let go."""

    def __init__(self):
        self.let_go, self.closed, self.stopped = threading.Event(), False, False

    def run(self, segment):
        self.let_go.wait(60.0)

    def outputs(self):
        return {}

    def stop(self):
        self.stopped = True

    def close(self):
        self.closed = True


@pytest.fixture
def impatient(monkeypatch):
    close = Lanes.close
    monkeypatch.setattr(Lanes, "close", lambda self: close(self, 0.05))
    monkeypatch.setattr(reference, "_abandoned", [])


def test_a_program_with_a_thread_inside_is_never_freed(impatient):
    program = Hanging()
    lanes = Lanes([Lane(Device("a"), (0,), ((),))], 1, program.run)
    with pytest.raises(RuntimeError, match="was given up"):
        reference.safe_step(lanes, program, 0.05)
    reference.release([program], [lanes])
    assert program.stopped and not program.closed and reference._abandoned == [program]
    program.let_go.set()


def test_the_unplaced_model_is_not_freed_either(impatient):
    program = Hanging()

    class Compiled:
        random_ops = ()

        def unplaced(self, device, feeds):
            return program

    with pytest.raises(RuntimeError, match="was given up"):
        reference.Expected(Compiled(), None, {}, 0.05)
    assert not program.closed and reference._abandoned == [program]
    program.let_go.set()


def test_one_that_ended_is_freed():
    program = Hanging()
    program.let_go.set()
    lanes = Lanes([Lane(Device("a"), (0,), ((),))], 1, program.run)
    lanes.step(10.0)
    reference.release([program], [lanes])
    assert program.closed
