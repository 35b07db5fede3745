"""Lesson files: what is read of them, and one sentence with the line for every kind of mistake."""

import json
import re

import pytest

from placement.api import lessons
from placement.core.objective import Objective
from placement.lessons.judging import ops_of
from placement.lessons.lesson import Hint, Task, Text
from placement.lessons.reading import MOST_BYTES, lesson_of, read_lesson
from tests.instances import canonical_file

HEAD = '+++\ntitle = "T"\nproblem = "branches.json"\n+++\n'
CHECK = '```check\nkind = "step"\nask = "Be quick."\nat_most = 12\n```\n'
CHOICE = '```check\nkind = "choice"\nask = "?"\nchoices = ["a", "b"]\nright = "a"\n```\n'
INSIGHT = "```insight\nAll is well.\n```\n"
WHOLE = HEAD + CHECK + INSIGHT


def read(text):
    return lesson_of(text.encode() if isinstance(text, str) else text, "my.md")


def refusal(text):
    with pytest.raises(ValueError, match=r"^The lesson '(my\.md|T)' cannot be used: ") as caught:
        lesson = read(text)
        lessons.pose(lesson, lessons.FOLDER)
    said = str(caught.value)
    assert "\n" not in said and said.endswith("."), said
    return said


def test_a_lesson_is_its_header_its_parts_in_order_and_an_insight():
    hint = "```hint 2\nThink.\n```\n"
    shown = "```text\nas it stands\n```\n"
    text = f"{HEAD}Read *this*.\n{shown}\n{CHECK}Then\n{hint}{CHOICE}{INSIGHT}"
    found = read(text)
    assert [type(part) for part in found.parts] == [Text, Task, Text, Hint, Task]
    assert [part.line for part in found.parts] == [5, 10, 15, 16, 19]
    assert "as it stands" in found.parts[0].markdown
    assert [task.number for task in found.tasks] == [1, 2]
    assert (found.hints[0].cost, found.hints[0].markdown) == (2, "Think.")
    assert (found.insight, found.points, found.num_stars) == ("All is well.", 2, 0)
    assert found.header.objective is Objective.LATENCY


def test_the_hash_is_of_the_text_whatever_its_line_ends():
    found = read(WHOLE)
    assert read(WHOLE.replace("\n", "\r\n")).hash == found.hash
    assert read(b"\xef\xbb\xbf" + WHOLE.encode()).hash == found.hash
    assert read(WHOLE.replace("12", "13")).hash != found.hash


def test_a_lesson_may_bring_its_own_problem():
    block = f"```problem\n{json.dumps(canonical_file())}\n```\n"
    found = read('+++\ntitle = "T"\n+++\n' + block + CHECK + INSIGHT)
    assert len(lessons.pose(found, lessons.FOLDER).problem.graph.ops) == 10


def test_the_start_is_what_the_header_says():
    start = '[start]\ndevice = "A"\ndevices = {left = "B"}\n+++\n'
    found = read(WHOLE.replace("+++\n```", start + "```"))
    devices = lessons.pose(found, lessons.FOLDER).start.device_of
    assert devices == {"load": "A", "left": "B", "right": "A", "join": "A"}


@pytest.mark.parametrize("op", ["a,b", " a", "a\nb"])
def test_an_order_that_nobody_could_type_is_refused_with_its_line(op):
    problem = json.dumps(canonical_file()).replace('"n3"', json.dumps(op))
    block = f"```problem\n{problem}\n```\n"
    check = f'```check\nkind = "order"\nask = "?"\nops = ["n1", {json.dumps(op)}]\n```\n'
    said = refusal('+++\ntitle = "T"\n+++\n' + block + check + INSIGHT)
    assert "line 7: nobody can answer with op" in said


def test_ops_are_typed_with_commas_between_them_and_may_hold_blanks():
    assert ops_of(" layer 1/conv ,b;c,\nd,") == ("layer 1/conv", "b;c", "d")


def test_a_text_may_hold_any_blank_and_joined_emoji():
    said = "a\u00a0b \U0001f469\u200d\U0001f52c"
    assert read(HEAD + said + "\n\n" + CHECK + INSIGHT).parts[0].markdown == said


def with_check(check):
    return f"{HEAD}```check\n{check}\n```\n{INSIGHT}"


