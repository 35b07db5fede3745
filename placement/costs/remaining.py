"""The same problem on the devices that are left when some of a machine are gone."""

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from placement.core.problem import Problem


def without_devices(problem: Problem, gone: Collection[str]) -> Problem:
    """The problem without some devices; what was pinned to them is free again.

    ValueError where none is left, or one that is left cannot run an op.
    """
    machine, costs = problem.machine, problem.costs
    left = np.array([d.name not in gone for d in machine.devices], dtype=bool)
    if not left.any():
        raise ValueError(f"No device of machine {machine.name!r} is left; use --machine local.")
    devices = tuple(d for d, stays in zip(machine.devices, left, strict=True) if stays)
    names = {d.name for d in devices}
    links = tuple(link for link in machine.links if {link.src, link.dst} <= names)
    return replace(
        problem,
        machine=replace(machine, devices=devices, links=links),
        costs=replace(
            costs,
            compute_s=costs.compute_s[:, left],
            call_s=costs.call_s[left],
            latency_s=costs.latency_s[np.ix_(left, left)],
            s_per_byte=costs.s_per_byte[np.ix_(left, left)],
            overhead=costs.overhead[:, left][:, :, left],
            spread=None if costs.spread is None else costs.spread[:, left],
        ),
        pins=tuple((op, device) for op, device in problem.pins if device in names),
        sequences=tuple((device, ops) for device, ops in problem.sequences if device in names),
    )
