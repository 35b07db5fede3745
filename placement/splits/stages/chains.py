"""The best chains of stages through a table of ideals, by a rising threshold on their loads."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.core.problem import Objective
from placement.splits.exact.ideals import FIRST_SLACK, TINY
from placement.splits.stages.blocks import Blocks
from placement.splits.stages.kinds import Kinds
from placement.splits.stages.pools import Pools, pools_of
from placement.splits.stages.table import Ideals


class Stage(NamedTuple):
    """A stage of a chain: the ideal that it completes, the devices used by then, its own device
    and its blocks."""

    ideal: int
    state: int
    device: int
    blocks: Ints


@dataclass(frozen=True, eq=False)
class Chains:
    """Chains of stages of loads up to `cap_s`: the least value by (ideal, state), and the ideal
    that its last stage begins at. Where nothing is below the cap nothing is known above it, and
    where all states are not asked for, nothing of those that others with fewer devices are as good
    as.

    States of `best_s` and `came` are those of the pools; elsewhere they are those of the kinds.
    """

    ideals: Ideals
    cap_s: float
    pools: Pools
    best_s: Floats
    came: Ints

    @property
    def least_s(self) -> float:
        """The least value of a chain of all blocks, infinite where there is none."""
        return float(self.best_s[-1].min())

    def by_state_s(self, ideal: int) -> Floats:
        """The least value of chains up to an ideal by state (S,)."""
        values_s: Floats = self.best_s[ideal, self.pools.of_state]
        return values_s

    def by_ideal_s(self, state: int) -> Floats:
        """The least value of chains that use the devices of a state by ideal (M,)."""
        values_s: Floats = self.best_s[:, self.pools.of_state[state]]
        return values_s

    def device_of_block(self) -> Ints:
        """Device of each block (B,) in the best chain."""
        device = np.full(self.ideals.blocks.num_blocks, -1, dtype=np.int64)
        for stage in self.stages():
            device[stage.blocks] = stage.device
        return device

    def stages(self) -> list[Stage]:
        """The best chain, found back from its end: its stages, the first one first."""
        kinds, ideals = self.ideals.kinds, self.ideals
        found: list[Stage] = []
        j, state = len(self.best_s) - 1, int(self.by_state_s(-1).argmin())
        while j > 0:
            i = int(self.came[j, self.pools.of_state[state]])
            way = self._way(i, j, state)
            found.append(Stage(j, state, kinds.device_of(way, state), ideals.between(i, j)))
            j, state = i, state - int(kinds.stride[kinds.kind[way]])
        return found[::-1]

    def _way(self, i: int, j: int, state: int) -> int:
        """The first way by which the stage between two ideals leads to the best value of a state.

        A pool does not tell in which of its kinds the stage is.
        """
        from placement.splits.stages.stages_compiled import stage_loads_s

        kinds, of_state = self.ideals.kinds, self.pools.of_state
        in_turn = self.ideals.blocks.problem.objective is Objective.LATENCY
        loads_s = np.empty(len(kinds.kind))
        stage_loads_s(self.ideals.table, i, j, in_turn, loads_s)
        value_s = self.best_s[j, of_state[state]]
        for way, k in enumerate(kinds.kind.tolist()):
            if kinds.used[state, k]:
                before_s = self.best_s[i, of_state[state - kinds.stride[k]]]
                load_s = loads_s[way]
                if value_s == (before_s + load_s if in_turn else max(before_s, load_s)):
                    return way
        raise AssertionError("no stage leads to the best value")


def best_chains(ideals: Ideals, upper_s: float = np.inf, most_stages: int | None = None) -> Chains:
    """The best chains up to `upper_s` where that is known, else below a threshold that lets one
    through; of no state that fewer devices are as good in.

    For throughput a chain is worth its largest load; for latency the sum of all, as stages run in
    turn, and there is no threshold.
    """
    if ideals.blocks.problem.objective is Objective.LATENCY:
        return _chains(ideals, np.inf, most_stages)
    if np.isfinite(upper_s):
        return _chains(ideals, upper_s, most_stages)
    bound_s, most_s = least_load_s(ideals.blocks, ideals.kinds), ideals.most_s
    slack = FIRST_SLACK
    while True:
        cap_s = min(bound_s + slack * max(bound_s, TINY * most_s), most_s)
        chains = _chains(ideals, cap_s, most_stages)
        if np.isfinite(chains.least_s) or cap_s >= most_s:
            return chains
        slack *= 2.0


def chains_up_to(ideals: Ideals, cap_s: float) -> Chains:
    """All chains up to `cap_s`, in every state."""
    return _chains(ideals, cap_s, every_state=True)


def _chains(
    ideals: Ideals, cap_s: float, most_stages: int | None = None, *, every_state: bool = False
) -> Chains:
    """Chains up to `cap_s`, of those of all blocks the ones of no more stages than that."""
    from placement.splits.stages.stages_compiled import best_chains as compiled

    in_turn = ideals.blocks.problem.objective is Objective.LATENCY
    # Sums of the same times in another order differ by rounding.
    cap_s *= 1.0 + 1e-12
    pools = pools_of(ideals.table, ideals.kinds)
    best_s, came = compiled(pools.table(ideals.table), cap_s, bool(in_turn), every_state)
    if most_stages is not None:
        best_s[-1, pools.num_used > most_stages] = np.inf
    return Chains(ideals, cap_s, pools, best_s, came)


def least_load_s(blocks: Blocks, kinds: Kinds) -> float:
    """No split has a smaller largest load: the work shared evenly, and the largest block."""
    least_s = blocks.least_s
    return float(max(least_s.sum() / kinds.num_devices, least_s.max(initial=0.0)))
