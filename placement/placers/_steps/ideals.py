"""Steps of splits into stages: the chain that a recurrence has found, stage by stage.

The DP over ideals, and those over linear orders, whose beginnings are ideals too. Where the answer
was not found in a table, as phases and clusters count in ways that it does not know, its stages are
shown without the table's figures.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from placement.core.formatting import counted, seconds
from placement.core.graph import Ints, topological_order
from placement.core.objective import Objective
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.schedule.segments import make_schedule
from placement.search.step_parts import (
    MOST_ROWS,
    device_names,
    devices_of,
    ended,
    ops_of_units,
    table,
)
from placement.search.steps import Cell, Step, Table, question
from placement.simulator.call_costs import calls_of
from placement.simulator.throughput import loads_s
from placement.splits.exact.table import Chain
from placement.splits.model.contract import contiguous_units
from placement.splits.model.instance import from_problem
from placement.splits.stages.search import Split

LIST, FILL, TRY, BACK, ANSWER = range(5)
IDEALS = (
    "{blocks} of ops that stay together have {ideals}: sets into which nothing leads from outside."
    " What a larger one has more than a smaller one may be a stage."
)
ORDERS = (
    "{blocks} of ops that stay together are put in a row, in several orders, and a stage is a piece"
    " of a row: the best row has {ideals}, its beginnings."
)
LAYERS = (
    "{blocks} of ops that stay together are taken as a chain of layers, in the order of the model:"
    " it has {ideals}, its beginnings, and a stage is a piece of it."
)


class _Stage(NamedTuple):
    """A stage: its units, its device, and best[ideal] by devices, of which the chain has one.

    There are no such figures where `at` is -1.
    """

    units: tuple[int, ...]
    device: int
    best: tuple[tuple[str, float], ...] = ()
    at: int = -1


def of_split(
    problem: Problem, answer: Placement, split: Split, most: int, about: str = IDEALS
) -> Iterator[Step]:
    """The chain of a model, and what was made of it."""
    chains = split.chains
    blocks, kinds = chains.ideals.blocks, chains.ideals.kinds
    names = [problem.machine.devices[each[0]].name for each in kinds.engines]
    alike = [len(each) > 1 for each in kinds.engines]

    def used(num_used: list[int]) -> str:
        each = zip(names, alike, num_used, strict=True)
        return " + ".join(f"{num} like {n}" if many else n for n, many, num in each if num)

    stages = []
    for stage in chains.stages():
        row = chains.by_state_s(stage.ideal)
        states = np.flatnonzero(np.isfinite(row)).tolist()
        found = tuple((used(kinds.used[s].tolist()), float(row[s])) for s in states)
        units = np.flatnonzero(np.isin(blocks.block_of_unit, stage.blocks)).tolist()
        stages.append(_Stage(tuple(units), stage.device, found, states.index(stage.state)))
    said = about.format(
        blocks=counted(blocks.num_blocks, "block"), ideals=counted(len(chains.best_s), "ideal")
    )
    yield from _walk(problem, stages, said, answer, most)


def of_workload(
    problem: Problem, chain: Chain, answer: Placement, most: int, about: str = IDEALS
) -> Iterator[Step]:
    """The chain of a workload."""
    units = contiguous_units(from_problem(problem))
    said = about.format(
        blocks=counted(len(chain.device_of_unit), "block"),
        ideals=counted(chain.num_ideals, "ideal"),
    )
    stages = _linked(problem, chain, answer, units.unit_of_class)
    if not chain.links:
        said = (
            f"{counted(len(chain.device_of_unit), 'block')} of ops that stay together are divided"
            " by a search that knows phases and clusters, and starts from the best chain of ideals"
            " that does not."
        )
        order = topological_order(*_quotient(chain, units.succ_ptr.tolist(), units.succ.tolist()))
        parts = order if order is not None else range(int(chain.device_of_unit.max()) + 1)
        stages = []
        for part in parts:
            inside = np.isin(units.unit_of_class, np.flatnonzero(chain.device_of_unit == part))
            stages.append(_on_its_device(problem, np.flatnonzero(inside).tolist(), answer))
    yield from _walk(problem, [stage for stage in stages if stage.units], said, answer, most)


def of_calls(problem: Problem, answer: Placement, most: int) -> Iterator[Step]:
    """The calls of a workload for latency, one for each accelerator, and what runs between."""
    kernel_devices = problem.kernel_devices(answer)
    stages: list[_Stage] = []
    seen: set[int] = set()
    for call in calls_of(problem, kernel_devices):
        units = [u for u in problem.unit_of_kernel[list(call.kernels)].tolist() if u not in seen]
        seen.update(units)
        if stages and stages[-1].device == call.device:
            units = [*stages[-1].units, *units]
            stages.pop()
        stages.append(_Stage(tuple(dict.fromkeys(units)), call.device))
    said = (
        f"{counted(problem.num_units, 'block')} of ops that stay together are put in a row, in"
        " several orders: of each the best pieces are found, a call for each accelerator."
    )
    yield from _walk(problem, [stage for stage in stages if stage.units], said, answer, most)


def _linked(problem: Problem, chain: Chain, answer: Placement, unit_of_class: Ints) -> list[_Stage]:
    stages = []
    for link in chain.links:
        units = np.flatnonzero(np.isin(unit_of_class, link.units)).tolist()
        cells = np.argwhere(np.isfinite(link.best_s)).tolist()
        found = tuple((_in_words(a, c), float(link.best_s[a, c])) for a, c in cells)
        at = cells.index(list(link.state))
        stages.append(_on_its_device(problem, units, answer)._replace(best=found, at=at))
    return stages


def _on_its_device(problem: Problem, units: list[int], answer: Placement) -> _Stage:
    """A stage without figures, on the device that has it in the answer."""
    return _Stage(tuple(units), devices_of(problem, answer)[units[0]] if units else -1)


def _quotient(chain: Chain, succ_ptr: list[int], succ: list[int]) -> tuple[int, list[list[int]]]:
    """How many devices a chain may have, and for each those that get something from it."""
    device = chain.device_of_unit.tolist()
    after: list[set[int]] = [set() for _ in range(max(device, default=-1) + 1)]
    for u, d in enumerate(device):
        after[d].update(device[v] for v in succ[succ_ptr[u] : succ_ptr[u + 1]] if device[v] != d)
    return len(after), [sorted(each) for each in after]


def _in_words(num_accelerators: int, num_cpus: int) -> str:
    used = ("accelerator", num_accelerators), ("CPU", num_cpus)
    return " + ".join(counted(num, noun) for noun, num in used if num)


def _walk(
    problem: Problem, stages: Sequence[_Stage], said: str, answer: Placement, most: int
) -> Iterator[Step]:
    nowhere = (-1,) * problem.num_units
    yield Step(line=LIST, why=said, devices=nowhere)
    devices = list(nowhere)
    for number, stage in enumerate(stages[:most]):
        for unit in stage.units:
            devices[unit] = stage.device
        yield _of_stage(problem, stages, number, tuple(devices))
    placed = devices_of(problem, answer)
    has_figures = any(stage.at >= 0 for stage in stages)
    end = f"The best chain has {counted(len(stages), 'stage')} and is the answer."
    if not has_figures:
        end = f"The answer has {counted(len(stages), 'stage')}."
    elif any(placed[u] != stage.device for stage in stages for u in stage.units):
        end = "With all transfers counted exactly another split is better than the table's best."
    yield _with_loads(problem, ended(problem, answer, ANSWER, end), answer)


def _of_stage(
    problem: Problem, stages: Sequence[_Stage], number: int, devices: tuple[int, ...]
) -> Step:
    """One stage more: the ideal that it completes, with its frontier in focus."""
    names = device_names(problem)
    stage = stages[number]
    rows: list[tuple[Cell, ...]] = []
    for each in stages[: number + 1]:
        work_s = float(problem.unit_s[list(each.units), each.device].sum())
        rows.append((names[each.device], float(len(ops_of_units(problem, each.units))), work_s))
    so_far = table(
        "Stages so far", {"device": "text", "ops": "number", "work": "seconds"}, rows, (number,)
    )
    num_ops = counted(len(ops_of_units(problem, stage.units)), "op")
    why = f"{names[stage.device]} takes a stage of {num_ops}"
    figures: list[Table] = []
    if stage.at >= 0:
        used, value_s = stage.best[stage.at]
        value = seconds(value_s, problem.unit)
        is_sum = problem.objective is Objective.LATENCY
        what = "all stages take" if is_sum else "the largest load is"
        why = f"{why}: with {used} for all up to here, {what} {value} at least"
        figures.append(_figures(stage, "least sum" if is_sum else "least largest load"))
    return Step(
        line=BACK,
        why=f"{why}.",
        devices=devices,
        focus=_frontier(problem, devices),
        tables=(*figures, so_far),
    )


def _figures(stage: _Stage, what: str) -> Table:
    # The rows around the one of the chain, where there are many.
    shown = stage.best[max(0, stage.at - MOST_ROWS + 1) :]
    at = shown.index(stage.best[stage.at])
    return table(
        "best[this ideal][devices]", {"devices used": "text", what: "seconds"}, shown, (at,)
    )


def _frontier(problem: Problem, devices: tuple[int, ...]) -> tuple[str, ...]:
    """The ops of an ideal that something outside of it reads of; its last ones where it is all."""
    graph, unit = problem.graph, problem.unit_of_op.tolist()
    inside = {op.name for op, u in zip(graph.ops, unit, strict=True) if devices[u] >= 0}
    found = {
        tensor.producer
        for tensor in graph.tensors
        if tensor.producer in inside
        and (tensor.is_output or not inside.issuperset(tensor.consumers))
    }
    return tuple(op.name for op in graph.ops if op.name in found)


def _with_loads(problem: Problem, step: Step, answer: Placement) -> Step:
    """The last step with the load of each device and link, and a question for the largest."""
    if problem.objective is Objective.LATENCY:
        return step
    loads = loads_s(problem, make_schedule(problem, answer), answer.replicas)
    rows = [(name, load_s) for name, load_s in loads.items() if load_s > 0]
    if not rows:
        return step
    most = max(range(len(rows)), key=lambda i: rows[i][1])
    idle_s = {name: -load_s for name, load_s in rows[:MOST_ROWS]}
    text = "Whose load decides how often a result comes out?"
    return replace(
        step,
        tables=(
            table("Loads per sample", {"device or link": "text", "load": "seconds"}, rows, (most,)),
        ),
        question=question(text, rows[most][0], idle_s) if most < len(idle_s) else None,
    )
