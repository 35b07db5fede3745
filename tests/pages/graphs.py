"""Graphs for the canvas tests, made up or from the bundled samples."""

from collections.abc import Iterable

from pages.ui import canvas
from placement.core.graph import Graph, Op, Tensor

HOSTILE = "<img src=x onerror=alert(1)>"


def graph_of(
    ops: Iterable[tuple[str, str, str]], arcs: Iterable[tuple[int, int]], num_bytes: int = 4096
) -> Graph:
    """A graph from (name, kind, scope) and index pairs; one tensor per producer."""
    made = tuple(Op(name, kind, scope) for name, kind, scope in ops)
    readers: dict[int, dict[int, None]] = {i: {} for i in range(len(made))}
    for start, end in arcs:
        readers[start][end] = None
    tensors = tuple(
        Tensor(f"t{i}", made[i].name, tuple(made[j].name for j in ends), num_bytes * (i % 7 + 1))
        for i, ends in readers.items()
    )
    return Graph("made up", made, tensors)


def blocks(num_blocks: int = 6, size: int = 12) -> Graph:
    """Blocks of four parallel branches, one after the other."""
    ops: list[tuple[str, str, str]] = []
    arcs: list[tuple[int, int]] = []
    before = -1
    for block in range(num_blocks):
        scope = f"net/block{block}"
        first = len(ops)
        ops.append((f"{scope}/split", "Identity", scope))
        if before >= 0:
            arcs.append((before, first))
        ends = []
        for branch in range(4):
            last = first
            for step in range((size - 2) // 4 + branch % 2):
                kind = "Relu" if step % 2 else "Conv"
                ops.append((f"{scope}/b{branch}/{kind.lower()}_{step}", kind, f"{scope}/b{branch}"))
                arcs.append((last, len(ops) - 1))
                last = len(ops) - 1
            ends.append(last)
        ops.append((f"{scope}/join", "Concat", scope))
        before = len(ops) - 1
        arcs.extend((end, before) for end in ends)
    return graph_of(ops, arcs)


def chain(num_ops: int) -> Graph:
    ops = [(f"n{i}", "Conv" if i % 2 else "Relu", "") for i in range(num_ops)]
    return graph_of(ops, [(i, i + 1) for i in range(num_ops - 1)])


def wide(num_ops: int = 80) -> Graph:
    """One source that everything reads, and ops with no edges at all."""
    ops = [(f"n{i}", "Add", "") for i in range(num_ops)]
    return graph_of(ops, [(0, i) for i in range(1, num_ops // 2)])


def stacked(num_layers: int = 12) -> Graph:
    """Equal layers in a chain with a head and a tail, and constants that every layer reads."""
    ops = [(f"c{i}", "Constant", "") for i in range(5)]
    ops.append(("embed", "Gather", ""))
    arcs = [(0, 5)]
    for layer in range(num_layers):
        scope = f"layer{layer}"
        for kind in ("MatMul", "Relu", "Add"):
            arcs.append((len(ops) - 1, len(ops)))
            ops.append((f"{scope}/{kind.lower()}", kind, scope))
        arcs.extend((i, len(ops) - 1) for i in range(5))
    arcs.append((len(ops) - 1, len(ops)))
    ops.append(("head", "Softmax", ""))
    return graph_of(ops, arcs)


def hostile() -> Graph:
    ops = [(f"{HOSTILE}{i}", HOSTILE, f"{HOSTILE}/</script>") for i in range(3)]
    ops.append(('"\u202e`${x}', "Conv\u0000\n", 'a href="x"/b'))
    return graph_of(ops, [(0, 1), (1, 2), (2, 3)])


def graph_named(name: str) -> Graph:
    """A made-up graph, with a size where wanted ("chain-1000"), or a bundled sample."""
    if name.startswith("chain-"):
        return chain(int(name.removeprefix("chain-")))
    if name.startswith("blocks-"):
        return blocks(int(name.removeprefix("blocks-")))
    made = {"blocks": blocks, "wide": wide, "hostile": hostile, "stacked": stacked}
    if name in made:
        return made[name]()
    from placement import loaders

    return loaders.load(name).graph


def all_groups(graph: Graph) -> frozenset[str]:
    return frozenset(g.id for g in canvas.scope_tree(graph).groups[1:])


def hashes_of_views() -> list[str]:
    """What the browser would keep four views under: of two graphs, at first sight and opened."""
    return [
        canvas.build_view(graph, expanded).hash
        for graph in (blocks(), wide())
        for expanded in (canvas.default_expanded(graph), all_groups(graph))
    ]
