"""The methods that the menu offers for a problem."""

from collections.abc import Mapping
from functools import cache

from msgspec import Struct

from placement import list_placers
from placement.core.decoding import decode
from placement.core.problem import Problem
from placement.placers import placer_class

DEFAULT = "auto"
SEARCH_S = 5.0
# Their work is done on the page by hand, and on the command line with a file.
NOT_HERE = ("manual", "expert")

Value = bool | int | float | str | None


class Setting(Struct, frozen=True):
    """What a form asks for: one of the `choices` where there are any, a number within limits, or a
    policy that is "read" or "written"."""

    type: str
    default: Value
    help: str = ""
    choices: tuple[Value, ...] = ()
    low: int | float | None = None
    high: int | float | None = None
    policy: str = ""


class Method(Struct, frozen=True):
    """A placer as it describes itself."""

    name: str
    summary: str
    paper: str
    objectives: tuple[str, ...]
    executions: tuple[str, ...]
    all_cores: bool
    learns_live: bool
    exact: bool
    needs: tuple[str, ...]
    settings: Mapping[str, Setting]
    pseudo_code: tuple[str, ...] = ()


def offered(problem: Problem) -> dict[str, Method]:
    """Methods for problems of this kind by name, the default first, the rest in their order."""
    fitting = [p for p in _all() if problem.execution in p.executions]
    return {p.name: p for p in sorted(fitting, key=lambda p: p.name != DEFAULT)}


def fitting(problem: Problem) -> dict[str, Method]:
    """Those of the offered methods that work for the problem's goal."""
    return {n: m for n, m in offered(problem).items() if problem.objective in m.objectives}


def quick(problem: Problem) -> list[str]:
    """Methods that answer almost at once on a problem of this kind and size."""
    return [name for name in fitting(problem) if placer_class(name).is_quick(problem)]


def left_out(problem: Problem) -> list[str]:
    """Names of the methods that are for problems of another kind."""
    return [p.name for p in _all() if problem.execution not in p.executions]


def time_limit_s(method: Method) -> float | None:
    """The limit where nobody has typed one: searches need one, the others end by themselves."""
    return SEARCH_S if method.all_cores or method.exact else None


@cache
def _all() -> list[Method]:
    return [p for p in decode(list_placers(), tuple[Method, ...]) if p.name not in NOT_HERE]
