"""PyTorch's large blocks come on large pages where the system gives them."""

import os
import subprocess
import sys

import pytest

from placement.formats.torch import large_pages
from profiling import backends

FORKS = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs copies of a process")
BLOCK_BYTES, PAGE_BYTES = 1 << 26, 4096
# To load PyTorch takes longer than all else, so that one process does, which has asked for large
# pages before and has made no block yet, and a copy of it answers each time.
TOLD = f"""
import os
import resource
from placement.formats.torch import large_pages
import torch

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    block = torch.empty({BLOCK_BYTES}, dtype=torch.uint8)
    block.fill_(1)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

def unwanted():
    os.environ[large_pages.ASK] = "0"
    return faults()

def late():
    del os.environ[large_pages.ASK]
    used = torch.ones(10)
    large_pages.ask()
    return large_pages.are_given()

assert os.environ[large_pages.ASK] == "1"
for answer in (faults, unwanted, late):
    if not os.fork():
        print(answer(), flush=True)
        os._exit(0)
    assert os.wait()[1] == 0
"""


@pytest.fixture(scope="module")
def told() -> list[str]:
    """The pages that come anew while a block is written for the first time: asked for, and where
    somebody does not want large ones; and whether they are given to who asks too late."""
    left = {name: value for name, value in os.environ.items() if name != large_pages.ASK}
    done = subprocess.run(
        [sys.executable, "-c", TOLD], env=left, capture_output=True, check=True, text=True
    )
    return done.stdout.split()


@FORKS
def test_a_block_comes_on_large_pages_unless_somebody_does_not_want_them(told):
    small, asked, unwanted = BLOCK_BYTES // PAGE_BYTES, int(told[0]), int(told[1])
    assert unwanted >= small or "[always]" in setting()
    assert large_pages.are_given() == (asked < small / 8 and "[madvise]" in setting())


@pytest.mark.parametrize("asked", ["0", "1"])
def test_what_was_measured_with_other_pages_counts_as_another_computer(monkeypatch, asked):
    monkeypatch.setenv(large_pages.ASK, asked)
    told = dict(backends.get("torch").libraries())
    assert ("pages of PyTorch's memory" in told) == large_pages.are_given()
    assert large_pages.are_given() == (asked == "1" and "[madvise]" in setting())


@FORKS
def test_where_pytorch_was_used_before_nothing_is_claimed(told):
    assert told[2] == "False"


def setting() -> str:
    try:
        return large_pages.SETTING.read_text(encoding="ascii")
    except OSError:
        return ""
