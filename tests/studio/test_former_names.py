"""Projects from before a placer was renamed: they read as if it always had its present name."""

import json

import pytest
from msgspec import structs
from streamlit.testing.v1 import AppTest

import placement as pl
from pages.ui.session.current import snapshot
from placement.api.results.placing import CompareRow
from studio import snapshot as studio
from studio import standings
from studio.jobs import jobs, outcomes
from studio.project import store
from studio.project.facts import Facts
from studio.project.files import write_json
from tests.pages.going import go
from tests.pages.test_pages import APP, texts
from tests.workloads import diamond

OLD, NEW = "cp_sat", "branch_and_bound"


@pytest.fixture
def old(tmp_path, monkeypatch):
    """A project in which the placer of the former name placed twice, and a person went on."""
    monkeypatch.setenv("PLACEMENT_STUDIO_HOME", str(tmp_path))
    path = tmp_path / "small.json"
    path.write_text(json.dumps(diamond()))
    project = store.create()
    form = {"placer": OLD}
    project.change(model_kind="path", model=str(path), objective="latency", form=form)
    now = snapshot(project)
    found = pl.place(now.problem, NEW, settings={"max_iterations": 200})
    for name in (NEW, f"{NEW} 2", "best so far"):
        now.shelf.add(
            name, found.placement, NEW, structs.replace(studio.facts_of(found), placer=NEW)
        )
    now.shelf.add("mine", found.placement, "hand", Facts(start=f"{NEW} 2"))
    now.shelf.choose(f"{NEW} 2")
    index = now.shelf.folder / "index.json"
    index.write_text(index.read_text().replace(NEW, OLD))
    return project


def again(project):
    project = store.find(project.id)
    return snapshot(project)


def test_placements_come_under_the_present_name(old):
    now = again(old)
    assert now.named.name == f"{NEW} 2", "what was on the screen still is"
    made_by = {item.name: item.made_by for item in now.shelf.items}
    own = {NEW: NEW, f"{NEW} 2": NEW, "best so far": NEW, "mine": "hand"}
    assert {name: made_by[name] for name in own} == own
    assert not any(OLD in name for name in made_by)
    rows = {row.name: row for row in standings.standings(now)}
    assert rows["mine"].notes == (f"by hand, from {NEW} 2",)
    assert now.shelf.named(NEW).facts.placer == NEW


def test_the_list_is_written_once_and_names_of_people_stay(old):
    now = again(old)
    now.shelf.rename("mine", f"{OLD} by hand")
    stored = json.loads((now.shelf.folder / "index.json").read_text())
    assert OLD not in {i["made_by"] for i in stored["items"]}
    assert again(old).shelf.named(f"{OLD} by hand").made_by == "hand"


def test_a_taken_name_is_not_given_twice(old):
    now = again(old)
    index = json.loads((now.shelf.folder / "index.json").read_text())
    index["items"][-1]["name"] = NEW
    write_json(now.shelf.folder / "index.json", index)
    names = [item.name for item in again(old).shelf.items]
    assert len(set(names)) == len(names) and NEW in names


@pytest.mark.parametrize(
    "page", [pytest.param("compare", marks=pytest.mark.only_thorough), "place"]
)
def test_the_pages_show_the_present_name_alone(old, page):
    app = AppTest.from_file(str(APP), default_timeout=120)
    app.query_params["project"] = old.id
    go(app, page)
    assert not app.exception
    shown = " ".join(texts(app))
    chosen = [str(box.value) for box in app.selectbox]
    assert OLD not in shown and not any(OLD in value for value in chosen)
    if page == "place":
        assert app.selectbox(key=f"placer-{old.id}").value == NEW


def test_a_job_of_then_is_taken_over_under_the_present_name(old):
    now = again(old)
    rows = []
    pl.compare(now.model, now.problem, ["single"], emit=rows.append)
    row = {**next(r for r in rows if r["event"] == "row"), "placer": OLD}
    about = {"placers": [OLD], "shelf": now.shelf.folder.name, "objective": "latency"}
    folder = old.folder / "jobs" / "00000000000000000001-abcd"
    folder.mkdir(parents=True)
    record = {"verb": "compare", "argv": [], "pid": -1, "born_at": 0, "started_at": 0}
    write_json(folder / "job.json", record | {"about": about})
    ended = [row, {"event": "result", "rows": []}]
    (folder / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in ended))
    job = jobs.read(old.folder, folder.name)
    assert job.about.placers == (NEW,) and job.all(CompareRow)[0].placer == NEW
    assert f"the best is {NEW}" in outcomes.rows_taken_over(old, job)
