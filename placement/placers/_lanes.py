"""State of a list scheduler: what each device is busy with, holds and has received so far."""

import bisect
import itertools
import math

import numpy as np

from placement._tasks import host_of
from placement.core.problem import Problem
from placement.order import by_priority


class Lanes:
    """Kernels put on devices one by one, in an order that respects data.

    A tensor is sent once per device; with link contention it waits for its link. Under execution
    "segment" a kernel that reads from another device pays for the call that it starts. Memory is
    followed as in Baechi's m-ETF: weights stay, a value goes when all its readers are scheduled.
    """

    def __init__(self, problem: Problem, *, insertion: bool) -> None:
        self.problem = problem
        self.insertion = insertion
        self.device_of_unit = [-1] * problem.num_units
        num_kernels, num_devices = problem.costs.compute_s.shape
        self.compute_s = problem.costs.compute_s.tolist()
        self.call_s = (
            problem.costs.call_s.tolist() if problem.execution == "segment" else [0.0] * num_devices
        )
        self.start_s = [0.0] * num_kernels
        self.end_s = [0.0] * num_kernels
        self.device = [-1] * num_kernels
        self.busy: list[list[tuple[float, float]]] = [[] for _ in range(num_devices)]
        self.arrival_s: dict[tuple[int, int], float] = {}
        self.link_free_s: dict[tuple[int, int], float] = {}
        self.held_bytes = [0.0] * num_devices
        self.unread = np.diff(problem.kernels.arrays.consumer_ptr).tolist()
        arrays = problem.kernels.arrays
        self._in = _rows(arrays.in_ptr, arrays.in_tensors)
        self._out = _rows(arrays.out_ptr, arrays.out_tensors)
        self._producer = arrays.producer.tolist()
        self._bytes = arrays.tensor_bytes.tolist()
        self._params = arrays.param_bytes.tolist()
        self._is_output = arrays.is_output.tolist()
        self._holders: dict[int, list[int]] = {}
        self._host = host_of(problem)
        self._on_host = [d.on_host for d in problem.machine.devices]

    def candidates(self, unit: int) -> list[int]:
        """Devices that may run a unit and have room for it; the roomiest if none has."""
        problem = self.problem
        allowed = [int(d) for d in np.flatnonzero(problem.allowed[unit])]
        params = sum(self._params[k] for k in problem.kernels_of_unit[unit])
        needed = params
        if problem.memory_model == "live":
            needed += sum(
                self._bytes[t] for k in problem.kernels_of_unit[unit] for t in self._out[k]
            )
        room = [self._room(d) for d in allowed]
        fitting = [d for d, r in zip(allowed, room, strict=True) if r >= needed]
        return fitting or [allowed[int(np.argmax(room))]]

    def _room(self, d: int) -> float:
        limit = self.problem.machine.devices[d].memory_bytes
        return math.inf if limit is None else limit - self.held_bytes[d]

    def rest_of_unit_s(self, unit: int, k: int, d: int) -> float:
        """Compute that device d takes on with the other kernels of a unit when it takes k."""
        if self.device_of_unit[unit] >= 0:
            return 0.0
        others = [j for j in self.problem.kernels_of_unit[unit] if j != k]
        return math.fsum(self.compute_s[j][d] for j in others)

    def ready_s(self, k: int, d: int) -> tuple[float, bool]:
        """When kernel k's inputs can be on device d, and whether one has to cross for it."""
        ready, crosses = 0.0, False
        for t in self._in[k]:
            p = self._producer[t]
            if not self._must_cross(t, d):
                ready = max(ready, self.end_s[p] if p >= 0 else 0.0)
                continue
            known = self.arrival_s.get((t, d))
            if known is None:
                known, crosses = self._sent_s(t, d), True
            ready = max(ready, known)
        return ready, crosses

    def _must_cross(self, t: int, d: int) -> bool:
        """Whether tensor t is made elsewhere; a model input waits in the host's memory."""
        p: int = self._producer[t]
        if p >= 0:
            return self.device[p] != d
        return self._host >= 0 and not self.problem.machine.devices[d].on_host

    def _sent_s(self, t: int, d: int) -> float:
        """When tensor t can be on device d, sent as soon as it is made and the link is free."""
        p = self._producer[t]
        src, start = (self.device[p], self.end_s[p]) if p >= 0 else (self._host, 0.0)
        if self.problem.link_contention:
            start = max(start, self.link_free_s.get((src, d), 0.0))
        return start + self.problem.costs.transfer_s(src, d, self._bytes[t])

    def return_s(self, k: int, d: int) -> float:
        """Seconds that kernel k's model outputs take from device d to the host."""
        if self._host < 0 or self._on_host[d]:
            return 0.0
        outputs = [self._bytes[t] for t in self._out[k] if self._is_output[t]]
        transfer_s = self.problem.costs.transfer_s
        return math.fsum(transfer_s(d, self._host, num_bytes) for num_bytes in outputs)

    def slot_s(self, k: int, d: int) -> tuple[float, float]:
        """Earliest start and end of kernel k on device d."""
        ready, crosses = self.ready_s(k, d)
        duration = self.compute_s[k][d] + (self.call_s[d] if crosses else 0.0)
        busy = self.busy[d]
        if not busy:
            return ready, ready + duration
        if not self.insertion:
            start = max(ready, busy[-1][1])
            return start, start + duration
        first = bisect.bisect_left(busy, (ready, ready))
        free_from = max(ready, busy[first - 1][1]) if first else ready
        for start, end in busy[first:]:
            if free_from + duration <= start:
                break
            free_from = max(free_from, end)
        return free_from, free_from + duration

    def finish_s(self, k: int, d: int) -> float:
        """Earliest end of kernel k on device d, with its model outputs back on the host."""
        return self.slot_s(k, d)[1] + self.return_s(k, d)

    def put(self, k: int, d: int) -> None:
        """Schedule kernel k on device d, and with it its whole unit's choice of device."""
        start, end = self.slot_s(k, d)
        unit = int(self.problem.unit_of_kernel[k])
        if self.device_of_unit[unit] < 0:
            self.device_of_unit[unit] = d
            self.held_bytes[d] += sum(self._params[j] for j in self.problem.kernels_of_unit[unit])
        for t in self._in[k]:
            if self._must_cross(t, d) and (t, d) not in self.arrival_s:
                p = self._producer[t]
                arrival = self._sent_s(t, d)
                self.arrival_s[t, d] = arrival
                self.link_free_s[self.device[p] if p >= 0 else self._host, d] = arrival
                self._hold(t, d)
            self.unread[t] -= 1
            if self.unread[t] == 0:
                for holder in self._holders.pop(t, ()):
                    self.held_bytes[holder] -= self._bytes[t]
        self.device[k], self.start_s[k], self.end_s[k] = d, start, end
        bisect.insort(self.busy[d], (start, end))
        for t in self._out[k]:
            if self.unread[t]:
                self._hold(t, d)

    def _hold(self, t: int, d: int) -> None:
        if self.problem.memory_model == "live":
            self._holders.setdefault(t, []).append(d)
            self.held_bytes[d] += self._bytes[t]

    def order(self) -> list[int]:
        """Kernels by start time, data respected where times are equal."""
        by_start = sorted(
            range(len(self.start_s)), key=lambda k: (self.start_s[k], self.end_s[k], k)
        )
        keys = [0.0] * len(by_start)
        for rank, k in enumerate(by_start):
            keys[k] = float(rank)
        return by_priority(self.problem.kernels, keys)


def _rows(ptr: np.ndarray, flat: np.ndarray) -> list[list[int]]:
    bounds, values = ptr.tolist(), flat.tolist()
    return [values[a:b] for a, b in itertools.pairwise(bounds)]
