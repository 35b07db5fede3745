"""The lesson of a project: what of its forms can be handed in, and that it travels with it."""

import io
import json
import zipfile

import pytest

from pages.ui.session.current import snapshot
from placement.api import lessons
from placement.lessons.answer import answer_of
from studio import lesson as begun
from studio.transfer import archive

RIGHT = "load and join cannot run beside anything else"


@pytest.fixture
def learning(project):
    """Lesson one, begun; the fixture has set where projects lie."""
    path = lessons.path_of("1")
    return begun.begin(path.read_bytes(), path.name)


def replied(project, **form):
    project.change(form=form)
    return begun.work(snapshot(project)).answer


def as_form(answers):
    return {begun.ANSWERS: answers}


@pytest.mark.parametrize("wrong", [1e20, {"a": 1}, True, None, ["x" * 300], "x" * 300])
def test_one_reply_that_cannot_be_leaves_the_others(learning, wrong):
    answer = replied(learning, **as_form({"1": wrong, "3": RIGHT}))
    assert answer.answers == {"3": RIGHT}


def test_replies_and_hints_that_the_lesson_does_not_have_are_left_out(learning):
    form = {begun.ANSWERS: {"9": 1, "x": 2, "1": 16.0}, begun.HINTS: [9, "x", 1, 1]}
    answer = replied(learning, **form)
    assert (answer.answers, answer.hints) == ({"1": 16.0}, (1,))


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("Jose\u0301\u00a0\u00d1", "Jos\u00e9\u00a0\u00d1"),
        ("\U0001f469\u200d\U0001f52c", "\U0001f469\u200d\U0001f52c"),
        (" a\u202eb\tc ", "a b c"),
        ("x" * 200, "x" * 100),
    ],
)
def test_whatever_name_is_typed_the_file_can_be_graded(learning, typed, name):
    answer = replied(learning, **{begun.NAME: typed})
    assert answer_of(answer.to_text().encode(), "a.json").name == answer.name == name


def anything(path, dims):
    """Opens no model."""


def test_a_lesson_travels_with_the_answers_to_it(learning):
    form = {begun.ANSWERS: {"1": 16.0, "3": RIGHT}, begun.HINTS: [1], begun.NAME: "Ada"}
    learning.change(form={**form, "seed": 7})
    assert "its lesson with the answers so far" in archive.contents(learning)
    twin = archive.unpack(archive.pack(learning), anything)
    assert dict(twin.settings.form) == form
    assert begun.of(twin).hash == begun.of(learning).hash
    there, here = (begun.work(snapshot(each)).answer for each in (twin, learning))
    assert there.to_text() == here.to_text() and there.answers == {"1": 16.0, "3": RIGHT}
    assert begun.homes()[begun.of(twin).hash].id in (twin.id, learning.id)


def repacked(origin, **changed):
    """The project's file with other contents of some files."""
    buffer, read = io.BytesIO(), zipfile.ZipFile(io.BytesIO(archive.pack(origin)))
    with zipfile.ZipFile(buffer, "w") as written:
        for name in read.namelist():
            written.writestr(name, changed.get(name.partition(".")[0], read.read(name)))
    return buffer.getvalue()


def test_of_a_hostile_form_only_what_could_be_handed_in_is_taken(learning):
    with zipfile.ZipFile(io.BytesIO(archive.pack(learning))) as packed:
        read = json.loads(packed.read("project.json"))
    read["form"] = {begun.ANSWERS: {"1": 1e300, "3": "a", "9": 1}, begun.HINTS: "x", "job": 3}
    twin = archive.unpack(repacked(learning, project=json.dumps(read)), anything)
    assert dict(twin.settings.form) == {begun.ANSWERS: {"3": "a"}}


@pytest.mark.parametrize(
    ("content", "words"), [("+++\n", "has no end"), ("x" * 2**19, "lesson.md")]
)
def test_a_lesson_that_is_none_is_refused_with_its_project(learning, content, words):
    with pytest.raises(ValueError, match=words):
        archive.unpack(repacked(learning, lesson=content), anything)
    assert "lesson" not in archive.contents(_broken(learning))
    archive.unpack(archive.pack(learning), anything)


def _broken(project):
    (project.folder / begun.FILE).write_text("+++\n")
    return project
