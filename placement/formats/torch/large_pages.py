"""Large pages for the large blocks of PyTorch's memory on the host.

What a step frees goes back to the system and comes anew in the next step, one page of 4 KiB at a
time: a step of training may take a hundred thousand of them, a fifth of its time. Linux gives
pages of 2 MiB to whoever asks for them where it is set up so ("madvise", the usual setting), and
PyTorch asks for blocks of that size and larger where `ASK` is 1 before its first block.
"""

import functools
import os
import sys
from pathlib import Path

ASK = "THP_MEM_ALLOC_ENABLE"
SETTING = Path("/sys/kernel/mm/transparent_hugepage/enabled")
_PAGE_BYTES, _BLOCKS_BYTES = 4096, (1 << 22, 1 << 23, 1 << 24)


def ask() -> None:
    """Let PyTorch ask for large pages, unless somebody has said whether it should."""
    os.environ.setdefault(ASK, "1")


def are_given() -> bool:
    """Whether this process's PyTorch gets large pages because it asks for them."""
    try:
        setting = SETTING.read_text(encoding="ascii")
    except (OSError, ValueError):
        return False
    return "[madvise]" in setting and os.environ.get(ASK, "1") == "1" and _is_heard()


@functools.cache
def _is_heard() -> bool:
    """Whether PyTorch has looked after it was told to ask: not where others used it before.

    Blocks for which it asks begin at a page, others almost never.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        return True
    blocks = [torch.empty(size, dtype=torch.uint8) for size in _BLOCKS_BYTES]
    return all(block.data_ptr() % _PAGE_BYTES == 0 for block in blocks)
