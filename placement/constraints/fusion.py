"""Mending a placement that splits units, as one made before measuring may do.

Which ops a runtime fuses is known only once it has optimised the model; until then a placement may
put the parts of one kernel on different devices.
"""

import dataclasses
from collections.abc import Mapping

import numpy as np

from placement.core.placement import Placement
from placement.core.problem import Problem


def mended(problem: Problem, placement: Placement) -> Placement:
    """The placement with every unit whole, itself where it splits none; see `join_units`."""
    placement.require_graph(problem.graph)
    unknown = next(
        (d for d in placement.device_of.values() if d not in problem.machine.index), None
    )
    joined = {} if unknown is not None else join_units(problem, placement.device_of)
    if unknown is not None or joined == dict(placement.device_of):
        return placement
    return dataclasses.replace(placement, device_of=joined)


def join_units(problem: Problem, device_of: Mapping[str, str]) -> dict[str, str]:
    """The same devices with every unit on one: the one most of its ops are on, ties to the first.

    A device that may not run the unit gives way to the first that may.
    """
    names = [op.name for op in problem.graph.ops]
    joined = dict(device_of)
    at = np.array([problem.machine.index[device_of[name]] for name in names], dtype=np.int64)
    if problem.allowed[problem.unit_of_op, at].all():
        first = np.full(problem.num_units, -1, dtype=np.int64)
        first[problem.unit_of_op[::-1]] = at[::-1]
        if (first[problem.unit_of_op] == at).all():
            return joined
    for unit, members in enumerate(problem.ops_of_unit):
        if not members:
            continue
        votes = [problem.machine.index[device_of[names[i]]] for i in members]
        allowed = problem.allowed[unit]
        ranked = [(not allowed[d], -votes.count(d), d) for d in range(problem.num_devices)]
        for i in members:
            joined[names[i]] = problem.machine.devices[min(ranked)[2]].name
    return joined
