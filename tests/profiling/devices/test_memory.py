"""How much memory this process may still take, by what the system counts."""

import mmap
import resource

import numpy as np
import psutil

from profiling.devices.memory import free_bytes

MIB = 2**20


def test_pages_of_a_mapped_file_take_nothing_from_a_limit_of_memory(tmp_path, monkeypatch):
    limit = psutil.Process().memory_info().data + 200 * MIB
    none = resource.RLIM_INFINITY
    monkeypatch.setattr(
        resource, "getrlimit", lambda kind: (limit if kind == resource.RLIMIT_DATA else none, none)
    )
    before = free_bytes()
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(64 * MIB)
    mapped = np.memmap(path, np.uint8, "r")
    assert not mapped[::4096].any()
    assert before - free_bytes() < 32 * MIB, "its pages are resident now"
    # Not an array, which may get memory that this process has already.
    with mmap.mmap(-1, 64 * MIB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS):
        assert before - free_bytes() > 60 * MIB
