"""PyTorch's large blocks come on large pages where the system gives them."""

import os
import subprocess
import sys

import pytest

from placement.formats.torch import large_pages
from profiling import backends

BLOCK_BYTES, PAGE_BYTES = 1 << 26, 4096
FAULTS = f"""
import resource
import placement.formats.torch
import torch
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
before = faults()
block = torch.empty({BLOCK_BYTES}, dtype=torch.uint8)
block.fill_(1)
print(faults() - before)
"""


def faults(**environment: str) -> int:
    """The pages that come anew while a block is written for the first time."""
    left = {name: value for name, value in os.environ.items() if name != large_pages.ASK}
    done = subprocess.run(
        [sys.executable, "-c", FAULTS], env=left | environment, capture_output=True, check=True
    )
    return int(done.stdout)


def test_a_block_comes_on_large_pages_unless_somebody_does_not_want_them():
    small = BLOCK_BYTES // PAGE_BYTES
    assert faults(**{large_pages.ASK: "0"}) >= small or "[always]" in setting()
    assert large_pages.are_given() == (faults() < small / 8 and "[madvise]" in setting())


@pytest.mark.parametrize("asked", ["0", "1"])
def test_what_was_measured_with_other_pages_counts_as_another_computer(monkeypatch, asked):
    monkeypatch.setenv(large_pages.ASK, asked)
    told = dict(backends.get("torch").libraries())
    assert ("pages of PyTorch's memory" in told) == large_pages.are_given()
    assert large_pages.are_given() == (asked == "1" and "[madvise]" in setting())


LATE = """
import torch
used = torch.ones(10)
from placement.formats.torch import large_pages
print(large_pages.are_given())
"""


def test_where_pytorch_was_used_before_nothing_is_claimed():
    left = {name: value for name, value in os.environ.items() if name != large_pages.ASK}
    done = subprocess.run([sys.executable, "-c", LATE], env=left, capture_output=True, check=True)
    assert done.stdout.split() == [b"False"]


def setting() -> str:
    try:
        return large_pages.SETTING.read_text(encoding="ascii")
    except OSError:
        return ""
