"""Weights stored in fewer bits than they are computed with: their bytes, and nothing else.

As quantisers do it, the matrices of linear layers and of experts are stored small, and tables of
words, the layer that gives words, norms and biases as they are. Scales are left out: with one of
16 bits for 128 weights they are 1.6 % of int8 and 3 % of int4.
"""

from collections.abc import Collection
from dataclasses import replace

import torch

from placement.formats.torch.program import TorchProgram, kind_of

BITS = {"int8": 8, "int4": 4}
# Ops that multiply by a stored matrix, and which argument that is.
_MATRIX = {"linear": 1, "addmm": 2, "mm": 1, "_grouped_mm": 1, "grouped_mm_fallback": 1, "bmm": 1}
_KEPT = ("lm_head", "embed_out", "embed_tokens", "wte")


def stored_as(program: TorchProgram, stored: str) -> TorchProgram:
    """The same program with matrices that count as so many bits for each number."""
    small = dict(program.stored_bytes)
    for kernel in program.kernels:
        at = _MATRIX.get(kind_of(kernel))
        if at is None or len(kernel.args) <= at:
            continue
        for place in _places(program, kernel.args[at]):
            value, label = program.state[place], program.labels[place]
            is_table = any(word in label for word in _KEPT)
            if value.dim() >= 2 and value.is_floating_point() and not is_table:
                small[place] = value.numel() * BITS[stored] // 8
    return replace(program, stored_bytes=small)


def computed_in(
    program: TorchProgram, dtype: torch.dtype, parameters: Collection[str]
) -> TorchProgram:
    """The same program with the bytes that its parameters, by name, have in another type."""
    weights = {
        place: value.numel() * dtype.itemsize
        for place, value in program.state.items()
        if program.labels[place] in parameters
    }
    return replace(program, stored_bytes={**program.stored_bytes, **weights})


def _places(program: TorchProgram, value: object) -> list[str]:
    """The weight that a value is, or is another layout of."""
    while isinstance(value, torch.fx.Node):
        if value.name in program.state:
            return [] if value.name in program.caches else [value.name]
        if value.op != "call_function" or len(value.all_input_nodes) != 1:
            break
        value = value.all_input_nodes[0]
    return []
