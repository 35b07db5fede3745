"""Answers: graded by what is simulated anew, and refused in a sentence where they lie."""

import csv
import io
import json
from dataclasses import replace

import pytest
from msgspec import structs

from placement.api import lessons
from placement.core.placement import Placement
from placement.lessons import answer as answer_file
from placement.lessons.answer import Answer, answer_of
from placement.lessons.grading import csv_of, grade, grade_contents, graded
from placement.lessons.reading import lesson_of
from placement.schedule.simulated import simulate
from tests.command import answer as told
from tests.command import call_here, refused

BEST = {"load": "A", "left": "A", "right": "B", "join": "A"}
RIGHT = {"1": 8.0, "3": "load and join cannot run beside anything else"}


@pytest.fixture(scope="module")
def first():
    """Lesson one, and what it poses."""
    lesson = lessons.lesson("1")
    return lesson, lessons.pose(lesson, lessons.FOLDER)


def handed_in(first, devices=BEST, **changes):
    """What somebody hands in who solved lesson one, but for the changes."""
    lesson, posed = first
    problem = posed.problem
    placement = Placement(problem.graph.fingerprint, problem.machine.name, devices)
    said = {"placement": placement, "answers": RIGHT, "name": "Ada"} | changes
    return Answer(lesson=lesson.hash, problem=problem.fingerprint, **said)


