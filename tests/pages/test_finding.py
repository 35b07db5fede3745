"""How a search went: its curve from a job's events, its account, and what is drawn of them."""

import json
import os
import time
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

import placement as pl
from pages.ui.panels import charts, search_account
from pages.ui.session import choices
from pages.ui.session.current import snapshot
from studio.jobs import jobs
from studio.jobs import process as worker
from studio.jobs.event_log import decoded
from studio.jobs.records import About
from studio.project import pins, store
from studio.project.facts import Facts
from studio.project.files import write_json
from tests.pages.going import go
from tests.pages.test_pages import placed

APP = Path(__file__).parents[2] / "app.py"
ACCOUNT = "heft 36.7 ms, search saves 6.7 ms by moving 14 ops: 30 ms, at most 6 % above the optimum"


@pytest.fixture(autouse=True)
def own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("PLACEMENT_STUDIO_HOME", str(tmp_path))


def progress(seconds, best, bound=0.0, unit="s", **more):
    given = {"step": 0, "of": 0, "best": best, "bound": bound, "unit": unit, "note": ""}
    return {"event": "progress", **given, "seconds": seconds, **more}


def curve_of(events):
    return search_account.curve_of([decoded(event, "place") for event in events])


def result(seconds, value, lower_bound, **more):
    given = {"event": "result", "seconds": seconds, "value": value, "lower_bound": lower_bound}
    return {**given, "unit": "s", **more}


MEASURING = {"event": "progress", "what": "links", "step": 1, "of": 4}


def test_a_curve_keeps_the_changes_and_the_end():
    events = (
        MEASURING,
        progress(0.1, None),
        progress(0.2, 5.0, 1.0),
        progress(0.3, 5.0, 1.0),
        progress(0.4, 4.0, 1.0),
        progress(0.5, 4.0, 2.0),
        progress(0.9, 4.0, 2.0),
    )
    curve = curve_of(events)
    assert curve == search_account.Curve(
        (0.2, 0.4, 0.5, 0.9), (5.0, 4.0, 4.0, 4.0), (1, 1, 2, 2), "s"
    )
    ended = curve_of((*events, result(1.0, 3.9, 2.0)))
    assert (ended.seconds[-1], ended.best[-1], ended.bound[-1]) == (1.0, 3.9, 2.0)


@pytest.mark.parametrize("events", [(), (MEASURING,), (progress(0, None), progress(0.1, 3.0))])
def test_there_is_no_curve_with_fewer_than_two_values(events):
    assert curve_of(events) is None


def test_a_method_without_a_bound_of_its_own_gets_that_of_the_result():
    events = (progress(0.1, 5.0), progress(0.2, 4.0), result(0.3, 4.0, 3.0))
    assert curve_of(events).bound == (3.0, 3.0, 3.0)
    assert curve_of(events[:2]).bound == (0.0, 0.0)


def test_a_method_that_learns_also_has_its_mean_and_entropy_and_others_have_not():
    learned = {"evaluations": 128, "mean": 8.0, "entropy": 1.5}
    events = (
        progress(0.1, 5.0, **learned),
        progress(0.2, 5.0, **{**learned, "mean": 6.0}),
        result(0.3, 4.0, 3.0),
    )
    curve = curve_of(events)
    assert (curve.best, curve.mean) == ((5.0, 5.0, 4.0), (8.0, 6.0, None))
    assert curve.entropy == (1.5, 1.5, None)
    sampled = curve_of((progress(0.1, 5.0, mean=8.0), progress(0.2, 4.0, mean=8.0)))
    assert (sampled.mean, sampled.entropy) == ((), ())


def test_means_are_drawn_in_the_unit_of_the_best_and_entropy_at_an_axis_of_its_own():
    given = ((0.1, 0.2, 0.3), (0.05, 0.04, 0.04), (0.0,) * 3, "s")
    figure = charts.best_so_far(*given, mean=(0.09, 0.06, None), entropy=(2.0, 1.0, None))
    best, mean, entropy = figure.data
    assert [trace.name for trace in figure.data] == [
        "best so far",
        "mean of what it tries",
        "entropy",
    ]
    assert list(best.y) == pytest.approx([50.0, 40.0, 40.0])
    assert list(mean.y[:2]) == pytest.approx([90.0, 60.0]) and mean.y[2] is None
    assert entropy.yaxis == "y2" and figure.layout.yaxis2.side == "right"
    low, high = figure.layout.yaxis.range
    assert low < 40.0 and high > 90.0
    assert figure.layout.yaxis2.range[1] > 2.0


