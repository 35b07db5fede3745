"""Pools of kinds: those that no load of a stage tells apart, counted together.

Accelerators of two hosts may not exchange their names where links are faster inside of a host, so
they are two kinds. But the table counts each transfer over the best link there is, and by such
loads they are the same: a chain is worth what another is that takes as many devices of each pool.
So the recurrence counts devices of pools, which have far fewer states than those of kinds.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from placement.core.graph import Ints
from placement.simulator.alike import numbered
from placement.splits.stages.kinds import Kinds

if TYPE_CHECKING:
    from placement.splits.stages.stages_compiled import Table

# Of a table, what has a column for each way, and what has a row or a number.
COLUMNS = "work_s", "lacking"
ROWS = "receive_s", "send_s", "call_s", "limit_bytes", "keeps"


@dataclass(frozen=True, eq=False)
class Pools:
    """The pool of each kind (K,), of which the numbers rise with its first kind."""

    kinds: Kinds
    of_kind: Ints

    @cached_property
    def most(self) -> Ints:
        """How many devices there are in each pool (P,)."""
        return np.bincount(self.of_kind, self.kinds.most).astype(np.int64)

    @cached_property
    def stride(self) -> Ints:
        """By how much one more device of a pool (P,) raises the number of a state."""
        return np.cumprod(np.concatenate([[1], self.most[:-1] + 1])).astype(np.int64)

    @cached_property
    def of_state(self) -> Ints:
        """The state of the pools for each one of the kinds (S,)."""
        found: Ints = self.kinds.used @ self.stride[self.of_kind]
        return found

    @property
    def num_used(self) -> Ints:
        """How many devices each state of the pools counts."""
        states = np.arange(int((self.most + 1).prod()))[:, None]
        used: Ints = (states // self.stride % (self.most + 1)).sum(axis=1)
        return used

    def table(self, table: "Table") -> "Table":
        """A table of the kinds for the pools: with the ways of the first kind of each."""
        if self.most.size == self.of_kind.size:
            return table
        first = np.unique(self.of_kind, return_index=True)[1]
        ways = np.flatnonzero(np.isin(self.kinds.kind, first))
        by_way: dict[str, Any] = {
            **{name: np.ascontiguousarray(getattr(table, name)[:, ways]) for name in COLUMNS},
            **{name: getattr(table, name)[ways] for name in ROWS},
        }
        return table._replace(
            **by_way,
            kind=self.of_kind[self.kinds.kind[ways]],
            stride=self.stride,
            most=self.most,
        )


def pools_of(table: "Table", kinds: Kinds) -> Pools:
    """The pools of kinds by all that loads are made of."""
    looks: list[list[bytes]] = [[] for _ in kinds.engines]
    for way, kind in enumerate(kinds.kind.tolist()):
        looks[kind] += [getattr(table, name)[:, way].tobytes() for name in COLUMNS]
        looks[kind] += [getattr(table, name)[way].tobytes() for name in ROWS]
    return Pools(kinds, numbered(map(tuple, looks)).of_device)
