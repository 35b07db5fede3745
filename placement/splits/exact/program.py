"""Integer programs as lists of variables and rows, solved by HiGHS with a proven bound.

Huangfu and Hall, "Parallelizing the dual revised simplex method", Math. Prog. Comp. 2018.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from placement.core.costs import Floats

INF = float("inf")
Term = tuple[int, float]


class Outcome(NamedTuple):
    """Values of the variables (empty if none were found), and what no solution is below."""

    values: Floats
    bound: float


@dataclass(frozen=True)
class Effort:
    """How long a search may go on: seconds, nodes of its tree, and the gap that is good enough."""

    time_limit_s: float = INF
    max_nodes: int = 2**31 - 1
    gap: float = 0.0


class Program:
    """Minimise a sum over variables between bounds, some of them whole, under linear rows."""

    def __init__(self) -> None:
        self._columns: list[tuple[float, float, float, bool]] = []
        self._rows: list[tuple[float, float]] = []
        self._terms: list[tuple[int, int, float]] = []
        self._solver: Any = None

    @property
    def num_variables(self) -> int:
        return len(self._columns)

    def variable(self, lower: float = 0.0, upper: float = 1.0, *, cost: float = 0.0) -> int:
        """A new continuous variable's number."""
        self._columns.append((cost, lower, upper, False))
        return len(self._columns) - 1

    def whole(self, allowed: bool = True) -> int:
        """A new variable that is 0 or, if allowed, 1."""
        self._columns.append((0.0, 0.0, float(allowed), True))
        return len(self._columns) - 1

    def row(self, terms: Sequence[Term], lower: float = -INF, upper: float = INF) -> None:
        """The sum of terms (variable, factor) lies between two values."""
        self._terms += [(len(self._rows), v, factor) for v, factor in terms]
        self._rows.append((lower, upper))

    def set_costs(self, costs: Floats) -> None:
        """Another objective for all variables, also after a solution."""
        if self._solver is None:
            self._build()
        numbers = np.arange(len(costs), dtype=np.int32)
        self._solver.changeColsCost(len(costs), numbers, costs.astype(np.float64))

    def solve(self, effort: Effort) -> Outcome:
        """The best solution found, if any, and the bound that was proven."""
        import highspy

        if self._solver is None:
            self._build()
        solver = self._solver
        # The solver's clock runs on from one objective to the next.
        solver.setOptionValue("time_limit", solver.getRunTime() + max(0.0, effort.time_limit_s))
        solver.setOptionValue("mip_max_nodes", effort.max_nodes)
        solver.setOptionValue("mip_rel_gap", effort.gap)
        solver.run()
        info = solver.getInfo()
        if solver.getModelStatus() == highspy.HighsModelStatus.kInfeasible:
            return Outcome(np.zeros(0), INF)
        found = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
        values = np.array(solver.getSolution().col_value) if found else np.zeros(0)
        return Outcome(values, float(info.mip_dual_bound))

    def _build(self) -> None:
        import highspy

        lp = highspy.HighsLp()
        cost, lower, upper, whole = zip(*self._columns, strict=True)
        lp.num_col_, lp.num_row_ = len(self._columns), len(self._rows)
        lp.col_cost_, lp.col_lower_, lp.col_upper_ = map(np.array, (cost, lower, upper))
        kinds = highspy.HighsVarType
        lp.integrality_ = [kinds.kInteger if w else kinds.kContinuous for w in whole]
        lp.row_lower_ = np.array([low for low, _ in self._rows], dtype=np.float64)
        lp.row_upper_ = np.array([high for _, high in self._rows], dtype=np.float64)
        terms = np.array(self._terms, dtype=np.float64).reshape(-1, 3)
        starts = np.searchsorted(terms[:, 0], np.arange(lp.num_row_ + 1))
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = starts.astype(np.int32)
        lp.a_matrix_.index_ = terms[:, 1].astype(np.int32)
        lp.a_matrix_.value_ = terms[:, 2]
        self._solver = silent_solver()
        self._solver.setOptionValue("mip_abs_gap", 0.0)
        self._solver.passModel(lp)


def silent_solver() -> Any:
    """A solver (highspy.Highs) of one thread without a model, which prints nothing from its birth.

    What a verb prints may be read by another program, so that no line of a solver belongs there.
    Since 1.16 its constructor sets callbacks, which prints who it is before an option can be set.
    """
    import highspy

    class Silent(highspy.Highs):
        def enableCallbacks(self) -> None:
            self.setOptionValue("output_flag", False)
            super().enableCallbacks()  # type: ignore[no-untyped-call]

    solver = Silent()  # type: ignore[no-untyped-call]
    # Once more: an older one has not called the method above.
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    return solver
