"""Lesson files: Markdown with a header in TOML and blocks for tasks, hints and the insight.

    +++
    title = "Beat HEFT"
    problem = "topcuoglu.json"
    +++
    Text, then fenced blocks: `check` (TOML), `hint COST` (Markdown), `insight` (Markdown), and
    `problem` (a problem file's JSON), where the lesson brings its own.

A file may come from anybody. It is read by libraries that run nothing, its sizes are limited, and
its text holds no pictures, which a page would fetch from elsewhere. Whatever is wrong is one
sentence with the line.
"""

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from placement.core.decoding import decode, listed, shortened, shown
from placement.core.fingerprint import fingerprint_of
from placement.files.input import regular_file
from placement.lessons.lesson import (
    MOST_POINTS,
    PLACED,
    AnyCheck,
    Header,
    Hint,
    Lesson,
    Task,
    Text,
)
from placement.lessons.letters import can_be_shown

T = TypeVar("T")
FENCE = "+++"
MOST_BYTES = 256 * 1024
# Nested and long enough, lines of Markdown and keys of TOML would take their readers minutes.
MOST_LINES, MOST_NESTED, LONGEST_TOML = 10_000, 20, 4_000
MOST_BLOCKS = 100
KINDS = ("step", "moves", "gap", "path", "order", "choice", "number")
BLOCKS = ("check", "hint", "insight", "problem")
# Blocks that are shown as they stand.
SHOWN_AS_TEXT = ("", "text")
_AT = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")
_NAMED = re.compile(r"(?:unknown|required) field '([^']*)'")
_QUOTED = re.compile(r"'([^']+)'")
# Whatever a reader of Markdown might take for a picture.
_PICTURE = re.compile(r"!\[|<\s*img", re.IGNORECASE)


class WrongLesson(ValueError):
    """What is wrong with a lesson, and in which line of its file."""

    def __init__(self, line: int, said: str) -> None:
        super().__init__(f"line {line}: {said}")


def read_lesson(path: Path) -> Lesson:
    """The lesson in a file; a ValueError names the file, the line and what is wrong there."""
    size = regular_file(path).stat().st_size
    if size > MOST_BYTES:
        raise ValueError(
            f"{path.name[:200]!r} has {size} bytes, more than the {MOST_BYTES} that a lesson may"
            " have; shorten it."
        )
    return lesson_of(path.read_bytes(), path.name)


def lesson_of(content: bytes, name: str) -> Lesson:
    """The lesson in the content of a file that is called `name`."""
    try:
        return _lesson(_text(content))
    except ValueError as error:
        said = shortened(f"The lesson {name[:200]!r} cannot be used: {error}")
        raise ValueError(said) from None


def _text(content: bytes) -> str:
    if len(content) > MOST_BYTES:
        raise ValueError(f"it has more than {MOST_BYTES} bytes; shorten it.")
    try:
        text = content.decode("utf-8").removeprefix("\ufeff").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise WrongLesson(line, "it is not text in UTF-8; save it as such.") from None
    lines = text.split("\n")
    if len(lines) > MOST_LINES:
        raise WrongLesson(MOST_LINES + 1, f"there are more than {MOST_LINES} lines; shorten it.")
    for number, shown_line in enumerate(lines, 1):
        if not can_be_shown(shown_line.replace("\t", " ")):
            raise WrongLesson(number, "it holds a character that cannot be shown; remove it.")
    return text


def _lesson(text: str) -> Lesson:
    lines = text.split("\n")
    header, lines_of, first = _header(lines)
    found = _Found(first)
    # Tokens count lines from the body's first.
    found.take(lines[first:])
    if found.num_tasks == 0:
        raise WrongLesson(len(lines), "no block `check` follows, so nothing is asked; add one.")
    if not found.insight:
        raise WrongLesson(len(lines), "no block `insight` follows; say what is to be learnt.")
    lesson = Lesson(
        fingerprint_of(text),
        header,
        tuple(found.parts),
        found.insight,
        lines_of,
        found.given,
        found.given_at,
    )
    _require_one_problem(lesson)
    _require_predictable(lesson)
    return lesson


