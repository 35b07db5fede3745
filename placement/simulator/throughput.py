"""What a placement is worth: seconds of one step, or between samples when many are in flight."""

from placement.core.problem import Objective, Problem
from placement.core.schedule import Schedule
from placement.simulator.call_costs import Replicas
from placement.simulator.executions import COST_MODELS
from placement.simulator.flat import Flat
from placement.simulator.run_state import RunState
from placement.simulator.simulate import step_time_s


def value_s(
    problem: Problem, schedule: Schedule, replicas: Replicas = None, *, step_s: float | None = None
) -> float:
    """Seconds of the problem's objective; `step_s` are those of a step, where they are known."""
    if problem.objective is Objective.THROUGHPUT:
        return seconds_per_sample(problem, schedule, replicas)
    return step_time_s(problem, schedule) if step_s is None else step_s


def value_of_run_s(problem: Problem, flat: Flat, state: RunState, step_s: float) -> float:
    """The same of arrays that were run, which took `step_s`."""
    return largest_load_s(flat, state) if problem.objective is Objective.THROUGHPUT else step_s


def largest_load_s(flat: Flat, state: RunState) -> float:
    """Seconds of the device or link that has most to do, of arrays that were run."""
    from placement.simulator.compiled.loads import find_loads

    loads_s, links_s = find_loads(flat, state)
    return float(max(loads_s.max(), links_s.max()))


def largest_turn_load_s(flat: Flat, state: RunState) -> float:
    """The same where devices take turns, so that each has as few calls as data allow."""
    from placement.simulator.compiled.loads import find_loads, find_turn_loads

    loads_s, links_s = (find_loads if flat.each_pays else find_turn_loads)(flat, state)
    return float(max(loads_s.max(), links_s.max()))


def loads_s(problem: Problem, schedule: Schedule, replicas: Replicas = None) -> dict[str, float]:
    """Seconds of work per sample by device and by link, in declared order.

    A device's load is its work (compute and call overheads) and all that it sends and receives; a
    link's load is what passes it. Whoever computes on another device adds its load to that one's.
    The slowest of them decides the time between samples. Host
    devices share memory, and in a full pipeline they compute at the same time: each one's work
    takes longer by `contention` times the share of the time between samples that each other one
    works, which is its work over the largest load. Two lanes of 10 ms each and a contention of 0.2
    have loads of 12 ms; lanes of 10 and 5 ms have loads of 11 and 6 ms.

    Under the execution "call" tensors move through host memory, once per device, and `replicas`
    of a device share its load (see call_costs.py). Where the phases of a training step count apart
    these are sums of both, and the time between samples may be more than the largest of them.
    """
    return COST_MODELS[problem.execution].loads_s(problem, schedule, replicas)


def seconds_per_sample(problem: Problem, schedule: Schedule, replicas: Replicas = None) -> float:
    """The largest load, or one of each phase: seconds between samples of a full pipeline."""
    return COST_MODELS[problem.execution].sample_s(problem, schedule, replicas)


def bottleneck(problem: Problem, schedule: Schedule, replicas: Replicas = None) -> str:
    """The device or link with the largest load, the first of equals in declared order."""
    loads = loads_s(problem, schedule, replicas)
    return max(loads, key=lambda name: loads[name])
