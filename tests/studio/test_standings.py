"""How placements stand: bounds, proofs and measurements that belong to this very problem."""

import json
from dataclasses import replace

import pytest
from msgspec import structs

import placement as pl
from pages.ui.compare import board
from pages.ui.session.current import snapshot
from placement.bounds.lower_bound import lower_bound
from placement.core.placement import Placement
from studio import snapshot as studio
from studio import standings
from studio.jobs import event_log, jobs, kinds, outcomes, runs
from studio.jobs.records import About
from studio.leaders import leaders
from studio.project import store
from studio.project.facts import FILE, HAND, Facts, origin_of
from studio.project.files import write_json
from tests.pages.test_pages import finished_run
from tests.workloads import node, workload


@pytest.fixture(autouse=True)
def own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("PLACEMENT_STUDIO_HOME", str(tmp_path))


def opened(**settings):
    project = store.create()
    project.change(machine="null-2", model="onnx-squeezenet", **settings)
    return again(project)


def again(project):
    return snapshot(project)


def placed(now, placer, **facts):
    found = pl.place(now.problem, placer)
    kept = structs.replace(studio.facts_of(found), **facts)
    now.shelf.add(placer, found.placement, placer, kept)
    return found


def row_of(now, name):
    return next(row for row in standings.standings(now) if row.name == name)


def test_the_best_comes_first_and_what_is_not_allowed_last():
    now = opened()
    for placer in ("round_robin", "heft", "single"):
        placed(now, placer)
    values = [row.value_s for row in standings.standings(again(now.project))]
    assert values == sorted(values) and len(values) == 3


def test_a_row_is_predicted_for_the_goal_of_now_whatever_it_was_found_for():
    now = opened()
    found = placed(now, "heft")
    assert row_of(now, "heft").value_s == found.value and row_of(now, "heft").notes == ()
    now.project.change(objective="throughput")
    later = again(now.project)
    row = row_of(later, "heft")
    assert row.value_s == pl.simulate(later.problem, found.placement).value != found.value
    assert row.notes == ("found for the other goal",)
    assert row.bound_s == studio.bound_of(later)


def test_a_bound_counts_for_all_rows_of_its_problem_and_for_no_other():
    now = opened()
    value_s = placed(now, "heft").value
    placed(now, "single")
    better = 0.5 * (value_s + studio.bound_of(now))
    placed(now, "heft", lower_bound=better)
    assert row_of(now, "single").bound_s == pytest.approx(better)
    placed(now, "heft", lower_bound=better, problem="another")
    assert row_of(now, "single").bound_s == pytest.approx(studio.bound_of(now))
    assert row_of(now, "heft").notes == ("found with other pins or times",)


def test_bounds_of_one_call_each_do_not_hold_for_several_calls(tmp_path):
    """A device that is called twice, or has replicas, may be faster than the bound of the others.

    What stands for the others does not depend on which placement is on the screen.
    """
    path = tmp_path / "one.json"
    path.write_text(json.dumps(workload([node(1, 50, 4)], [])))
    project = store.create()
    project.change(model_kind="path", model=str(path), objective="throughput")
    now = again(project)
    plain = now.problem.placement_of([0])
    proof = Facts(problem=now.problem.fingerprint, lower_bound=5.0, unit="ms")
    now.shelf.add("plain", plain, "single", proof)
    for name, more in (("twice", {"calls": {"acc:0": 2}}), ("two", {"replicas": {"acc:0": 2}})):
        now.shelf.add(
            name, replace(plain, **more), "annealing_split", structs.replace(proof, problem="")
        )
        later = again(project)
        bound_s = lower_bound(later.problem, later.placement)
        assert later.named.name == name
        assert studio.bound_of(later) == row_of(later, name).bound_s == bound_s
        assert row_of(later, "plain").bound_s == studio.common_bound_s(later) == 5e-3
    assert bound_s <= 2e-3


def test_only_what_meets_its_bound_is_the_best_possible():
    now = opened()
    value_s = placed(now, "heft").value
    placed(now, "heft", lower_bound=value_s)
    row = row_of(now, "heft")
    assert row.gap == pytest.approx(0.0) and row.is_best_possible
    placed(now, "heft", lower_bound=0.5 * value_s)
    assert not row_of(now, "heft").is_best_possible