def _header(lines: Sequence[str]) -> tuple[Header, Mapping[str, int], int]:
    """The header, the line of each of its keys, and the index of the first line after it."""
    if not lines or lines[0].rstrip() != FENCE:
        raise WrongLesson(1, f"a lesson begins with its header between two lines {FENCE}.")
    end = next((i for i, line in enumerate(lines[1:], 1) if line.rstrip() == FENCE), None)
    if end is None:
        raise WrongLesson(1, f"the header has no end; write {FENCE} below it.")
    inside = lines[1:end]
    header = _decoded(inside, 2, Header)
    keys = {key: 2 + i for i, line in enumerate(inside) if (key := _key(line))}
    return header, keys, end + 1


def _key(line: str) -> str:
    """The key that a line of TOML begins with, or its table's name."""
    found = re.match(r"\s*\[?\s*[\"']?([A-Za-z0-9_-]+)", line)
    return found[1] if found else ""


def _decoded(lines: Sequence[str], first: int, kind: type[T]) -> T:
    """Lines of TOML, of which the first has that number, as a value."""
    for number, text in enumerate(lines, first):
        if len(text) > LONGEST_TOML:
            raise WrongLesson(number, f"it has more than {LONGEST_TOML} letters; divide it.")
    try:
        content = tomllib.loads("\n".join(lines))
    except tomllib.TOMLDecodeError as error:
        found = _AT.search(str(error))
        line = first + int(found[1]) - 1 if found and found[1] else first + max(0, len(lines) - 1)
        said = _AT.sub("", str(error))
        raise WrongLesson(line, f"this is not TOML: {said}; correct it.") from None
    except RecursionError:
        raise WrongLesson(first, "it is nested too deeply; flatten it.") from None
    try:
        return decode(content, kind)
    except ValueError as error:
        said = str(error)
        named = _NAMED.search(said)
        place = named[1] if named else re.split(r"[.:\[ ]", said, maxsplit=1)[0]
        at = next((i for i, line in enumerate(lines) if _key(line) == place), -1)
        # What a table has wrong stands in a line of its own.
        entry = _QUOTED.search(said)
        begins = (f'"{entry[1]}"', f"'{entry[1]}'") if entry and at >= 0 else ()
        inner = (i for i, line in enumerate(lines) if i > at and line.lstrip().startswith(begins))
        at = next(inner, at)
        raise WrongLesson(first + at if at >= 0 else max(1, first - 1), said) from None


