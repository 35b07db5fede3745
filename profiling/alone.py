"""The model as its runtime runs it unplaced: the reference for outputs and for step times."""

import statistics
from collections.abc import Mapping
from typing import Any

from placement.core.machine import Device
from profiling.backends.base import Compiled, Program
from profiling.lanes import Lane, Lanes, Step

WARMUP = 3
STEPS = 10


def expected_outputs(
    compiled: Compiled, host: Device | None, feeds: Mapping[str, Any], timeout_s: float
) -> dict[str, Any]:
    """Outputs of the unplaced model, or none where they are random by definition."""
    if compiled.random_ops:
        return {}
    program = compiled.unplaced(host, feeds)
    try:
        _steps(program, host, 1, timeout_s)
        return program.outputs()
    finally:
        program.close()


def baseline_s(
    compiled: Compiled, device: Device | None, feeds: Mapping[str, Any], timeout_s: float
) -> float | None:
    """Median seconds of the unplaced model on one device, or with None on all cores of the CPU.

    None where the device's memory cannot hold the weights.
    """
    limit = None if device is None else device.memory_bytes
    if limit is not None and compiled.kernels.param_bytes > limit:
        return None
    program = compiled.unplaced(device, feeds)
    try:
        return statistics.median(_steps(program, device, WARMUP + STEPS, timeout_s)[WARMUP:])
    finally:
        program.close()


def safe_step(lanes: Lanes, program: Program, timeout_s: float) -> Step:
    """One step; a RuntimeError of one sentence if it hangs or the runtime fails in it."""
    try:
        return lanes.step(timeout_s)
    except TimeoutError as error:
        program.stop()
        raise RuntimeError(str(error)) from None
    except (ValueError, AssertionError):
        raise
    except Exception as error:  # runtimes raise kinds of their own
        text = " ".join(str(error).split())[:300]
        raise RuntimeError(f"The runtime failed in a step: {text}") from None


def _steps(program: Program, device: Device | None, steps: int, timeout_s: float) -> list[float]:
    lanes = Lanes([Lane(device or Device("all cores"), (0,), ((),))], 1, program.run)
    try:
        return [safe_step(lanes, program, timeout_s).seconds for _ in range(steps)]
    finally:
        lanes.close()
