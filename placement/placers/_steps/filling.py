"""Steps of methods that go through the ops once, and put each somewhere by a rule without times."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from placement.core.formatting import counted
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.search.step_parts import device_names, devices_of, ended, ops_of_units, unit_called
from placement.search.steps import Question, Step, Table


class Put(NamedTuple):
    """A unit that was put on a device, why it went there, and what was compared."""

    unit: int
    device: int
    why: str
    tables: tuple[Table, ...]


def walk(
    problem: Problem,
    puts: Iterable[Put],
    first: Iterable[Step],
    placement: Placement,
    most: int,
    *,
    line: int,
    last_line: int,
) -> Iterator[Step]:
    """The `first` steps, one for each unit that is put somewhere, and the answer.

    Where the answer is another placement, because this one did not fit into memory, the last step
    says so.
    """
    yield from first
    devices, num_more = [-1] * problem.num_units, 0
    names = device_names(problem)
    for number, put in enumerate(puts):
        devices[put.unit] = put.device
        if number >= most:
            num_more += 1
            continue
        choices = tuple(names[d] for d in problem.allowed[put.unit].nonzero()[0].tolist())
        text = f"Where does {unit_called(problem, put.unit)} go?"
        asks = len(choices) > 1 and names[put.device] in choices
        yield Step(
            line=line,
            why=put.why,
            devices=tuple(devices),
            focus=ops_of_units(problem, [put.unit]),
            tables=put.tables,
            question=Question(text, choices, names[put.device]) if asks else None,
        )
    if num_more:
        why = f"The other {counted(num_more, 'block')} of ops went the same way."
        yield Step(line=line, why=why, devices=tuple(devices))
    moved = sum(a != b for a, b in zip(devices_of(problem, placement), devices, strict=True))
    said = "All ops are placed."
    if moved:
        said = f"This did not fit into memory, so {counted(moved, 'block')} of ops moved elsewhere."
    yield ended(problem, placement, last_line, said)