def test_a_run_is_found_by_what_ran_and_an_edit_afterwards_is_told():
    now = opened()
    placed(now, "heft")
    finished_run(now.project, predicted_s=0.027)
    measured = row_of(again(now.project), "heft").measured
    assert measured.seconds == 0.030 and not measured.edited
    assert measured.error == pytest.approx(now.simulated.value / 0.030 - 1)

    device_of = dict(now.placement.device_of)
    first = next(iter(device_of))
    names = [d.name for d in now.machine.devices]
    device_of[first] = next(name for name in names if name != device_of[first])
    copy = Placement(now.placement.graph, now.placement.machine, device_of)
    now.shelf.replace("heft", copy)
    measured = row_of(again(now.project), "heft").measured
    assert measured.edited and measured.error == -0.1 and not measured.scattered

    finished_run(now.project, step_s={"median": 0.030, "p5": 0.020, "p95": 0.090})
    row = row_of(again(now.project), "heft")
    assert row.measured.scattered and "trust neither" in " ".join(board.notes_of(row))

    name = now.shelf.add("mine", now.placement, HAND, Facts(start="heft"))
    row = row_of(again(now.project), name)
    assert row.measured.edited is False and row.notes == ("by hand, from heft",)
    assert "one of heft, which is the same placement" in " ".join(board.notes_of(row))
    # The same words are said once, for all that they are true of.
    twice = [row, replace(row, name="yours")]
    assert list(board.by_note(twice).values()) == [[name, "yours"]]


def test_one_of_several_that_are_as_good_is_named_the_best_by_all_who_tell():
    """By rounding alone one would be first here and another one there."""
    now = opened()
    found = placed(now, "heft")
    for name in ("auto", "zeta"):
        now.shelf.add(name, found.placement, name, studio.facts_of(found), show=False)
    now.shelf.add("by hand", found.placement, HAND, show=False)
    job = comparison(again(now.project), rows_of(now, "heft"))
    later = again(now.project)
    told = outcomes.rows_taken_over(later.project, job, kinds.known(later, job))
    assert "the best is auto, predicted" in told and "as good: heft, zeta, by hand" in told
    said = board.verdict(standings.standings(again(now.project)), "s")
    assert "**auto**" in said and "as good: heft, zeta, by hand" in said
    assert leaders({"b": 1.0, "a": 1.0 + 1e-12, "c": 1.1}) == ("a", "b")


def test_what_was_made_by_hand_under_a_methods_name_is_told_apart_from_it():
    now = opened()
    by_hand, found = (pl.place(now.problem, placer) for placer in ("round_robin", "heft"))
    assert found.value < by_hand.value
    now.shelf.add("heft", by_hand.placement, HAND, show=False)
    now.shelf.add("heft", found.placement, "heft", studio.facts_of(found), show=False)
    job = comparison(again(now.project), rows_of(now, "heft"))
    later = again(now.project)
    known = kinds.known(later, job)
    assert {name: known[name].origin.words for name in known} == {"heft": "made by hand"}
    told = outcomes.rows_taken_over(later.project, job, known)
    assert "the best is heft, predicted" in told and "as good" not in told

    def before(value_s, made_by=HAND):
        return {"heft": outcomes.Known(value_s, origin_of(made_by))}

    (row,) = (event_log.decoded(one, "compare") for one in rows_of(now, "heft"))
    said = outcomes.best_in_words([row], before(found.value))
    assert "the best is heft, predicted" in said and "as good: heft of before" in said
    said = outcomes.best_in_words([row], before(found.value / 2))
    assert "the best is heft of before, made by hand" in said
    said = outcomes.best_in_words([row], before(found.value / 2, FILE))
    assert "the best is heft of before, from a file" in said
    assert "the best method is heft, predicted" in said


def test_a_run_of_another_computer_is_shown_but_measures_nothing_here():
    now = opened()
    placed(now, "heft")
    job_id = finished_run(now.project)
    jobs.note(now.project.folder, job_id, imported=True)
    again_now = again(now.project)
    assert [job.id for job in runs.here(again_now)] == [job_id]
    assert row_of(again_now, "heft").measured is None


