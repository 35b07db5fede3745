"""Seconds that copies between PyTorch devices take, the way a placed program makes them."""

import time
from collections.abc import Sequence

import torch

from placement.core.machine import Device
from profiling.backends._torch.queues import Place
from profiling.backends._torch.streams import HOST, copied, place_of, queue_between
from profiling.measuring.timing import measure


def copy_seconds(src: Device, dst: Device, sizes: Sequence[int]) -> list[float]:
    """Seconds by size, from the end of the work that makes a value until it may be read."""
    return [_seconds(_place(src), _place(dst), size) for size in sizes]


def _place(device: Device) -> Place:
    return HOST if device.on_host else place_of(device.provider, device.name)


def _seconds(src: Place, dst: Place, size: int) -> float:
    table: dict[str, torch.Tensor] = {}

    def fill() -> None:
        table["made"] = torch.ones(size // 4, device=src.device)

    def carry() -> None:
        table["copied"] = copied(table["made"], src, dst)

    def copy() -> None:
        queue = queue_between(src, dst)
        queue.after(made)
        queue.call(carry)
        queue.mark().wait()

    src.compute.call(fill)
    made = src.compute.mark()
    made.wait()
    return measure(copy, warmup=3, repeats=15, clock=time.perf_counter).median_s
