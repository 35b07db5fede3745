"""A schedule lowered to what the simulator knows: tasks on lanes and transfers on links."""

from dataclasses import dataclass

import numpy as np

from placement.core.graph import Ints
from placement.core.problem import Problem
from placement.core.schedule import Schedule


@dataclass(frozen=True)
class Transfer:
    """One tensor on its way to one device; `segment` is its producer, -1 for a model input.

    `send_s` is what it holds up the producer, before it is on its way, and `receive_s` who reads
    it first there, if anybody does.
    """

    tensor: int
    src: int
    dst: int
    segment: int
    duration_s: float
    send_s: float = 0.0
    receive_s: float = 0.0


@dataclass(frozen=True)
class Tasks:
    """Segments as tasks; indices are segment and transfer numbers.

    `work_s[s]` is call overhead plus compute and what transfers hold it up, `reads[s]` the
    transfers segment s waits for, `local_reads[s]` the earlier segments of its own device whose
    values it reads, `sends[s]` the transfers that start when s ends, `at_start` those of model
    inputs, `lanes[d]` the segments that compute on device d in running order.
    """

    device: tuple[int, ...]
    work_s: tuple[float, ...]
    lanes: tuple[tuple[int, ...], ...]
    reads: tuple[tuple[int, ...], ...]
    local_reads: tuple[tuple[int, ...], ...]
    sends: tuple[tuple[int, ...], ...]
    at_start: tuple[int, ...]
    transfers: tuple[Transfer, ...]


@dataclass(frozen=True)
class Times:
    """Start and end of every segment and transfer, in seconds; `waited_for[i]` is the transfer
    that held the link before transfer i, or -1."""

    start_s: tuple[float, ...]
    end_s: tuple[float, ...]
    sent_s: tuple[float, ...]
    arrived_s: tuple[float, ...]
    waited_for: tuple[int, ...]
    step_s: float


def host_of(problem: Problem) -> int:
    """The device whose memory is the host's: the first CPU, or -1 where there is none."""
    return next((i for i, d in enumerate(problem.machine.devices) if d.on_host), -1)


def kernels_in_order(problem: Problem, schedule: Schedule) -> tuple[Ints, Ints]:
    """Kernels (indices) as the segments list them one behind the other, and each one's segment."""
    index, segments = problem.kernels.index, schedule.segments
    kernels = np.array([index[k] for s in segments for k in s.kernels], dtype=np.int64)
    segment_of = np.full(len(index), -1, dtype=np.int64)
    segment_of[kernels] = np.repeat(np.arange(len(segments)), [len(s.kernels) for s in segments])
    return kernels, segment_of


def segment_devices(problem: Problem, schedule: Schedule) -> Ints:
    """Device (index) of each segment (S,)."""
    index = problem.machine.index
    return np.array([index[s.device] for s in schedule.segments], dtype=np.int64)


def tensors_that_leave(problem: Problem, schedule: Schedule) -> list[int]:
    """Tensors (indices) that come from outside, are handed back, or are read in another segment."""
    arrays = problem.kernels.arrays
    _, segment_of = kernels_in_order(problem, schedule)
    maker = np.repeat(arrays.producer, np.diff(arrays.consumer_ptr))
    read = np.repeat(np.arange(arrays.producer.size), np.diff(arrays.consumer_ptr))
    leaves = arrays.is_output | (arrays.producer < 0)
    leaves[read[segment_of[arrays.consumers] != segment_of[maker]]] = True
    found: list[int] = np.flatnonzero(leaves).tolist()
    return found


def segment_tasks(problem: Problem, schedule: Schedule) -> Tasks:
    """Tasks that send over links, each tensor once to each device that reads it elsewhere.

    Model inputs wait on the host and outputs return there: both cross a link only where the device
    has memory of its own. Between devices that compute on one nothing has to move.
    """
    costs, machine = problem.costs, problem.machine
    index, segment_of = problem.kernels.index, schedule.segment_of
    device = [machine.index[s.device] for s in schedule.segments]
    work_s = [
        float(costs.call_s[d] + sum(costs.compute_s[index[k], d] for k in s.kernels))
        for s, d in zip(schedule.segments, device, strict=True)
    ]
    lanes: list[list[int]] = [[] for _ in machine.devices]
    for s, d in enumerate(device):
        lanes[int(machine.places.engine[d])].append(s)
    host, engine = host_of(problem), machine.places.engine
    reads: list[list[int]] = [[] for _ in device]
    local_reads: list[set[int]] = [set() for _ in device]
    sends: list[list[int]] = [[] for _ in device]
    at_start: list[int] = []
    transfers: list[Transfer] = []
    for t in tensors_that_leave(problem, schedule):
        tensor = problem.kernels.tensors[t]
        producer = -1 if tensor.producer is None else segment_of[tensor.producer]
        src = host if producer < 0 else device[producer]
        readers: dict[int, list[int]] = {}
        for s in dict.fromkeys(segment_of[c] for c in tensor.consumers):
            if s != producer:
                readers.setdefault(device[s], []).append(s)
        if tensor.is_output and src >= 0 and not machine.devices[src].on_host and host >= 0:
            readers.setdefault(host, [])
        for dst in sorted(readers):
            is_here = src >= 0 and engine[dst] == engine[src]
            if is_here or (producer < 0 and (src < 0 or machine.devices[dst].on_host)):
                for s in readers[dst]:
                    if producer >= 0:
                        local_reads[s].add(producer)
                continue
            number = len(transfers)
            whole_s = costs.transfer_s(src, dst, tensor.num_bytes)
            # Model inputs hold up nobody, what only returns to the host nobody there.
            send, receive = costs.overhead[:, src, dst].tolist() if producer >= 0 else (0.0, 0.0)
            on_way_s = (1.0 - send - receive) * whole_s
            if not readers[dst]:
                send, receive = send + receive, 0.0
            move = Transfer(t, src, dst, producer, on_way_s, send * whole_s, receive * whole_s)
            transfers.append(move)
            if producer >= 0:
                work_s[producer] += move.send_s
            if readers[dst]:
                work_s[min(readers[dst])] += move.receive_s
            (at_start if producer < 0 else sends[producer]).append(number)
            for s in readers[dst]:
                reads[s].append(number)
    return Tasks(
        device=tuple(device),
        work_s=tuple(work_s),
        lanes=tuple(map(tuple, lanes)),
        reads=tuple(map(tuple, reads)),
        local_reads=tuple(tuple(sorted(r)) for r in local_reads),
        sends=tuple(map(tuple, sends)),
        at_start=tuple(at_start),
        transfers=tuple(transfers),
    )


def stages_of(tasks: Tasks) -> tuple[int, ...]:
    """By how many samples each segment (S,) works behind the first: one more at each crossing."""
    stage = [0] * len(tasks.device)
    for s in range(len(stage)):
        own = [stage[p] for p in tasks.local_reads[s]]
        made = [tasks.transfers[i].segment for i in tasks.reads[s]]
        stage[s] = max([0, *own, *(stage[p] + 1 for p in made if p >= 0)])
    return tuple(stage)
