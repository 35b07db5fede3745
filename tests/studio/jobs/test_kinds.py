"""Jobs that pages start, and their results: none is lost, none is taken twice."""

import json
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import to_builtins

from pages.ui.desk import dock
from pages.ui.session.current import snapshot
from placement.core.machine import Device, Machine
from placement.core.verb_options import CompareOptions, PlaceOptions, ProfileOptions, RunOptions
from placement.costs.what_if import Conditions
from studio.jobs import jobs, kinds, outcomes
from studio.jobs import process as worker
from studio.project import pins, store
from studio.project.files import write_json


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.setenv("PLACEMENT_STUDIO_HOME", str(tmp_path))
    monkeypatch.setattr("pages.ui.session.choices.may_write", lambda: True)
    monkeypatch.setattr("pages.ui.session.choices.show_run", lambda job_id: None)
    made = store.create()
    made.change(model="onnx-squeezenet", machine="null-2")
    return made


def now(project):
    return snapshot(project)


def finished(project, verb="place", **result):
    """A job that has ended with the placement that is on the screen."""
    placed = now(project)
    folder = project.folder / "jobs" / f"{time.time_ns():020d}-0000"
    about = {"placer": "single", "shelf": placed.shelf.folder.name, "num_selected": 2}
    about |= {"num_pinned": 0, "from": placed.named.name}
    record = {"verb": verb, "argv": [], "pid": -1, "born_at": 0, "started_at": 0}
    write_json(folder / "job.json", {**record, "about": about})
    answer = {"value": 0.02, "unit": "s", "placement": placed.placement.to_json(), **result}
    (folder / "events.jsonl").write_text(json.dumps({"event": "result", **answer}) + "\n")
    return folder.name


def num_kept(project, job_id):
    return len(now(project).shelf.of_job(job_id))


