"""Simulation of one step: a problem and a schedule give a predicted timeline.

Each device runs its segments in the schedule's order, each as soon as the device is free and its
inputs have arrived; a segment's values appear when it ends. A link is a first-in first-out channel
for each direction, independent of compute; a tensor crosses once per destination device.
"""

import heapq

from placement._memory import peak_bytes
from placement._tasks import Tasks, Times, lower
from placement.core.problem import Problem
from placement.core.schedule import Schedule
from placement.core.timeline import Span, Timeline


def simulate(problem: Problem, schedule: Schedule) -> Timeline:
    """Predicted timeline of one step, with spans in order of their start."""
    tasks = lower(problem, schedule)
    times = run_tasks(problem, tasks)
    peaks = peak_bytes(problem, schedule, tasks, times)
    names = [d.name for d in problem.machine.devices]
    spans = spans_of(problem, schedule, tasks, times)
    return Timeline(spans, times.step_s, "predicted", dict(zip(names, peaks, strict=True)))


def spans_of(problem: Problem, schedule: Schedule, tasks: Tasks, times: Times) -> tuple[Span, ...]:
    """Simulated times as spans in order of their start, each with those that had to end before."""
    names = [d.name for d in problem.machine.devices]
    drafts: list[tuple[float, int, int]] = [(t, 0, s) for s, t in enumerate(times.start_s)]
    drafts += [(t, 1, i) for i, t in enumerate(times.sent_s)]
    drafts.sort(key=lambda d: (d[0], -d[1], d[2]))
    position = {(kind, i): p for p, (_, kind, i) in enumerate(drafts)}
    before = {s: lane[i - 1] for lane in tasks.lanes for i, s in enumerate(lane) if i}
    spans = []
    for start_s, kind, i in drafts:
        if kind == 0:
            after = [(0, before[i])] if i in before else []
            after += [(1, r) for r in tasks.reads[i]]
            after += [(0, s) for s in tasks.local_reads[i] if s != before.get(i)]
            name, device = schedule.segments[i].kernels[0], names[tasks.device[i]]
            span = ("compute", name, device, times.end_s[i], i, 0)
        else:
            move = tasks.transfers[i]
            after = [(0, move.segment)] if move.segment >= 0 else []
            after += [(1, times.waited_for[i])] if times.waited_for[i] >= 0 else []
            tensor = problem.kernels.tensors[move.tensor]
            device = f"{names[move.src]}->{names[move.dst]}"
            span = (
                "transfer",
                tensor.name,
                device,
                times.arrived_s[i],
                move.segment,
                tensor.num_bytes,
            )
        what, name, device, end_s, segment, num_bytes = span
        links = tuple(position[a] for a in after)
        spans.append(Span(what, name, device, start_s, end_s, segment, num_bytes, links))
    return tuple(spans)


def step_time_s(problem: Problem, schedule: Schedule) -> float:
    """Predicted seconds of one step alone: what searches ask for."""
    return run_tasks(problem, lower(problem, schedule)).step_s


def run_tasks(problem: Problem, tasks: Tasks) -> Times:
    """Event-driven run of the tasks; a ValueError if segments wait for each other in a cycle."""
    run = _Run(problem, tasks)
    for i in tasks.at_start:
        run.send(i, 0.0)
    for d in range(problem.num_devices):
        run.try_start(d, 0.0)
    while run.events:
        now, kind, i, version = heapq.heappop(run.events)
        if kind == _ENDED:
            if run.version[tasks.device[i]] == version:
                run.finish(i, now)
        else:
            run.arrive(i)
            run.try_start(tasks.transfers[i].dst, now)
    if run.num_ended < len(tasks.device):
        raise ValueError("The segments of this schedule wait for each other in a cycle.")
    return run.times()


_ENDED, _ARRIVED = 0, 1


class _Run:
    """State of a simulation. A device's `version` grows when its end is put off by contention."""

    def __init__(self, problem: Problem, tasks: Tasks) -> None:
        self.tasks = tasks
        self.contention = problem.costs.contention
        self.link_contention = problem.link_contention
        self.on_host = [d.on_host for d in problem.machine.devices]
        num_tasks, num_moves = len(tasks.device), len(tasks.transfers)
        self.events: list[tuple[float, int, int, int]] = []
        self.missing = [len(r) for r in tasks.reads]
        self.readers: list[list[int]] = [[] for _ in range(num_moves)]
        for s, reads in enumerate(tasks.reads):
            for i in reads:
                self.readers[i].append(s)
        self.next = [0] * problem.num_devices
        self.running = [-1] * problem.num_devices
        self.ends = [0.0] * problem.num_devices
        self.version = [0] * problem.num_devices
        self.rate = 1.0
        self.start_s, self.end_s = [0.0] * num_tasks, [0.0] * num_tasks
        self.sent_s, self.arrived_s = [0.0] * num_moves, [0.0] * num_moves
        self.waited_for = [-1] * num_moves
        self.last_on_link: dict[tuple[int, int], int] = {}
        self.num_ended = 0

    def send(self, i: int, now: float) -> None:
        move = self.tasks.transfers[i]
        start = now
        last = self.last_on_link.get((move.src, move.dst), -1)
        if self.link_contention and last >= 0 and self.arrived_s[last] > now:
            start = self.arrived_s[last]
            self.waited_for[i] = last
        self.last_on_link[move.src, move.dst] = i
        self.sent_s[i], self.arrived_s[i] = start, start + move.duration_s
        heapq.heappush(self.events, (self.arrived_s[i], _ARRIVED, i, 0))

    def arrive(self, i: int) -> None:
        for s in self.readers[i]:
            self.missing[s] -= 1

    def try_start(self, d: int, now: float) -> None:
        lane = self.tasks.lanes[d]
        if self.running[d] >= 0 or self.next[d] == len(lane):
            return
        s = lane[self.next[d]]
        if self.missing[s]:
            return
        self.next[d] += 1
        self.running[d] = s
        self.start_s[s] = now
        rate = self.rate if self.on_host[d] else 1.0
        self.ends[d] = now + self.tasks.work_s[s] / rate
        self._push(d)
        if self.on_host[d]:
            self._share(now)

    def finish(self, s: int, now: float) -> None:
        d = self.tasks.device[s]
        self.running[d] = -1
        self.end_s[s] = now
        self.num_ended += 1
        for i in self.tasks.sends[s]:
            self.send(i, now)
        self.try_start(d, now)
        if self.on_host[d]:
            self._share(now)

    def _push(self, d: int) -> None:
        self.version[d] += 1
        heapq.heappush(self.events, (self.ends[d], _ENDED, self.running[d], self.version[d]))

    def _share(self, now: float) -> None:
        """Slow down or speed up what runs on the host to the number of its busy devices."""
        if self.contention == 0.0:
            return
        busy = [d for d, s in enumerate(self.running) if s >= 0 and self.on_host[d]]
        rate = 1.0 / (1.0 + self.contention * max(0, len(busy) - 1))
        if rate != self.rate:
            for d in busy:
                self.ends[d] = now + (self.ends[d] - now) * self.rate / rate
                self._push(d)
            self.rate = rate

    def times(self) -> Times:
        step_s = max((*self.end_s, *self.arrived_s), default=0.0)
        return Times(
            tuple(self.start_s),
            tuple(self.end_s),
            tuple(self.sent_s),
            tuple(self.arrived_s),
            tuple(self.waited_for),
            step_s,
        )
