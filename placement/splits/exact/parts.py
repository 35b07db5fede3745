"""Loads of parts of a split, in plain code: what traces of recurrences ask of a few parts."""

import numpy as np

from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.core.objective import CallRules
from placement.splits.model.instance import Bools
from placement.splits.model.priced import Priced


def shared_loads_s(
    rules: CallRules, work_s: Floats, moved_s: Floats, num_bytes: Floats, replicas: int
) -> Floats:
    """Loads of accelerators of which so many share a part; see `chains_compiled.shared_load_s`."""
    moved_s = moved_s + 4.0 * (replicas - 1) / replicas * num_bytes * rules.sync_s_per_byte
    return (np.maximum(work_s, moved_s) if rules.overlap else work_s + moved_s) / replicas


def cut_parts_s(part: Bools, net_ptr: Ints, net_units: Ints, net_cost_s: Floats) -> Floats:
    """What the nets with units inside and outside each part cost."""
    net_of_pin = np.repeat(np.arange(len(net_cost_s)), np.diff(net_ptr))
    held = np.zeros((len(part), len(net_cost_s)), dtype=np.int64)
    np.add.at(held.T, net_of_pin, part[:, net_units].T)
    cut: Floats = ((held > 0) & (held < np.diff(net_ptr))) @ net_cost_s
    return cut


def value_s(priced: Priced, rules: CallRules, device_of_unit: Ints, replicas: Ints) -> float:
    """Time between samples of a split whose parts `replicas` (D,) accelerators share."""
    from placement.splits.model.priced_compiled import loads_with

    loads = loads_with(device_of_unit, priced)
    moves_s = loads.moves_s.copy()
    sync_s = 4.0 * (replicas - 1) / replicas * loads.held_bytes * rules.sync_s_per_byte
    moves_s[int(rules.gpipe)] += sync_s
    together = np.maximum if rules.overlap else np.add
    each_s: Floats = together(loads.work_s, moves_s) / replicas
    return float(each_s.max(axis=1).sum())
