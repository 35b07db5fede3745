"""Labels for the ops that have none, from the ops around them.

A rectifier goes with the convolution before it. Where branches meet, the op that joins them belongs
to the block that holds the branches. A pool that opens a branch belongs to the branch, and what
shapes the data for a classifier belongs to the classifier.
"""

from collections.abc import Sequence

from placement.formats.scopes.structure import Path, ScopeNode

# Ops that open a head: they shape the data for the product that follows.
_HEADS = {"Reshape", "Flatten", "Squeeze", "GlobalAveragePool", "ReduceMean", "AveragePool"}
_PASSING = _HEADS | {"Dropout", "Identity", "Cast", "Transpose"}


def inherit(nodes: Sequence[ScopeNode], labels: Sequence[Path | None]) -> list[Path]:
    """A path for every op; nodes are in topological order."""
    after: list[list[int]] = [[] for _ in nodes]
    for i, node in enumerate(nodes):
        for j in node.before:
            after[j].append(i)
    given = _believed(nodes, labels)
    leaves = {label for label in given if label is not None}
    found: list[Path | None] = list(given)
    gates = _gates(nodes)
    for i in range(len(nodes)):
        if found[i] is None:
            found[i] = _from_before(i, nodes, found, given, after, gates, leaves)
    _heads(nodes, found, given, after)
    for i in reversed(range(len(nodes))):
        if found[i] is None:
            found[i] = next((found[j] for j in after[i] if found[j] is not None), ())
    return [path or () for path in found]


def _believed(nodes: Sequence[ScopeNode], labels: Sequence[Path | None]) -> list[Path | None]:
    """Labels of products, and of other ops where a product has the same label or one below.

    A normalisation whose weights are called otherwise than all products follows its producer.
    """
    of_products = {
        label for node, label in zip(nodes, labels, strict=True) if node.is_product and label
    }
    if not of_products:
        return list(labels)
    known = {label[:depth] for label in of_products for depth in range(1, len(label) + 1)}
    return [label if label in known else None for label in labels]


def _from_before(
    i: int,
    nodes: Sequence[ScopeNode],
    found: Sequence[Path | None],
    given: Sequence[Path | None],
    after: Sequence[Sequence[int]],
    gates: Sequence[int],
    leaves: set[Path],
) -> Path | None:
    sources = [j for j in nodes[i].before if found[j] is not None]
    if not sources:
        return None
    last = max(sources)
    path = found[last]
    assert path is not None
    if len(nodes[i].before) == 1:
        return _branch(i, last, path, given, after, nodes) or path
    # The input that every path passes is what the branches started from, not one of them.
    branches = [found[j] or () for j in sources if j != gates[i]] or [path]
    if len(set(branches)) > 1:
        return _common(branches) or path[:1]
    path = branches[0]
    joins = len(sources) > 1 and any(found[j] != path for j in sources)
    return path[:-1] if joins and path in leaves and len(path) > 1 else path


def _branch(
    i: int,
    producer: int,
    path: Path,
    given: Sequence[Path | None],
    after: Sequence[Sequence[int]],
    nodes: Sequence[ScopeNode],
) -> Path | None:
    """Where the op opens a branch behind a fork: the block that the branch leads into."""
    if len(after[producer]) < 2:
        return None
    j = i
    while len(after[j]) == 1:
        j = after[j][0]
        if given[j] is not None:
            return given[j]
        if len(nodes[j].before) > 1:
            # Straight into a join: the block of the labelled branches that it joins with.
            others = [_label_behind(k, given, nodes) for k in nodes[j].before if k != i]
            joined = [label for label in others if label is not None]
            block = _common(joined) if joined else ()
            return block if len(joined) > 1 and block and block != path[: len(block)] else None
    return None


def _label_behind(i: int, given: Sequence[Path | None], nodes: Sequence[ScopeNode]) -> Path | None:
    """The label at or before an op along a chain."""
    while given[i] is None and len(nodes[i].before) == 1:
        i = nodes[i].before[0]
    return given[i]


def _heads(
    nodes: Sequence[ScopeNode],
    found: list[Path | None],
    given: Sequence[Path | None],
    after: Sequence[Sequence[int]],
) -> None:
    """Move the chain of ops that shapes the data for a classifier into its scope."""
    for i, node in enumerate(nodes):
        if not node.is_product or given[i] is None or len(node.before) != 1:
            continue
        chain = []
        j = node.before[0]
        while given[j] is None and nodes[j].kind in _PASSING and len(after[j]) == 1:
            chain.append(j)
            if len(nodes[j].before) != 1:
                break
            j = nodes[j].before[0]
        heads = {"GlobalAveragePool", "ReduceMean"} if node.kind == "Conv" else _HEADS
        while chain and nodes[chain[-1]].kind not in heads:
            chain.pop()
        for j in chain:
            found[j] = given[i]


def _common(paths: Sequence[Path]) -> Path:
    first, last = min(paths), max(paths)
    depth = 0
    while depth < min(len(first), len(last)) and first[depth] == last[depth]:
        depth += 1
    return first[:depth]


def _gates(nodes: Sequence[ScopeNode]) -> list[int]:
    """Immediate dominator of each op, -1 for none (Cooper, Harvey and Kennedy, 2001)."""
    gate, depth = [-1] * len(nodes), [0] * len(nodes)
    for i, node in enumerate(nodes):
        if not node.before:
            continue
        meet = node.before[0]
        for j in node.before[1:]:
            while meet != j and meet >= 0 and j >= 0:
                if depth[meet] >= depth[j]:
                    meet = gate[meet]
                else:
                    j = gate[j]
            if meet < 0 or j < 0:
                meet = -1
                break
        gate[i] = meet
        depth[i] = depth[meet] + 1 if meet >= 0 else 0
    return gate
