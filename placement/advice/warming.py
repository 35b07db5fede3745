"""Compiling ahead: a placer run once on a tiny problem of the same kind.

What is compiled depends on the kinds of arrays, not on their sizes, so that afterwards the time of
`place` is the method's own. `python -m placement.advice.warming` does it for all placers, or for
words such as heft:latency:segment.
"""

import dataclasses
import functools
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context

import numpy as np

from placement.compiled.cache import note_warm
from placement.core.costs import Costs
from placement.core.graph import Graph, Op, Tensor
from placement.core.machine import Device, Link, Machine, link_arrays
from placement.core.objective import PLAIN, CallRules
from placement.core.problem import Execution, Objective, Problem, own_kernels
from placement.core.verb_options import PlaceOptions
from placement.parallel.calls import Call, travels
from placement.parallel.executor import HERE
from placement.placers import placer_class
from placement.placers.base import Placer, build
from placement.schedule.segments import make_schedule
from placement.simulator.simulate import simulate

NUM_DIAMONDS = 10
# Methods, each with its settings, at a kind of problem: so many are remembered as compiled.
MOST_KINDS = 1_000
# Rules for loads that code of their own is compiled for.
RULES = (PLAIN, CallRules(gpipe=True), CallRules(cluster_size=1, slow_link_factor=2.0))


def warm_up(placer: Placer, problem: Problem) -> None:
    """Have compiled what the placer needs for problems of this kind; once in a process."""
    about = (problem.objective, problem.execution, problem.memory_model, problem.rules)
    _warm_up(_brief(placer), *about)


def _brief(placer: Placer) -> Placer:
    """The same method with little to do, and without what makes no difference to compiling."""
    names = {f.name for f in dataclasses.fields(placer)}
    fewer = {"max_iterations": 2} if "max_iterations" in names else {}
    return replace(placer, time_limit_s=None, seed=0, executor=HERE, **fewer)


@functools.lru_cache(MOST_KINDS)
def _warm_up(
    placer: Placer,
    objective: Objective,
    execution: Execution,
    memory_model: str,
    rules: CallRules,
) -> None:
    _try(placer, replace(_tiny(objective, execution, memory_model), rules=rules))


def tiny_like(problem: Problem) -> Problem:
    """A tiny problem of the same kind."""
    tiny = _tiny(problem.objective, problem.execution, problem.memory_model)
    return replace(tiny, rules=problem.rules)


def warming(placer: type[Placer], options: PlaceOptions, problem: Problem) -> Call:
    """The same for other computers; files of policies are not theirs."""
    files = {field.name for field in dataclasses.fields(placer) if "policy" in field.metadata}
    settings = {name: value for name, value in options.settings.items() if name not in files}
    asked = PlaceOptions(placer=options.placer, settings=settings)
    return Call(warm_up_there, args=(asked, tiny_like(problem)))


@travels
def warm_up_there(options: PlaceOptions, tiny: Problem) -> None:
    """Have compiled what a placer needs for such problems."""
    warm_up(build(placer_class(options.placer), options), tiny)


def _try(placer: Placer, tiny: Problem) -> None:
    try:
        placement = placer.place(tiny)
    except ValueError:
        # Its settings speak of the real problem's devices and ops.
        placement = tiny.placement_of(np.zeros(tiny.num_units, dtype=np.int64))
    scattered = tiny.placement_of(np.arange(tiny.num_units) % tiny.num_devices)
    for any_placement in (placement, scattered):
        simulate(tiny, make_schedule(tiny, any_placement))


