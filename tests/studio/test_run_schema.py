"""Finished runs travel with a project: whole, marked as made elsewhere, or refused."""

import copy
import io
import json
import time
import zipfile

import pytest

from pages.ui.panels import run_warnings
from placement.__main__ import main
from placement.api.results.value import MOST_PARTS, MOST_STEPS
from studio.jobs import jobs, runs
from studio.project.files import write_json
from studio.transfer import archive, run_schema
from studio.transfer.archive import pack, unpack
from tests.pages.problems import MACHINE, diamond, everywhere
from tests.pages.test_pages import finished_run, placed, shown, texts
from tests.studio.test_archive import any_model, own_shelf, worked_on, zipped

RUN = ("run", "onnx-squeezenet", "--machine", "null-2", "--placer", "single", "--steps", "3")


@pytest.fixture(autouse=True)
def own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("PLACEMENT_STUDIO_HOME", str(tmp_path))


def result_of(capsys, *more):
    """What the command line prints of a run on a virtual clock."""
    assert main([*RUN, *more, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("goal", ["latency", "throughput"])
def test_what_a_run_told_comes_back_whole(goal, capsys):
    """All that the command line printed."""
    result = result_of(capsys, "--objective", goal)
    about = {"shelf": "0" * 16 + "-" + "0" * 8, "placement": "heft", "objective": goal, "steps": 3}
    content = {"started_at": 7.0, "about": about, "result": result}
    found = run_schema.run(json.loads(json.dumps(content)))
    told = found.record.about
    assert (told.shelf, told.placement, told.objective) == (about["shelf"], "heft", goal)
    assert told.imported and told.collected and found.record.started_at == 7.0
    assert json.loads(json.dumps(found.result.to_json())) == result


def timeline(**changes):
    span = {"kind": "compute", "name": "a_conv", "device": "cpu:0", "start_s": 0.0, "end_s": 1.0}
    more = {"segment": 0, "num_bytes": 0, "after": []}
    link = {"kind": "transfer", "name": "a", "device": "cpu:0->cpu:1", "start_s": 1.0, "end_s": 2.0}
    spans = [span | more, link | more | {"after": [0]}]
    return {"origin": "measured", "step_s": 2.0, "peak_bytes": {}, "spans": spans, **changes}


def result(**changes):
    return {
        "event": "result",
        "step_s": {"median": 2.0, "p5": 1.5, "p95": 2.5},
        "steps_s": [2.0, 2.0],
        "predicted_s": 1.8,
        "error": -0.1,
        "baseline_s": {"cpu:0": 3.0, "cpu:1": None},
        "outputs_match": True,
        "num_segments": 2,
        "critical_path": [],
        "busy_s": {"cpu:0": 1.0},
        "timeline": timeline(),
        "predicted_timeline": timeline(origin="predicted"),
        "placement": everywhere(diamond()).to_json(),
        **changes,
    }


def ran(project, **changes):
    """A finished run of the placement heft in a project."""
    folder = project.folder / "jobs" / f"{time.time_ns():020d}-0000"
    shelf = own_shelf().removeprefix("placements/")
    about = {"placement": "heft", "shelf": shelf, "model": "net", "secret": "/home/me"}
    record = {"verb": "run", "argv": ["/home/me"], "pid": 4, "born_at": 0.0, "started_at": 5.0}
    write_json(folder / "job.json", {**record, "about": about})
    (folder / "events.jsonl").write_text(json.dumps(result(**changes)) + "\n")
    return folder.name


def test_a_finished_run_is_one_of_the_copy_and_marked_as_made_elsewhere():
    project = worked_on()
    job_id = ran(project)
    assert "1 finished run" in archive.contents(project)
    twin = unpack(pack(project), any_model)
    (job,) = runs.finished(twin)
    (first,) = runs.finished(project)
    assert job.id == job_id and job.result == first.result and job.started_at == 5.0
    assert job.about.imported and not first.about.imported
    assert runs.key_of(job.folder) == runs.key_of(first.folder)
    assert "/home/me" not in (job.folder / "job.json").read_text()
    assert jobs.open_ones(twin.folder) == ()
    assert len(runs.finished(unpack(pack(twin), any_model))) == 1, "it travels on"


def broken(**changes):
    return {"result": result(**changes)}


def broken_off():
    return {"result": {key: value for key, value in result().items() if key != "predicted_s"}}


def placing(**device_of):
    return broken(placement={"graph": "", "machine": "", "device_of": device_of})


def with_spans(*spans):
    whole = timeline()["spans"]
    made = [{**whole[0], **span} for span in spans]
    return broken(timeline=timeline(spans=made))


SHELF = own_shelf().removeprefix("placements/")
HOSTILE = {
    "list": ([], "expected an object, got a list"),
    "no result": ({"result": None}, "expected an object, got null"),
    "missing": (broken_off(), "missing required field 'predicted_s'"),
    "infinite": (broken(predicted_s=float("inf")), "expected a number <= 1e+18"),
    "nan": (broken(step_s={"median": float("nan"), "p5": 1, "p95": 1}), "expected a number >= 0"),
    "long": (broken(predicted_s=10**400), "number out of range"),
    "negative": (broken(predicted_s=-1), "expected a number >= 0"),
    "true": (broken(num_segments=True), "expected a whole number"),
    "nothing alone": (broken(baseline_s={"cpu:0": 0.0}), "expected a number > 0"),
    "text steps": (broken(steps_s=["x"]), "expected a number, got a text"),
    "steps": (broken(steps_s={"0": 1}), "expected a list"),
    "many steps": (broken(steps_s=[1] * (MOST_STEPS + 1)), "length <="),
    "many names": (broken(busy_s={str(i): 1 for i in range(MOST_PARTS + 1)}), "length <="),
    "match": (broken(outputs_match="yes"), "expected true or false"),
    "origin": (broken(timeline=timeline(origin="dreamt")), "has origin 'dreamt'"),
    "kind": (with_spans({"kind": "sleep"}), "has kind 'sleep'"),
    "bars": (broken(timeline=timeline(spans={})), "expected a list"),
    "waits for nobody": (with_spans({"after": [7]}), "not there"),
    "waits for itself": (with_spans({"after": [0]}), "wait for each other"),
    "circle": (with_spans({"after": [1]}, {"after": [0]}), "wait for each other"),
    "before": (with_spans({"after": [-1]}), "not there"),
    "bar of another device": (with_spans({"device": "mars"}), "'mars', which its machine has not"),
    "other device": (broken(baseline_s={"mars": 1.0}), "'mars', which its machine has not"),
    "other op": (placing(zzz="cpu:0"), "other ops"),
    "placed": (placing(a=7), "expected a text, got a whole number"),
    "schedule": (broken(schedule={"segments": [7]}), "segments[0]: expected an object"),
    "bottleneck": (
        broken(
            samples_per_s=1.0,
            predicted_samples_per_s=1.0,
            bottleneck="x",
            predicted_bottleneck="x",
            latency_s={"median": 1, "p5": 1, "p95": 1},
            predicted_latency_s=1,
            loads_s={},
            samples=1,
            outputs_compared=1,
            depth=1,
            stages=1,
        ),
        "never busy",
    ),
    "goal": ({"about": {"shelf": SHELF, "placement": "x", "objective": "fame"}}, "value 'fame'"),
    "shelf": ({"about": {"shelf": "../..", "placement": "x"}}, "matching regex"),
    "other shelf": ({"about": {"shelf": "0" * 16 + "-" + "0" * 8, "placement": "x"}}, "not inside"),
    "started": ({"started_at": "now"}, "expected a number"),
}


def imported(content, name="runs/1-0000.json"):
    source = zipfile.ZipFile(io.BytesIO(pack(worked_on())))
    files = {n: source.read(n) for n in source.namelist()}
    return unpack(zipped({**files, name: json.dumps(content)}), any_model)


def good():
    return {"started_at": 1.0, "about": {"shelf": SHELF, "placement": "x"}, "result": result()}


def test_the_run_that_the_hostile_ones_are_made_of_is_a_good_one():
    (job,) = runs.finished(imported(good()))
    assert job.status == "done" and job.about.placement == "x"
    assert MACHINE.index.keys() == {"cpu:0", "cpu:1"}


@pytest.mark.parametrize("number", ["9", "9" * 20])
def test_an_imported_run_never_hides_one_that_is_started_later(number):
    project = imported(good(), f"runs/{number}-ffff.json")
    later = ran(project)
    assert jobs.latest(project.folder, "run").id == later


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_run_is_one_sentence(name):
    changes, said = HOSTILE[name]
    content = changes if isinstance(changes, list) else {**copy.deepcopy(good()), **changes}
    with pytest.raises(ValueError) as error:
        imported(content)
    text = str(error.value)
    assert said in text and "\n" not in text and len(text) < 300, text


@pytest.mark.parametrize("name", ["runs/x.json", "runs/1-0000.json/../x", "runs/../jobs/1.json"])
def test_runs_lie_nowhere_else(name):
    with pytest.raises(ValueError, match="no part of a project"):
        imported(good(), name)


@pytest.mark.parametrize("page", ["run", "timeline"])
def test_pages_show_an_imported_run_and_say_so(page):
    project = placed()
    jobs.note(project.folder, finished_run(project), imported=True)
    assert run_warnings.IMPORTED in texts(shown(project, page))
