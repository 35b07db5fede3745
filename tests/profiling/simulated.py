"""A compiled model whose steps are exactly as the simulator says."""

from dataclasses import replace

import numpy as np

from placement.core.problem import Problem
from placement.simulator.executions import lower
from placement.simulator.simulate import times_of
from profiling.devices.lanes import Step


def of_one_kind(problem: Problem, crossing_s: float) -> Problem:
    """The problem on two equal CPUs without overheads, between which any value takes as long."""
    devices = tuple(replace(d, kind="cpu") for d in problem.machine.devices)
    costs = replace(
        problem.costs,
        compute_s=1e-4 * np.repeat(problem.costs.compute_s[:, :1], 2, axis=1),
        call_s=np.zeros(2),
        latency_s=crossing_s * (1.0 - np.eye(2)),
        s_per_byte=np.zeros((2, 2)),
    )
    machine = replace(problem.machine, devices=devices)
    return replace(problem, machine=machine, costs=costs)


class Idle:
    """What a program has besides."""

    native, rest, is_repeatable = None, None, False

    def device_times(self):
        return None

    def stop(self):
        pass

    def close(self):
        return True


class Simulated:
    """A problem's kernels, compiled for devices whose steps are as the simulator says."""

    renewals = ()
    keeps_order = True

    def __init__(self, problem):
        self.problem, self.kernels = problem, problem.kernels

    def exchanges(self, tensor):
        return True

    def open(self, schedule, feeds):
        return SimulatedProgram(self.problem, schedule)


class SimulatedProgram(Idle):
    def __init__(self, problem, schedule):
        self._problem, self._schedule, self._resumed_s = problem, schedule, {}

    def carried(self, lanes, num_segments):
        problem, schedule = self._problem, self._schedule
        tasks = lower(problem, schedule)
        self._times = times_of(problem, schedule, tasks)
        for lane in lanes:
            for k, awaits in zip(lane.segments, lane.awaits, strict=True):
                for maker in awaits:
                    on = schedule.segments[k].device
                    arrived_s = max(
                        self._times.arrived_s[i]
                        for i, move in enumerate(tasks.transfers)
                        if move.segment == maker and move.dst == problem.machine.index[on]
                    )
                    if arrived_s >= self._times.start_s[k] - 1e-9:
                        self._resumed_s[maker, on] = arrived_s
        return self

    def step(self, timeout_s):
        times = self._times
        return Step(0.0, times.step_s, times.start_s, times.end_s, self._resumed_s)
