"""Drift of a computer: what its devices take now for the model alone, beside what the costs say.

A computer drifts. On a quiet one, too, the same program takes 2.1 ms now and 2.5 a minute later,
because others leave it less of the last cache or a lower clock, and a profile is of the minute in
which it was measured. A run that times the model alone on each device knows by how much, and so
tells an error of the prediction from a drift of the computer.
"""

import statistics
from collections.abc import Mapping

from placement.core.objective import Execution
from placement.core.problem import Problem


def drift(problem: Problem, alone_s: Mapping[str, float | None]) -> float | None:
    """How many times as long as by the measured costs the model alone takes now; 1.1 is slower.

    `alone_s` has seconds of a step by device, None where the model does not fit. The median over
    devices; None where nothing can be compared.
    """
    costs = problem.costs
    if costs.origin != "measured" or problem.execution is Execution.CALL:
        return None
    predicted_s = (costs.call_s + costs.compute_s.sum(axis=0)).tolist()
    found = [
        now_s / then_s
        for device, then_s in zip(problem.machine.devices, predicted_s, strict=True)
        if (now_s := alone_s.get(device.name)) and 0.0 < then_s < float("inf")
    ]
    return statistics.median(found) if found else None
