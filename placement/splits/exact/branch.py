"""Branch and bound for throughput without contiguity: every split that could be better is tried.

Land and Doig, "An automatic method of solving discrete programming problems", Econometrica 1960.
Units get devices one by one, those with most work first; transfers count as soon as they are
certain. Accelerators that are alike are opened in order, so that no split is seen twice.
"""

import numpy as np

from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.splits.bounds.loads import offload_s
from placement.splits.exact.branching import Branching
from placement.splits.model.contract import Units


class BranchSearch(Branching):
    """Devices of units, by plain sums."""

    # Sums of the same times in another order differ by this much at most.
    rounding = 1e-12

    def __init__(self, units: Units, known: Ints, known_s: float) -> None:
        from placement.splits.exact.branch_compiled import Tree

        instance = units.instance
        num, k, num_devices = units.num_units, instance.num_accelerators, instance.num_devices
        super().__init__(known, known_s)
        self.units = units
        is_acc = np.arange(num_devices) < k
        self._work_s: Floats = np.where(is_acc, units.acc_s[:, None], units.cpu_s[:, None])
        self._limit_bytes = np.where(is_acc, instance.limit_bytes, np.inf)
        light = np.where(units.on_acc, units.acc_s, units.cpu_s)
        self._order = np.argsort(-light, kind="stable")
        self._tree = Tree(
            depth=np.zeros(1, dtype=np.int64),
            choice=np.full(num, -1, dtype=np.int64),
            load_s=np.zeros((num + 1, num_devices)),
            held_bytes=np.zeros((num + 1, num_devices)),
            opened=np.zeros(num + 1, dtype=np.int64),
            held=np.zeros((len(units.net_cost_s), num_devices), dtype=np.int64),
            seen=np.zeros(len(units.net_cost_s), dtype=np.int64),
        )

    def go_on(self, max_nodes: int) -> None:
        from placement.splits.exact.branch_compiled import branch

        self.best_s, self.complete = branch(
            self._tree,
            self._order,
            self.units.arrays,
            bool((self.units.pinned < 0).all()),
            self._work_s,
            self._limit_bytes,
            self._rest_s(),
            self.best,
            self.best_s,
            max_nodes,
        )

    def _rest_s(self) -> Floats:
        """Accelerator work that the units from each depth on leave beside busy CPUs, (U + 1,)."""
        units, instance = self.units, self.units.instance
        work = np.where(units.on_acc, units.acc_s, 0.0)[self._order]
        rest = np.concatenate([np.cumsum(work[::-1])[::-1], [0.0]])
        away_s = offload_s(units, instance.num_cpus * self.best_s)
        lean: Floats = rest * (1.0 - 1e-9) - away_s
        return lean