def test_a_result_is_there_before_its_job_is_noted_and_is_not_taken_twice(project, monkeypatch):
    job_id = finished(project)

    def killed(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(jobs, "note", killed)
        with pytest.raises(KeyboardInterrupt):
            kinds.collect(now(project))
    assert num_kept(project, job_id) == 1
    assert kinds.collect(now(project)) == ["Placed by single on 2 ops: predicted 20 ms."]
    assert num_kept(project, job_id) == 1 and kinds.collect(now(project)) == []


def test_an_answer_for_a_what_if_machine_is_not_taken_twice(project):
    unchanged = {"value": 0.03, "unit": "s", "costs": "given"}
    answer = {"placer": "single", "what_if": {}, "unchanged": unchanged}
    job = jobs.read(project.folder, finished(project, "what-if", **answer))
    for _ in range(2):
        assert "would reach 20 ms" in outcomes.answer_taken_over(project, job)
    assert len(outcomes.what_if_shelf(project.folder, now(project).shelf.folder.name).items) == 1


@pytest.mark.parametrize("verb", sorted(kinds.REASONS))
def test_a_job_that_came_to_nothing_says_where_the_reason_stands(project, verb):
    job = project.folder / "jobs" / finished(project, verb)
    (job / "events.jsonl").write_text("")
    (told,) = kinds.collect(now(project))
    place = "the tab Board" if verb == "compare" else kinds.REASONS[verb]
    assert place in told
    tab = place.rpartition("the tab ")[2] if "the tab " in place else ""
    assert tab in ("", dock.BOARD, dock.RUN, dock.WHAT_IF)


@pytest.mark.parametrize("verb", sorted({*kinds.REASONS} - {"compare"}))
def test_what_a_person_cancels_is_told_once_where_its_progress_stood(project, verb):
    job = project.folder / "jobs" / finished(project, verb)
    (job / "events.jsonl").write_text("")
    record = json.loads((job / "job.json").read_text())
    write_json(job / "job.json", {**record, "cancelled": True})
    assert kinds.collect(now(project)) == []
    assert jobs.read(project.folder, job.name).message == "Stopped before it finished."


def test_a_damaged_result_holds_up_no_other(project):
    good, bad = finished(project), finished(project, placement={"ops": 3})
    told = kinds.collect(now(project))
    assert len(told) == 2 and "damaged; start it again" in told[0]
    assert (num_kept(project, good), num_kept(project, bad)) == (1, 0)
    assert kinds.collect(now(project)) == []


def test_a_result_that_finds_no_room_is_taken_over_later(project, monkeypatch):
    job_id = finished(project)

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("studio.project.placements.write_text", full)
        assert "No space left on device" in kinds.collect(now(project))[0]
        assert kinds.collect(now(project)) == []
    assert kinds.collect(now(project)) and num_kept(project, job_id) == 1


@pytest.fixture
def started(monkeypatch):
    """Collects the command lines of jobs that would have been started."""
    lines = []

    def pretend(project, verb, argv, about):
        lines.append([verb, *argv])
        job_id = f"{time.time_ns():020d}-0000"
        record = {"verb": verb, "argv": argv, "pid": 1, "born_at": 0, "started_at": 0}
        write_json(project / "jobs" / job_id / "job.json", {**record, "about": to_builtins(about)})
        return job_id

    monkeypatch.setattr(jobs, "start", pretend)
    monkeypatch.setattr(jobs.process, "is_alive", lambda pid, born_at: True)
    return lines


STARTS = {
    "compare": lambda now: kinds.start_compare(now, CompareOptions(placers=("single",))),
    "what-if": lambda now: kinds.start_what_if(now, Conditions(), PlaceOptions(placer="single")),
    "run": lambda now: kinds.start_run(now, RunOptions(steps=3, warmup=1)),
    "profile": lambda now: kinds.start_profile(now, ProfileOptions()),
}


@pytest.mark.parametrize("verb", STARTS)
def test_a_second_click_starts_no_second_job(project, started, verb):
    assert STARTS[verb](now(project)) == STARTS[verb](now(project))
    assert [line[0] for line in started] == [verb]


def test_a_run_that_no_device_has_room_for_is_refused_at_once(project, started, monkeypatch):
    """Before anything is started that would wait for a quiet computer."""
    said = []
    monkeypatch.setattr("pages.ui.session.choices.say", lambda *told: said.append(told))
    cpu = Device("cpu:0", "cpu", "onnxruntime", flops_per_s=1e9, memory_bytes_per_s=1e9)
    # No method puts anything where there is no room: what stands there is of before.
    for memory_bytes in (None, 2**20):
        one = Machine("one", (replace(cpu, memory_bytes=memory_bytes),))
        write_json(project.folder / "machines" / "one.json", one.to_json())
        project.change(machine="one.json")
        assert now(project).named.name
    assert kinds.start_run(now(project), RunOptions(steps=3)) == "" and started == []
    ((kind, text),) = said
    assert kind == "warning" and text.startswith("Not run: Weights and values on 'cpu:0' need ")
    assert text.endswith(" MiB, it has 1 MiB; move some ops to another device.")


@pytest.mark.parametrize("verb", ["compare", "what-if"])
def test_pins_that_change_after_the_start_do_not_reach_a_job(project, started, verb):
    ops = [op.name for op in now(project).model.graph.ops]
    pins.pin(now(project), ops)
    STARTS[verb](now(project))
    path = Path(started[0][started[0].index("--pins") + 1])
    pins.unpin(now(project), ops[:5])
    assert set(json.loads(path.read_text())) == set(ops)


@pytest.mark.parametrize(
    ("going_on", "started_now", "warned"),
    [
        ("run", "compare", True),
        ("train", "place", True),
        ("place", "run", True),
        ("place", "compare", False),
        ("run", "profile", False),
    ],
)
def test_a_search_beside_a_measurement_is_warned_of(project, going_on, started_now, warned):
    process = {"pid": os.getpid(), "born_at": worker.born_at(os.getpid())}
    record = {"verb": going_on, "argv": [], "started_at": 0, "about": {}, **process}
    write_json(project.folder / "jobs" / f"{time.time_ns():020d}-0000" / "job.json", record)
    said = kinds.disturbed(project.folder, started_now)
    assert ("share the processors" in said) == warned and bool(said) == warned