def grades_of(first, tmp_path, *texts):
    paths = [tmp_path / f"{number}.json" for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    return grade(*first, paths)


def test_what_is_right_has_all_points_and_the_value_of_the_simulator(first, tmp_path):
    answer = handed_in(first)
    (found,) = grades_of(first, tmp_path, answer.to_text())
    assert found.mark.is_solved and (found.mark.points, found.mark.of) == (4, 4)
    assert found.value == simulate(first[1].problem, answer.placement).value == 12.0
    assert (found.mark.stars, found.error, found.name) == (0, "", "Ada")
    star = handed_in(first, {**BEST, "join": "B"})
    assert grades_of(first, tmp_path, star.to_text())[0].mark.stars == 1


@pytest.mark.parametrize(
    ("changes", "points"),
    [
        ({"answers": RIGHT | {"1": 17.0}}, 3),
        ({"answers": RIGHT | {"1": "8"}}, 3),
        ({"answers": RIGHT | {"3": "The second device is slower"}}, 3),
        ({"answers": RIGHT | {"3": ("a", "b")}}, 3),
        ({"answers": {}}, 2),
        ({"devices": dict.fromkeys(BEST, "B")}, 2),
        ({"hints": (1,)}, 3),
        ({"hints": (1, 2)}, 2),
        ({"answers": {}, "devices": dict.fromkeys(BEST, "B"), "hints": (1, 2)}, 0),
    ],
)
def test_each_wrong_reply_and_each_hint_costs_its_points(first, tmp_path, changes, points):
    (found,) = grades_of(first, tmp_path, handed_in(first, **changes).to_text())
    assert found.mark.points == points
    assert found.mark.is_solved is (points + found.mark.hint_points == 4)


def test_placements_that_differ_by_names_of_equal_devices_are_the_same(first, tmp_path):
    other = {op: {"A": "B", "B": "A"}[device] for op, device in BEST.items()}
    texts = [
        handed_in(first, devices).to_text() for devices in (BEST, other, {**BEST, "left": "B"})
    ]
    assert [found.same_as for found in grades_of(first, tmp_path, *texts)] == [
        "",
        str(tmp_path / "0.json"),
        "",
    ]


HOSTILE = {
    "no JSON": ("{", "not valid JSON"),
    "a list": ("[]", "expected an object"),
    "of another format": ({"format": "x"}, "format"),
    "a field too many": ({"points": 4}, "unknown field 'points'"),
    "another lesson": ({"lesson": "0" * 16}, "another lesson"),
    "another problem": ({"problem": "0" * 16}, "another problem"),
    "no placement": ({"placement": None}, "placement"),
    "an op short": ({"placement": {"device_of": {"load": "A"}}}, "no device"),
    "an op too many": ({"placement": {"device_of": BEST | {"fly": "A"}}}, "names op 'fly'"),
    "an unknown device": ({"placement": {"device_of": BEST | {"left": "C"}}}, "no device 'C'"),
    "a device that is a number": ({"placement": {"device_of": BEST | {"left": 1}}}, "the device 1"),
    "another graph": ({"placement": {"device_of": BEST, "graph": "0" * 16}}, "another graph"),
    "an order in vain": ({"placement": {"device_of": BEST, "order": ["x"]}}, "order names op 'x'"),
    "replicas": ({"placement": {"device_of": BEST, "replicas": {"A": 2}}}, "calls or replicas"),
    "moves that lead elsewhere": ({"moves": [["left", "B"]]}, "do not lead to its placement"),
    "moves of strangers": ({"moves": [["fly", "B"]]}, "'fly'"),
    "moves of three words": ({"moves": [["left", "B", "A"]]}, "moves[0]"),
    "a task too many": ({"answers": {"9": 1}}, "task 9"),
    "a task that is a word": ({"answers": {"x": 1}}, "answers"),
    "a reply of the wrong kind": ({"answers": {"1": {"a": 1}}}, "answers"),
    "a reply without end": ({"answers": {"1": 1e300}}, "answers"),
    "a hint too many": ({"hints": [3]}, "hint 3"),
    "a hint that pays": ({"hints": [-1]}, "hints[0]"),
    "a name of a thousand letters": ({"name": "x" * 1000}, "name"),
    "a name that moves the cursor": ({"name": "a\x1b[2J"}, "name"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_an_answer_that_cannot_be_is_a_row_with_a_sentence(first, tmp_path, name):
    changes, words = HOSTILE[name]
    good = handed_in(first).to_text()
    text = changes if isinstance(changes, str) else json.dumps(json.loads(good) | changes)
    bad, other = grades_of(first, tmp_path, text, good)
    assert bad.mark is None and words in bad.error and "\n" not in bad.error, bad.error
    assert other.mark.is_solved, "the others are graded all the same"


def test_moves_from_the_start_are_followed(first, tmp_path):
    made = (("left", "B"), ("right", "B"), ("left", "A"))
    (found,) = grades_of(first, tmp_path, handed_in(first, moves=made).to_text())
    assert found.mark.is_solved


def test_an_answer_reads_as_it_was_written(first):
    answer = handed_in(first, hints=(1,), moves=(("right", "B"),))
    assert answer_of(answer.to_text().encode(), "a.json") == answer


def check_of(first, check, devices=BEST):
    """The verdict of one check of our own on a placement for lesson one."""
    return verdicts_of(first, check, devices)[0]


def verdicts_of(first, check, devices=BEST):
    text = '+++\ntitle = "T"\nproblem = "branches.json"\nstart = {device = "A"}\n+++\n'
    text += f"```check\n{check}\n```\n```insight\nx\n```\n"
    lesson = lesson_of(text.encode(), "own.md")
    posed = lessons.pose(lesson, lessons.FOLDER)
    answer = structs.replace(handed_in(first, devices), lesson=lesson.hash, answers={})
    return graded(lesson, posed, answer).mark.verdicts


def test_moves_count_ops_that_are_elsewhere_but_for_names_of_equal_devices(first):
    moves = 'kind = "moves"\nask = "?"\nat_most = {}'
    assert check_of(first, moves.format(0), dict.fromkeys(BEST, "A")).passed
    assert check_of(first, moves.format(0), dict.fromkeys(BEST, "B")).passed
    assert not check_of(first, moves.format(0)).passed
    assert check_of(first, moves.format(1)).feedback == "1 op moved"
    assert check_of(first, moves.format(1), dict.fromkeys(BEST, "B") | {"left": "A"}).passed


def test_few_moves_count_once_they_bring_what_the_tasks_above_ask_for(first):
    step = 'kind = "step"\nask = "?"\nat_most = {}\n```\n```check\n'
    moves = step + 'kind = "moves"\nask = "?"\nat_most = 3'

    def both(at_most, devices):
        return verdicts_of(first, moves.format(at_most), devices)

    idle = both(12, dict.fromkeys(BEST, "A"))
    assert [verdict.passed for verdict in idle] == [False, False]
    assert idle[1].points == 0 and idle[1].feedback == "0 ops moved; task 1 first"
    assert all(verdict.passed for verdict in both(12, BEST))
    assert [verdict.passed for verdict in both(16, dict.fromkeys(BEST, "A"))] == [True, True]


def test_a_path_holds_ops_and_avoids_ops(first):
    """On A: load, right's data sent to B and back; left (2 to 8) ends before (3 to 9) and 1."""
    path = 'kind = "path"\nask = "?"\n{}'
    assert check_of(first, path.format('holds = ["load", "right", "join"]')).passed
    assert check_of(first, path.format('avoids = ["left"]')).passed
    wrong = check_of(first, path.format('holds = ["left"]\navoids = ["join"]'))
    assert not wrong.passed and wrong.feedback == "left is not on it; join is on it"


def test_a_wrong_choice_is_told_what_the_lesson_says_of_it(first):
    lesson, posed = first
    task = lesson.tasks[2]
    for choice in task.check.choices:
        answer = handed_in(first, answers={"3": choice})
        feedback = graded(lesson, posed, answer).mark.verdicts[2].feedback
        said = task.check.wrong.get(choice)
        assert feedback == (f"not right: {said}" if said else f"right: {task.check.why}")
    assert set(task.check.wrong) == set(task.check.choices) - {task.check.right}


def test_a_gap_is_of_the_bound(first):
    """12 s against the bound of 10 s."""
    gap = 'kind = "gap"\nask = "?"\nat_most = {}'
    assert check_of(first, gap.format(20.01)).passed
    assert not check_of(first, gap.format(19.9)).passed


def test_a_placement_that_breaks_a_rule_passes_no_check_of_its_value(first):
    lesson, posed = first
    devices = [replace(d, memory_bytes=10) for d in posed.problem.machine.devices]
    machine = replace(posed.problem.machine, devices=tuple(devices))
    ops = tuple(replace(op, param_bytes=6) for op in posed.problem.graph.ops)
    graph = replace(posed.problem.graph, ops=ops)
    tight = replace(posed.problem, machine=machine, graph=graph, kernels=graph)
    placement = Placement(graph.fingerprint, machine.name, BEST)
    answer = Answer(lesson=lesson.hash, problem=tight.fingerprint, placement=placement)
    verdict = graded(lesson, replace(posed, problem=tight), answer).mark.verdicts[1]
    assert not verdict.passed and "not allowed" in verdict.feedback and verdict.points == 0


def test_a_table_takes_nothing_for_a_formula(first, tmp_path):
    texts = [handed_in(first, name=name).to_text() for name in ("=1+1", "@x", 'a,"b"')]
    found = grades_of(first, tmp_path, *texts, "{")
    rows = list(csv.DictReader(io.StringIO(csv_of(first[0], found))))
    assert [row["name"] for row in rows] == ["'=1+1", "'@x", 'a,"b"', ""]
    assert [row["points"] for row in rows] == ["4", "4", "4", ""]
    assert rows[0]["value"] == "12" and rows[0]["task 2"] == "1" and "JSON" in rows[3]["error"]


def test_the_command_line_grades_and_says_what_could_not_be(first, tmp_path):
    good, bad = tmp_path / "ada.json", tmp_path / "eve.json"
    good.write_text(handed_in(first).to_text())
    bad.write_text("{}")
    rows = told("grade", "1", good, bad, status=1)
    assert [row.get("points") for row in rows] == [4, None] and "format" in rows[1]["error"]
    assert told("lesson", "1", "--answer", good)[0]["solved"] is True
    table = call_here("grade", "1", good, "--csv")
    assert table.returncode == 0 and table.stdout.startswith("file,name,points,of")
    shown = call_here("grade", "1", good).stdout
    assert f"Ada ({good}): 4 of 4 points, 12 s" in shown
    assert "There is no lesson 'nonsense'" in refused("grade", "nonsense", good)


def test_the_command_line_lists_lessons_and_checks_a_file(tmp_path):
    rows = told("lessons")
    assert [row["name"] for row in rows] == list(lessons.lessons())
    assert told("lesson", "1")["points"] == 4
    own = tmp_path / "own.md"
    own.write_text("+++\n")
    assert "line 1: the header has no end" in refused("lesson", own)


def test_values_are_held_against_heft_what_is_asked_and_the_star():
    lesson = lessons.lesson("5")
    found = lessons.references(lesson, lessons.pose(lesson, lessons.FOLDER))
    assert found == {"HEFT": 80.0, "asked": 76.0, "star": 73.0}


def test_contents_are_graded_as_files_are(first, tmp_path):
    texts = [handed_in(first).to_text(), "{"]
    contents = [(f"{n}.json", text.encode()) for n, text in enumerate(texts)]
    read = grades_of(first, tmp_path, *texts)
    assert grade_contents(*first, contents) == tuple(
        replace(found, file=name) for found, (name, _) in zip(read, contents, strict=True)
    )


LIVE = '+++\ntitle = "T"\nproblem = "branches.json"\nlive = true\n+++\n' + (
    '```check\nkind = "choice"\nask = "?"\nchoices = ["a", "b"]\nright = "a"\n```\n'
    "```insight\nx\n```\n"
)


def test_a_live_lesson_is_graded_on_another_computer_by_its_replies(first):
    """The placement is on a device that is not here, and was made from another start."""
    lesson = lesson_of(LIVE.encode(), "own.md")
    posed = lessons.pose(lesson, lessons.FOLDER)
    devices, moves = dict.fromkeys(BEST, "cuda:0"), (("left", "cuda:0"),)
    texts = [
        structs.replace(
            handed_in(first, devices, answers={"1": reply}, moves=moves),
            lesson=lesson.hash,
            problem="0" * 16,
        ).to_text()
        for reply in ("a", "b")
    ]
    found = grade_contents(lesson, posed, [("a.json", t.encode()) for t in texts])
    assert [(g.error, g.value, g.same_as) for g in found] == [("", None, "")] * 2
    assert [g.mark.is_solved for g in found] == [True, False]
    rows = list(csv.DictReader(io.StringIO(csv_of(lesson, found))))
    assert [(row["points"], row["value"], row["task 1"]) for row in rows] == [
        ("1", "", "1"),
        ("0", "", "0"),
    ]


def test_files_of_one_name_are_told_apart(first, tmp_path):
    """Ada's and Eve's placement, then each again, all in files called a.json."""
    best, other = handed_in(first).to_text(), handed_in(first, {**BEST, "left": "B"}).to_text()
    texts = [best, other, other, best]
    found = grade_contents(*first, [("a.json", text.encode()) for text in texts])
    names = ["a.json", "a.json (2)", "a.json (3)", "a.json (4)"]
    assert [g.file for g in found] == names
    assert [g.same_as for g in found] == ["", "", names[1], names[0]]
    paths = [tmp_path / str(n) / "a.json" for n in range(4)]
    for path, text in zip(paths, texts, strict=True):
        path.parent.mkdir()
        path.write_text(text)
    found = grade(*first, paths)
    assert [g.file for g in found] == [str(path) for path in paths]
    assert [g.same_as for g in found] == ["", "", str(paths[1]), str(paths[0])]


@pytest.mark.parametrize(
    "name", ["Jos\u00e9\u00a0\u00d1", "\U0001f469\u200d\U0001f52c", "\u200f\u05d0"]
)
def test_names_with_any_blank_or_emoji_are_read(first, name):
    text = handed_in(first, name=name).to_text()
    assert answer_of(text.encode(), "a.json").name == name


@pytest.mark.parametrize("name", ["a\u202eb", "a\u2066b", "a\nb", "a\u2028b", "\ud800"])
def test_names_that_turn_or_break_the_line_are_refused(first, name):
    with pytest.raises(ValueError, match=r"cannot be shown|not Unicode"):
        answer_of(handed_in(first, name=name).to_text().encode(), "a.json")


def test_moves_name_ops_of_any_length(first):
    moves = (("x" * 1_000, "A"),)
    assert answer_of(handed_in(first, moves=moves).to_text().encode(), "a.json").moves == moves


def test_a_content_that_is_too_long_is_refused_unread(monkeypatch):
    monkeypatch.setattr(answer_file, "MOST_BYTES", 10)
    with pytest.raises(ValueError, match="has 11 bytes, more than the 10"):
        answer_of(b" " * 11, "a.json")
