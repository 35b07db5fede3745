"""A PyTorch program as kernels: every aten op is one, but for products that are summed at once.

Where a weight is used at several times, and where several ops read what a layer has made, a
gradient is a sum of one product for each. A product and its sum between which a lane computes other
things find their memory cold, which takes nearly twice as long on lanes that go to and fro between
branches; run behind one another they do not. So such a pair is one kernel, with the views between
them, and on one device.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from placement.core.graph import Graph, Op, Tensor
from placement.formats.torch.program import TorchProgram

# What a gradient that is summed mostly comes from.
_PRODUCTS = ("mm", "bmm", "sum")


def joined_ops(graph: Graph, program: TorchProgram) -> tuple[tuple[str, ...], ...]:
    """`joined` of a program's ops, with what it hands back in view."""
    names = [name for _, name in (*program.outputs, *program.updates)]
    return joined(graph, {program.maker[name].name for name in names if name in program.maker})


def joined(graph: Graph, kept: Collection[str]) -> tuple[tuple[str, ...], ...]:
    """By kernel the ops that it runs, in order; kernels stand where their last op does.

    A product joins the sum of gradients that alone reads it, directly or through views, where it
    is the last thing that the sum waits for: else it would be held back for what comes later. What
    ops make that are `kept` goes on elsewhere. Nothing else reads what lies inside, so no two
    kernels wait for each other.
    """
    inside: dict[int, list[int]] = {}
    for i, op in enumerate(graph.ops):
        if op.kind == "add" and op.phase == "backward" and graph.predecessors[i]:
            inside[i] = _chain(graph, i, max(graph.predecessors[i]), kept)
    gone = {k for chain in inside.values() for k in chain}
    return tuple(
        tuple(graph.ops[k].name for k in (*inside.get(i, ()), i))
        for i in range(len(graph.ops))
        if i not in gone
    )


def _chain(graph: Graph, sum_op: int, last: int, kept: Collection[str]) -> list[int]:
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
