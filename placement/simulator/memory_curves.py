"""Memory over time: how many bytes each device holds while a step runs."""

from dataclasses import dataclass

from placement.core.problem import Problem
from placement.core.schedule import Schedule
from placement.simulator.executions import lower
from placement.simulator.memory import held_over_time
from placement.simulator.simulate import times_of


@dataclass(frozen=True)
class MemoryCurve:
    """Bytes of one device as steps: `held_bytes[i]` from `at_s[i]` until `at_s[i + 1]`.

    It begins at 0 and ends with the step, where the last value stands once more. Its largest value
    is the device's `peak_bytes`. `limit_bytes` is None where the device has no limit.
    """

    device: str
    at_s: tuple[float, ...]
    held_bytes: tuple[int, ...]
    limit_bytes: float | None

    @property
    def peak_bytes(self) -> int:
        return max(self.held_bytes)


def memory_over_time(problem: Problem, schedule: Schedule) -> tuple[MemoryCurve, ...]:
    """A curve for every device of the machine, as predicted for one step."""
    tasks = lower(problem, schedule)
    times = times_of(problem, schedule, tasks)
    held = held_over_time(problem, schedule, tasks, times)
    return tuple(
        MemoryCurve(
            device.name,
            tuple(at_s for at_s, _ in steps),
            tuple(num_bytes for _, num_bytes in steps),
            device.memory_bytes,
        )
        for device, steps in zip(problem.machine.devices, held, strict=True)
    )
