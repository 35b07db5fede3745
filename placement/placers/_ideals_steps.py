"""Steps of the DP over ideals: the chain that is found back in its table, stage by stage."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from placement.core.formatting import counted, seconds
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.schedule.segments import make_schedule
from placement.search.steps import (
    Cell,
    Column,
    Question,
    Step,
    Table,
    devices_of,
    ended,
    first_rows,
    ops_of_units,
)
from placement.simulator.throughput import loads_s
from placement.splits.exact.table import Chain
from placement.splits.model.contract import contiguous_units
from placement.splits.model.instance import from_problem
from placement.splits.stages.search import Split

LIST, FILL, TRY, BACK, ANSWER = range(5)


class _Stage(NamedTuple):
    """A stage: its units, its device, and best[ideal] by devices, of which the chain has one."""

    units: tuple[int, ...]
    device: int
    best: tuple[tuple[str, float], ...]
    at: int


def of_split(problem: Problem, answer: Placement, split: Split, most: int) -> Iterator[Step]:
    """The chain of a model, and what was made of it."""
    chains = split.chains
    blocks, kinds = chains.ideals.blocks, chains.ideals.kinds
    names = [problem.machine.devices[each[0]].name for each in kinds.engines]
    alike = [len(each) > 1 for each in kinds.engines]
    counts = np.arange(kinds.num_states)[:, None] // kinds.stride % (kinds.most + 1)

    def used(num_used: list[int]) -> str:
        each = zip(names, alike, num_used, strict=True)
        return " + ".join(f"{num} like {n}" if many else n for n, many, num in each if num)

    stages = []
    for stage in chains.stages():
        row = chains.best_s[stage.ideal]
        states = np.flatnonzero(np.isfinite(row)).tolist()
        found = tuple((used(counts[s].tolist()), float(row[s])) for s in states)
        units = np.flatnonzero(np.isin(blocks.block_of_unit, stage.blocks)).tolist()
        stages.append(_Stage(tuple(units), stage.device, found, states.index(stage.state)))
    yield from _walk(problem, stages, blocks.num_blocks, len(chains.best_s), answer, most)


def of_workload(problem: Problem, chain: Chain, answer: Placement, most: int) -> Iterator[Step]:
    """The chain of a workload; without one where it was not found in the table of all ideals."""
    devices = devices_of(problem, answer)
    stages = []
    classes = contiguous_units(from_problem(problem)).unit_of_class
    for link in chain.links:
        if not link.units.size:
            continue
        cells = np.argwhere(np.isfinite(link.best_s)).tolist()
        found = tuple((_in_words(a, c), float(link.best_s[a, c])) for a, c in cells)
        units = np.flatnonzero(np.isin(classes, link.units)).tolist()
        device = devices[units[0]]
        stages.append(_Stage(tuple(units), device, found, cells.index(list(link.state))))
    yield from _walk(problem, stages, len(chain.device_of_unit), chain.num_ideals, answer, most)


def _in_words(num_accelerators: int, num_cpus: int) -> str:
    used = ("accelerator", num_accelerators), ("CPU", num_cpus)
    return " + ".join(counted(num, noun) for noun, num in used if num)


def _walk(
    problem: Problem,
    stages: list[_Stage],
    num_blocks: int,
    num_ideals: int,
    answer: Placement,
    most: int,
) -> Iterator[Step]:
    nowhere = (-1,) * problem.num_units
    blocks, ideals = counted(num_blocks, "block"), counted(num_ideals, "ideal")
    if num_ideals:
        why = (
            f"{blocks} of ops that stay together have {ideals}: sets into which nothing leads from"
            " outside. What a larger one has more than a smaller one may be a stage."
        )
        yield Step(line=LIST, why=why, devices=nowhere)
    devices = list(nowhere)
    for number, stage in enumerate(stages[:most]):
        for unit in stage.units:
            devices[unit] = stage.device
        yield _of_stage(problem, stages, number, tuple(devices))
    wanted = devices_of(problem, answer)
    said = f"The table's best chain has {counted(len(stages), 'stage')} and is the answer."
    if not stages:
        said = "The table of all ideals does not hold this split, which was found near it."
    elif any(wanted[u] != stage.device for stage in stages for u in stage.units):
        said = "With all transfers counted exactly another split is better than the table's best."
    yield _with_loads(problem, ended(problem, answer, ANSWER, said), answer)


def _of_stage(
    problem: Problem, stages: list[_Stage], number: int, devices: tuple[int, ...]
) -> Step:
    """One stage more: the ideal that it completes, with its frontier in focus."""
    names = [device.name for device in problem.machine.devices]
    stage = stages[number]
    value_s = stage.best[stage.at][1]
    rows: list[tuple[Cell, ...]] = []
    for each in stages[: number + 1]:
        work_s = float(problem.unit_s[list(each.units), each.device].sum())
        rows.append((names[each.device], float(len(ops_of_units(problem, each.units))), work_s))
    columns = (Column("device"), Column("ops", "number"), Column("work", "seconds"))
    # The rows around the one of the chain, where there are many.
    shown = first_rows(stage.best[max(0, stage.at - len(first_rows(stage.best)) + 1) :])
    at = shown.index(stage.best[stage.at])
    held = counted(len(ops_of_units(problem, stage.units)), "op")
    why = (
        f"{names[stage.device]} takes a stage of {held}: with"
        f" {stage.best[stage.at][0]} for all up to here, the largest load is"
        f" {seconds(value_s, problem.unit)} at least."
    )
    return Step(
        line=BACK,
        why=why,
        devices=devices,
        focus=_frontier(problem, devices),
        tables=(
            Table(
                "best[this ideal][devices]",
                (Column("devices used"), Column("least largest load", "seconds")),
                shown,
                (at,),
            ),
            Table("Stages so far", columns, tuple(rows), (number,)),
        ),
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
    loads = loads_s(problem, make_schedule(problem, answer), answer.replicas)
    rows = first_rows([(name, load_s) for name, load_s in loads.items() if load_s > 0])
    if not rows:
        return step
    most = max(range(len(rows)), key=lambda i: float(rows[i][1] or 0))
    columns = (Column("device or link"), Column("load", "seconds"))
    names = tuple(str(name) for name, _ in rows)
    is_alone = sum(row[1] == rows[most][1] for row in rows) == 1
    text = "Whose load decides how often a result comes out?"
    return replace(
        step,
        tables=(Table("Loads per sample", columns, rows, (most,)),),
        question=Question(text, names, names[most]) if is_alone and len(names) > 1 else None,
    )