@pytest.mark.parametrize(
    ("unit", "best", "y", "title"),
    [
        ("s", (0.05, 0.04), [50.0, 40.0], "ms per step"),
        ("s", (5.0, 2.0), [5.0, 2.0], "s per step"),
        ("s", (5e-5, 4e-5), [50.0, 40.0], "µs per step"),
        ("ms", (50.0, 40.0), [50.0, 40.0], "ms per step"),
    ],
)
def test_the_curve_is_drawn_as_steps_in_a_unit_for_people(unit, best, y, title):
    figure = charts.best_so_far((0.1, 0.2), best, (best[1] / 2, best[1] / 2), unit)
    values, bound = figure.data
    assert list(values.y) == pytest.approx(y) and values.line.shape == "hv"
    assert list(bound.y) == pytest.approx([y[1] / 2] * 2) and bound.line.dash == "dash"
    assert figure.layout.yaxis.title.text == title
    assert figure.layout.title.text == "Best so far (predicted)"
    low, high = figure.layout.yaxis.range
    assert low < y[1] / 2 and high > y[0]


def test_no_bound_is_drawn_where_nothing_is_proven():
    figure = charts.best_so_far((0.1, 0.2), (2.0, 1.0), (0.0, 0.0), "s", "sample")
    assert len(figure.data) == 1 and not figure.layout.annotations
    assert figure.layout.yaxis.title.text == "s per sample"


def opened(project):
    app = AppTest.from_file(str(APP), default_timeout=120)
    app.query_params["project"] = project.id
    go(app, "place")
    assert not app.exception, app.exception[0].message
    return app


def found_by_auto(project, *events):
    """Put a place job that has ended into the project, as its files would tell it."""
    now = snapshot(project)
    about = {"placer": "auto", "shelf": now.shelf.folder.name, "objective": "latency"}
    record = {"verb": "place", "argv": [], "pid": -1, "born_at": 0, "started_at": 0, "about": about}
    folder = project.folder / "jobs" / f"{time.time_ns():020d}-0000"
    write_json(folder / "job.json", record)
    facts = {"account": ACCOUNT, "proven_optimal": False, "placement": now.placement.to_json()}
    lines = [*events, result(5.0, 0.030, 0.028, **facts)]
    (folder / "events.jsonl").write_text("".join(json.dumps(e) + "\n" for e in lines))
    return folder.name


def charts_on(app):
    return [json.loads(c.proto.spec) for c in app.get("plotly_chart")]


def captions(app):
    return "\n".join(str(c.value) for c in app.caption).replace("\\", "")


def test_the_account_and_the_curve_stay_with_the_placement():
    project = placed(machine="null-2")
    job = found_by_auto(project, progress(0.1, 0.05, 0.02), progress(0.2, 0.03, 0.028))
    app = opened(project)
    assert f"Found by auto in 5 s: {ACCOUNT}." in captions(app) and not charts_on(app)
    app.session_state["search-open"] = True
    app.run()
    [chart] = charts_on(app)
    assert chart["data"][0]["y"] == pytest.approx([50.0, 30.0, 30.0])
    assert chart["data"][1]["y"] == pytest.approx([20.0, 28.0, 28.0])
    facts = snapshot(project).named.facts
    assert (facts.account, facts.job) == (ACCOUNT, job)
    next(s for s in app.selectbox if s.label == "Placement").set_value("heft").run()
    assert ACCOUNT not in captions(app) and not charts_on(app)


def test_while_a_method_searches_its_curve_grows_and_its_words_change():
    project = store.create()
    project.change(machine="null-2")
    folder = project.folder / "jobs" / f"{time.time_ns():020d}-0000"
    process = {"pid": os.getpid(), "born_at": worker.born_at(os.getpid())}
    about = {"placer": "auto", "time_limit_s": 5.0}
    record = {"verb": "place", "argv": [], "started_at": 0, "about": about, **process}
    write_json(folder / "job.json", record)
    app = opened(project)
    assert search_account.COMPILING in captions(app) and not charts_on(app)
    lines = [progress(0.1, 0.05, 0.02, note="heft 50 ms"), progress(1.0, 0.03, note="search 30 ms")]
    for number, shown in ((1, []), (2, [50.0, 30.0])):
        told = "".join(json.dumps(e) + "\n" for e in lines[:number])
        (folder / "events.jsonl").write_text(told)
        assert not app.run().exception and search_account.COMPILING not in captions(app)
        assert [c["data"][0]["y"] for c in charts_on(app)] == ([shown] if shown else [])
    assert "search 30 ms." in captions(app) and "heft 50 ms" not in captions(app)


def test_a_method_that_told_one_value_gets_no_chart():
    project = placed(machine="null-2")
    found_by_auto(project, progress(0.1, 0.05, 0.02))
    app = opened(project)
    assert ACCOUNT in captions(app) and not charts_on(app)


