"""What PyTorch frees stays with the process from step to step, and goes back when it is told to."""

import os
import subprocess
import sys

import pytest

from placement.formats.torch import large_pages
from profiling import backends
from profiling.devices import heap

BLOCK_BYTES = 1 << 26
# Blocks that are written and freed in turn, and pages that come anew for the last one: as the C
# library does it by itself, kept, and after the heap was given back.
FAULTS = f"""
import resource
import psutil
import torch
from profiling.devices import heap

def resident():
    return psutil.Process().memory_info().rss

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    block = torch.empty({BLOCK_BYTES}, dtype=torch.uint8)
    block.fill_(1)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

def last():
    return [faults() for _ in range(24)][-1]

print(last())
heap.keep()
print(last())
before = resident()
heap.give_back()
print(before - resident())
"""
GNU = pytest.mark.skipif(not heap.is_ours(), reason="the C library is not GNU's, or set otherwise")


def told(**environment: str) -> list[int]:
    """Small pages that come anew, by default and kept, and bytes that are given back."""
    named = (*heap.SETTINGS, heap.TUNABLES, heap.PRELOADED)
    left = {name: value for name, value in os.environ.items() if name not in named}
    settings = {large_pages.ASK: "0", **environment}
    done = subprocess.run(
        [sys.executable, "-c", FAULTS], env=left | settings, capture_output=True, check=True
    )
    return [int(word) for word in done.stdout.split()]


@GNU
def test_a_block_that_is_freed_is_there_for_the_next_one_until_it_is_given_back():
    by_default, kept, given_back = told()
    assert kept <= by_default // 8 and given_back > BLOCK_BYTES // 2


@GNU
@pytest.mark.parametrize(
    "said", [{heap.TUNABLES: "glibc.malloc.arena_max=2"}, {"MALLOC_MMAP_THRESHOLD_": "1000000"}]
)
def test_where_somebody_has_said_how_memory_is_kept_that_stands(said):
    by_default, kept, _ = told(**said)
    assert kept > by_default // 2


@pytest.mark.parametrize("said", [None, "2"])
def test_what_was_measured_otherwise_counts_as_another_computer(monkeypatch, said):
    for name in heap.SETTINGS:
        monkeypatch.delenv(name, raising=False)
    before = heap.is_ours()
    if said is not None:
        monkeypatch.setenv("MALLOC_ARENA_MAX", said)
    told = dict(backends.get("torch").libraries())
    assert ("what PyTorch's steps free" in told) == heap.is_ours() == (before and said is None)


def test_where_nothing_is_kept_nobody_waits_for_an_end(monkeypatch):
    monkeypatch.setattr(heap, "_kept", False)
    # As on a system that has none.
    monkeypatch.setitem(sys.modules, "resource", None)
    assert heap.asks_for_pages(lambda: bytearray(1 << 24)) == (bytearray(1 << 24), False)
