"""Branch and bound for latency with a few calls per accelerator: every split that could be better.

Land and Doig, "An automatic method of solving discrete programming problems", Econometrica 1960.
Units get a call of an accelerator or the CPUs one by one, in topological order; what is undecided
takes the shorter of its times. For small graphs this ends, and then the best split is proven.
"""

import numpy as np

from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.splits.annealing.latency import CallSearch
from placement.splits.exact.branching import Branching
from placement.splits.model.instance import SplitInstance
from placement.splits.model.timing import Timing


class CallBranchSearch(Branching):
    """Slots of units, with at most `calls_each` calls per accelerator.

    The known split are slots of classes with -1 for a CPU.
    """

    # Sums of the same times in another order differ by this much at most.
    rounding = 1e-12

    def __init__(
        self, instance: SplitInstance, known: Ints | None = None, calls_each: int = 1
    ) -> None:
        from placement.splits.exact.branch_calls_compiled import Walk

        self.search = CallSearch(instance, calls_each)
        units = self.search.units
        num = units.num_units
        super().__init__(np.full(num, -1, dtype=np.int64))
        if known is not None:
            self.best[units.unit_of_class] = known
            self.best_s = self.search.value_s(self.best)
        self._walk = Walk(
            order=_first_nodes(self.search.timing),
            depth=np.zeros(1, dtype=np.int64),
            choice=np.full(num, -1, dtype=np.int64),
            slot=np.full(num, -1, dtype=np.int64),
            decided=np.zeros(num, dtype=np.bool_),
        )

    def go_on(self, max_nodes: int) -> None:
        from placement.splits.exact.branch_calls_compiled import branch_calls

        units, timing = self.search.units, self.search.timing
        self.best_s, self.complete = branch_calls(
            self._walk,
            self.search.allowed(),
            bool((units.pinned < 0).all()),
            self.search.calls_each,
            units.arrays,
            timing.nodes,
            _least_s(timing),
            self.best,
            self.best_s,
            max_nodes,
        )

    @property
    def slot_of_class(self) -> Ints | None:
        """The best split known, None if there is none."""
        return self.best[self.search.units.unit_of_class] if np.isfinite(self.best_s) else None


def _first_nodes(timing: Timing) -> Ints:
    """Units by their first timed node; those without one come last."""
    num = timing.units.num_units
    first = np.full(num, timing.num_nodes, dtype=np.int64)
    np.minimum.at(first, timing.nodes.unit_of, np.arange(timing.num_nodes))
    order: Ints = np.argsort(first, kind="stable")
    return order


def _least_s(timing: Timing) -> Floats:
    """Seconds that each timed node takes at least, as its share of a call or on a CPU, (N,)."""
    units = timing.units
    share = units.acc_s / np.maximum(np.diff(timing.nodes.node_ptr), 1)
    in_call = np.where(units.on_acc, share, np.inf)[timing.nodes.unit_of]
    least: Floats = np.minimum(
        in_call, np.where(units.on_cpu[timing.nodes.unit_of], timing.nodes.cpu_s, np.inf)
    )
    return least
