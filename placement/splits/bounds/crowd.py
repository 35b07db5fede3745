"""Bound on the largest load by crowds: too many units of a kind meet on one accelerator.

Of the t largest units, the CPUs have time for few. The others crowd on k accelerators, so that one
of them holds m, whatever the split: its load is at least that of the cheapest part with m of the t,
compute and transfers, which a search over single parts finds. Where units are alike and few, as
layers of a network are, that is the optimum.
"""

from typing import NamedTuple

import numpy as np

from placement.core.graph import Ints
from placement.splits.model.contract import Units

# Crowds that are searched, the most promising first, and nodes of each search.
CROWDS = 4
MAX_NODES = 2_000_000
# Sums of the same times in another order differ by this much at most.
_ROUNDING = 1e-12


class _Crowd(NamedTuple):
    """Units of which one accelerator holds `num_wanted`; their least work, without transfers."""

    work_s: float
    units: Ints
    num_wanted: int


def crowd_bound_s(units: Units, known_s: float) -> float:
    """Seconds that no largest load is below, given that of a known split; at most that."""
    from placement.splits.bounds.crowd_compiled import least_load

    by_work = np.argsort(units.acc_s, kind="stable")
    bound_s = 0.0
    for crowd in sorted(_crowds(units, known_s), key=lambda c: -c.work_s)[:CROWDS]:
        member = np.zeros(units.num_units, dtype=np.bool_)
        member[crowd.units] = True
        inside, others = by_work[member[by_work]], by_work[~member[by_work]]
        order = np.concatenate([inside, others[units.on_acc[others]]])
        least_s, complete = least_load(
            order, member, crowd.num_wanted, units.arrays, known_s, MAX_NODES
        )
        bound_s = max(bound_s, least_s if complete else crowd.work_s)
    return min(bound_s, known_s) * (1.0 - _ROUNDING)


def _crowds(units: Units, known_s: float) -> list[_Crowd]:
    """One crowd for each number of largest units, if no load is above `known_s`."""
    k = units.instance.num_accelerators
    if k == 0:
        return []
    must = float(units.cpu_s[~units.on_acc].sum())
    budget_s = (units.instance.num_cpus * known_s - must) * (1.0 + _ROUNDING)
    either = np.flatnonzero(units.on_acc)
    by_work = either[np.argsort(-units.acc_s[either], kind="stable")]
    crowds = []
    for t in range(1, len(by_work) + 1):
        largest = by_work[:t]
        elsewhere = np.sort(np.where(units.on_cpu, units.cpu_s, np.inf)[largest])
        num_elsewhere = int(np.searchsorted(np.cumsum(elsewhere), budget_s, side="right"))
        num_wanted = -(-(t - num_elsewhere) // k)
        if num_wanted > 0:
            work_s = float(units.acc_s[largest[t - num_wanted :]].sum())
            crowds.append(_Crowd(work_s, largest, num_wanted))
    return crowds
