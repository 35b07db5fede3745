"""The rules of a project: kept in order on disk, applied to the placement on the screen at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from placement.constraints.regexes import Searched, search_names
from placement.constraints.rules import Decided, Rule, decide, found_by_wildcards, parse, to_text
from placement.core import formatting
from placement.core.graph import Graph
from placement.drawing.memo import remembered
from studio import editing
from studio.project import edits
from studio.project.files import read, write_json
from studio.snapshot import Studio

MAX_RULES = 100


@dataclass(frozen=True)
class Row:
    """A rule and what it does here; `trouble` says why it does nothing, empty where it does."""

    rule: Rule
    num_matched: int
    num_won: int
    trouble: str


def rules_of(now: Studio) -> tuple[Rule, ...]:
    """The project's rules, first to last; a later one wins over an earlier one."""
    return read(_path(now), tuple[Rule, ...]) or ()


def add(now: Studio, text: str) -> None:
    """Put rules PATTERN=DEVICE, separated by ';', at the end. A ValueError says what is wrong."""
    new = parse(text)
    if not new:
        raise ValueError("There is no rule in this; write PATTERN=DEVICE, as Conv=cpu:0.")
    for rule in new:
        now.machine.device(rule.device)
    for rule, ops in zip(new, _found(now.model.graph, new), strict=True):
        if ops is None:
            raise ValueError(
                f"The rule {rule.text!r} takes too long to match; write a simpler one."
            )
    keep(now, (*rules_of(now), *new))


def keep(now: Studio, rules: Sequence[Rule]) -> None:
    if len(rules) > MAX_RULES:
        raise ValueError(f"A project holds {MAX_RULES} rules at most; remove some first.")
    write_json(_path(now), [{"pattern": r.pattern, "device": r.device} for r in rules])
    now.project.change()


def moved(now: Studio, number: int, rule: Rule, by: int) -> None:
    """Move a rule up (-1) or down (+1); nothing happens at the ends or where it is not any more."""
    listed, to = list(rules_of(now)), number + by
    if _is_there(listed, number, rule) and 0 <= to < len(listed):
        listed[number], listed[to] = listed[to], listed[number]
        keep(now, listed)


def removed(now: Studio, number: int, rule: Rule) -> None:
    listed = list(rules_of(now))
    if _is_there(listed, number, rule):
        keep(now, [*listed[:number], *listed[number + 1 :]])


def _is_there(listed: Sequence[Rule], number: int, rule: Rule) -> bool:
    """Whether a rule is still where it was drawn; a second quick click finds another one there."""
    return number < len(listed) and listed[number] == rule


def rows(now: Studio) -> tuple[Row, ...]:
    """Every rule in order with the number of ops that it matches and that it decides here."""
    rules = rules_of(now)
    useless = _why_useless(now, rules)
    decided = _decide(now, [r for r, why in zip(rules, useless, strict=True) if not why])
    counts = iter(zip(decided.num_matched, decided.num_won, strict=True))
    listed = []
    for rule, why in zip(rules, useless, strict=True):
        if why:
            listed.append(Row(rule, 0, 0, why))
            continue
        num_matched, num_won = next(counts)
        trouble = "matches no op" if not num_matched else ""
        if num_matched and not num_won:
            trouble = "later rules take all of its ops"
        listed.append(Row(rule, num_matched, num_won, trouble))
    return tuple(listed)


def apply(now: Studio) -> str:
    """Apply all rules as one step that can be undone; what to tell.

    Ops that no rule names stay, as do pinned ones and those that a device cannot run.
    """
    rules = rules_of(now)
    usable = [r for r, why in zip(rules, _why_useless(now, rules), strict=True) if not why]
    move = edits.move(now.problem, now.state, _decide(now, usable).device_of_unit)
    told = ""
    if move.changes:
        told = editing.do(now, edits.Edit(f"rules {to_text(usable)}", move.changes))
    number = len(move.changes)
    found = _found(now.model.graph, rules)
    matched = [ops or () for r, ops in zip(rules, found, strict=True) if r in usable]
    named = {now.model.graph.ops[i].name for ops in matched for i in ops}
    along = sum(op not in named for op, _, _ in move.changes)
    also = f", {along} of them because they run as one with ops that a rule names" if along else ""
    done = f"The rules moved {formatting.counted(number, 'op')}{also}."
    if not number:
        done = "The rules moved nothing: every op that they name is where they want it or stays."
    idle = [row.rule.text for row in rows(now) if row.trouble]
    unused = f"Without effect: {', '.join(idle)}." if idle else ""
    stayed = edits.why_they_stay(move, "the device")
    return " ".join(filter(None, (done, told, stayed, unused)))


def _why_useless(now: Studio, rules: Sequence[Rule]) -> list[str]:
    """Why each rule cannot be asked at all; empty where it can."""
    found = _found(now.model.graph, rules)
    return [
        f"this machine has no device {rule.device!r}"
        if rule.device not in now.machine.index
        else "takes too long to match; remove it or write a simpler one"
        if ops is None
        else ""
        for rule, ops in zip(rules, found, strict=True)
    ]


def _decide(now: Studio, usable: Sequence[Rule]) -> Decided:
    known = dict(zip(rules_of(now), _found(now.model.graph, rules_of(now)), strict=True))
    return decide(now.problem, usable, lambda _, rules: [known[rule] for rule in rules])


def _found(graph: Graph, rules: Sequence[Rule]) -> list[Sequence[int] | None]:
    """Indices of the ops that each rule matches; None where an expression is too slow.

    Expressions are asked for together and have one budget, so that a page with a hundred slow ones
    is there within seconds; in another order or on the next draw they are known.
    """
    expressions = tuple(sorted({r.expression for r in rules if r.expression is not None}))
    searched = dict(zip(expressions, _searched(graph, expressions), strict=True))
    found: list[Sequence[int] | None] = []
    for rule in rules:
        if rule.expression is None:
            found.append(_by_wildcards(graph, rule))
        else:
            answer = searched[rule.expression]
            found.append(None if answer.too_slow else answer.found)
    return found


@remembered(4 * MAX_RULES, key=lambda graph: graph.fingerprint)
def _by_wildcards(graph: Graph, rule: Rule) -> Sequence[int]:
    return found_by_wildcards(graph, rule)


@remembered(16, key=lambda graph: graph.fingerprint)
def _searched(graph: Graph, expressions: tuple[str, ...]) -> tuple[Searched, ...]:
    return search_names(expressions, [op.name for op in graph.ops])


def _path(now: Studio) -> Path:
    return now.project.folder / "rules.json"
