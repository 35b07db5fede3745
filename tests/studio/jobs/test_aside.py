"""A method that ends while a person is at something else leaves the screen alone."""

import json

import pytest
from msgspec import structs, to_builtins

from placement.core.verb_options import PlaceOptions
from studio import editing
from studio.jobs import jobs, kinds, records
from studio.project.files import write_json
from tests.studio.jobs.test_kinds import now, project, started

__all__ = ["project", "started"]


@pytest.fixture
def begun(project, started):
    """A method that was begun with what is on the screen."""
    assert now(project).named.name
    return kinds.start_place(now(project), PlaceOptions(placer="single"))


def end(project, job_id, monkeypatch):
    """It ends with all ops on the last device; what is told."""
    placed = editing.all_on(now(project), now(project).machine.devices[-1].name)
    told = {"event": "result", "value": 0.02, "unit": "s", "placement": placed.to_json()}
    folder = project.folder / "jobs" / job_id
    (folder / "events.jsonl").write_text(json.dumps(told) + "\n")
    monkeypatch.setattr(jobs.process, "is_alive", lambda pid, born_at: False)
    return kinds.collect(now(project))


def moved(project):
    opened = now(project)
    op = opened.model.graph.ops[0].name
    other = next(d.name for d in opened.machine.devices if d.name != opened.placement.device_of[op])
    editing.edit(opened, (op,), other)


def test_where_nothing_was_changed_it_is_shown(project, begun, monkeypatch):
    assert end(project, begun, monkeypatch) == ["Placed by single: predicted 20 ms."]
    assert now(project).named.name == "single" and kinds.ended_aside(now(project)) is None


@pytest.mark.parametrize("undone", [False, True])
def test_an_edit_keeps_its_place_and_its_history(project, begun, monkeypatch, undone):
    moved(project)
    if undone:
        editing.undo(now(project))
    before = now(project).named.name, now(project).placement, now(project).history
    assert end(project, begun, monkeypatch) == []
    opened = now(project)
    assert (opened.named.name, opened.placement, opened.history) == before
    job, item = kinds.ended_aside(opened)
    assert (job.id, item.name) == (begun, "single")
    # It is told until somebody looks at it, or wants to hear no more.
    opened.shelf.choose("single")
    assert kinds.ended_aside(now(project)) is None
    opened.shelf.choose(before[0])
    jobs.note(project.folder, begun, dismissed=True)
    assert kinds.ended_aside(now(project)) is None


def test_a_choice_stays_even_of_what_the_method_found_before(project, monkeypatch, started):
    earlier = now(project).placement
    now(project).shelf.add("single", earlier, "single", show=False)
    begun = kinds.start_place(now(project), PlaceOptions(placer="single"))
    now(project).shelf.choose("single")
    end(project, begun, monkeypatch)
    assert now(project).named.name == "single" and now(project).placement == earlier
    assert kinds.ended_aside(now(project))[1].name == "single 2"


def test_a_job_of_before_that_did_not_note_the_screen_is_shown(project, begun, monkeypatch):
    folder = project.folder / "jobs" / begun
    record = records.read(folder)
    plain = structs.replace(record, about=structs.replace(record.about, screen=""))
    write_json(folder / records.RECORD, to_builtins(plain))
    moved(project)
    end(project, begun, monkeypatch)
    assert now(project).named.name == "single"
