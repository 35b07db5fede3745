"""Lessons on the pages: the list, the panel beside the work, what is hidden, and the hand-in."""

import json
from types import SimpleNamespace

import pytest

from pages.ui.lessons import grades
from pages.ui.panels import op_table
from pages.ui.session.current import snapshot
from placement.api import lessons
from placement.lessons.answer import answer_of
from placement.lessons.grading import grade_contents, graded
from placement.lessons.lesson import Hint
from studio import editing, exercise
from studio import lesson as begun
from tests.command import answer
from tests.pages.going import go, open_tab
from tests.pages.test_pages import APP, AppTest, checked, opened, own_home, texts
from tests.thorough import either

__all__ = ["own_home"]


def begin(named="1"):
    """A lesson's project and the app on its Studio page."""
    app, project = begin_unseen(named)
    return checked(app.run()), project


def begin_unseen(named="1"):
    """A lesson's project and the app, which has drawn nothing yet."""
    path = lessons.path_of(named)
    project = begun.begin(path.read_bytes(), path.name)
    app = AppTest.from_file(str(APP), default_timeout=120)
    app.query_params["project"] = project.id
    return app, project


def labels(app):
    return [button.label for button in app.button]


def test_a_lesson_is_worked_on_and_handed_in():
    app, project = begin()
    assert "0 of 4 points" in texts(app)
    assert "Hand in" in [button.label for button in app.get("download_button")]
    app.number_input[0].set_value(17.0).run()
    assert "not right" in texts(app)
    app.number_input[0].set_value(8.0).run()
    assert "1 of 4 points" in texts(app) and "Only branches overlap" not in texts(app)
    app.radio[0].set_value("load and join cannot run beside anything else").run()
    app.session_state["selection"] = ["right"]
    now = snapshot(project)
    editing.edit(now_writing(now), ["right"], "B")
    assert "4 of 4 points" in texts(checked(app.run()))
    assert "Only branches overlap" in "\n".join(s.value for s in app.success)
    done = begun.work(snapshot(project))
    answer = answer_of(done.answer.to_text().encode(), "a.json")
    assert answer.moves == (("right", "B"),)
    found = graded(done.lesson, lessons.posed(done.lesson), answer)
    assert (found.mark.points, found.value) == (4, 12.0)


def now_writing(now):
    """The same for a session that may write."""
    now.session.may_write = lambda: True
    return now


def test_a_hint_costs_what_it_says():
    app, project = begin()
    hint = next(b for b in app.button if b.label == "Hint (costs 1 point)")
    hint.click().run()
    app.number_input[0].set_value(8.0).run()
    assert "0 of 4 points, 1 for hints" in texts(app)
    assert project.settings.form[begun.HINTS] == [1]


def test_no_hint_is_offered_for_what_is_met():
    app, project = begin("2")
    assert "Hint (costs 1 point)" in labels(app)
    editing.edit(now_writing(snapshot(project)), ["matmul"], "B")
    assert "Hint (costs 1 point)" not in labels(checked(app.run()))
    # A star may be had in lesson 1, for whose sake its hints stay.
    app, project = begin("1")
    editing.edit(now_writing(snapshot(project)), ["right"], "B")
    assert "Hint (costs 1 point)" in labels(checked(app.run()))


def test_the_next_lesson_is_one_click_away_and_knows_the_name():
    app, project = begin("1")
    field = next(t for t in app.text_input if t.label == "Your name")
    field.set_value("Ada").run()
    next(b for b in app.button if b.key == "next-lesson").click().run()
    assert begun.of(snapshot(project).project).header.title == "One step"
    assert app.query_params["project"] not in (project.id, [project.id])
    assert "Chains" in texts(checked(app))
    assert next(t for t in app.text_input if t.label == "Your name").value == "Ada"


def test_what_a_lesson_hides_is_not_on_the_page():
    app, _ = begin("1")
    assert "Place" not in labels(app) and "Place selection" not in labels(app)
    assert "best possible" not in texts(app)
    assert {"Board", "What if", "Hints"}.isdisjoint(tab.label for tab in app.tabs)
    app, _ = begin("2")
    assert "best possible" in texts(app)
    here = [box.label for box in app.expander]
    assert not [label for label in here if "Rules" in label or "Export" in label], here


