"""Branch and bound for throughput under any rules: overlap, phases apart, clusters.

Land and Doig, "An automatic method of solving discrete programming problems", Econometrica 1960. It
knows only what is certain of the loads so far, so it ends on small graphs.
"""

import numpy as np

from placement.core.graph import Ints
from placement.splits.exact.branching import Branching
from placement.splits.model.contract import Units


class PricedBranchSearch(Branching):
    """Devices of units, by what is certain of their loads."""

    # Twice the share by which splits must be better to be looked for.
    rounding = 2e-10

    def __init__(self, units: Units, known: Ints, known_s: float) -> None:
        from placement.splits.exact.branch_priced_compiled import Descent

        super().__init__(known, known_s)
        self.units = units
        heavy = np.where(units.on_acc, units.acc_s, units.cpu_s)
        self._order = np.argsort(-heavy, kind="stable")
        self._descent = Descent(
            depth=np.zeros(1, dtype=np.int64),
            choice=np.full(units.num_units, -1, dtype=np.int64),
            device=np.full(units.num_units, -1, dtype=np.int64),
        )

    def go_on(self, max_nodes: int) -> None:
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
