"""What steps are put together from: tables, names of ops, timelines, and the last step of all.

Ops are called as everywhere else, by block and type where a file has only numbers for them
(`drawing/names.py`); `Step.focus` and the bars of a plan keep the names in the file.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from placement.core.decoding import listed
from placement.core.formatting import seconds
from placement.core.graph import Ints
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.core.timeline import Span
from placement.drawing.names import names_of
from placement.search.coarsening import unit_edges
from placement.search.steps import Cell, Column, Kind, Question, Step, Table, ops_of_kernel

# Of what one step would list whole, the first are enough to see how it goes on.
MOST_ROWS = 40
# Kernels up to which a search predicts the timeline of every step.
MOST_DRAWN = 600
YES_OR_NO = ("yes", "no")


def table(
    title: str,
    columns: Mapping[str, Kind],
    rows: Sequence[tuple[Cell, ...]],
    marked: Iterable[int] = (),
) -> Table:
    """The first of all rows, below columns by their names, marked as far as they are shown."""
    heads = tuple(Column(name, kind) for name, kind in columns.items())
    return Table(title, heads, tuple(rows[:MOST_ROWS]), tuple(i for i in marked if i < MOST_ROWS))


def yes_or_no(text: str, is_so: bool) -> Question:
    return Question(text, YES_OR_NO, YES_OR_NO[not is_so])


def device_names(problem: Problem) -> list[str]:
    return [device.name for device in problem.machine.devices]


def name_of_kernel(problem: Problem, k: int) -> str:
    """The name of a kernel in its file, which its bar has."""
    return problem.kernels.ops[k].name


def kernel_called(problem: Problem, k: int) -> str:
    """What people call a kernel: what they call the op of its name, or the first one behind it.

    One that neither the model nor an op of it has is the runtime's own.
    """
    name, ops = name_of_kernel(problem, k), ops_of_kernel(problem, k)
    if name in problem.graph.index:
        return names_of(problem.graph).of(name)
    if not problem.sources[k]:
        return f"{names_of(problem.graph).of(name)} (made by the runtime)"
    return names_of(problem.graph).of(ops[0])


def unit_called(problem: Problem, unit: int) -> str:
    """What people call a unit of several ops: its first one."""
    ops = problem.ops_of_unit[unit]
    return names_of(problem.graph).shown[ops[0]] if ops else f"unit {unit}"


def ops_called(problem: Problem, ops: Iterable[str]) -> str:
    """What people call ops, for a sentence: one, or the first few of many."""
    return listed(names_of(problem.graph).listed(ops))


def ops_of_units(problem: Problem, units: Iterable[int]) -> tuple[str, ...]:
    """The source ops of units, of which some have none."""
    return tuple(problem.graph.ops[i].name for u in units for i in problem.ops_of_unit[u])


def devices_of(problem: Problem, placement: Placement) -> tuple[int, ...]:
    """The device of each unit (U,) under a placement."""
    devices = [int(row.argmax()) for row in problem.allowed]
    by_kernel = problem.kernel_devices(placement).tolist()
    for unit, device in zip(problem.unit_of_kernel.tolist(), by_kernel, strict=True):
        devices[unit] = device
    for i, op in enumerate(problem.graph.ops):
        devices[int(problem.unit_of_op[i])] = problem.machine.index[placement.device_of[op.name]]
    return tuple(devices)


def cut_bytes(problem: Problem, part: Ints) -> float:
    """Bytes that pass between parts (U,), a value once for each other part that reads it."""
    arrays, of_kernel = problem.kernels.arrays, part[problem.unit_of_kernel]
    tensor = np.repeat(np.arange(arrays.producer.size), np.diff(arrays.consumer_ptr))
    made = arrays.producer[tensor] >= 0
    tensor, readers = tensor[made], of_kernel[arrays.consumers[made]]
    apart = of_kernel[arrays.producer[tensor]] != readers
    sent = np.unique(np.stack([tensor[apart], readers[apart]]), axis=1)
    return float(arrays.tensor_bytes[sent[0]].sum())


def units_at_cut(problem: Problem, part: Ints) -> list[int]:
    """The units that pass something on to another part, or get something from there."""
    source, target, _ = unit_edges(problem)
    is_cut = part[source] != part[target]
    found: list[int] = np.unique(np.concatenate([source[is_cut], target[is_cut]])).tolist()
    return found


def drawn(problem: Problem, devices: Ints, order: Ints | None = None) -> tuple[Span, ...]:
    """The timeline that is predicted of devices of units (U,), where that is quick."""
    return drawn_of(problem, problem.placement_of(devices, () if order is None else order.tolist()))


def drawn_of(problem: Problem, placement: Placement) -> tuple[Span, ...]:
    """The timeline that is predicted of a placement, where that is quick."""
    from placement.schedule.simulated import simulate

    if len(problem.kernels.ops) > MOST_DRAWN:
        return ()
    return simulate(problem, placement).timeline.spans


def ended(problem: Problem, placement: Placement, line: int, said: str) -> Step:
    """The last step: the method's answer, with the timeline that is predicted of it."""
    from placement.schedule.simulated import simulate

    predicted = simulate(problem, placement)
    value = seconds(predicted.value, problem.unit)
    return Step(
        line=line,
        why=f"{said} The placement is predicted to take {value}.",
        devices=devices_of(problem, placement),
        spans=predicted.timeline.spans,
        placement=placement,
    )
