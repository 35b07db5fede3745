"""Contiguous splits as chains of ideals, and the table of all ideals that recurrences read."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.splits.bounds.loads import offload_s
from placement.splits.exact.parts import cut_parts_s, shared_loads_s
from placement.splits.model.contract import Units
from placement.splits.model.instance import Bools

if TYPE_CHECKING:
    from placement.splits.exact.chains_compiled import Ideals
    from placement.splits.exact.ideals_compiled import Crossings


class Link(NamedTuple):
    """A part of a chain that was found back in the table: its units, and the least maximal loads
    up to its end by accelerators and CPUs (A + 1, C + 1), of which the chain has `state`."""

    units: Ints
    best_s: Floats
    state: tuple[int, int]


@dataclass(frozen=True, eq=False)
class Chain:
    """The parts of a contiguous split: device of each unit (U,) and the time between samples.

    `replicas` (D,) are the accelerators that share the part of each device, counting itself. No
    split into such parts is below `bound_s`, where that is less than `load_s`. `links` are its
    parts from the first to the last where it was found back in a table of `num_ideals`.
    """

    device_of_unit: Ints
    replicas: Ints
    load_s: float
    bound_s: float = np.inf
    links: tuple[Link, ...] = ()
    num_ideals: int = 0


@dataclass(frozen=True, eq=False)
class IdealTable:
    """All ideals (M) by rising accelerator work, then size, and what the recurrence reads of them.

    `ideals` and `crossings` are what the compiled recurrence takes, see `chains_compiled`.
    """

    units: Units
    ideals: "Ideals"
    crossings: "Crossings"
    most_replicas: int

    @property
    def most_s(self) -> float:
        """No load of any part is larger."""
        cost = float(self.units.net_cost_s.sum())
        return max(float(self.ideals.acc_s[-1]) + cost, float(self.ideals.cpu_s[-1])) * (1.0 + 1e-9)

    def slower(self, factor: float) -> "IdealTable":
        """The table where every transfer takes so many times as long."""
        crossings = self.crossings._replace(
            crossing_s=self.crossings.crossing_s * factor,
            net_cost_s=self.crossings.net_cost_s * factor,
        )
        units = replace(self.units, net_cost_s=self.units.net_cost_s * factor)
        return replace(self, units=units, crossings=crossings)

    def best(self, cap_s: float) -> Floats:
        """Least maximal load by (ideal, accelerators, CPUs) over chains of loads up to `cap_s`."""
        from placement.splits.exact.chains_compiled import Limits, chains

        instance = self.units.instance
        rules = instance.rules
        limits = Limits(
            cap_s, instance.limit_bytes, self.most_replicas, rules.overlap, rules.sync_s_per_byte
        )
        away_s = [offload_s(self.units, c * cap_s) for c in range(instance.num_cpus + 1)]
        return chains(
            self.ideals, self.crossings, limits, np.array(away_s), instance.num_accelerators
        )

    def bits(self, which: Ints) -> Bools:
        """Units inside each of some ideals, (len(which), U)."""
        from placement.splits.exact.ideals_compiled import WORD

        u = np.arange(self.units.num_units)
        return (self.ideals.rows[which][:, u // WORD] >> (u % WORD) & 1).astype(np.bool_)

    def loads_s(self, before: Ints, j: int, replicas: int) -> Floats:
        """Load of the parts between some ideals and ideal j on accelerators, 0 `replicas`: a CPU.

        Infinite where a part is not allowed.
        """
        units, ideals = self.units, self.ideals
        allowed, part = self.parts(before, j, replicas)
        if replicas == 0:
            return np.where(allowed, ideals.cpu_s[j] - ideals.cpu_s[before], np.inf)
        work_s = ideals.acc_s[j] - ideals.acc_s[before]
        moved_s = cut_parts_s(part, units.net_ptr, units.net_units, units.net_cost_s)
        num_bytes = part @ units.size_bytes
        load_s = shared_loads_s(units.instance.rules, work_s, moved_s, num_bytes, replicas)
        return np.where(allowed, load_s, np.inf)

    def parts(self, before: Ints, j: int, replicas: int) -> tuple[Bools, Bools]:
        """Whether the parts between some ideals and ideal j are allowed, and their units."""
        units, ideals = self.units, self.ideals
        inside = ~(ideals.rows[before] & ~ideals.rows[j]).any(axis=1)
        inside &= ideals.pins[j] <= ideals.pins[before] + (replicas <= 1)
        part = self.bits(np.array([j])) & ~self.bits(before)
        kind = units.on_acc if replicas else units.on_cpu
        inside &= ~(part & ~kind).any(axis=1)
        if replicas:
            inside &= part @ units.size_bytes <= units.instance.limit_bytes
        return inside, part
