"""Rules such as Conv=cpu:1: a pattern, and the device of every op that it matches.

A pattern is an op name, an op type or a block (scope, with everything in it), where * and ? stand
for any characters. `type:`, `scope:` and `name:` in front look at that alone, and `regex:` searches
names for a regular expression. Of several rules for an op the last one wins.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property

from placement.core.graph import Graph, Op
from placement.core.problem import Problem

TYPE, SCOPE, NAME, REGEX = "type:", "scope:", "name:", "regex:"


@dataclass(frozen=True)
class Rule:
    """One rule; as text PATTERN=DEVICE, several of them separated by ';'."""

    pattern: str
    device: str

    def __post_init__(self) -> None:
        if not self.pattern.strip() or not self.device.strip():
            raise ValueError(f"The rule {self.text!r} is not of the form PATTERN=DEVICE.")
        if ";" in self.text:
            raise ValueError(
                f"The rule {self.text!r} has a semicolon, which separates rules; write ? instead"
                r" (\x3b in a regular expression)."
            )
        _ = self._regex

    @property
    def text(self) -> str:
        return f"{self.pattern}={self.device}"

    @cached_property
    def _regex(self) -> re.Pattern[str] | None:
        if not self.pattern.startswith(REGEX):
            return None
        try:
            return re.compile(self.pattern.removeprefix(REGEX))
        except (re.error, OverflowError, RecursionError) as error:
            raise ValueError(
                f"{self.pattern.removeprefix(REGEX)!r} is not a regular expression: {error}."
            ) from None

    def matches(self, op: Op) -> bool:
        if self._regex is not None:
            return self._regex.search(op.name) is not None
        for prefix, texts in ((TYPE, (op.kind,)), (NAME, (op.name,)), (SCOPE, blocks_of(op))):
            if self.pattern.startswith(prefix):
                wanted = self.pattern.removeprefix(prefix)
                return any(fnmatchcase(text, wanted) for text in texts)
        path = f"{op.scope}/{op.name}" if op.scope else op.name
        texts = (op.name, op.kind, path, *blocks_of(op))
        return any(fnmatchcase(text, self.pattern) for text in texts)


@dataclass(frozen=True)
class Decided:
    """What rules say about a problem.

    `device_of_unit` has a device index for the units that some rule names. `num_matched` counts
    the ops that each rule matches, `num_won` those among them whose unit no later rule takes.
    """

    device_of_unit: dict[int, int]
    num_matched: tuple[int, ...]
    num_won: tuple[int, ...]


def parse(text: str) -> tuple[Rule, ...]:
    """Rules from PATTERN=DEVICE;PATTERN=DEVICE; a ValueError names the one that is none."""
    rules = []
    for part in filter(None, (part.strip() for part in text.split(";"))):
        pattern, sign, device = part.rpartition("=")
        if not sign:
            raise ValueError(f"The rule {part!r} is not of the form PATTERN=DEVICE.")
        rules.append(Rule(pattern.strip(), device.strip()))
    return tuple(rules)


def to_text(rules: Sequence[Rule]) -> str:
    return ";".join(rule.text for rule in rules)


def found_by(graph: Graph, rule: Rule) -> Sequence[int]:
    """Indices of the ops that a rule matches."""
    return [i for i, op in enumerate(graph.ops) if rule.matches(op)]


def decide(
    problem: Problem,
    rules: Sequence[Rule],
    find: Callable[[Graph, Rule], Sequence[int]] = found_by,
) -> Decided:
    """The device of every unit with an op that a rule matches; a unit goes with its last rule.

    `find` says which ops a rule matches, for those who guard against endless expressions. A
    ValueError names a device that the machine does not have.
    """
    index = problem.machine.index
    devices = [index[problem.machine.device(rule.device).name] for rule in rules]
    winner: dict[int, int] = {}
    matched = [problem.unit_of_op[list(find(problem.graph, rule))].tolist() for rule in rules]
    for number, units in enumerate(matched):
        winner.update(dict.fromkeys(units, number))
    return Decided(
        {unit: devices[number] for unit, number in winner.items()},
        tuple(map(len, matched)),
        tuple(sum(winner[u] == number for u in units) for number, units in enumerate(matched)),
    )


def blocks_of(op: Op) -> tuple[str, ...]:
    """The scope of an op and every scope around it, innermost first."""
    return tuple(_around(op.scope))


def _around(scope: str) -> Iterator[str]:
    while scope:
        yield scope
        scope = scope.rpartition("/")[0]