CHOSEN = 'kind = "choice"\nask = "?"\nchoices = ["a", "b"]\nright = "a"'
MODEL = '+++\ntitle = "T"\nmodel = "onnx-squeezenet"\nmachine = "{}"\n+++\n'
# A file, the line that is wrong in it, and words of the sentence.
MISTAKES = {
    "nothing at all": ("", 1, "begins with its header"),
    "no header": (CHECK + INSIGHT, 1, "begins with its header"),
    "no end of the header": ('+++\ntitle = "T"\n', 1, "has no end"),
    "not TOML": ('+++\ntitle = "T"\nproblem = \n+++\n', 3, "this is not TOML"),
    "a key twice": ('+++\ntitle = "T"\ntitle = "U"\n+++\n', 3, "Cannot overwrite"),
    "no title": ("+++\nabout = 'x'\n+++\n", 1, "required field 'title'"),
    "a title of the wrong type": ("+++\nabout = 'x'\ntitle = 3\n+++\n", 3, "expected a text"),
    "an empty title": ("+++\ntitle = ''\n+++\n", 2, "title"),
    "an unknown key": (WHOLE.replace("problem", "promlem"), 3, "unknown field 'promlem'"),
    "an unknown goal": (WHOLE.replace("+++\n`", 'objective = "fun"\n+++\n`'), 4, "objective"),
    "what cannot be hidden": (WHOLE.replace("+++\n`", 'hidden = ["all"]\n+++\n`'), 4, "hidden"),
    "a path": (WHOLE.replace("branches.json", "../branches.json"), 3, "problem"),
    "an absolute path": (WHOLE.replace("branches.json", "/etc/passwd"), 3, "problem"),
    "a file that is not there": (WHOLE.replace("branches.json", "no.json"), 3, "no file"),
    "nothing posed": ('+++\ntitle = "T"\n+++\n' + CHECK + INSIGHT, 1, "poses nothing"),
    "posed twice": (WHOLE.replace("+++\n`", 'model = "m"\n+++\n`'), 4, "name one"),
    "a machine for a problem": (
        WHOLE.replace("+++\n`", 'machine = "null-2"\n+++\n`'),
        4,
        "brings its own machine",
    ),
    "no machine for a model": (
        '+++\ntitle = "T"\nmodel = "m"\n+++\n' + CHECK + INSIGHT,
        3,
        "needs a machine",
    ),
    "this computer": (MODEL.format("local") + CHECK + INSIGHT, 4, "every computer"),
    "a machine by its path": (MODEL.format("a/b") + CHECK + INSIGHT, 4, "machine"),
    "a machine's file": (MODEL.format("a.json") + CHECK + INSIGHT, 4, "is a file"),
    "an unknown model": (
        MODEL.replace("onnx-squeezenet", "x").format("null-2") + CHECK + INSIGHT,
        4,
        "no bundled model",
    ),
    "a live lesson that checks a prediction": (
        MODEL.format("local").replace("machine", "live = true\nmachine") + CHECK + INSIGHT,
        7,
        "cannot check 'step'",
    ),
    "an unknown placer": (
        WHOLE.replace("+++\n`", 'start = {placer = "magic"}\n+++\n`'),
        4,
        "no placer 'magic'",
    ),
    "an unknown device": (
        WHOLE.replace("+++\n`", 'start = {device = "C"}\n+++\n`'),
        4,
        "no device 'C'",
    ),
    "an unknown op": (
        WHOLE.replace("+++\n`", 'start = {devices = {fly = "A"}}\n+++\n`'),
        4,
        "names op 'fly'",
    ),
    "a start of two kinds": (
        WHOLE.replace("+++\n`", 'start = {placer = "heft", device = "A"}\n+++\n`'),
        4,
        "exclude each other",
    ),
    "an unknown method": (
        WHOLE.replace("+++\n`", 'methods = ["magic"]\n+++\n`'),
        4,
        "no method 'magic'",
    ),
    "an unknown block": (HEAD + "```chekc\n```\n", 5, "'chekc' is no kind of block"),
    "a block without end": (HEAD + CHECK + "\n```insight\nx\n", 11, "has no end"),
    "a block in a list": (HEAD + "- ```check\n  kind = 1\n  ```\n", 5, "inside another"),
    "words after a block's": (HEAD + "```check now\n```\n", 5, "'now'"),
    "no check": (HEAD + INSIGHT, 8, "nothing is asked"),
    "no insight": (HEAD + CHECK, 10, "no block `insight`"),
    "two insights": (WHOLE + INSIGHT, 13, "one insight"),
    "an empty insight": (HEAD + CHECK + "```insight\n\n```\n", 10, "is empty"),
    "no kind": (with_check('ask = "?"'), 5, "the check has no kind"),
    "an unknown kind": (with_check('ask = "?"\nkind = "run"'), 7, "'run' is no kind of check"),
    "a check that is no TOML": (with_check("kind = step"), 6, "this is not TOML"),
    "nothing asked": (with_check('kind = "moves"\nat_most = 1'), 5, "required field 'ask'"),
    "an unknown field": (
        with_check('kind = "moves"\nask = "?"\nat_most = 1\nrun = "x"'),
        9,
        "unknown field 'run'",
    ),
    "a number as text": (with_check('kind = "step"\nask = "?"\nat_most = "1"'), 8, "at_most"),
    "no number": (with_check('kind = "step"\nask = "?"\nat_most = nan'), 8, "at_most"),
    "less than nothing": (with_check('kind = "step"\nask = "?"\nat_most = -1'), 8, "at_most"),
    "an easy star": (with_check('kind = "step"\nask = "?"\nat_most = 1\nstar = 2'), 9, "easier"),
    "too many points": (
        with_check('kind = "moves"\nask = "?"\nat_most = 1\npoints = 1000'),
        9,
        "points",
    ),
    "a right answer that is no choice": (
        with_check('kind = "choice"\nask = "?"\nchoices = ["a", "b"]\nright = "c"'),
        9,
        "none of the choices",
    ),
    "a sentence for the right choice": (
        with_check(f'{CHOSEN}\n[wrong]\n"b" = "no"\n"a" = "x"'),
        12,
        "'a' is none of the wrong choices",
    ),
    "a sentence for a choice that is none": (
        with_check(f'{CHOSEN}\nwrong = {{c = "x"}}'),
        10,
        "'c' is none of the wrong choices",
    ),
    "a sentence that is a number": (with_check(f"{CHOSEN}\nwrong = {{b = 3}}"), 10, "wrong"),
    "one choice": (
        with_check('kind = "choice"\nask = "?"\nchoices = ["a"]\nright = "a"'),
        8,
        "choices",
    ),
    "a path of nothing": (with_check('kind = "path"\nask = "?"\nholds = []'), 8, "names no op"),
    "a path of strangers": (with_check('kind = "path"\nask = "?"\nholds = ["x"]'), 5, "op 'x'"),
    "an order of strangers": (with_check('kind = "order"\nask = "?"\nops = ["x"]'), 5, "op 'x'"),
    "a hint without its cost": (HEAD + "```hint\nx\n```\n", 5, "what it costs"),
    "a hint that costs a fortune": (HEAD + "```hint 5000\nx\n```\n", 5, "what it costs"),
    "a hint of sixteen digits": (HEAD + "```hint 0000000009999999\nx\n```\n", 5, "what it costs"),
    "a hint in other digits": (HEAD + "```hint \u0661\nx\n```\n", 5, "what it costs"),
    "a number of 5000 digits": (
        with_check('kind = "step"\nask = "?"\nat_most = ' + "9" * 5_000),
        8,
        "more than 4000 letters",
    ),
    "a seed of 5000 digits": (
        WHOLE.replace("+++\n`", f"seed = {'1_0' * 2_500}\n+++\n`"),
        4,
        "more than 4000 letters",
    ),
    "a text that turns the line": (HEAD + "a\u202eb\n", 5, "cannot be shown"),
    "a live lesson that counts moves": (
        MODEL.format("local").replace("machine", "live = true\nmachine")
        + CHECK.replace("step", "moves")
        + INSIGHT,
        7,
        "cannot check 'moves'",
    ),
    "a hint that pays": (HEAD + "```hint -1\nx\n```\n", 5, "what it costs"),
    "a picture": (HEAD + CHECK + "\n![x](http://x/y.png)\n" + INSIGHT, 11, "no pictures"),
    "a picture in a hint": (HEAD + CHECK + "```hint 1\n![x][y]\n```\n", 11, "no pictures"),
    "a picture of HTML": (HEAD + CHECK + "\n<IMG src=x>\n" + INSIGHT, 11, "no pictures"),
    "a problem that is no JSON": (
        '+++\ntitle = "T"\n+++\n```problem\n{\n```\n' + CHECK + INSIGHT,
        4,
        "not valid JSON",
    ),
    "a problem that is none": (
        '+++\ntitle = "T"\n+++\n```problem\n{}\n```\n' + CHECK + INSIGHT,
        4,
        "is not a problem file",
    ),
    "two problems": (
        '+++\ntitle = "T"\n+++\n' + "```problem\n{}\n```\n" * 2 + CHECK + INSIGHT,
        7,
        "one problem",
    ),
    "bytes": (HEAD.encode() + b"\xff\xfe", 5, "UTF-8"),
    "a control character": (HEAD + "a\x1b[31mb\n", 5, "cannot be shown"),
    "a letter that turns lines around": (HEAD + "a\u202eb\n", 5, "cannot be shown"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_sentence_with_its_line(name):
    text, line, words = MISTAKES[name]
    said = refusal(text)
    assert f"line {line}: " in said and words in said, said


def test_what_is_too_large_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "my.md"
    path.write_text(WHOLE + "x" * MOST_BYTES)
    with pytest.raises(ValueError, match="more than"):
        read_lesson(path)
    with pytest.raises(ValueError, match="more than"):
        read(WHOLE + "x" * MOST_BYTES)
    many = HEAD + "```hint 0\nx\n```\n" * 200 + CHECK + INSIGHT
    assert "more than 100 blocks" in refusal(many)


def test_nesting_without_end_is_refused():
    for text in (with_check(f"kind = {'[' * 5000}"), HEAD + "> " * 20_000 + CHECK):
        assert re.search(r"line \d+: ", refusal(text))


def test_a_lesson_is_found_by_its_name_its_number_or_its_path(tmp_path):
    name = lessons.lessons()[0]
    assert lessons.path_of(name) == lessons.path_of("1")
    own = tmp_path / "own.md"
    own.write_text(WHOLE)
    assert lessons.lesson(str(own)).header.title == "T"
    with pytest.raises(ValueError, match="There is no lesson 'nonsense'"):
        lessons.path_of("nonsense")