@dataclass
class _Found:
    """What was found of a body so far, whose first line is `first`, counted from 0."""

    first: int
    parts: list[Text | Task | Hint] = field(default_factory=list)
    num_tasks: int = 0
    num_hints: int = 0
    insight: str = ""
    given: str = ""
    given_at: int = 0

    def take(self, lines: Sequence[str]) -> None:
        """Blocks and the text between them."""
        from markdown_it import MarkdownIt

        at = 0
        # What stands inside a paragraph is the page's business, and could be made to take long.
        reader = MarkdownIt("commonmark", {"maxNesting": MOST_NESTED}).disable("inline")
        for token in reader.parse("\n".join(lines)):
            if token.type != "fence" or token.map is None:
                continue
            start, end = token.map
            word, _, rest = token.info.strip().partition(" ")
            line = self.first + start + 1
            if word in SHOWN_AS_TEXT:
                continue
            if word not in BLOCKS:
                known = listed((*BLOCKS, "text"))
                raise WrongLesson(line, f"{shown(word)} is no kind of block; use one of {known}.")
            if token.level:
                raise WrongLesson(line, f"the block `{word}` stands inside another; move it out.")
            inside = token.content.split("\n")[:-1]
            if end - start != len(inside) + 2:
                raise WrongLesson(line, f"the block `{word}` has no end; write ``` below it.")
            self._text(lines, at, start)
            self._block(word, rest.strip(), inside, line)
            at = end
            if self.num_tasks + self.num_hints > MOST_BLOCKS:
                raise WrongLesson(line, f"there are more than {MOST_BLOCKS} blocks; divide it.")
        self._text(lines, at, len(lines))

    def _text(self, lines: Sequence[str], start: int, end: int) -> None:
        markdown = "\n".join(lines[start:end]).strip("\n")
        _require_plain(lines[start:end], self.first + start + 1)
        if markdown.strip():
            self.parts.append(Text(self.first + start + 1, markdown))

    def _block(self, word: str, rest: str, inside: Sequence[str], line: int) -> None:
        if rest and word != "hint":
            raise WrongLesson(line, f"nothing may follow the word `{word}`, as {shown(rest)} does.")
        takes: Mapping[str, Callable[[], None]] = {
            "check": lambda: self._check(inside, line),
            "hint": lambda: self._hint(rest, inside, line),
            "insight": lambda: self._insight(inside, line),
            "problem": lambda: self._problem(inside, line),
        }
        takes[word]()

    def _check(self, inside: Sequence[str], line: int) -> None:
        kind = _decoded(inside, line + 1, dict[str, Any]).get("kind")
        if kind not in KINDS:
            at = next((i for i, text in enumerate(inside, 1) if _key(text) == "kind"), 0)
            said = f"{shown(kind)} is no kind of check" if at else "the check has no kind"
            raise WrongLesson(line + at, f"{said}; use one of {listed(KINDS)}.")
        # One type for mypy: the union is what msgspec decodes.
        check: AnyCheck = _decoded(inside, line + 1, AnyCheck)  # type: ignore[arg-type]
        self.num_tasks += 1
        self.parts.append(Task(line, self.num_tasks, check))

    def _hint(self, cost: str, inside: Sequence[str], line: int) -> None:
        if not re.fullmatch(r"[0-9]{1,3}", cost) or int(cost) > MOST_POINTS:
            said = f"a hint says what it costs, as `hint 1`, 0 to {MOST_POINTS} points."
            raise WrongLesson(line, said)
        self.num_hints += 1
        self.parts.append(Hint(line, self.num_hints, int(cost), _markdown(inside, line)))

    def _insight(self, inside: Sequence[str], line: int) -> None:
        if self.insight:
            raise WrongLesson(line, "a lesson has one insight; join the two.")
        self.insight = _markdown(inside, line)

    def _problem(self, inside: Sequence[str], line: int) -> None:
        if self.given:
            raise WrongLesson(line, "a lesson has one problem; remove one of the two.")
        self.given, self.given_at = "\n".join(inside), line
        if not self.given.strip():
            raise WrongLesson(line, "the block is empty; write its problem.")


def _markdown(inside: Sequence[str], line: int) -> str:
    _require_plain(inside, line + 1)
    text = "\n".join(inside).strip()
    if not text:
        raise WrongLesson(line, "the block is empty; write its text.")
    return text


def _require_plain(lines: Sequence[str], first: int) -> None:
    for number, line in enumerate(lines, first):
        if _PICTURE.search(line):
            raise WrongLesson(number, "a lesson holds no pictures; describe it in words.")


def _require_one_problem(lesson: Lesson) -> None:
    header = lesson.header
    said = {"problem": bool(header.problem), "model": bool(header.model)}
    named = [word for word, is_said in said.items() if is_said]
    named += ["a block `problem`"] if lesson.given else []
    if len(named) != 1:
        found = f"it names {listed(named)}" if named else "it poses nothing"
        wrong = "name one: a problem file, a model, or a block `problem`."
        raise WrongLesson(lesson.lines.get(named[-1] if named else "", 1), f"{found}; {wrong}")
    if header.machine and not header.model:
        said_so = "a problem brings its own machine; leave it out."
        raise WrongLesson(lesson.lines.get("machine", 1), said_so)
    if header.model and not header.machine:
        raise WrongLesson(lesson.lines.get("model", 1), "a model needs a machine; name a preset.")
    is_local = header.machine.partition(":")[0] == "local"
    if is_local and not header.live:
        raise WrongLesson(
            lesson.lines.get("machine", 1),
            'every computer has another machine "local"; name a preset, or say live = true.',
        )


def _require_predictable(lesson: Lesson) -> None:
    """A live lesson asks nothing that another computer would answer otherwise."""
    wrong = next((t for t in lesson.tasks if isinstance(t.check, PLACED)), None)
    if lesson.header.live and wrong is not None:
        kind = wrong.check.__struct_config__.tag
        raise WrongLesson(
            wrong.line, f"a live lesson cannot check {shown(kind)}: computers differ; ask instead."
        )
