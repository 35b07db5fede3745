"""What the verbs of the command line print: answers, and what goes on meanwhile."""

import json
import math
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from placement.api.results.placing import CompareRow, FinalsResult, StepsResult
from placement.api.results.running import RunResult
from placement.api.results.value import to_json
from placement.api.wording import (
    DIFFERENCES,
    FINALS,
    MOST_DIFFERENCES,
    differences_cells,
    differences_verdict,
    drift_in_words,
    explanation_of,
    finals_cells,
    finals_verdict,
    refined_in_words,
)
from placement.cli.options import clear_line
from placement.core.costs import ORIGINS
from placement.core.events import Emit, silent
from placement.core.formatting import gap, num_bytes, percent, seconds, stated
from placement.files.output import NotWritten
from placement.simulator.uncertainty import is_tie

MOST_ROWS = 8
# What is measured in nine of ten cases.
RANGES = ("range", "predicted_range_s")


def listener(options: Namespace) -> Emit:
    """Events to standard output as JSON lines, or progress to a person's terminal, or nowhere."""
    if getattr(options, "jsonl", False):
        return print_event
    if sys.stderr.isatty():
        return show_progress
    return silent


def print_event(event: dict[str, Any]) -> bool:
    text = json.dumps(finite(event), allow_nan=False)
    with output_refusals():
        print(text, flush=event["event"] != "span")
    return True


@contextmanager
def output_refusals() -> Iterator[None]:
    """Turn what the file system says against standard output into NotWritten, and end that output.

    The interpreter would otherwise try once more to write what is left when it ends. A reader that
    is gone is another matter.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        where = _output()
        silence(sys.stdout)
        raise NotWritten(where, error) from None


def _output() -> Path:
    """The file that standard output goes to, where the system tells it."""
    try:
        found = Path(os.readlink(f"/proc/self/fd/{sys.stdout.fileno()}"))
    except (OSError, ValueError):
        return Path("standard output")
    return found if found.is_file() else Path("standard output")


def silence(stream: TextIO) -> None:
    """Let whatever is still written to a stream go nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())


def show_progress(event: dict[str, Any]) -> bool:
    if event["event"] == "progress":
        step, of = event.get("step", ""), event.get("of", "")
        # Not every search knows how far it will go.
        count = f"{step}/{of} " if of else f"{step} " if step else ""
        print(f"\r{count + event.get('what', ''):70.70}", end="", file=sys.stderr)
    elif event["event"] == "waiting":
        print(f"\r{event['holder']}", file=sys.stderr)
    elif event["event"] == "lost":
        print(f"\r{event['message']}", file=sys.stderr)
    return True


def print_answer(options: Namespace, answer: Any, lines: Any) -> int:
    clear_line()
    if getattr(options, "jsonl", False):
        lines = [json.dumps(finite({"event": "result", **to_json(answer)}), allow_nan=False)]
    elif options.json:
        lines = [json.dumps(finite(to_json(answer)), allow_nan=False)]
    for line in lines:
        with output_refusals():
            print(line)
    with output_refusals():
        sys.stdout.flush()
    return 0


def lines_of(answer: Mapping[str, Any]) -> Iterator[str]:
    """An answer for a person, a line for each key that says something; `--json` has all digits and
    whole lists."""
    unit = str(answer.get("unit", "s"))
    for key, value in answer.items():
        if key != "unit" and value != "":
            yield f"{key}: {_readable(key, value, unit)}"


def lines_of_steps(answer: StepsResult) -> Iterator[str]:
    """The lines that a method follows, then each step: the line that it is at, and why."""
    for number, line in enumerate(answer.pseudo_code, 1):
        yield f"{number:3}  {line}"
    for number, step in enumerate(answer.steps, 1):
        yield f"step {number} (line {step.line + 1}): {step.why}"


def table_of(rows: Sequence[CompareRow]) -> Iterator[str]:
    """Rows of a comparison for a person: aligned columns named as on the tab Board, then notes.

    A column in which no row says anything is left out.
    """
    heads = [head for head, _ in COLUMNS]
    heads.append("Tie")
    best = min((r for r in rows if r.value is not None), key=lambda r: r.value or 0.0, default=None)
    yield from _columns(
        [heads, *([*(cell(row) for _, cell in COLUMNS), _tie(row, best)] for row in rows)]
    )
    for row in rows:
        said = [row.error, *row.violations, row.account]
        yield from (f"{row.placer}: {text}" for text in said if text)
    costs = sorted({row.costs for row in rows if row.costs})
    if costs:
        yield f"times: {', '.join(ORIGINS.get(c, c) for c in costs)}"
    yield from (f"rules: {rules}" for rules in sorted({row.rules for row in rows if row.rules}))