def test_a_copied_project_without_the_job_shows_the_account_alone():
    project = store.create()
    project.change(machine="null-2")
    now = snapshot(project)
    facts = Facts(seconds=5.0, account=ACCOUNT, job="gone")
    now.shelf.add("auto", pl.place(now.problem, "single").placement, "auto", facts)
    app = opened(project)
    assert ACCOUNT in captions(app) and not charts_on(app)


def test_an_account_of_times_that_have_changed_says_so():
    project = store.create()
    project.change(machine="null-2")
    now = snapshot(project)
    found = pl.place(now.problem, "single").placement
    for name, problem in (("same", now.problem.fingerprint), ("older", "0123456789abcdef")):
        facts = Facts(seconds=5.0, account=ACCOUNT, problem=problem)
        now.shelf.add(name, found, "auto", facts)
        shown = captions(opened(project))
        assert ("before pins, measured times or the machine changed" in shown) == (name == "older")
        assert (ACCOUNT in shown) == (name == "same")


def test_an_account_of_another_goal_proves_nothing_of_this_one():
    project = store.create()
    project.change(machine="null-2")
    now = snapshot(project)
    found = pl.place(now.problem, "single").placement
    facts = Facts(
        seconds=5.0, problem=now.problem.fingerprint, objective="latency", proven_optimal=True
    )
    now.shelf.add("auto", found, "auto", facts)
    for goal in ("latency", "throughput"):
        project.change(objective=goal)
        shown = captions(opened(project))
        assert ("proven to be the best possible" in shown) == (goal == "latency"), goal
        assert ("for another goal, shortest step" in shown) == (goal != "latency"), goal


def test_an_account_of_other_pins_is_not_of_this_problem(monkeypatch):
    monkeypatch.setattr(choices, "may_write", lambda: True)
    project = store.create()
    project.change(machine="null-2")
    op = snapshot(project).model.graph.ops[0].name
    pins.pin(snapshot(project), [op])
    now = snapshot(project)
    found = pl.place(now.pinned_problem, "single")
    facts = Facts(seconds=5.0, account=ACCOUNT, problem=found.problem, num_pinned=1)
    now.shelf.add("auto", found.placement, "auto", facts)
    # One session: another would look on, and not write as what is set above says.
    app = opened(project)
    assert ACCOUNT in captions(app)
    pins.unpin(snapshot(project), [op])
    shown = captions(app.run())
    assert ACCOUNT not in shown and "before pins" in shown


def test_an_account_of_a_pinned_order_is_of_the_problem_with_that_order(monkeypatch):
    monkeypatch.setattr(choices, "may_write", lambda: True)
    project = store.create()
    project.change(machine="null-2")
    now = snapshot(project)
    ops = tuple(op.name for op in now.model.graph.ops[:2])
    pins.pin_order(now, ops)
    now = snapshot(project)
    assert now.pinned_problem.fingerprint != now.problem.fingerprint
    found = pl.place(now.pinned_problem, "single")
    facts = Facts(seconds=5.0, account=ACCOUNT, problem=found.problem, num_pinned=0)
    now.shelf.add("auto", found.placement, "auto", facts)
    assert ACCOUNT in captions(opened(project))


def test_a_method_of_a_comparison_gets_no_curve_of_all_methods():
    project = store.create()
    project.change(machine="null-2")
    now = snapshot(project)
    folder = project.folder / "jobs" / f"{time.time_ns():020d}-0000"
    record = {"verb": "compare", "argv": [], "pid": -1, "born_at": 0, "started_at": 0}
    write_json(folder / "job.json", {**record, "about": {"collected": True}})
    events = (progress(0.1, 5.0), progress(0.2, 4.0), {"event": "result", "rows": []})
    (folder / "events.jsonl").write_text("".join(json.dumps(e) + "\n" for e in events))
    facts = Facts(seconds=5.0, account=ACCOUNT, job=folder.name)
    now.shelf.add("peft", pl.place(now.problem, "single").placement, "peft", facts)
    app = opened(project)
    assert "Found by peft in 5 s" in captions(app) and not charts_on(app)
    assert "fault" not in "".join(e.value for e in app.error)


def a_job(*events, **about):
    told = tuple(decoded(event, "place") for event in events)
    return jobs.Job(Path(), "place", (), time.time(), About(**about), told, 0, "running", "")


def test_a_search_without_steps_tells_how_much_of_its_time_is_gone():
    assert a_job(progress(2.0, 1.0), time_limit_s=5.0).progress == (0.4, "2 s of 5 s")
    assert a_job(progress(9.0, 1.0), time_limit_s=5.0).progress == (1.0, "5 s of 5 s")
    assert a_job(progress(2.0, 1.0)).progress == (0.0, "2 s")
    assert a_job(progress(2.0, 1.0, step=1, of=4)).progress == (0.25, "1 of 4")
    assert a_job(MEASURING, time_limit_s=5.0).progress == (0.25, "Links")
