"""Where PyTorch computes: a memory with its queues of work, and marks in them to wait for.

CUDA and XPU run three streams each, one that computes and one for copies in either direction, so
that a copy hides behind the computing and its reader waits for the copy alone. On the CPU and under
Metal work is over when `call` returns. Copies between a GPU and the host go through pinned memory,
the only kind that moves while both go on computing.
"""

import functools
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

import torch

from placement.core.machine import Device
from profiling.backends._torch.accelerators import CAPTURED
from profiling.backends._torch.queues import Capture, Mark, Place, Queue, Work
from profiling.devices.cores import usable_cores

# Of so many cores one may wait for an accelerator instead of computing.
_ENOUGH_CORES = 8


class _Passed(Mark):
    def __init__(self, time_s: float) -> None:
        self._time_s = time_s

    def wait(self) -> None:
        pass

    @property
    def time_s(self) -> float:
        return self._time_s


class _Now(Queue):
    """Work is over when `call` returns, once `finish` does."""

    def __init__(self, finish: Callable[[], object] | None = None) -> None:
        self._finish = finish

    def call(self, work: Work) -> None:
        work()
        if self._finish is not None:
            self._finish()

    def mark(self) -> Mark:
        return _Passed(time.perf_counter())

    def after(self, mark: Mark) -> None:
        mark.wait()


class Host(Place):
    """The memory of all CPU lanes."""

    def __init__(self) -> None:
        self.device = torch.device("cpu")
        self.compute = self.inbound = self.outbound = _Now()

    def take(self, value: torch.Tensor) -> torch.Tensor:
        return value

    def give(self, value: torch.Tensor) -> torch.Tensor:
        return value


class Metal(Place):
    """Apple's GPU: one queue, whose work is awaited call by call."""

    def __init__(self, name: str) -> None:
        self.device = torch.device(name)
        self.compute = self.inbound = self.outbound = _Now(torch.mps.synchronize)

    def take(self, value: torch.Tensor) -> torch.Tensor:
        return value.to(self.device)

    def give(self, value: torch.Tensor) -> torch.Tensor:
        return value.cpu()


class Streams(Place):
    """A GPU with streams: CUDA's, ROCm's under the same name, or XPU's."""

    def __init__(self, name: str) -> None:
        self.device = torch.device(name)
        torch.empty(0, device=self.device)  # starts the driver
        # Convolutions in full float32, like all else, or outputs could not be told from wrong ones.
        torch.backends.cudnn.allow_tf32 = False
        self.module: Any = torch.get_device_module(self.device)
        self._sleeps = self.device.type == "cuda" and len(usable_cores()) < _ENOUGH_CORES
        self._anchor: Any = None
        self._anchor_s = 0.0
        self.compute, self.inbound, self.outbound = (_Stream(self) for _ in range(3))
        self.synchronise_clock()

    def take(self, value: torch.Tensor) -> torch.Tensor:
        # From another GPU this is a copy between the two; the streams of both wait for each other.
        # Pinned memory that is let go stays untouched until the copy is over: its allocator knows.
        return value.to(self.device, non_blocking=True)

    def give(self, value: torch.Tensor) -> torch.Tensor:
        pinned = torch.empty_like(value, device="cpu", pin_memory=True)
        return pinned.copy_(value, non_blocking=True)

    def stage(self, value: torch.Tensor) -> torch.Tensor:
        if value.is_pinned():
            return value
        return torch.empty_like(value, pin_memory=True).copy_(value)

    def capture(self) -> Capture | None:
        return _Graphs(self).capture if self.device.type in CAPTURED else None

    def watch_memory(self) -> int | None:
        self.module.reset_peak_memory_stats(self.device)
        return int(self.module.memory_allocated(self.device))

    def peak_bytes(self) -> int:
        return int(self.module.max_memory_allocated(self.device))

    def event(self) -> Any:
        """An event with a time.

        A thread that waits for it tries until it has come, for to be woken takes as long as many a
        segment; where a lane may need its core it sleeps.
        """
        asleep = {"blocking": True} if self._sleeps else {}
        return self.module.Event(enable_timing=True, **asleep)

    def synchronise_clock(self) -> None:
        """The narrowest of a few stretches of host time that an event falls into, its middle."""
        best_s = float("inf")
        for _ in range(5):
            event, before_s = self.event(), time.perf_counter()
            event.record(self.module.current_stream(self.device))
            event.synchronize()
            after_s = time.perf_counter()
            if after_s - before_s < best_s:
                best_s = after_s - before_s
                self._anchor, self._anchor_s = event, (before_s + after_s) / 2

    def host_s(self, event: Any) -> float:
        """When an event behind the anchor was, on the host's clock."""
        return self._anchor_s + float(self._anchor.elapsed_time(event)) / 1e3


