"""Tensors of tried calls, described so that they print and are built anew where they are tried.

They lie against a page that nobody may touch, so that a kernel that reads or writes one element
too far is caught.
"""

import ctypes
import mmap
import random
from dataclasses import dataclass

import torch
from torch.utils import _pytree as pytree

FLOAT, INT, BOOL = torch.float32, torch.int64, torch.bool
_LIBC = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Spec:
    """A tensor of numbers: "usual", "index" (0, 1), "far" (out of range) or "odd" (inf, nan)."""

    shape: tuple[int, ...]
    dtype: torch.dtype = FLOAT
    content: str = "usual"
    layout: str = "dense"

    def tensor(self, rng):
        count = 1
        for n in self.shape:
            count *= n
        seed = torch.Generator().manual_seed(rng.randrange(2**31))
        values = torch.rand(count, generator=seed) * 0.8 + 0.1
        if self.content == "index":
            values = torch.randint(0, 2, (count,), generator=seed)
        elif self.content == "far":
            far = torch.tensor([2**40, -(2**40), 10**6, -3, 2**31 - 1])
            values = far[torch.randint(0, 5, (count,), generator=seed)]
        elif self.content == "odd":
            odd = torch.tensor([float("inf"), float("-inf"), float("nan"), 1e30, -1e30])
            values = odd[torch.randint(0, 5, (count,), generator=seed)]
        made = guarded(values.to(self.dtype), self.shape, at_end=rng.random() < 0.8)
        if self.layout == "turned" and len(self.shape) > 1:
            return made.transpose(0, -1).contiguous().transpose(0, -1)
        if self.layout == "expanded" and self.shape and self.shape[0]:
            return made[:1].expand(self.shape)
        return made


def guarded(values, shape, at_end):
    """A tensor of the values in memory of their own between two pages that nobody may touch."""
    page = mmap.PAGESIZE
    num_bytes = values.numel() * values.element_size()
    if not num_bytes:
        return values.reshape(shape)
    whole = -(-num_bytes // page) * page
    memory = mmap.mmap(-1, whole + 2 * page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for at in (start, start + page + whole):
        if _LIBC.mprotect(ctypes.c_void_p(at), page, 0):
            raise OSError(ctypes.get_errno(), "mprotect")
    offset = page + (whole - num_bytes if at_end else 0)
    made = torch.frombuffer(memory, dtype=values.dtype, count=values.numel(), offset=offset)
    made.copy_(values)
    # No view, for these cannot be detached in place.
    return torch.empty(0, dtype=values.dtype).set_(made.untyped_storage(), 0, shape)


def built(call, rng=None):
    """The call with its tensors made."""
    rng = rng or random.Random(0)
    return pytree.tree_map(lambda v: v.tensor(rng) if isinstance(v, Spec) else v, call)
