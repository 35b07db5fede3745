"""Memory that placements need, by device, and what there is: bytes as `core.violations` counts."""

import numpy as np

from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.core.violations import sequential_peak_bytes
from placement.schedule.segments import make_schedule
from placement.simulator.lowering import host_of


def missing_bytes(problem: Problem, placement: Placement) -> Floats:
    """Bytes by device (D,) that a placement's schedule needs beyond the limits."""
    limits = limit_bytes(problem)
    if (_bytes_at_most(problem, problem.kernel_devices(placement)) <= limits).all():
        return np.zeros(limits.size)
    return np.maximum(0.0, peak_bytes(problem, placement) - limits)


def peak_bytes(problem: Problem, placement: Placement) -> Floats:
    """Most bytes by device (D,) that a placement's schedule holds at one time."""
    peaks = sequential_peak_bytes(problem, make_schedule(problem, placement))
    return np.array(peaks, dtype=np.float64)


def limit_bytes(problem: Problem) -> Floats:
    """Memory by device (D,), infinite where there is no limit."""
    limits = [np.inf if d.memory_bytes is None else d.memory_bytes for d in problem.machine.devices]
    return np.array(limits, dtype=np.float64)


def unit_bytes(problem: Problem) -> Floats:
    """Weights by unit (U,)."""
    weights = np.zeros(problem.num_units)
    np.add.at(weights, problem.unit_of_kernel, problem.kernels.arrays.param_bytes)
    return weights


def _bytes_at_most(problem: Problem, device: Ints) -> Floats:
    """Bytes by device that no schedule exceeds: weights, all values made or received, workspace."""
    arrays, num_devices = problem.kernels.arrays, problem.num_devices
    total = np.zeros(num_devices)
    np.add.at(total, device, arrays.param_bytes)
    if problem.memory_model == "sum":
        return total
    there = np.zeros((arrays.producer.size, num_devices), dtype=np.bool_)
    readers = np.repeat(np.arange(arrays.producer.size), np.diff(arrays.consumer_ptr))
    there[readers, device[arrays.consumers]] = True
    made = np.flatnonzero(arrays.producer >= 0)
    there[made, device[arrays.producer[made]]] = True
    host = host_of(problem)
    if host >= 0:
        # Outputs return there, wherever they are made.
        there[made[arrays.is_output[made]], host] = True
    total += arrays.tensor_bytes @ there
    scratch = np.zeros(num_devices)
    np.maximum.at(scratch, device, problem.costs.workspace_bytes)
    return total + scratch