class _Graphs:
    """Graphs of a device with one pool of memory: those of a program never run side by side.

    What one makes for the next lies in the pool; what outlives a step must not stay there.
    """

    def __init__(self, place: Streams) -> None:
        self._place = place
        self._pool: Any = None

    def capture(self, work: Work) -> Work | None:
        module = self._place.module
        if self._pool is None:
            self._pool = module.graph_pool_handle()
            # While work is captured nothing of what was let go can become the pool's.
            module.empty_cache()
        graph = module.CUDAGraph()
        try:
            # Other lanes go on copying meanwhile, which a stricter mode takes for a mistake.
            graph.capture_begin(pool=self._pool, capture_error_mode="thread_local")
            try:
                work()
            finally:
                graph.capture_end()
        except (RuntimeError, UserWarning):
            # An op waited for the device, memory ran out, or there was nothing to launch.
            self._give_up()
            return None
        return graph.replay  # type: ignore[no-any-return]

    def _give_up(self) -> None:
        """Have the allocator end a capture that failed; the next one gets another pool."""
        index = self._place.device.index or 0
        with suppress(RuntimeError, AttributeError):
            torch._C._cuda_endAllocateToPool(index, self._pool)
        self._pool = None


class _StreamMark(Mark):
    def __init__(self, place: Streams, event: Any) -> None:
        self.place, self.event = place, event

    def wait(self) -> None:
        self.event.synchronize()

    @property
    def time_s(self) -> float:
        return self.place.host_s(self.event)


class _Stream(Queue):
    def __init__(self, place: Streams) -> None:
        self._place = place
        self._stream = place.module.Stream(place.device)

    def call(self, work: Work) -> None:
        with self._place.module.stream(self._stream):
            work()

    def mark(self) -> Mark:
        event = self._place.event()
        event.record(self._stream)
        return _StreamMark(self._place, event)

    def after(self, mark: Mark) -> None:
        if isinstance(mark, _StreamMark) and mark.place.module is self._place.module:
            self._stream.wait_event(mark.event)
        else:
            mark.wait()


# Work before a copy whose seconds are taken: of the CPU, and bytes that a GPU fills.
_SIDE, _FILLED_BYTES, _FILLS = 512, 64 << 20, 10
_ROUNDS, _WARMUP = 15, 3
HOST = Host()
# What makes the place of each provider, by the name of a device of it.
PLACES: dict[str, Callable[[str], Place]] = {"cuda": Streams, "xpu": Streams, "mps": Metal}


@functools.cache
def place_of(provider: str, name: str) -> Place:
    """The memory of a device ("cuda", "cuda:0"), one for the whole process; lanes have `HOST`."""
    return PLACES[provider](name)


def copied(value: Any, src: Place, dst: Place) -> Any:
    """A value of one place in another, as work of the queue that joins them."""
    if isinstance(value, list | tuple):
        return [copied(each, src, dst) for each in value]
    if not isinstance(value, torch.Tensor) or src is dst:
        return value
    if dst is HOST:
        return src.give(value)
    if src is HOST:
        return dst.take(dst.stage(value))
    if src.device.type == dst.device.type:
        return dst.take(value)
    return dst.take(value.cpu())


