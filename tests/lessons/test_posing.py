"""Lessons of strangers: posed by a confined process, so that none of them harms who opens it."""

import json

import pytest

from placement.api import lessons
from placement.core import problem_json
from placement.lessons.reading import MOST_BYTES, lesson_of
from placement.remote import calls
from tests.instances import canonical_file

HEAD = '+++\ntitle = "T"\n{}\n+++\n'
TASK = '```check\nkind = "step"\nask = "?"\nat_most = 1\n```\n```insight\nx\n```\n'


def bringing(content, header=""):
    """A lesson with a problem of its own, as JSON or as text."""
    text = content if isinstance(content, str) else json.dumps(content)
    return lesson_of(f"{HEAD.format(header)}```problem\n{text}\n```\n{TASK}".encode(), "own.md")


def wide(num_devices, num_ops=1):
    return {
        "format": "placement-problem",
        "devices": [{"name": f"d{i}"} for i in range(num_devices)],
        "ops": [{"name": f"o{i}", "times_s": [1] * num_devices} for i in range(num_ops)],
    }


MODEL = 'model = "onnx-squeezenet"\nmachine = "null-2"\nstart = {placer = "heft"}'


@pytest.mark.parametrize(
    "lesson",
    [
        bringing(canonical_file(), 'start = {placer = "heft"}'),
        lesson_of((HEAD.format(MODEL) + TASK).encode(), "own.md"),
    ],
    ids=["problem", "model"],
)
def test_what_a_confined_process_poses_is_what_would_be_posed_here(lesson):
    here, there = lessons.pose(lesson, lessons.FOLDER), lessons.posed(lesson)
    assert there.problem.fingerprint == here.problem.fingerprint
    assert there.problem.graph == here.problem.graph and there.start == here.start


def test_a_strangers_problem_is_never_read_in_this_process(monkeypatch):
    def refuse(content, name):
        raise AssertionError("read in this process")

    monkeypatch.setattr(problem_json, "problem_from_json", refuse)
    lesson = bringing(canonical_file())
    assert len(lessons.posed(lesson).problem.graph.ops) == 10
    with pytest.raises(AssertionError, match="in this process"):
        lessons.posed(lessons.lesson("1"))