def _tiny(objective: Objective, execution: Execution, memory_model: str) -> Problem:
    """Diamonds in a row on a host and two accelerators: enough to be coarsened."""
    devices = (
        Device("acc:0", kind="accelerator", runtime="given", memory_bytes=1000),
        Device("acc:1", kind="accelerator", runtime="given", memory_bytes=1000),
        Device("cpu:0", runtime="given"),
    )
    links = tuple(
        Link(a.name, b.name, 0.1, 10.0) for a in devices for b in devices if a.name != b.name
    )
    machine = Machine("tiny", devices, links)
    names = [f"{letter}{i}" for i in range(NUM_DIAMONDS) for letter in "abcd"]
    ops = tuple(Op(name, "op", param_bytes=1) for name in names)
    tensors = [Tensor("in", None, ("a0",), 1)] if execution.uses_links else []
    for i in range(NUM_DIAMONDS):
        after = (f"a{i + 1}",) if i + 1 < NUM_DIAMONDS else ()
        tensors += [
            Tensor(f"ab{i}", f"a{i}", (f"b{i}", f"c{i}"), 1),
            Tensor(f"bd{i}", f"b{i}", (f"d{i}",), 1),
            Tensor(f"cd{i}", f"c{i}", (f"d{i}",), 1),
        ]
        if after or execution.uses_links:
            tensors.append(Tensor(f"out{i}", f"d{i}", after, 1, is_output=not after))
    graph = Graph("tiny", ops, tuple(tensors))
    latency_s, s_per_byte = link_arrays(machine)
    costs = Costs(np.ones((len(ops), 3)), np.zeros(3), latency_s, s_per_byte, "given")
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


def _hard(tiny: Problem) -> Problem:
    """The same with times that nothing shares evenly, and accelerators of little memory.

    What proves an answer, and what learns within memory, has something to do only there. Proofs
    that know memory are programs for a solver, and nothing is compiled for them. Beside calls the
    host is slow: it runs any number of ops at a time, and would be best for all of them.
    """
    compute_s = tiny.costs.compute_s * (1.0 + np.arange(tiny.num_units) * 7 % 11)[:, None]
    if not tiny.execution.uses_links:
        compute_s[:, tiny.machine.index["cpu:0"]] *= 30.0
        return replace(tiny, costs=replace(tiny.costs, compute_s=compute_s))
    hard = replace(tiny, costs=replace(tiny.costs, compute_s=compute_s))
    devices = tuple(
        device if device.memory_bytes is None else replace(device, memory_bytes=NUM_DIAMONDS)
        for device in tiny.machine.devices
    )
    return replace(hard, machine=replace(tiny.machine, devices=devices))


def warm_up_all(name: str) -> str:
    """Have compiled what one placer needs for all kinds of problem; its name again."""
    for execution in Execution:
        for objective in Objective:
            warm_up_word(word_of(name, objective, execution))
    return name


def word_of(name: str, objective: str, execution: str) -> str:
    """What stands for a placer at one kind of problem."""
    return f"{name}:{objective}:{execution}"


def warm_up_word(word: str) -> None:
    """Have compiled what a placer needs for one kind of problem, and note that it is."""
    from placement.placers import placer_class

    name, *about = word.split(":")
    kind, objective, execution = placer_class(name), Objective(about[0]), Execution(about[1])
    if objective in kind.objectives and execution in kind.executions:
        tiny = _tiny(objective, execution, "live" if execution.uses_links else "sum")
        splits = execution is Execution.CALL and objective is Objective.THROUGHPUT
        for rules in RULES if splits else RULES[:1]:
            for posed in (tiny, _hard(tiny)):
                _try(_brief(kind()), replace(posed, rules=rules))
    note_warm(word)


def main(words: Sequence[str] = ()) -> None:
    """Compile what words stand for, or all placers on all cores."""
    from placement.placers import names

    if words:
        for word in words:
            warm_up_word(word)
        return
    # What most of them share first, so that it is compiled once.
    warm_up_all("heft")
    # The automatic one tries most of the others: beside them it would compile what they do again.
    in_turn = sorted(names(), key=lambda name: name == "auto")
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        for name in pool.map(warm_up_all, in_turn):
            print(f"compiled {name}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