def test_runs_for_another_goal_or_machine_are_not_shown():
    now = opened()
    placed(now, "heft")
    finished_run(now.project)
    now.project.change(objective="throughput")
    assert row_of(again(now.project), "heft").measured is None
    now.project.change(objective="latency", machine="two-lanes")
    assert runs.here(again(now.project)) == ()


def comparison(now, rows, status="done"):
    """A job of the verb `compare` that has ended, with these rows."""
    folder = now.project.folder / "jobs" / "00000000000000000001-0000"
    about = {
        "placers": ("heft", "single", "metis"),
        "shelf": now.shelf.folder.name,
        "objective": now.settings.objective,
    }
    record = {"verb": "compare", "argv": [], "pid": -1, "born_at": 0, "started_at": 0}
    write_json(folder / "job.json", {**record, "about": about})
    told = tuple(event_log.decoded(row, "compare") for row in rows)
    return jobs.Job(folder, "compare", (), 0.0, About(**about), told, 0, status, "")


def rows_of(now, *names):
    rows = []
    pl.compare(now.model, now.problem, names, emit=rows.append)
    return [row for row in rows if row["event"] == "row"]


def test_rows_of_a_stopped_comparison_are_kept_and_the_screen_stays_as_it_is():
    now = opened()
    now.shelf.add("mine", placed(now, "round_robin").placement, HAND)
    job = comparison(now, rows_of(now, "heft", "single"), "cancelled")
    told = outcomes.rows_taken_over(now.project, job)
    later = again(now.project)
    assert {"heft", "single", "mine"} <= {i.name for i in later.shelf.items}
    assert later.named.name == "mine"
    assert "Compared 2 methods" in told and "Stopped after 2 of 3" in told
    facts = later.shelf.named("single").facts
    assert facts.problem == later.problem.fingerprint and facts.job == job.id


def test_a_comparison_keeps_a_better_result_and_that_of_another_goal():
    now = opened()
    rows = rows_of(now, "heft")
    found = placed(now, "heft")
    shelf_value = found.value
    better = {**rows[0], "value": rows[0]["value"] * 1.5}
    outcomes.rows_taken_over(now.project, comparison(now, [better]))
    assert now.shelf.named("heft").facts.value == shelf_value
    other = {**rows[0], "objective": "throughput", "problem": "other"}
    outcomes.rows_taken_over(now.project, comparison(now, [other]))
    assert {"heft", "heft, most samples"} <= {i.name for i in now.shelf.items}


def test_what_a_placer_says_when_it_finds_nothing_is_kept_and_alone_is_no_comparison():
    now = opened()
    failed = {"event": "row", "placer": "metis", "error": "The library is not installed."}
    failed |= {"value": None, "unit": "s"}
    told = outcomes.rows_taken_over(now.project, comparison(now, [failed]))
    assert told == "No method found a placement."


def test_notes_say_what_figures_do_not():
    row = standings.Standing(
        "a", "heft", 1.0, 0.5, 0.1, standings.Measured(1.0, 0.0, True, True), ("too big",), ("x",)
    )
    assert board.notes_of(row) == [
        "not allowed: too big",
        "placed again by its method since it was measured",
        "its run was emulated, not measured",
        "x",
    ]
    assert row.gap == 1.0
    scattered = standings.Measured(1.0, 0.0, False, False, scattered=True, of="b")
    assert board.notes_of(replace(row, broken=(), notes=(), measured=scattered)) == [
        "its run was one of b, which is the same placement",
        "the steps of its run scattered, so trust neither time nor error; run again",
    ]
    assert board.notes_of(replace(row, made_by=HAND))[1] == "edited since it was measured"
    of_file = board.notes_of(replace(row, made_by=FILE))
    assert of_file[1] == "opened from another file since it was measured"


def test_jobs_of_both_kinds_are_named_on_the_pages():
    for verb in ("compare", "what-if"):
        assert kinds.WORDS[verb] and kinds.REASONS[verb]
