"""Compiling ahead: a placer run once on a tiny problem of the same kind.

What is compiled depends on the kinds of arrays, not on their sizes, so that afterwards the time of
`place` is the method's own. `python -m placement.placers._warm` does it for all placers.
"""

import dataclasses

import numpy as np

from placement.core.costs import Costs
from placement.core.graph import Graph, Op, Tensor
from placement.core.machine import Device, Link, Machine, link_arrays
from placement.core.problem import EXECUTIONS, OBJECTIVES, Problem, own_kernels
from placement.placers._base import Placer
from placement.segments import make_schedule
from placement.simulate import simulate


def warm_up(placer: Placer, problem: Problem) -> None:
    """Have compiled what the placer needs for problems of this kind."""
    tiny = _tiny(problem.objective, problem.execution, problem.memory_model)
    names = {f.name for f in dataclasses.fields(placer)}
    fewer = {"max_iterations": 2} if "max_iterations" in names else {}
    try:
        placement = dataclasses.replace(placer, time_limit_s=None, **fewer).place(tiny)
    except ValueError:
        # Its settings speak of the real problem's devices and ops.
        placement = tiny.placement_of(np.zeros(tiny.num_units, dtype=np.int64))
    simulate(tiny, make_schedule(tiny, placement))


def _tiny(objective: str, execution: str, memory_model: str) -> Problem:
    """A diamond of four ops on a host and two accelerators."""
    devices = (
        Device("acc:0", kind="accelerator", runtime="given", memory_bytes=100),
        Device("acc:1", kind="accelerator", runtime="given", memory_bytes=100),
        Device("cpu:0", runtime="given"),
    )
    links = tuple(
        Link(a.name, b.name, 0.1, 10.0) for a in devices for b in devices if a.name != b.name
    )
    machine = Machine("tiny", devices, links)
    ops = tuple(Op(name, "op", param_bytes=1) for name in "abcd")
    tensors = (
        Tensor("in", None, ("a",), 1),
        Tensor("ab", "a", ("b", "c"), 1),
        Tensor("bd", "b", ("d",), 1),
        Tensor("cd", "c", ("d",), 1),
        Tensor("out", "d", (), 1, is_output=True),
    )
    graph = Graph("tiny", ops, tensors[1:4] if execution == "call" else tensors)
    latency_s, s_per_byte = link_arrays(machine)
    costs = Costs(np.ones((4, 3)), np.zeros(3), latency_s, s_per_byte, "given")
    return Problem(
        graph,
        machine,
        costs,
        graph,
        own_kernels(graph),
        objective=objective,
        execution=execution,
        memory_model=memory_model,
    )


def main() -> None:
    """Compile all placers for all kinds of problem."""
    from placement.placers import names, placer_class

    for name in names():
        kind = placer_class(name)
        for execution in (e for e in EXECUTIONS if e in kind.executions):
            for objective in (o for o in OBJECTIVES if o in kind.objectives):
                model = "sum" if execution == "call" else "live"
                warm_up(kind(), _tiny(objective, execution, model))


if __name__ == "__main__":
    main()
