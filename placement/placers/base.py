"""What every placer has in common: its settings are its fields, its answer a placement."""

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, ClassVar, Literal, get_args, get_origin, get_type_hints

from placement.core.placement import Placement
from placement.core.problem import Execution, Objective, Problem
from placement.core.verb_options import PlaceOptions
from placement.learning.live import Live
from placement.parallel.executor import HERE, Executor
from placement.search.progress import Progress, Report, quiet
from placement.search.steps import Step, deciding

__all__ = [
    "Finalist",
    "Placer",
    "Progress",
    "Report",
    "Step",
    "build",
    "describe",
    "quiet",
    "setting",
]


@dataclass(frozen=True)
class Finalist:
    """A placement that measuring may choose, and who found it; empty for the placer itself."""

    name: str
    placement: Placement


@dataclass(frozen=True, kw_only=True)
class Placer(ABC):
    """An algorithm with its settings.

    The class variables describe it to people: `summary` in one line, `paper`, `objectives` it
    works for, whether it is `exact`, and what must be installed (`needs`). `executions` are the
    kinds of problem that it handles, `quick_up_to` the number of kernels up to which it is cheap
    enough to be tried first by `auto` (`quick_models_up_to` where that is more for models than for
    workload files), `all_cores` says that it computes on every core, so that it must not run beside
    a measurement, `learns_live` that it can learn from measurements, too. One that shows its steps
    has a `pseudo_code`, the lines that they are at, another one says in `no_steps` why it has none.
    `tells_up_to` is the number of kernels up to which it tells at once why an op is where it is.
    `followed_with` are settings with which a page shows the steps of one that searches for long.
    `time_limit_s`, `seed` and `executor`, who carries out what can be done side by side, are common
    to all; a method without search or chance ignores them.
    """

    summary: ClassVar[str]
    paper: ClassVar[str] = ""
    objectives: ClassVar[tuple[Objective, ...]] = (Objective.LATENCY,)
    exact: ClassVar[bool] = False
    needs: ClassVar[tuple[str, ...]] = ()
    executions: ClassVar[tuple[Execution, ...]] = (Execution.OP, Execution.SEGMENT)
    quick_up_to: ClassVar[int] = 0
    quick_models_up_to: ClassVar[int] = 0
    all_cores: ClassVar[bool] = False
    learns_live: ClassVar[bool] = False
    pseudo_code: ClassVar[tuple[str, ...]] = ()
    no_steps: ClassVar[str] = ""
    tells_up_to: ClassVar[int] = 0
    followed_with: ClassVar[Mapping[str, int]] = MappingProxyType({})

    time_limit_s: float | None = None
    seed: int = 0
    executor: Executor = HERE

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            low, high = (field.metadata.get(end) for end in ("low", "high"))
            below = low is not None and not value >= low
            if below or (high is not None and not value <= high):
                ends = [f"{end:g}" for end in (low, high) if end is not None]
                more = "or more" if high is None else "or less"
                use = " to ".join(ends) if len(ends) == 2 else f"{ends[0]} {more}"
                raise ValueError(f"Setting {field.name!r} is {value}; use {use}.")

    @classmethod
    def is_quick(cls, problem: Problem) -> bool:
        """Whether it is cheap enough for a problem of this kind and size to be tried first."""
        most = cls.quick_up_to
        if problem.execution is not Execution.CALL:
            most = max(most, cls.quick_models_up_to)
        return len(problem.kernels.ops) <= most

    @abstractmethod
    def place(self, problem: Problem, report: Report = quiet) -> Placement:
        """A placement of every op; raises ValueError where the problem has none."""

    def place_live(self, problem: Problem, live: Live, report: Report = quiet) -> Placement:
        """The same, found by simulation and then by measuring placements on the computer itself."""
        raise NotImplementedError(f"{type(self).__name__} does not learn from measurements")

    def steps(self, problem: Problem, most: int, report: Report = quiet) -> Iterator[Step]:
        """What `place` does, step by step; the last step has its placement.

        Steps beyond about `most` are taken together, as one. A search that ends before it has steps
        to show tells the `report` how far it is, as `place` does.
        """
        raise NotImplementedError(f"{type(self).__name__} does not show its steps")

    def step_of(self, problem: Problem, op: str) -> Step | None:
        """The step that has put an op where `place` has it, None where no single one did."""
        num_kernels = len(problem.kernels.ops)
        return deciding(problem, tuple(self.steps(problem, num_kernels + 1)), op)

    def finalists(self, problem: Problem, report: Report = quiet) -> tuple[Finalist, ...]:
        """Good placements that differ, the best by prediction first: measuring chooses."""
        return (Finalist("", self.place(problem, report)),)


