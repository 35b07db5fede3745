"""Reviews: tasks out of reach and tasks met at the start are told by their lines, and no others."""

import json

import pytest

from placement.api import lessons
from placement.lessons.reading import lesson_of
from placement.lessons.review import review
from tests.command import answer, call_here

HEAD = '+++\ntitle = "T"\nproblem = "branches.json"\n+++\n'
STEP = '```check\nkind = "step"\nask = "?"\nat_most = {}\n```\n'
STAR = '```check\nkind = "step"\nask = "?"\nat_most = 12\nstar = {}\n```\n'
GAP = '```check\nkind = "gap"\nask = "?"\nat_most = {}\n```\n'
MOVES = '```check\nkind = "moves"\nask = "?"\nat_most = {}\n```\n'
PATH = '```check\nkind = "path"\nask = "?"\nholds = ["{}"]\n```\n'
END = "```insight\nx\n```\n"
# All on one device takes 16 s, the best of the 16 placements 11 s, and no placement less than 10 s.
CASES = {
    "a step that can be reached": (STEP.format(11), []),
    "a step below the best": (STEP.format(10.5), [(5, "best of all 16 placements takes 11 s")]),
    "a step below the bound": (STEP.format(9), [(5, "no placement takes less than 10 s")]),
    "a star that can be won": (STAR.format(11), []),
    "a star that nobody wins": (STAR.format(10.9), [(5, "the star of task 1 asks for 10.9 s")]),
    "a step as at the start": (STEP.format(16), [(5, "task 1 is met at the start")]),
    "a gap that can be reached": (GAP.format(10), []),
    "a gap that is too small": (GAP.format(9), [(5, "is 10% above it")]),
    "a gap as at the start": (GAP.format(60), [(5, "task 1 is met at the start")]),
    "moves alone ask for nothing, and may": (MOVES.format(0), []),
    "a step in enough moves": (STEP.format(12) + MOVES.format(1), []),
    "a step in too few moves": (
        STEP.format(11) + MOVES.format(1),
        [(10, "none of all 16 placements meets tasks 1, 2 together")],
    ),
    "a path as at the start": (PATH.format("left"), [(5, "task 1 is met at the start")]),
}


def remarks_on(text, head=HEAD):
    lesson = lesson_of((head + text + END).encode(), "own.md")
    return review(lesson, lessons.pose(lesson, lessons.FOLDER))


@pytest.mark.parametrize("name", CASES)
def test_what_cannot_be_met_or_is_met_at_the_start_is_told_with_its_line(name):
    text, expected = CASES[name]
    found = remarks_on(text)
    assert [remark.line for remark in found] == [line for line, _ in expected], found
    assert all(words in remark.text for remark, (_, words) in zip(found, expected, strict=True))


@pytest.mark.parametrize("number", ["1", "3", "6", "8", "9", "11"])
def test_nothing_is_to_be_said_of_the_lessons_that_are_here(number):
    lesson = lessons.lesson(number)
    assert review(lesson, lessons.posed(lesson)) == ()


def test_a_larger_problem_is_searched():
    """73 s is the best of the 59 049 placements of this one."""
    head = HEAD.replace("branches", "topcuoglu")
    found = {goal: remarks_on(STEP.format(goal), head) for goal in (72, 73)}
    assert "best of what local_search, annealing found takes 73 s" in found[72][0].text
    assert found[73] == ()


def test_the_command_line_says_what_there_is_to_remark(tmp_path):
    own = tmp_path / "own.md"
    own.write_text(HEAD + STEP.format(9) + END)
    (remark,) = answer("lesson", own, status=1)["remarks"]
    assert remark["line"] == 5 and "the bound" in remark["text"]
    assert "line 5: task 1 asks for 9 s" in call_here("lesson", own).stdout
    own.write_text(HEAD + STEP.format(11) + END)
    assert answer("lesson", own)["remarks"] == []


@pytest.mark.parametrize("num_ops", [3, 14])
def test_where_nothing_fits_that_alone_is_told(num_ops):
    """Five bytes each, and two devices of five: the small problem is tried whole, the other not."""
    problem = {
        "format": "placement-problem",
        "devices": [{"name": name, "memory_bytes": 5} for name in "AB"],
        "ops": [{"name": f"o{i}", "times_s": [1, 1], "memory_bytes": 5} for i in range(num_ops)],
    }
    head = '+++\ntitle = "T"\nstart = {device = "A"}\n+++\n'
    text = f"```problem\n{json.dumps(problem)}\n```\n{GAP.format(5)}"
    (found,) = remarks_on(text, head)
    assert "keeps all rules" in found.text and "inf" not in found.text
