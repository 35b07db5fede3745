"""Whether any split exists, as far as simple sums tell: what cannot be met, and by how much."""

import numpy as np

from placement.core.formatting import num_bytes
from placement.splits.model.contract import Units


def require_room(units: Units) -> None:
    """ValueError if a unit has no device, or all that must be on accelerators does not fit."""
    instance = units.instance
    limit, k = instance.limit_bytes, instance.num_accelerators
    homeless = np.flatnonzero(~units.on_acc & ~units.on_cpu)
    if len(homeless):
        u = int(homeless[0])
        who, size = _name(units, u), float(units.size_bytes[u])
        if size > limit and k:
            raise ValueError(
                f"{who} must be on one accelerator and needs {num_bytes(size)},"
                f" {num_bytes(size - limit)} more than its {num_bytes(limit)}; raise the memory"
                " or let a CPU run it."
            )
        raise ValueError(
            f"{who} must share a device, but pins and supported devices leave none for all of it;"
            " remove a pin."
        )
    bound = np.where(~units.on_cpu, units.size_bytes, 0.0)
    if bound.sum() > k * limit:
        raise ValueError(
            f"What only accelerators may run needs {num_bytes(bound.sum())},"
            f" {num_bytes(bound.sum() - k * limit)} more than the {k} accelerators have together"
            f" ({num_bytes(k * limit)}); add memory or accelerators, or let a CPU run some of it."
        )
    for d in range(k):
        pinned = float(units.size_bytes[units.pinned == d].sum())
        if pinned > limit:
            raise ValueError(
                f"The ops pinned to accelerator {d} need {num_bytes(pinned)},"
                f" {num_bytes(pinned - limit)} more than its {num_bytes(limit)}; pin fewer."
            )


def no_split(units: Units, what: str) -> ValueError:
    """The error for an instance whose sums would fit but for which no `what` was found."""
    instance = units.instance
    total = float(units.size_bytes[~units.on_cpu].sum())
    return ValueError(
        f"Found no {what} within memory and pins: {int((~units.on_cpu).sum())} units that only"
        f" accelerators may run, {total:.0f} bytes, do not divide over"
        f" {instance.num_accelerators} accelerators of {instance.limit_bytes:.0f} bytes each; add"
        " memory or accelerators, or remove pins."
    )


def _name(units: Units, u: int) -> str:
    classes = np.flatnonzero(units.unit_of_class == u)
    others = f", with {len(classes) - 1} groups on its cycle" if len(classes) > 1 else ""
    return f"Op {units.instance.name_of_class(int(classes[0]))}{others}"
