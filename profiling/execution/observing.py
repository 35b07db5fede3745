"""What each part of a schedule took, over all steps of a run."""

from collections.abc import Sequence

import numpy as np

from placement.core.costs import Floats
from placement.core.machine import Machine
from placement.core.schedule import Schedule
from placement.core.timeline import Observed, PartTime
from placement.simulator.lowering import Tasks
from profiling.devices.lanes import Step


def observed(schedule: Schedule, machine: Machine, tasks: Tasks, steps: Sequence[Step]) -> Observed:
    """Seconds of segments and of the waits before them."""
    began_s = np.array([[step.began_s] for step in steps])
    start_s = np.array([step.start_s for step in steps]) - began_s
    end_s = np.array([step.end_s for step in steps]) - began_s
    return Observed(
        num_steps=len(steps),
        computes=_parts(end_s - start_s),
        waits=_parts(start_s - _ready_s(tasks, end_s)),
        beside=tuple(_beside(machine, tasks, start_s, end_s).mean(axis=0).tolist()),
    )


def _parts(seconds: Floats) -> tuple[PartTime, ...]:
    """The columns of an array (steps, segments)."""
    # Clocks of accelerators may be a little off.
    rows = np.percentile(np.maximum(seconds, 0.0), (50, 5, 95), axis=0).T.tolist()
    return tuple(PartTime(*row) for row in rows)


def _ready_s(tasks: Tasks, end_s: Floats) -> Floats:
    """When all that a segment reads was made and its device was free (steps, segments)."""
    ready_s = np.zeros_like(end_s)
    before = {s: lane[i - 1] for lane in tasks.lanes for i, s in enumerate(lane) if i}
    for s in range(end_s.shape[1]):
        makers = {tasks.transfers[i].segment for i in tasks.reads[s]} - {-1}
        makers |= {*tasks.local_reads[s], *([before[s]] if s in before else [])}
        if makers:
            ready_s[:, s] = end_s[:, sorted(makers)].max(axis=1)
    return ready_s


def _beside(machine: Machine, tasks: Tasks, start_s: Floats, end_s: Floats) -> Floats:
    """How many other host devices compute while a segment does (steps, segments), on average."""
    found = np.zeros_like(start_s)
    device = np.array(tasks.device)
    on_host = [d for d, each in enumerate(machine.devices) if each.on_host and tasks.lanes[d]]
    for d in on_host:
        own, others = list(tasks.lanes[d]), np.isin(device, [o for o in on_host if o != d])
        for step in range(start_s.shape[0]):
            # Seconds that this device has computed until each of its borders.
            borders = np.stack([start_s[step, own], end_s[step, own]], axis=1).ravel()
            lasts = np.stack([np.zeros(len(own)), end_s[step, own] - start_s[step, own]], axis=1)
            done_s = np.cumsum(lasts.ravel())
            until = np.interp(end_s[step, others], borders, done_s)
            found[step, others] += until - np.interp(start_s[step, others], borders, done_s)
    lasts_s = end_s - start_s
    shares = np.divide(found, lasts_s, out=np.zeros_like(found), where=lasts_s > 0)
    return np.maximum(shares, 0.0)
