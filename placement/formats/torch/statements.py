"""Blocks of ops that one statement of a module makes: a mask of attention is dozens of them.

A module's own ops stand between the blocks of the modules inside it. Where a single statement makes
many in a row, they are a block by the name that it gives to what it makes, or the key it puts it
under.
"""

import dataclasses
import re
from collections.abc import Sequence
from itertools import groupby

from torch import fx

from placement.core.graph import Op

# Fewer than these stay where they are; attention itself is about ten ops.
LEAST = 12
_NAME = r"[A-Za-z_]\w{0,40}"
# `mask = ...`, `mask: Tensor = ...`, and `"mask": ...` as an entry of a table.
_NAMED = re.compile(rf"({_NAME})\s*(?::[^=]+)?=[^=]|[\"']({_NAME})[\"']\s*:")


def in_statements(ops: Sequence[Op], nodes: Sequence[fx.Node]) -> tuple[Op, ...]:
    """The same ops, each of `nodes`; those of a long statement in a block of their own."""
    found: list[Op] = []
    taken = {op.scope for op in ops}
    each = zip(ops, nodes, strict=True)
    for (scope, statement), run in groupby(each, key=lambda both: (both[0].scope, _of(both[1]))):
        these = [op for op, _ in run]
        name = _NAMED.match(statement)
        block = f"{scope}/{name[1] or name[2]}".lstrip("/") if name else ""
        # A second block of the name would be one with the first, whatever stands between them.
        if block and len(these) >= LEAST and block not in taken:
            taken.add(block)
            these = [dataclasses.replace(op, scope=block) for op in these]
        found += these
    return tuple(found)


def _of(node: fx.Node) -> str:
    """The last line of the program that led to an op; empty where nobody noted it."""
    lines = str(node.meta.get("stack_trace") or "").rstrip().rsplit("\n", 1)
    return lines[-1].strip()
