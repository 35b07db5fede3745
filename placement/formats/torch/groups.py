"""Colocation groups of a training step: what trains a parameter stays on one device.

Its first reader, the op that makes its gradient, and its update are one group, since each of them
would otherwise move the parameter or something as large. Views take no part in that by themselves:
what reads a transposed weight reads the weight.
"""

from collections.abc import Iterator, Mapping, Sequence
from operator import getitem

from placement.formats.torch.functional import viewed
from placement.formats.torch.program import Node


def join_groups(places: Sequence[Node], labels: Mapping[str, str]) -> None:
    """Note the group of each op; parameters that share an op share their group."""
    group_of: dict[Node, Node] = {}

    def root(node: Node) -> Node:
        while node in group_of and group_of[node] is not node:
            node = group_of[node]
        return node

    for place in places:
        updates = [user for user in place.users if user.meta.get("phase") == "update"]
        gradients = [maker for update in updates for maker in _makers(update.args[1])]
        for node in (*_first_readers(place), *gradients, *updates):
            group_of.setdefault(node, node)
            group_of[root(node)] = root(place)
    for node in list(group_of):
        node.meta["group"] = f"train {labels[root(node).name]}"


def _first_readers(value: Node) -> Iterator[Node]:
    """The first forward op that reads a value; of a view also the first that reads the view."""
    found = next((user for user in value.users if user.meta.get("phase") == "forward"), None)
    if found is not None:
        yield found
        if viewed(found) is not None:
            yield from _first_readers(found)


def _makers(value: Node) -> Iterator[Node]:
    """The op that makes a value; of a view also the one that makes what is viewed."""
    maker = value.args[0] if value.target is getitem else value
    yield maker
    below = viewed(maker)
    if below is not None:
        yield from _makers(below)