LESSONS = [*lessons.lessons()]
SOME_LESSONS = [LESSONS[0], LESSONS[len(LESSONS) // 2], LESSONS[-1]]


@pytest.mark.thorough
@pytest.mark.parametrize("named", either(SOME_LESSONS, LESSONS))
def test_every_lesson_opens_at_its_start_and_asks_what_it_says(named):
    app, project = begin(named)
    done = begun.work(snapshot(project))
    assert not begun.mark(snapshot(project), done).is_solved
    is_last = named == LESSONS[-1]
    assert ("next-lesson" in [b.key for b in app.button]) != is_last
    assert all(
        task.check.ask.replace("`", "") in texts(app).replace("`", "") for task in done.lesson.tasks
    )


def test_the_table_has_a_column_for_each_device_and_none_for_memory_that_nobody_states(
    monkeypatch,
):
    drawn = []
    monkeypatch.setattr(
        op_table.table_component, "draw_table", lambda table, **_: drawn.append(table)
    )
    app, _ = begin("4")
    checked(open_tab(app, "Table"))
    labels = [heading.label for heading in drawn[-1].headings]
    at = labels.index("on P1")
    assert labels[at : at + 3] == ["on P1", "on P2", "on P3"] and "Memory" not in labels
    row = dict(zip(["op", *labels], drawn[-1].rows[0], strict=True))
    assert [row[f"on P{n}"] for n in (1, 2, 3)] == ["14 s", "16 s", "9 s"]
    assert "0 B" not in texts(app)


def test_the_list_tells_how_far_each_has_got():
    app, project = begin()
    app.number_input[0].set_value(8.0).run()
    go(app, "lessons")
    assert "1 of 4 points" in texts(checked(app))
    begins = [b for b in labels(app) if b == "Begin"]
    assert len(begins) == len(lessons.lessons()) - 1 and "Begin anew" in labels(app)
    next(b for b in app.button if b.label == "Begin").click().run()
    assert checked(app).query_params["project"] not in (project.id, [project.id])


def test_a_lesson_of_another_is_refused_with_its_line(tmp_path):
    app, project = begin_unseen()
    go(app, "lessons")
    own = tmp_path / "own.md"
    own.write_text("+++\ntitle = 3\n+++\n")
    next(t for t in app.text_input if t.label == "Path on this computer").set_value(str(own)).run()
    next(b for b in app.button if b.label == "Open the path").click().run()
    assert "line 2: " in texts(app)
    assert app.query_params["project"] in (project.id, [project.id])


def test_a_project_that_is_about_something_else_by_now_says_so():
    app, project = begin()
    project.change(objective="throughput")
    said = "\n".join(str(e.value) for e in checked(app.run()).error)
    assert "not the lesson's problem any more" in said


def test_a_form_that_holds_nonsense_is_no_answer():
    _, project = begin()
    project.change(form={begun.ANSWERS: {"1": {"a": []}}, begun.HINTS: ["x"], begun.NAME: 3})
    answer = begun.work(snapshot(project)).answer
    assert (answer.answers, answer.hints, answer.name) == ({}, (), "3")
    assert json.loads(answer.to_text())["format"] == "placement-lesson-answer"


def test_what_was_handed_in_is_graded_on_the_page(monkeypatch):
    app, project = begin_unseen("5")
    handed_in = begun.work(snapshot(project)).answer.to_text().encode()
    files = [
        SimpleNamespace(name=name, getvalue=lambda c=c: c)
        for name, c in (("ada.json", handed_in), ("eve.json", b"{"))
    ]
    monkeypatch.setattr(
        grades.st, "file_uploader", lambda label, **_: files if label == "Answer files" else None
    )
    app.session_state["grades-open"] = True
    app.session_state["grades-lesson"] = "05-beat-heft"
    go(app, "lessons")
    assert "1 answer, 0 solved; best 80 s per step" in texts(checked(app))
    rows = app.dataframe[-1].value
    assert list(rows["Value"].dropna()) == [80.0] and "JSON" in rows["Refused because"][1]


def test_files_of_another_lesson_are_told_by_its_name_and_graded_as_that(monkeypatch):
    app, project = begin_unseen("5")
    handed_in = begun.work(snapshot(project)).answer.to_text().encode()
    files = [
        SimpleNamespace(name=name, getvalue=lambda: handed_in) for name in ("a.json", "b.json")
    ]
    monkeypatch.setattr(
        grades.st, "file_uploader", lambda label, **_: files if label == "Answer files" else None
    )
    app.session_state["grades-open"] = True
    app.session_state["grades-lesson"] = "01-one-step"
    go(app, "lessons")
    said = [info.value.replace("\\", "") for info in checked(app).info]
    assert "2 files answer another lesson: 05-beat-heft." in said
    assert all("another lesson" in why for why in app.dataframe[-1].value["Refused because"])
    checked(next(b for b in app.button if b.label == "Grade that lesson").click().run())
    assert "2 answers, 0 solved; best 80 s per step" in texts(app)
    rows = app.dataframe[-1].value
    assert list(rows["For hints"]) == [0, 0] and "Grade that lesson" not in labels(app)


def test_grades_are_of_any_lesson_begun_and_made_once(monkeypatch, tmp_path):
    """A lesson of one's own, three files of which two may be graded, and a second rerun."""
    own = lessons.path_of("1").read_bytes().replace(b"+++\n", b"+++\nseed = 3\n", 1)
    project = begun.begin(own, "own.md")
    answer = begun.work(snapshot(project)).answer.to_text().encode()
    app = AppTest.from_file(str(APP), default_timeout=120)
    files = [SimpleNamespace(name="a.json", getvalue=lambda: answer)] * 3
    counted = []

    def grading(*given):
        counted.append(given)
        return grade_contents(*given)

    monkeypatch.setattr(
        grades.st, "file_uploader", lambda label, **_: files if label == "Answer files" else None
    )
    monkeypatch.setattr(grades, "MOST_FILES", 2)
    monkeypatch.setattr(grades, "grade_contents", grading)
    app.query_params["project"] = project.id
    app.session_state["grades-open"] = True
    app.session_state["grades-lesson"] = begun.of(project).hash
    go(app, "lessons")
    assert "2 answers, 0 solved; best 16 s per step" in texts(checked(app))
    assert "1 file left out" in "\n".join(w.value for w in app.warning)
    assert list(app.dataframe[-1].value["File"]) == ["a.json", "a.json (2)"]
    checked(app.run())
    assert len(counted) == 1


def test_a_broken_file_among_the_lessons_is_a_row_and_no_more(monkeypatch, tmp_path):
    for path in lessons.FOLDER.glob("0[1-4]*"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "branches.json").write_bytes((lessons.FOLDER / "branches.json").read_bytes())
    (tmp_path / "00-broken.md").write_text("+++\n")
    monkeypatch.setattr(lessons, "FOLDER", tmp_path)
    assert lessons.about_method("heft")[0].startswith("4, ")
    rows = answer("lessons", status=1)
    assert "no end" in rows[0]["error"] and [row.get("points") for row in rows[1:2]] == [4]
    app, _ = begin_unseen()
    go(app, "lessons")
    assert "the header has no end" in "\n".join(w.value for w in checked(app).warning)
    assert labels(app).count("Begin") == 3


def test_trouble_with_a_lesson_is_told_and_is_not_called_a_change(monkeypatch):
    app, _ = begin_unseen()

    def failing(now):
        raise OSError("the disk is gone")

    monkeypatch.setattr(begun, "work", failing)
    go(app, "lessons")
    assert "changed" not in texts(checked(app))
    assert "the disk is gone" in [m.help for m in app.markdown]
    monkeypatch.undo()


def test_an_exercise_is_begun_on_any_network():
    app, project = opened("studio", model="onnx-squeezenet", machine="null-2")
    open_tab(app, "Exercise")
    app.radio[-1].set_value("one device").run()
    said = texts(checked(app.run()))
    assert "against" in said and "all on null" in said and project.settings.form["exercise"]
    begin = next(b for b in app.button if b.label.startswith("Begin with all on null"))
    checked(begin.click().run())
    now = snapshot(project)
    first = exercise.first_device(now)
    assert now.named.by_hand and set(now.placement.device_of.values()) == {first}
    assert "Not yet" in texts(app) or "A tie" in texts(app)
    assert begin.label not in labels(app)


def test_a_lesson_that_is_none_any_more_is_told_where_it_would_stand():
    app, project = begin()
    (project.folder / begun.FILE).write_text("+++\n")
    assert "the header has no end" in texts(checked(app.run()))
    go(app, "lessons")
    assert labels(checked(app)).count("Begin") == len(lessons.lessons())


def test_the_method_of_a_lesson_is_followed_once_the_lesson_is_given_up():
    app, project = begin("4")
    follow = "See heft decide this"
    assert follow not in labels(app) and "Steps" not in [tab.label for tab in app.tabs]
    hints = sum(isinstance(part, Hint) for part in begun.of(project).parts)
    for number in range(hints):
        assert follow not in labels(app), number
        next(b for b in app.button if b.label.startswith("Hint")).click().run()
    app = checked(app.run())
    next(b for b in app.button if b.label == follow).click().run()
    checked(app.run())
    assert "Steps" in [tab.label for tab in app.tabs]
    assert "heft" in [box.value for box in app.selectbox if box.label == "Method to follow"]
    assert {"Board", "What if", "Hints"}.isdisjoint(tab.label for tab in app.tabs)
