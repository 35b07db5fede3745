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

from placement.constraints.regexes import search_names
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
        try:
            return None if self.expression is None else re.compile(self.expression)
        except (re.error, OverflowError, RecursionError) as error:
            raise ValueError(f"{self.expression!r} is not a regular expression: {error}.") from None

    @property
    def expression(self) -> str | None:
        """The regular expression that it searches names for; None for other patterns."""
        found = self.pattern.startswith(REGEX)
        return self.pattern.removeprefix(REGEX) if found else None

    def matches(self, op: Op) -> bool:
        """Whether it names an op. An expression may take for ever; `found_by` may not."""
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


def found_by(graph: Graph, rules: Sequence[Rule]) -> tuple[Sequence[int] | None, ...]:
    """Indices of the ops that each rule matches; None where its expression is too slow.

    All regular expressions have one budget of time together.
    """
    patterns = tuple(dict.fromkeys(r.expression for r in rules if r.expression is not None))
    searched = search_names(patterns, [op.name for op in graph.ops]) if patterns else ()
    matched = {p: None if s.too_slow else s.found for p, s in zip(patterns, searched, strict=True)}
    return tuple(
        found_by_wildcards(graph, rule) if rule.expression is None else matched[rule.expression]
        for rule in rules
    )


def found_by_wildcards(graph: Graph, rule: Rule) -> tuple[int, ...]:
    """Indices of the ops that a rule without a regular expression matches."""
    return tuple(i for i, op in enumerate(graph.ops) if rule.matches(op))


Find = Callable[[Graph, Sequence[Rule]], Sequence[Sequence[int] | None]]


def decide(
    problem: Problem,
    rules: Sequence[Rule],
    find: Find = found_by,
) -> Decided:
    """The device of every unit with an op that a rule matches; a unit goes with its last rule.

    `find` says which ops the rules match, for those who know it already. A ValueError names a
    device that the machine does not have, or the rules whose expressions are too slow.
    """
    index = problem.machine.index
    devices = [index[problem.machine.device(rule.device).name] for rule in rules]
    winner: dict[int, int] = {}
    found = find(problem.graph, rules)
    slow = [rule.text for rule, ops in zip(rules, found, strict=True) if ops is None]
    if slow:
        raise ValueError(
            f"These rules take too long to match: {'; '.join(slow)[:500]}; write simpler ones."
        )
    matched = [problem.unit_of_op[list(ops or ())].tolist() for ops in found]
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
