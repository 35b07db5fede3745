"""Units as loads under all rules read them: work by phase, nets with their makers, clusters.

Where loads are plain sums, `UnitArrays` say enough and are faster. The rules are those of
`core/objective.py`, stated in `simulator/call_costs.py`.
"""

from typing import NamedTuple

import numpy as np

from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.splits.model.instance import Bools, SplitInstance, csr, sums_by


class Priced(NamedTuple):
    """Units (U), nets (T) and devices (D), accelerators first.

    `work_s` (2, 2, U) is by kind of device (accelerator, CPU) and phase; the second phase is empty
    unless phases count apart. A net is the maker's unit, then its readers' others, in `net_units`;
    `net_phase` is its maker's. Nets of a unit are CSR rows. `cluster_of` (D,) is -1 for a CPU.
    """

    work_s: Floats
    size_bytes: Floats
    allowed: Bools
    net_ptr: Ints
    net_units: Ints
    net_cost_s: Floats
    net_phase: Ints
    unit_ptr: Ints
    unit_nets: Ints
    cluster_of: Ints
    num_accelerators: int
    limit_bytes: float
    slow_link_factor: float
    overlap: bool


def priced(
    instance: SplitInstance, unit_of_class: Ints, size_bytes: Floats, allowed: Bools
) -> Priced:
    """The arrays of some units of an instance."""
    rules, num_units = instance.rules, len(size_bytes)
    unit_of_node = unit_of_class[instance.class_of]
    late = instance.backward & rules.gpipe
    work_s = np.zeros((2, 2, num_units))
    for phase, some in enumerate((~late, late)):
        for kind, seconds in enumerate((instance.acc_s, instance.cpu_s)):
            work_s[kind, phase] = sums_by(unit_of_node[some], seconds[some], num_units)
    cost_of: dict[tuple[int, ...], float] = {}
    for net, cost in enumerate(instance.net_cost_s.tolist()):
        nodes = instance.net_nodes[instance.net_ptr[net] : instance.net_ptr[net + 1]]
        maker, *_ = units = unit_of_node[nodes].tolist()
        readers = sorted(set(units) - {maker})
        if readers and cost > 0:
            key = (int(late[nodes[0]]), maker, *readers)
            cost_of[key] = cost_of.get(key, 0.0) + cost
    rows: list[list[int]] = [[] for _ in range(num_units)]
    for net, (_, *units) in enumerate(cost_of):
        for u in units:
            rows[u].append(net)
    clusters = rules.clusters(instance.num_accelerators)
    return Priced(
        work_s,
        size_bytes,
        allowed,
        *csr([units for _, *units in cost_of]),
        np.array(list(cost_of.values()), dtype=np.float64),
        np.array([phase for phase, *_ in cost_of], dtype=np.int64),
        *csr(rows),
        np.array([*clusters, *[-1] * instance.num_cpus], dtype=np.int64),
        instance.num_accelerators,
        float(instance.limit_bytes),
        float(rules.slow_link_factor),
        rules.overlap,
    )
