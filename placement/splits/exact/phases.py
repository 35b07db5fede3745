"""Exact contiguous split where phases count apart: the largest forward and backward loads add up.

The objective of GPipe's schedule (Huang et al., NeurIPS 2019; Tarnawski et al., NeurIPS 2020,
appendix C: max FW + max BW). A limit on forward loads leaves a recurrence for the least largest
backward load. The limits of interest are an interval; each solution settles the plateau on which
the backward load stays what it is, and what cannot be better than the best split is left out.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.splits.bounds.loads import offload_s, phase_bounds_s
from placement.splits.exact.parts import cut_parts_s, shared_loads_s, value_s
from placement.splits.exact.table import Chain, IdealTable
from placement.splits.model.instance import Bools
from placement.splits.model.placements import Part, devices_of_parts

if TYPE_CHECKING:
    from placement.splits.exact.phases_compiled import PhaseSums

FORWARD, BACKWARD = 0, 1
# Splits that are better by no more than this share are not looked for.
PRECISION = 1e-9


def best_in_phases(table: IdealTable, start: Chain) -> Chain:
    """The optimal contiguous split; `start` is any."""
    units = table.units
    search = _PhaseTable(table)
    rules, priced = units.instance.rules, units.priced

    def valued(chain: Chain) -> Chain:
        load_s = value_s(priced, rules, chain.device_of_unit, chain.replicas)
        return replace(chain, load_s=load_s, bound_s=np.inf)

    best = valued(start)
    low_s = phase_bounds_s(units, table.most_replicas)
    # Intervals of the largest forward load, with a bound on the largest backward load within.
    left = [(low_s[FORWARD], best.load_s - low_s[BACKWARD], low_s[BACKWARD])]
    while left:
        lowest_s, highest_s, backward_s = left.pop()
        highest_s = min(highest_s, best.load_s - backward_s)
        if lowest_s + backward_s >= best.load_s * (1.0 - PRECISION) or highest_s < lowest_s:
            continue
        found = search.solve(FORWARD, highest_s, best.load_s - lowest_s)
        if found is None:
            continue
        chain, backward_s = found
        again = search.solve(BACKWARD, backward_s, highest_s)
        assert again is not None, "a chain that was found is not found again"
        best = min((best, valued(chain), valued(again[0])), key=lambda each: each.load_s)
        highest_s = again[1] * (1.0 - PRECISION)
        middle_s = (lowest_s + highest_s) / 2
        left += [(lowest_s, middle_s, backward_s), (middle_s, highest_s, backward_s)]
    return best


@dataclass(frozen=True, eq=False)
class _PhaseTable:
    """The ideals of a table, with the work and the nets of each phase."""

    table: IdealTable

    @cached_property
    def nets(self) -> tuple[tuple[Ints, Ints, Floats], ...]:
        """Nets of each phase as CSR rows of units, and what they cost."""
        priced = self.table.units.priced
        rows = np.split(priced.net_units, priced.net_ptr[1:-1])
        found = []
        for phase in (FORWARD, BACKWARD):
            which = np.flatnonzero(priced.net_phase == phase)
            sizes = np.diff(priced.net_ptr)[which]
            ptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
            units = [rows[n] for n in which.tolist()]
            flat = np.concatenate(units) if units else np.zeros(0, dtype=np.int64)
            found.append((ptr, flat, priced.net_cost_s[which]))
        return tuple(found)

    @cached_property
    def sums(self) -> tuple["PhaseSums", ...]:
        from placement.splits.exact.ideals_compiled import crossing_nets, sums_of
        from placement.splits.exact.phases_compiled import PhaseSums

        units, rows = self.table.units, self.table.ideals.rows
        acc_s, cpu_s = units.priced.work_s
        return tuple(
            PhaseSums(
                sums_of(rows, np.where(units.on_acc, acc_s[phase], 0.0)),
                sums_of(rows, np.where(units.on_cpu, cpu_s[phase], 0.0)),
                crossing_nets(rows, *self.nets[phase]),
            )
            for phase in (FORWARD, BACKWARD)
        )

    def solve(self, limited: int, limit_s: float, cap_s: float) -> tuple[Chain, float] | None:
        """The chain whose other loads are least, and the largest of them.

        Loads of the phase `limited` are at most `limit_s`, the others at most `cap_s`.
        """
        from placement.splits.exact.chains_compiled import Limits
        from placement.splits.exact.phases_compiled import phase_chains

        table, instance = self.table, self.table.units.instance
        rules = instance.rules
        limits = Limits(
            limit_s, instance.limit_bytes, table.most_replicas, rules.overlap, rules.sync_s_per_byte
        )
        both_s = limit_s + cap_s
        away_s = [offload_s(table.units, c * both_s) for c in range(instance.num_cpus + 1)]
        best = phase_chains(
            table.ideals,
            self.sums[limited],
            self.sums[1 - limited],
            limits,
            cap_s,
            limited == FORWARD,
            np.array(away_s),
            instance.num_accelerators,
        )
        if not np.isfinite(best[-1]).any():
            return None
        return self._traced(best, limited, limit_s), float(best[-1].min())

    def _traced(self, best: Floats, limited: int, limit_s: float) -> Chain:
        table = self.table
        a, c = (int(x) for x in np.unravel_index(int(best[-1].argmin()), best[-1].shape))
        caps_s = [0.0, 0.0]
        caps_s[limited] = limit_s * (1.0 + PRECISION)
        caps_s[1 - limited] = float(best[-1, a, c]) * (1.0 + PRECISION)
        j = len(best) - 1
        parts: list[Part] = []
        while j > 0:
            i, replicas = self._step_back(best, j, a, c, caps_s[1 - limited], caps_s)
            held = np.flatnonzero(table.bits(np.array([j]))[0] & ~table.bits(np.array([i]))[0])
            parts.append(Part(replicas == 0, held, max(1, replicas)))
            a, c, j = a - replicas, c - (replicas == 0), i
        return Chain(*devices_of_parts(table.units, parts[::-1]), np.inf)

    def _step_back(
        self, best: Floats, j: int, a: int, c: int, value_s: float, caps_s: list[float]
    ) -> tuple[int, int]:
        """The ideal before j in a chain within both limits, and its accelerators (0: on a CPU)."""
        table = self.table
        tiny_s = PRECISION * sum(caps_s)
        for replicas in (*range(1, min(a, table.most_replicas) + 1), 0):
            if replicas == 0 and c == 0:
                continue
            reached = np.flatnonzero(best[:j, a - replicas, c - (replicas == 0)] <= value_s)
            allowed, part = table.parts(reached, j, replicas)
            for phase, cap_s in enumerate(caps_s):
                loads_s = self._loads_s(phase, reached, j, part, replicas)
                allowed &= loads_s <= cap_s + tiny_s
            found = np.flatnonzero(allowed)
            if len(found):
                return int(reached[found[0]]), replicas
        raise AssertionError("a chain leads to no ideal before its last")

    def _loads_s(self, phase: int, before: Ints, j: int, part: Bools, replicas: int) -> Floats:
        """Loads of one phase of the parts between some ideals and ideal j."""
        sums, units = self.sums[phase], self.table.units
        if replicas == 0:
            return np.asarray(sums.cpu_s[j] - sums.cpu_s[before])
        moved_s = cut_parts_s(part, *self.nets[phase])
        rules = units.instance.rules
        if phase == FORWARD:
            rules = replace(rules, sync_bytes_per_ms=None)
        work_s = sums.acc_s[j] - sums.acc_s[before]
        return shared_loads_s(rules, work_s, moved_s, part @ units.size_bytes, replicas)
