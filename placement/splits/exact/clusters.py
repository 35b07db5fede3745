"""Contiguous splits where accelerators are in clusters with slower links between them.

Tarnawski et al., NeurIPS 2020 (accelerator hierarchies). What a part pays depends on the clusters
of those that it exchanges tensors with, which the recurrence over ideals does not know. Within one
cluster it does, and that bounds every chain from below. Chains that can be better than the best one
known are followed from their last part to their first, with what is certain of the loads; where
these are too many the answer says how far from the best it can be.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from placement.splits.exact.parts import value_s
from placement.splits.exact.table import Chain, IdealTable

# Parts that are tried at most, times the units and ideals that each may look at: some seconds.
# So many are tried between two looks at what is known.
MOST_VISITS = 100_000_000
MOST_AT_ONCE = 1_000
PROVEN = 1.0 + 1e-9


def best_in_clusters(table: IdealTable, start: Chain, others: Sequence[Chain]) -> Chain:
    """The optimal contiguous split, or the best that was found.

    `start` is the best within one cluster, and the others may be better in several. The answer's
    `bound_s` is below its load where the search was cut short.
    """
    from placement.splits.exact.clusters_compiled import Backwards, search_backwards

    units, instance = table.units, table.units.instance
    known = [chain.device_of_unit for chain in (start, *others)]
    values_s = [value_s(units.priced, instance.rules, each, start.replicas) for each in known]
    best_s = min(values_s)
    device = known[values_s.index(best_s)].copy()
    # No load is smaller than within one cluster, and no sum over phases than the largest sum.
    least_s = table.best(best_s)
    for axis in (1, 2):
        least_s = np.minimum.accumulate(least_s, axis=axis)
    num_levels = instance.num_devices
    state = Backwards(
        depth=np.zeros(1, dtype=np.int64),
        ideal=np.full(num_levels, len(least_s) - 1, dtype=np.int64),
        before=np.zeros(num_levels, dtype=np.int64),
        device_tried=np.full(num_levels, -1, dtype=np.int64),
        device=np.full(units.num_units, -1, dtype=np.int64),
    )
    most = max(MOST_AT_ONCE, MOST_VISITS // (units.num_units + len(least_s)))
    complete = False
    # Nothing is below the best within one cluster.
    while not complete and most > 0 and best_s > start.load_s * PROVEN:
        best_s, complete = search_backwards(
            state, table.ideals, least_s, units.pinned, units.priced, device, best_s, MOST_AT_ONCE
        )
        most -= MOST_AT_ONCE
    proven = complete or best_s <= start.load_s * PROVEN
    bound_s = np.inf if proven else start.load_s
    return replace(start, device_of_unit=device, load_s=best_s, bound_s=bound_s, links=())
