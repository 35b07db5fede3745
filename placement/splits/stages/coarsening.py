"""Coarser blocks for graphs with too many ideals: light ones join those around them.

Borders between stages lie best where few bytes cross. So a block that opens more values than it
closes, in the order of the blocks, joins the first one that reads of it, and one that closes more
joins the last one that it reads of; neither can make a cycle.
"""

import numpy as np

from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.splits.model.instance import Bools
from placement.splits.stages.blocks import Blocks, rows_of

# A block joins another one up to this share of all work at first; then twice as much each time.
FIRST_SHARE = 1 / 4096


def coarser(blocks: Blocks, share: float) -> Blocks:
    """The blocks after one pass in each direction with some share of all work.

    With all of it nothing is left that has a neighbour.
    """
    most_s = share * float(blocks.least_s.sum())
    for forwards in (True, False):
        opens = _opening_bytes(blocks)
        may = opens > 0 if forwards else opens <= 0
        if share >= 1.0:
            may = np.ones_like(may)
        blocks = blocks.joined(_joining(blocks, may, most_s, forwards))
    return blocks


def _joining(blocks: Blocks, may: Bools, most_s: float, forwards: bool) -> Ints:
    """The block that each one (B,) joins, itself for those that stay.

    Each takes in no more than `most_s` together, so that long chains do not become one block.
    """
    neighbours = rows_of(*(blocks.successors if forwards else blocks.predecessors))
    weights, allowed = blocks.least_s.tolist(), may.tolist()
    into = list(range(blocks.num_blocks))
    taken_s = [0.0] * blocks.num_blocks
    nearest = min if forwards else max
    # Neighbours were decided before, so each leads to the one that it is in.
    for b in reversed(into.copy()) if forwards else into.copy():
        if neighbours[b] and allowed[b]:
            target = nearest(into[n] for n in neighbours[b])
            together_s = taken_s[target] + weights[b] + taken_s[b]
            if together_s <= most_s:
                into[b], taken_s[target] = target, together_s
    return np.array(into, dtype=np.int64)


def _opening_bytes(blocks: Blocks) -> Floats:
    """Bytes (B,) that cross the border behind each block beyond those before it."""
    nets = blocks.nets
    changes = np.zeros(blocks.num_blocks + 1)
    first = np.where(nets.maker >= 0, nets.maker, blocks.num_blocks)
    last = nets.maker.copy()
    np.minimum.at(first, nets.net_of_reader, nets.readers)
    np.maximum.at(last, nets.net_of_reader, nets.readers)
    np.add.at(changes, first, nets.num_bytes)
    np.subtract.at(changes, last, nets.num_bytes)
    return changes[:-1]