def settled(value: Any, src: Place, dst: Place) -> Any:
    """The same between steps, when nothing else goes on: pinned memory is scarce."""
    return dst.take(value) if src is HOST and dst is not HOST else copied(value, src, dst)


def queue_between(src: Place, dst: Place) -> Queue:
    """The queue that copies from one place to another."""
    return src.outbound if dst is HOST else dst.inbound


def copy_seconds(src: Device, dst: Device, sizes: Sequence[int]) -> list[float]:
    """Seconds by size, from the end of the work that makes a value until its reader begins."""
    return [_crossing(_place(src), _place(dst), size)[0] for size in sizes]


def send_overhead(src: Device, dst: Device, size: int) -> float:
    """The share of these seconds for which the sender's thread is busy with sending, 0 to 1.

    An accelerator goes on computing meanwhile: its thread is not what others wait for.
    """
    if not src.on_host:
        return 0.0
    seconds, busy_s = _crossing(_place(src), _place(dst), size)
    return min(1.0, max(0.0, busy_s / seconds))


def _place(device: Device) -> Place:
    return HOST if device.on_host else place_of(device.provider, device.own_name)


def _crossing(src: Place, dst: Place, size: int) -> tuple[float, float]:
    """Seconds until a value of `size` bytes has crossed, and those for which its sender is busy.

    As in a step: one thread makes and sends it after work that leaves caches cold, another sleeps
    until it is told, and queues what reads it.
    """
    value = torch.ones(max(1, size // 4), device=src.device)
    queue, work = queue_between(src, dst), _work_on(src)
    for place in (src, dst):
        place.synchronise_clock()
    seconds, busy_s = list[float](), list[float]()
    copies: list[torch.Tensor] = []
    reader = _Reader(dst)
    try:
        for _ in range(_WARMUP + _ROUNDS):
            src.compute.call(work)
            made = src.compute.mark()
            queue.after(made)
            queue.mark()
            queue.call(lambda: copies.append(copied(value, src, dst)))
            arrives = queue.mark()
            sent_s = time.perf_counter()
            seconds.append(reader.begun_s(arrives) - made.time_s)
            busy_s.append(sent_s - made.time_s)
            copies.clear()
    finally:
        reader.close()
    each = (seconds[_WARMUP:], busy_s[_WARMUP:])
    return max(1e-9, statistics.median(each[0])), statistics.median(each[1])


class _Reader:
    """A thread that sleeps until a value is on its way, and queues what reads it."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._told, self._answers = SimpleQueue[Mark | None](), SimpleQueue[float | BaseException]()
        threading.Thread(target=self._work, daemon=True).start()

    def begun_s(self, arrives: Mark) -> float:
        """When work has begun that waits for a mark."""
        self._told.put(arrives)
        answer = self._answers.get()
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def close(self) -> None:
        self._told.put(None)

    def _work(self) -> None:
        while (arrives := self._told.get()) is not None:
            try:
                self._place.compute.after(arrives)
                began = self._place.compute.mark()
                began.wait()
                self._answers.put(began.time_s)
            except BaseException as error:  # handed to the thread that waits
                self._answers.put(error)


def _work_on(place: Place) -> Work:
    """Some milliseconds' work, queued at once where there is a queue."""
    if place is HOST:
        square, filled = torch.ones(_SIDE, _SIDE), torch.empty(_FILLED_BYTES // 4)

        def compute() -> None:
            torch.mm(square, square)
            filled.fill_(1.0)

        return compute
    away = torch.empty(_FILLED_BYTES // 4, device=place.device)

    def fill() -> None:
        for _ in range(_FILLS):
            away.fill_(1.0)

    return fill
