"""Files that the version before results had types of their own has written still open."""

import json
import shutil
from pathlib import Path

import pytest

from pages.ui.session.current import snapshot
from placement.api.results.placing import CompareRow
from placement.api.results.running import StreamResult
from placement.api.results.verbs import result_from_json
from studio.jobs import jobs, kinds, runs
from studio.project import store
from studio.transfer.archive import unpack

DATA = Path(__file__).parents[1] / "data"
JOBS = sorted((DATA / "older_project" / "jobs").iterdir())


@pytest.fixture(autouse=True)
def own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("PLACEMENT_STUDIO_HOME", str(tmp_path))
    monkeypatch.setattr("pages.ui.session.choices.may_write", lambda: True)


def older(tmp_path):
    made = store.create()
    shutil.rmtree(made.folder)
    shutil.copytree(DATA / "older_project", made.folder)
    return made


def test_every_job_of_then_is_done_and_can_be_told(tmp_path):
    project = older(tmp_path)
    now = snapshot(project)
    for job_id in jobs.listed(project.folder):
        jobs.note(project.folder, job_id, collected=False)
    found = [jobs.read(project.folder, job_id) for job_id in jobs.listed(project.folder)]
    assert {job.verb for job in found} == {"run", "train", "place", "compare", "what-if"}
    assert {job.status for job in found} == {"done"} and not any(j.num_garbled for j in found)
    assert not any("damaged" in text or "not finish" in text for text in kinds.collect(now))
    newest, oldest = runs.finished(project)
    assert isinstance(newest.result, StreamResult) and not isinstance(oldest.result, StreamResult)
    assert oldest.ran.timeline.spans and oldest.ran.placement == now.shelf.read("heft")


@pytest.mark.parametrize("folder", JOBS, ids=lambda folder: folder.name)
def test_a_result_of_then_is_told_with_the_same_keys_and_values(folder):
    verb = json.loads((folder / "job.json").read_text())["verb"]
    told = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    (content,) = (event for event in told if event.pop("event") == "result")
    assert json.loads(json.dumps(result_from_json(verb, content).to_json())) == content
    for row in content.get("rows", ()):
        assert CompareRow(**{**row, "violations": ()}).placer == row["placer"]


def test_a_project_file_of_then_is_imported():
    project = unpack((DATA / "older_project.zip").read_bytes(), lambda path, dims: None)
    assert [job.status for job in runs.finished(project)] == ["done", "done"]
    assert all(job.about.imported for job in runs.finished(project))