COMMON = ("time_limit_s", "seed", "executor")
_TYPES = {int: "int", float: "float", bool: "bool", str: "str"}


def setting(
    default: Any,
    help: str,
    *,
    low: float | None = None,
    high: float | None = None,
    policy: Literal["read", "written"] | None = None,
) -> Any:
    """A field of a placer with its explanation for the form and the command line.

    It is an int, float, bool or str, or one of a few values (a Literal or StrEnum), which is a
    menu. A number is at least `low` and at most `high`; a str may be the path of a `policy`.
    """
    about = {"help": help, "low": low, "high": high, "policy": policy}
    return dataclasses.field(
        default=default, metadata={key: told for key, told in about.items() if told is not None}
    )


def describe(name: str, placer: type[Placer]) -> dict[str, Any]:
    """What the menu, the form and `placers --json` say about a placer.

    A setting of a type that no form can ask for is left out; `build` refuses such a placer.
    """
    return {
        "name": name,
        "summary": placer.summary,
        "paper": placer.paper,
        "objectives": list(placer.objectives),
        "executions": list(placer.executions),
        "all_cores": placer.all_cores,
        "learns_live": placer.learns_live,
        "exact": placer.exact,
        "pseudo_code": list(placer.pseudo_code),
        "quick_up_to": placer.quick_up_to,
        "needs": list(placer.needs),
        "settings": {
            field.name: {
                "type": _TYPES.get(kind, "str"),
                "default": field.default,
                "help": "",
                **({"choices": list(_choices(kind))} if _choices(kind) else {}),
                **field.metadata,
            }
            for field, kind in _settings(placer)
            if kind in _TYPES or _choices(kind)
        },
    }


def require_fitting(name: str, placer: type[Placer], problem: Problem, remedy: str) -> None:
    """ValueError where the placer of that name is for other problems."""
    for what, value, known in (
        ("the objective", problem.objective, placer.objectives),
        ("problems of execution", problem.execution, placer.executions),
    ):
        if value not in known:
            raise ValueError(
                f"Placer {name!r} does not work for {what} {value!r}, only for"
                f" {', '.join(known)}; {remedy}."
            )


def _settings(placer: type[Placer]) -> list[tuple[dataclasses.Field[Any], Any]]:
    """The fields of a placer that are its own, with their types."""
    hints = get_type_hints(placer)
    return [(f, hints[f.name]) for f in dataclasses.fields(placer) if f.name not in COMMON]


def _choices(kind: Any) -> tuple[Any, ...]:
    """The few values of which a setting is one; none where it may be any of its type."""
    if get_origin(kind) is Literal:
        return get_args(kind)
    return tuple(kind) if isinstance(kind, type) and issubclass(kind, StrEnum) else ()


def build(placer: type[Placer], options: PlaceOptions, executor: Executor = HERE) -> Placer:
    """A placer from settings as text or values; a ValueError names the one that does not fit."""
    name = options.placer
    kinds = {field.name: kind for field, kind in _settings(placer)}
    for key, kind in kinds.items():
        if kind not in _TYPES and not _choices(kind):
            raise ValueError(
                f"Setting {key!r} of placer {name!r} has the type"
                f" {getattr(kind, '__name__', kind)}; make it an int, float, bool, str, Literal or"
                " StrEnum."
            )
    values: dict[str, Any] = {}
    for key, value in options.settings.items():
        if key not in kinds:
            known = ", ".join(sorted(kinds)) or "none"
            raise ValueError(f"Placer {name!r} has no setting {key!r}; it has: {known}.")
        values[key] = _parsed(name, key, value, kinds[key])
    limit_s, seed = options.time_limit_s, options.seed
    return placer(**values, time_limit_s=limit_s, seed=seed, executor=executor)


def _parsed(name: str, key: str, value: Any, wanted: Any) -> Any:
    choices = {str(choice): choice for choice in _choices(wanted)}
    if choices and str(value) not in choices:
        raise ValueError(
            f"Setting {key!r} of placer {name!r} is {value!r}; use one of {', '.join(choices)}."
        )
    if choices:
        return choices[str(value)]
    if wanted is bool and isinstance(value, str):
        if value.lower() in ("true", "1", "yes", "on"):
            return True
        if value.lower() in ("false", "0", "no", "off"):
            return False
        raise ValueError(f"Setting {key!r} of placer {name!r} is {value!r}; use true or false.")
    try:
        return wanted(value)
    except (TypeError, ValueError):
        raise ValueError(
            f"Setting {key!r} of placer {name!r} is {value!r}; use a value of type"
            f" {_TYPES[wanted]}."
        ) from None
