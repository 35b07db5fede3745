"""Branch and bound for throughput under any rules: overlap, phases apart, clusters.

Land and Doig, "An automatic method of solving discrete programming problems", Econometrica 1960. It
knows only what is certain of the loads so far, so it ends on small graphs.
"""

import numpy as np

from placement.core.graph import Ints
from placement.splits.model.contract import Units

# Splits that are better by no more than this share are not looked for.
_ROUNDING = 1e-10


class PricedBranchSearch:
    """A search that is continued for some nodes at a time.

    `best_s` and `best` (U,) start from a known split; `complete` says that none is better.
    """

    def __init__(self, units: Units, known: Ints, known_s: float) -> None:
        from placement.splits.exact.branch_priced_compiled import Descent

        self.units, self.best, self.best_s, self.complete = units, known.copy(), known_s, False
        heavy = np.where(units.on_acc, units.acc_s, units.cpu_s)
        self._order = np.argsort(-heavy, kind="stable")
        self._descent = Descent(
            depth=np.zeros(1, dtype=np.int64),
            choice=np.full(units.num_units, -1, dtype=np.int64),
            device=np.full(units.num_units, -1, dtype=np.int64),
        )

    def go_on(self, max_nodes: int) -> None:
        """Search `max_nodes` nodes more, or to the end."""
        from placement.splits.exact.branch_priced_compiled import branch_priced

        self.best_s, self.complete = branch_priced(
            self._descent,
            self._order,
            self.units.priced,
            bool((self.units.pinned < 0).all()),
            self.best,
            self.best_s,
            max_nodes,
        )

    @property
    def bound_s(self) -> float:
        return self.best_s * (1.0 - 2 * _ROUNDING) if self.complete else 0.0
