"""The tensors of a .pt2 archive: raw bytes, read where their shapes lie within them.

A weight may be a view of a payload that others view too (tied weights), so a few bytes could
claim any number of them. No view reaches outside its payload, and all different views together
have at most twice the bytes that the archive stores.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from placement.formats.torch.pt2.archive import LABEL, Archive, bad

MAX_DIMS = 25
MAX_SIZE = 2**48
# What small tensors may claim beyond their bytes.
SPARE_BYTES = 2**20
DTYPES = {
    1: torch.uint8,
    2: torch.int8,
    3: torch.int16,
    4: torch.int32,
    5: torch.int64,
    6: torch.float16,
    7: torch.float32,
    8: torch.float64,
    10: torch.complex64,
    11: torch.complex128,
    12: torch.bool,
    13: torch.bfloat16,
}
_FOLDERS = {
    "data/weights/": ("model_weights_config.json", re.compile(r"weight_\d{1,9}")),
    "data/constants/": ("model_constants_config.json", re.compile(r"tensor_\d{1,9}")),
}


@dataclass(frozen=True)
class Layout:
    """Sizes, strides and offset of a tensor in its storage, counted in elements."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype
    offset: int = 0

    @classmethod
    def of(cls, meta: Mapping[str, Any], name: str) -> "Layout":
        """What a file says of the tensor `name`."""
        device = meta["device"].get("type")
        if device != "cpu":
            raise bad(f"it was exported on {str(device)[:20]}", "cpu tensors")
        if meta["dtype"] not in DTYPES or meta["layout"] != 7:
            raise bad(f"{name[:80]!r} has a type or layout that is not known", "dense tensors")
        sizes = tuple(_number(n, name) for n in meta["sizes"])
        strides = tuple(_number(n, name) for n in meta["strides"])
        if len(sizes) != len(strides) or len(sizes) > MAX_DIMS or math.prod(sizes) > MAX_SIZE:
            raise bad(f"{name[:80]!r} has sizes {sizes[:8]} and strides {strides[:8]}")
        return cls(sizes, strides, DTYPES[meta["dtype"]], _number(meta["storage_offset"], name))

    @property
    def num_bytes(self) -> int:
        return math.prod(self.sizes) * self.dtype.itemsize

    @property
    def end(self) -> int:
        """Elements from the start of the storage to the last one, inclusive."""
        if 0 in self.sizes:
            return self.offset
        last = sum((n - 1) * step for n, step in zip(self.sizes, self.strides, strict=True))
        return self.offset + last + 1

    @property
    def is_apart(self) -> bool:
        """Whether no two elements lie at one place."""
        known = 1
        dims = [p for p in zip(self.strides, self.sizes, strict=True) if p[1] > 1]
        for step, n in sorted(dims):
            if step < known:
                return False
            known = step * (n - 1) + known
        return True

    def __str__(self) -> str:
        return f"{str(self.dtype).removeprefix('torch.')} of {list(self.sizes)}"


def tensors(archive: Archive) -> dict[str, torch.Tensor]:
    """Every weight and constant by its label."""
    found: dict[str, torch.Tensor] = {}
    views: dict[tuple[str, Layout], torch.Tensor] = {}
    spare = SPARE_BYTES
    for folder, (config, pattern) in _FOLDERS.items():
        entries = archive.json(folder + config)["config"]
        payloads: dict[str, torch.Tensor] = {}
        for label, entry in entries.items():
            file = entry["path_name"]
            if not LABEL.fullmatch(label) or label in found:
                raise bad(f"{label[:80]!r} in {folder} is no tensor, or there twice")
            if entry["use_pickle"] is not False or not pattern.fullmatch(file):
                raise bad(
                    f"{label[:80]!r} is stored as a Python object, which may run code", "tensors"
                )
            layout = Layout.of(entry["tensor_meta"], label)
            place = (folder + file, layout)
            if place not in views:
                num_bytes = archive.num_bytes(folder + file)
                _require_within(layout, num_bytes, label)
                spare -= layout.num_bytes - (0 if file in payloads else 2 * num_bytes)
                if spare < 0:
                    raise bad(f"{label[:80]!r} claims more bytes than the file has for its weights")
                if file not in payloads:
                    payloads[file] = _payload(archive, folder + file, num_bytes)
                views[place] = _view(payloads[file], layout)
            found[label] = views[place]
    return found


def _require_within(layout: Layout, num_bytes: int, label: str) -> None:
    needed = layout.end * layout.dtype.itemsize
    if layout.num_bytes and needed > num_bytes:
        raise bad(f"{label[:80]!r} ({layout}) needs {needed} bytes, but the file has {num_bytes}")


def _payload(archive: Archive, name: str, num_bytes: int) -> torch.Tensor:
    """Bytes of an entry, in memory as aligned as the library's own."""
    content = torch.empty(num_bytes, dtype=torch.uint8)
    if num_bytes:
        memory: Any = content.numpy()
        archive.read_into(name, memoryview(memory))
    return content


def _view(payload: torch.Tensor, layout: Layout) -> torch.Tensor:
    if not layout.num_bytes:
        return torch.zeros(layout.sizes, dtype=layout.dtype)
    size = layout.dtype.itemsize
    elements = payload[: payload.numel() // size * size].view(layout.dtype)
    view = torch.as_strided(elements, layout.sizes, layout.strides, layout.offset)
    return view if layout.is_apart else view.contiguous()


def _number(value: Any, name: str) -> int:
    number = value.get("as_int") if isinstance(value, dict) else None
    if number is None and isinstance(value, dict) and "as_expr" in value:
        raise bad("its sizes vary", "fixed sizes (no dynamic_shapes)")
    if type(number) is not int or not 0 <= number <= MAX_SIZE:
        raise bad(f"{name[:80]!r} has a size or stride {str(number)[:40]}")
    return number
