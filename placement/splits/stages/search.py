"""Contiguous stages of a model: the best split over all ideals, and over linear orders.

Tarnawski et al., "Efficient algorithms for device placement of DNN graph operators", NeurIPS 2020,
with transfers over links instead of through host memory. Whoever asks brings the function that
values a split, so that an answer is worth what the schedule of its placement is worth.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from placement.core.graph import Ints, topological_order
from placement.core.problem import Objective, Problem
from placement.splits.exact.ideals import TooManyIdeals, all_ideals
from placement.splits.exact.linear import linear_orders
from placement.splits.stages.blocks import Blocks, blocks_of
from placement.splits.stages.chains import Chains, best_chains, chains_up_to
from placement.splits.stages.closing import SAME, closed
from placement.splits.stages.coarsening import FIRST_SHARE, coarser
from placement.splits.stages.kinds import kinds_of
from placement.splits.stages.table import Ideals, beginnings, ideals_of

# Ideals times states of the recurrence.
MOST_ENTRIES = 20_000_000
# Where blocks were joined, intervals of so many orders of finer ones stand beside the best split.
NUM_ORDERS = 4
# Splits are compared up to this factor above the least load where the first one does not fit.
BEYOND = 1.5
# Blocks in linear orders of which several are tried, and in the one that moves borders in the end.
MOST_IN_ORDERS, MOST_IN_LAST = 1_200, 3_000

Evaluate = Callable[[Ints], float]


@dataclass(frozen=True, eq=False)
class Split:
    """A division into stages: the device of each unit (U,), and its value.

    No contiguous split into the `num_blocks` blocks is below `bound_s`, zero where nothing is
    proven; `is_finest` says whether none of the blocks were joined for it.
    """

    device_of_unit: Ints
    value_s: float
    bound_s: float
    num_blocks: int
    is_finest: bool

    @property
    def is_best(self) -> bool:
        return self.value_s <= self.bound_s * (1.0 + SAME)


def best_split(
    problem: Problem, evaluate: Evaluate, *, most_ideals: int, memory_share: float = 1.0
) -> Split | None:
    """The best contiguous split over all ideals, None if none keeps all limits.

    Of graphs with more ideals than `most_ideals` blocks are joined until there are few enough, and
    the borders that are best then are moved by single blocks again. Raises TooManyIdeals where
    joining does not help.
    """
    kinds = kinds_of(problem)
    most = min(most_ideals, max(2, MOST_ENTRIES // kinds.num_states))
    levels, rows = _few_ideals(blocks_of(problem), most)
    blocks = levels[-1]
    ideals = ideals_of(blocks, kinds, rows)
    found = _first(ideals, evaluate, memory_share)
    if found is None:
        return None
    found = replace(_improved(ideals, found, evaluate), is_finest=len(levels) == 1)
    if found.is_finest:
        return found
    finer = _few_enough(levels, MOST_IN_LAST)
    order = _order_of_stages(finer, found.device_of_unit)
    moved = _first(beginnings(finer, kinds, order), evaluate, memory_share, found.value_s)
    orders = best_of_orders(
        problem, evaluate, num_orders=NUM_ORDERS, seed=0, memory_share=memory_share
    )
    better = min((each for each in (found, moved, orders) if each), key=lambda each: each.value_s)
    return replace(found, device_of_unit=better.device_of_unit, value_s=better.value_s)


def best_of_orders(
    problem: Problem, evaluate: Evaluate, *, num_orders: int, seed: int, memory_share: float = 1.0
) -> Split | None:
    """The best contiguous split into intervals of a few linear orders, None if there is none."""
    kinds = kinds_of(problem)
    blocks = _few_enough(_levels(blocks_of(problem)), MOST_IN_ORDERS)
    best: tuple[Ideals, Split] | None = None
    for order in linear_orders(*blocks.successors, num_orders, seed):
        ideals = beginnings(blocks, kinds, np.array(order, dtype=np.int64))
        upper_s = np.inf if best is None else best[1].value_s
        found = _first(ideals, evaluate, memory_share, upper_s)
        if found is not None and (best is None or found.value_s < best[1].value_s):
            best = ideals, found
    if best is None:
        return None
    split = best[1]
    if problem.objective is Objective.THROUGHPUT:
        split = _improved(*best, evaluate)
    # What bounds the splits of one order says nothing of the others.
    return replace(split, bound_s=0.0)


def _levels(finest: Blocks) -> Iterator[Blocks]:
    """The finest blocks and coarser ones, each of blocks of those before."""
    yield finest
    blocks, share = finest, FIRST_SHARE
    while share <= 2.0:
        joined = coarser(blocks, share)
        if joined.num_blocks < blocks.num_blocks:
            blocks = joined
            yield blocks
        share *= 2.0


def _few_enough(levels: Iterable[Blocks], most: int) -> Blocks:
    """The finest blocks that are no more than that, or the coarsest."""
    for blocks in levels:
        found = blocks
        if blocks.num_blocks <= most:
            break
    return found


def _few_ideals(finest: Blocks, most: int) -> tuple[list[Blocks], Ints]:
    """Ever coarser blocks up to those of few enough ideals, and these ideals as rows of words."""
    levels = list[Blocks]()
    for blocks in _levels(finest):
        levels.append(blocks)
        if blocks.num_blocks < most:
            with suppress(TooManyIdeals):
                return levels, all_ideals(*blocks.successors, most)
    raise TooManyIdeals(
        f"The graph has more than {most} downward-closed sets, even with light ops joined to"
        " others; use linear_dp."
    )


def _first(
    ideals: Ideals, evaluate: Evaluate, memory_share: float, upper_s: float = np.inf
) -> Split | None:
    """The best chain by its loads, if need be the best of those that keep values in memory.

    Its bound is below all splits of these ideals.
    """
    chains = best_chains(ideals, upper_s)
    if not np.isfinite(chains.least_s):
        return None
    found = _valued(chains, evaluate)
    if np.isinf(found.value_s):
        tight = best_chains(ideals.with_values(memory_share), upper_s)
        if np.isfinite(tight.least_s):
            found = replace(_valued(tight, evaluate), bound_s=chains.least_s)
    return found


def _valued(chains: Chains, evaluate: Evaluate) -> Split:
    """The best chain. Its loads are counted low, so they bound those of all others."""
    blocks = chains.ideals.blocks
    devices = chains.device_of_block()[blocks.block_of_unit]
    return Split(devices, evaluate(devices), chains.least_s, blocks.num_blocks, False)


def _improved(ideals: Ideals, split: Split, evaluate: Evaluate) -> Split:
    """The best split of all, or the best that was found and a bound for all."""
    if split.is_best:
        return split
    # What does not fit is worth nothing; others near the best may.
    cap_s = min(split.value_s, BEYOND * split.bound_s, ideals.most_s)
    blocks = ideals.blocks
    of_unit = blocks.block_of_unit
    start = np.zeros(blocks.num_blocks, dtype=np.int64)
    start[of_unit] = split.device_of_unit
    wider = chains_up_to(ideals, cap_s)
    found = closed(wider, start, split.value_s, lambda devices: evaluate(devices[of_unit]))
    proven = found.is_best and found.value_s <= cap_s
    return replace(
        split,
        device_of_unit=found.device_of_block[of_unit],
        value_s=found.value_s,
        bound_s=found.value_s if proven else split.bound_s,
    )


def _order_of_stages(blocks: Blocks, device_of_unit: Ints) -> Ints:
    """The blocks in an order in which each stage of a split is an interval."""
    device = np.zeros(blocks.num_blocks, dtype=np.int64)
    device[blocks.block_of_unit] = device_of_unit
    after: list[list[int]] = [[] for _ in blocks.problem.machine.devices]
    pairs = np.unique(device[blocks.edges], axis=0)
    for a, b in pairs[pairs[:, 0] != pairs[:, 1]].tolist():
        after[a].append(b)
    order = topological_order(len(after), after)
    assert order is not None, "stages have a cycle"
    rank = np.empty(len(after), dtype=np.int64)
    rank[order] = np.arange(len(after))
    return np.argsort(rank[device], kind="stable")
