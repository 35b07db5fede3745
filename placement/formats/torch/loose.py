"""Blocks for ops that stand in no module, where there are too many of them to be looked at.

Sums of gradients and what a forward method does between its modules have no module of their own. A
few of them say how a network hangs together; hundreds hide it.
"""

import dataclasses
from collections.abc import Iterable, Sequence

from placement.core.graph import Op, Tensor

MOST_LOOSE = 24


def housed(ops: Sequence[Op], tensors: Iterable[Tensor]) -> tuple[Op, ...]:
    """The same ops, each in the block of what it reads, or else of what reads it.

    That is the innermost block that has all of these, or the outermost one of the last.
    """
    if sum(not op.scope for op in ops) <= MOST_LOOSE:
        return tuple(ops)
    index = {op.name: i for i, op in enumerate(ops)}
    makers: list[set[int]] = [set() for _ in ops]
    readers: list[set[int]] = [set() for _ in ops]
    for tensor in tensors:
        if tensor.producer is not None:
            maker = index[tensor.producer]
            readers[maker] |= {index[name] for name in tensor.consumers}
            for name in tensor.consumers:
                makers[index[name]].add(maker)
    scopes = [op.scope for op in ops]
    forwards = range(len(ops))
    for order, around in ((forwards, makers), (reversed(forwards), readers)):
        for i in order:
            if not scopes[i]:
                scopes[i] = _block_of([scopes[j] for j in sorted(around[i]) if scopes[j]])
    return tuple(dataclasses.replace(op, scope=s) for op, s in zip(ops, scopes, strict=True))


def _block_of(scopes: Sequence[str]) -> str:
    if not scopes:
        return ""
    paths = [scope.split("/") for scope in scopes]
    shared = []
    for parts in zip(*paths, strict=False):
        if len(set(parts)) > 1:
            break
        shared.append(parts[0])
    return "/".join(shared or paths[-1][:1])