def lines_of_finals(finals: FinalsResult) -> Iterator[str]:
    """Measured finalists for a person: aligned columns, the winner first, and how sure that is."""
    yield from _columns([list(FINALS), *(finals_cells(row) for row in finals.rows)])
    yield finals_verdict(finals)


def lines_of_differences(result: RunResult) -> Iterator[str]:
    """What explains that a run differs from its prediction, and what it has refined."""
    if said := drift_in_words(result):
        yield said
    found = explanation_of(result)
    if found is not None:
        shown = [differences_cells(row) for row in found.rows[:MOST_DIFFERENCES]]
        yield from _columns([list(DIFFERENCES), *shown])
        yield differences_verdict(found)
    if result.refined is not None:
        yield refined_in_words(result.refined, result.step_s.median)
    if result.refined_note:
        yield f"not refined: {result.refined_note}"


def _columns(lines: Sequence[Sequence[str]]) -> Iterator[str]:
    """Lines of cells below each other, without columns in which no row says anything."""
    columns = [_aligned(column) for column in zip(*lines, strict=True) if any(column[1:])]
    for line in zip(*columns, strict=True):
        yield "  ".join(line).rstrip()


def _aligned(column: Sequence[str]) -> list[str]:
    """The texts of a column padded to one width; names stand left, figures right."""
    texts = [text or "–" for text in column]
    width = max(map(len, texts))
    is_name = column[0] in LEFT
    return [text.ljust(width) if is_name else text.rjust(width) for text in texts]


def _cell(key: str) -> Callable[[CompareRow], str]:
    """How a row's value reads; nothing where it is unknown."""

    def text(row: CompareRow) -> str:
        value = getattr(row, key)
        return "" if value is None else _readable(key, value, row.unit)

    return text


def _gap(row: CompareRow) -> str:
    """How far a row's value is above its bound; nothing where either is unknown."""
    if row.gap is None or row.value is None or row.lower_bound is None:
        return ""
    return percent(gap(row.value, row.lower_bound) or 0.0)


# Columns of words.
LEFT = ("Placer", "Placement", "Out", "Tie", "Segment", "On", "Note")


def _tie(row: CompareRow, best: CompareRow | None) -> str:
    """Whether a row cannot be told apart from the best."""
    if best is None or row is best or row.value is None or best.value is None:
        return ""
    return "with the best" if is_tie(row.value, row.range, best.value, best.range) else ""


MATCHES = {True: "match", False: "differ", None: ""}
COLUMNS = (
    ("Placer", _cell("placer")),
    ("Predicted", _cell("value")),
    ("90 % range", _cell("range")),
    ("Fastest ≥", _cell("lower_bound")),
    ("Gap", lambda row: _gap(row)),
    ("Proven", lambda row: "yes" if row.proven_optimal else ""),
    ("Measured", _cell("measured_s")),
    ("Tokens/s", _cell("tokens_per_s")),
    ("First token", _cell("first_token_s")),
    ("Outputs", lambda row: MATCHES[row.outputs_match]),
    ("Search", _cell("seconds")),
)


def _readable(key: str, value: Any, unit: str) -> str:
    """A value with its unit, which its key tells."""
    if isinstance(value, Mapping):
        inner = {k: _readable(key if _has_unit(key) else k, v, unit) for k, v in value.items()}
        return ", ".join(f"{k} {text}" for k, text in inner.items()) or "none"
    if isinstance(value, list | tuple):
        if key in RANGES:
            return " to ".join(_readable("value", each, unit) for each in value)
        if value and isinstance(value[0], Mapping) and len(value) > MOST_ROWS:
            return f"{len(value)} rows, which --json lists"
        if value and isinstance(value[0], int | float):
            many = len(value) > MOST_ROWS
            return f"{len(value)} numbers, which --json lists" if many else str(list(value))
        return "; ".join(_readable(key, each, unit) for each in value) or "none"
    if value is None or isinstance(value, bool | str) or not math.isfinite(value):
        return {None: "unknown", True: "yes", False: "no"}.get(value, str(value))
    if key in ("value", "lower_bound", "unchanged_value"):
        return stated(value, unit)
    if key == "seconds" or (key.endswith("_s") and not key.endswith("_per_s")):
        return seconds(value)
    if key.endswith("_bytes"):
        return num_bytes(value)
    if key in ("error", "gap"):
        return percent(value, signed=True)
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _has_unit(key: str) -> bool:
    return key.endswith(("_s", "_bytes"))


def finite(answer: Any) -> Any:
    """The same with null for numbers that JSON lacks, as the time of an unsupported op."""
    if isinstance(answer, float):
        return answer if math.isfinite(answer) else None
    if isinstance(answer, Mapping):
        return {key: finite(value) for key, value in answer.items()}
    return [finite(value) for value in answer] if isinstance(answer, list | tuple) else answer
