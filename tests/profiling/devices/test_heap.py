"""What PyTorch frees stays with the process from step to step, and goes back when it is told to."""

import json
import os
import subprocess
import sys

import pytest

from placement.formats.torch import large_pages
from profiling import backends
from profiling.devices import heap

# More than the C library ever keeps by itself, which is 32 MiB.
BLOCK_BYTES = 40 << 20
SAID = [{heap.TUNABLES: "glibc.malloc.arena_max=2"}, {"MALLOC_MMAP_THRESHOLD_": "1000000"}]
# Blocks that are written and freed in turn, and pages that come anew for the last one: as the C
# library does it by itself, kept, and after the heap was given back. To load PyTorch takes longer
# than all of it, so that one process does, and a copy of it answers each time.
FAULTS = f"""
import json
import os
import resource
import sys
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

def last(number):
    return [faults() for _ in range(number)][-1]

def told():
    by_default = last(2)
    heap.keep()
    # Some seven blocks are apart before one fits where another was.
    kept = last(16)
    before = resident()
    heap.give_back()
    return by_default, kept, before - resident()

for said in json.loads(sys.argv[1]):
    if not os.fork():
        os.environ.update(said)
        print(*told(), flush=True)
        os._exit(0)
    assert os.wait()[1] == 0
"""
GNU = pytest.mark.skipif(not heap.is_ours(), reason="the C library is not GNU's, or set otherwise")


@pytest.fixture(scope="module")
def told() -> list[tuple[int, ...]]:
    """Small pages that come anew, by default and kept, and bytes that are given back: where nobody
    has said anything, and for all that was said."""
    named = (*heap.SETTINGS, heap.TUNABLES, heap.PRELOADED)
    left = {name: value for name, value in os.environ.items() if name not in named}
    done = subprocess.run(
        [sys.executable, "-c", FAULTS, json.dumps([{}, *SAID])],
        env=left | {large_pages.ASK: "0"},
        capture_output=True,
        check=True,
    )
    return [tuple(map(int, line.split())) for line in done.stdout.splitlines()]


@GNU
def test_a_block_that_is_freed_is_there_for_the_next_one_until_it_is_given_back(told):
    by_default, kept, given_back = told[0]
    assert kept <= by_default // 8 and given_back > BLOCK_BYTES // 2


@GNU
@pytest.mark.parametrize("number", range(len(SAID)))
def test_where_somebody_has_said_how_memory_is_kept_that_stands(told, number):
    by_default, kept, _ = told[1 + number]
    assert kept > by_default // 2 > 0


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
