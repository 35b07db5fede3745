"""Contiguous stages of a model: the best split over all ideals, and over linear orders.

Tarnawski et al., "Efficient algorithms for device placement of DNN graph operators", NeurIPS 2020,
with transfers over links instead of through host memory. Whoever asks brings the function that
values a split, so that an answer is worth what the schedule of its placement is worth.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from placement.core.graph import Ints, topological_order
from placement.core.problem import Objective, Problem
from placement.simulator.evaluator import has_requests
from placement.splits.exact.ideals import TooManyIdeals, all_ideals
from placement.splits.exact.linear import linear_orders
from placement.splits.stages.blocks import Blocks, blocks_of
from placement.splits.stages.chains import Chains, best_chains, chains_up_to
from placement.splits.stages.closing import SAME, closed
from placement.splits.stages.coarsening import FIRST_SHARE, coarser
from placement.splits.stages.kinds import Kinds, kinds_of
from placement.splits.stages.table import Ideals, beginnings, ideals_of

# Ideals times states of the recurrence.
MOST_ENTRIES = 20_000_000
# Blocks that are few: their intervals take no time.
FEW = 80
# Splits are compared up to this factor above the least load where the first one does not fit.
BEYOND = 1.5
# Blocks in linear orders of which several are tried, and in the one that moves borders in the end.
MOST_IN_ORDERS, MOST_IN_LAST = 1_200, 3_000

Evaluate = Callable[[Ints], float]
# Whether to go on, asked after each order with the best value so far.
More = Callable[[float], bool]


def always(value_s: float) -> bool:
    """Go on to the end."""
    return True


@dataclass(frozen=True, eq=False)
class Split:
    """A division into stages: the device of each unit (U,), and its value.

    No contiguous split into the `num_blocks` blocks is below `bound_s`, zero where nothing is
    proven; `is_finest` says whether none of the blocks were joined for it. `chains` are those of
    the table that it was found in, or near a chain of which.
    """

    device_of_unit: Ints
    value_s: float
    bound_s: float
    num_blocks: int
    is_finest: bool
    chains: Chains

    @property
    def is_best(self) -> bool:
        return self.value_s <= self.bound_s * (1.0 + SAME)


def best_split(
    problem: Problem,
    evaluate: Evaluate,
    *,
    most_ideals: int,
    num_orders: int,
    seed: int = 0,
    memory_share: float = 1.0,
    more: More = always,
) -> Split | None:
    """The best contiguous split over all ideals, None if none keeps all limits.

    Intervals of some linear orders are tried first, because a value that is known saves time; where
    there should be no `more` after one of them the best so far is the answer. Of graphs with more
    ideals than `most_ideals` blocks are joined until there are few enough, and the borders that are
    best then are moved by single blocks again. Raises TooManyIdeals where joining does not help.
    Nothing is proven where devices had to be left out (`Kinds.is_complete`).
    """
    task = _task(problem, evaluate, memory_share)
    split = _best_of_ideals(task, most_ideals, num_orders, seed, more)
    return split if split is None or task.kinds.is_complete else replace(split, bound_s=0.0)


def _best_of_ideals(
    task: "_Task", most_ideals: int, num_orders: int, seed: int, more: More
) -> Split | None:
    most = min(most_ideals, max(2, MOST_ENTRIES // task.kinds.num_states))
    blocks, rows = _few_ideals(task.levels, most)
    is_finest = blocks is task.levels[0]
    start, going_on = _best_of_orders(task, num_orders, seed, more)
    if start is not None and not going_on:
        return start
    upper_s = np.inf if start is None else start.value_s
    ideals = ideals_of(blocks, task.kinds, rows)
    found = _first(task, ideals, upper_s)
    if found is None:
        # What was joined has no split that is as good as one of finer blocks.
        return start and replace(start, bound_s=upper_s, num_blocks=blocks.num_blocks)
    if start is not None and start.value_s < found.value_s:
        found = replace(found, device_of_unit=start.device_of_unit, value_s=start.value_s)
    if is_finest:
        return replace(_improved(task, ideals, found), is_finest=True)
    found = _improved(task, ideals, found)
    order = _order_of_stages(_few_enough(task.levels, MOST_IN_LAST), found.device_of_unit)
    finer = beginnings(_few_enough(task.levels, MOST_IN_LAST), task.kinds, order)
    moved = _first(task, finer, found.value_s)
    if moved is None or moved.value_s >= found.value_s:
        return found
    return replace(found, device_of_unit=moved.device_of_unit, value_s=moved.value_s)


def best_of_orders(
    problem: Problem,
    evaluate: Evaluate,
    *,
    num_orders: int,
    seed: int = 0,
    memory_share: float = 1.0,
    more: More = always,
) -> Split | None:
    """The best contiguous split into intervals of a few linear orders, None if there is none.

    Once there should be no `more`, the best of the orders so far is the answer.
    """
    return _best_of_orders(_task(problem, evaluate, memory_share), num_orders, seed, more)[0]


@dataclass(frozen=True, eq=False)
class _Task:
    """What is asked for: a problem with how to value its splits, its kinds of devices, and its
    blocks, the finest first and then ever coarser ones, each of blocks of those before."""

    problem: Problem
    evaluate: Evaluate
    memory_share: float
    kinds: Kinds
    levels: tuple[Blocks, ...]


def _task(problem: Problem, evaluate: Evaluate, memory_share: float) -> _Task:
    levels, share = [blocks_of(problem)], FIRST_SHARE
    while share <= 2.0 and levels[-1].num_blocks > 1:
        joined = coarser(levels[-1], share)
        if joined.num_blocks < levels[-1].num_blocks:
            levels.append(joined)
        share *= 2.0
    return _Task(problem, evaluate, memory_share, kinds_of(problem), tuple(levels))


def _few_enough(levels: Sequence[Blocks], most: int) -> Blocks:
    """The finest blocks that are no more than that, or the coarsest."""
    return next((blocks for blocks in levels if blocks.num_blocks <= most), levels[-1])


def _few_ideals(levels: Sequence[Blocks], most: int) -> tuple[Blocks, Ints]:
    """The finest blocks of few enough ideals, and these ideals as rows of words."""
    for blocks in levels:
        if blocks.num_blocks < most:
            with suppress(TooManyIdeals):
                return blocks, all_ideals(*blocks.successors, most)
    raise TooManyIdeals(
        f"The graph has more than {most} downward-closed sets, even with light ops joined to"
        " others; use linear_dp."
    )


def _best_of_orders(
    task: _Task, num_orders: int, seed: int, more: More
) -> tuple[Split | None, bool]:
    """The best split, and whether to go on."""
    blocks = _few_enough(task.levels, MOST_IN_ORDERS)
    orders = linear_orders(*blocks.successors, num_orders, seed)
    tries = [(blocks, np.array(order, dtype=np.int64)) for order in orders]
    coarse = _few_enough(task.levels, FEW)
    if coarse is not blocks:
        # Few blocks take no time, and a value that is known leaves few pairs to the others.
        tries.insert(0, (coarse, np.arange(coarse.num_blocks)))
    best: tuple[Ideals, Split] | None = None
    for each, order in tries:
        ideals = beginnings(each, task.kinds, order)
        found = _first(task, ideals, np.inf if best is None else best[1].value_s)
        if found is not None and (best is None or found.value_s < best[1].value_s):
            best = ideals, found
        if best is not None and not more(best[1].value_s):
            return replace(best[1], bound_s=0.0), False
    if best is None:
        return None, True
    split = best[1]
    if task.problem.objective is Objective.THROUGHPUT:
        split = _improved(task, *best)
    # What bounds the splits of one order says nothing of the others.
    return replace(split, bound_s=0.0), True


def _first(task: _Task, ideals: Ideals, upper_s: float) -> Split | None:
    """The best chain by its loads up to `upper_s`, if need be the best that keeps values in memory.

    Its bound is below all splits of these ideals.
    """
    chains = best_chains(ideals, upper_s)
    if not np.isfinite(chains.least_s):
        return None
    found = _valued(task, chains)
    if np.isfinite(found.value_s):
        return found
    # Each stage works on a request of its own, whose state is in the memories of all stages.
    most_stages = task.kinds.num_devices if has_requests(task.problem) else 1
    for number in range(1, most_stages + 1):
        limit = number if has_requests(task.problem) else None
        tight = best_chains(ideals.with_values(task.memory_share, number), upper_s, limit)
        if np.isfinite(tight.least_s):
            split = replace(_valued(task, tight), bound_s=chains.least_s)
            found = min(split, found, key=lambda each: each.value_s)
    return found


def _valued(task: _Task, chains: Chains) -> Split:
    """The best chain. Its loads are counted low, so they bound those of all others."""
    blocks = chains.ideals.blocks
    devices = chains.device_of_block()[blocks.block_of_unit]
    return Split(devices, task.evaluate(devices), chains.least_s, blocks.num_blocks, False, chains)


def _improved(task: _Task, ideals: Ideals, split: Split) -> Split:
    """The best split of all, or the best that was found and a bound for all."""
    if split.is_best:
        return split
    # What does not fit is worth nothing; others near the best may.
    cap_s = min(split.value_s, BEYOND * split.bound_s, ideals.most_s)
    of_unit = ideals.blocks.block_of_unit
    wider = chains_up_to(ideals, cap_s)
    found = closed(wider, split.value_s, lambda devices: task.evaluate(devices[of_unit]))
    proven = found.is_best and found.value_s <= cap_s
    split = replace(split, bound_s=found.value_s if proven else split.bound_s)
    if found.device_of_block is None:
        return split
    devices = found.device_of_block[of_unit]
    return replace(split, device_of_unit=devices, value_s=found.value_s)


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
