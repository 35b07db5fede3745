"""A PyTorch program as kernels: every aten op is one, but for products that are summed at once.

Where a weight is used at several times, its gradient is a sum of one product for each. A product
and its sum between which a lane computes other things find their memory cold, which takes nearly
twice as long on lanes that go to and fro between branches; run behind one another they do not. So
such a pair is one kernel, with the views between them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from placement.core.graph import Graph, Op, Tensor
from placement.formats.torch.program import TorchProgram

# Kernels that read much and make what is as large as a weight.
_PRODUCTS = ("mm", "bmm", "sum")


def joined_ops(graph: Graph, program: TorchProgram) -> tuple[tuple[str, ...], ...]:
    """By kernel the ops that it runs, in order; kernels stand where their last op does.

    A product joins the sum of gradients that alone reads it, directly or through views. Nothing
    else reads what lies inside, so no two kernels can wait for each other. Of two products that a
    sum adds, the one that is made last joins it.
    """
    kept = {name for _, name in (*program.outputs, *program.updates)}
    joined: dict[int, list[int]] = {}
    for i, op in enumerate(graph.ops):
        if op.kind == "add" and op.phase == "backward":
            chains = (_chain(graph, i, before, kept) for before in graph.predecessors[i])
            joined[i] = max(chains, key=lambda chain: chain[:1], default=[])
    inside = {i for chain in joined.values() for i in chain}
    return tuple(
        tuple(graph.ops[k].name for k in (*joined.get(i, ()), i))
        for i in range(len(graph.ops))
        if i not in inside
    )


def _chain(graph: Graph, sum_op: int, last: int, kept: set[str]) -> list[int]:
    """A product and the views behind it, up to the `last`, which only a sum reads; or nothing."""
    found = []
    group = graph.ops[sum_op].colocation_group
    reader = sum_op
    while True:
        op = graph.ops[last]
        if graph.successors[last] != (reader,) or op.colocation_group != group or op.name in kept:
            return []
        found.append(last)
        if op.kind in _PRODUCTS:
            return found[::-1]
        if op.moved_bytes != 0 or len(graph.predecessors[last]) != 1:
            return []
        reader, last = last, graph.predecessors[last][0]


def kernel_graph(graph: Graph, members: Sequence[Sequence[str]]) -> Graph:
    """The graph of kernels that run these ops of a graph; what stays inside one is left out."""
    if all(len(names) == 1 for names in members):
        return graph
    kernels = [_kernel([graph.ops[graph.index[name]] for name in names]) for names in members]
    pairs = zip(kernels, members, strict=True)
    kernel_of = {name: kernel.name for kernel, names in pairs for name in names}
    found = (_between(tensor, kernel_of) for tensor in graph.tensors)
    tensors = tuple(tensor for tensor in found if tensor is not None)
    return Graph(graph.name, tuple(kernels), tensors)


def _kernel(ops: Sequence[Op]) -> Op:
    if len(ops) == 1:
        return ops[0]
    moved = [op.moved_bytes for op in ops]
    return replace(
        ops[-1],
        name=f"{ops[0].name}+{ops[-1].name}",
        kind=f"{ops[0].kind}+{ops[-1].kind}",
        flops=sum(op.flops for op in ops),
        param_bytes=sum(op.param_bytes for op in ops),
        state_bytes=sum(op.state_bytes for op in ops),
        moved_bytes=None if None in moved else sum(each or 0.0 for each in moved),
    )


def _between(tensor: Tensor, kernel_of: Mapping[str, str]) -> Tensor | None:
    """The tensor as kernels make and read it; None where it stays inside of one."""
    producer = None if tensor.producer is None else kernel_of[tensor.producer]
    readers = dict.fromkeys(kernel_of[name] for name in tensor.consumers)
    if producer in readers:
        return None
    return replace(tensor, producer=producer, consumers=tuple(readers))