LINKED = canonical_file() | {
    "tensors": [
        {"producer": "n1", "consumers": ["n2"], "bytes": 1},
        {"producer": "n2", "consumers": ["n1"], "bytes": 1},
    ]
}
# What a lesson brings, and words of the sentence.
HOSTILE = {
    "nesting without end": ("[" * 100_000, "nested too deeply"),
    "a number of 5000 digits": ('{"ops": ' + "9" * 5_000 + "}", "digits"),
    "a time beyond all": (json.dumps(wide(1)).replace("[1]", "[1e400]"), "times_s"),
    "a time that is no number": (json.dumps(wide(1)).replace("[1]", "[NaN]"), "times_s"),
    "a cycle": (LINKED, "in a cycle"),
    "a name of 200 kB": (json.dumps(wide(1)).replace('"o0"', f'"{"x" * 200_000}"'), ""),
    "a thousand devices": (wide(1_000), "more than the 20000 and 100"),
    "more devices than a machine has": (wide(2_000), "at most 1024"),
    "an unknown key": (canonical_file() | {"speed": 1}, "unknown field 'speed'"),
    "half a character": (json.dumps(wide(1)).replace("o0", "\\ud800"), "not Unicode"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_problem_is_refused_by_one_sentence(name):
    content, words = HOSTILE[name]
    lesson = bringing(content)
    try:
        posed = lessons.pose(lesson, lessons.FOLDER)
    except ValueError as error:
        said = str(error)
        assert words and words in said and "\n" not in said and len(said) < 1_000, said
        assert said.startswith("The lesson 'T' cannot be used: line 5: ")
    else:
        assert not words and len(posed.problem.graph.ops) == 1


def test_a_problem_beside_a_lesson_is_refused_unread_where_it_is_large(tmp_path, monkeypatch):
    monkeypatch.setattr(lessons, "MOST_PROBLEM_BYTES", 100)
    (tmp_path / "large.json").write_text(json.dumps(canonical_file()))
    lesson = lesson_of((HEAD.format('problem = "large.json"') + TASK).encode(), "own.md")
    with pytest.raises(ValueError, match=r"line 3: 'large.json' has .* bytes, more than"):
        lessons.pose(lesson, tmp_path)


def test_a_lesson_that_is_here_means_the_problem_that_is_here(tmp_path):
    (tmp_path / "branches.json").write_text("x" * 1_000)
    lesson = lessons.lesson("1")
    assert lessons.problem_file(lesson, tmp_path).parent == lessons.FOLDER
    assert len(lessons.posed(lesson, tmp_path).problem.graph.ops) == 4


# Texts that make readers of Markdown or TOML slow, as long as a lesson may be: what is repeated, in
# lines or in one, and whether a reader gets to see it.
SLOW = {
    "brackets": ("[", True),
    "links": ("[a](", True),
    "stars": ("*a _b ", True),
    "quotes": ("> ", True),
    "quotes over quotes": ("> " * 30 + "\n", True),
    "lists": ("- ", True),
    "references": ("[a]: /long/address/of/it\n", False),
    "lines": ("a\n", False),
    "lines of fences": ("```text\n" + "x" * 40 + "\n```\n", False),
}


@pytest.mark.parametrize("name", SLOW)
def test_a_text_made_to_be_slow_is_read_or_refused(name):
    repeated, is_read = SLOW[name]
    filled = repeated * ((MOST_BYTES - 400) // len(repeated))
    text = HEAD.format('problem = "branches.json"') + filled + "\n\n" + TASK
    if is_read:
        assert len(lesson_of(text.encode(), "own.md").tasks) == 1
    else:
        with pytest.raises(ValueError, match="line 10001: there are more than 10000 lines"):
            lesson_of(text.encode(), "own.md")


def test_a_key_of_a_thousand_parts_is_refused_unread():
    text = HEAD.format("a." * 10_000 + "b = 1") + TASK
    with pytest.raises(ValueError, match="line 3: it has more than 4000 letters"):
        lesson_of(text.encode(), "own.md")


def test_a_problem_beside_a_lesson_is_not_read_where_it_leads_elsewhere(tmp_path):
    folder, other = tmp_path / "own", tmp_path / "other"
    folder.mkdir()
    other.mkdir()
    (other / "p.json").write_text(json.dumps(canonical_file()), encoding="utf-8")
    (folder / "p.json").symlink_to(other / "p.json")
    lesson = lesson_of((HEAD.format('problem = "p.json"') + TASK).encode(), "own.md")
    with pytest.raises(ValueError, match=r"line \d+: 'p.json' leads out of the folder"):
        lessons.posed(lesson, folder)


def test_what_takes_too_much_is_told_of_the_lesson(monkeypatch):
    def ended(*_: object) -> object:
        raise calls.Ended("'lesson.md' did not end within its time limit.")

    monkeypatch.setattr(calls, "pose", ended)
    with pytest.raises(ValueError, match=r"line \d+: what it poses takes too much time"):
        lessons.posed(bringing(canonical_file()))


def test_files_that_come_and_go_beside_lessons_trouble_no_other(tmp_path, monkeypatch):
    for name in lessons.lessons()[:3]:
        (tmp_path / f"{name}.md").write_bytes((lessons.FOLDER / f"{name}.md").read_bytes())
    first, second, third = lessons.lessons()[:3]
    monkeypatch.setattr(lessons, "FOLDER", tmp_path)
    (tmp_path / ".#04.md").symlink_to(tmp_path / "gone")
    assert list(lessons.readable()) == [first, second, third]
    (tmp_path / f"{second}.md").write_text("no lesson", encoding="utf-8")
    assert lessons.following(lessons.lesson(first)) == third
