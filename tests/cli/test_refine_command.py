"""`run --refine` and what takes it back, with runs in a world that is known."""

import json
import os
from dataclasses import replace

import pytest

import placement as pl
from placement.advice import refining
from placement.api.problems import as_measured
from placement.core.load import Load
from placement.core.profile import runs_of
from profiling.execution.execute import emulated
from profiling.measuring.store import ProfileStore
from tests.command import answer, call_here, refused
from tests.lanes import profile_of, random_schedule, run_of, with_kinds
from tests.profiling.live import diamond, problem_of

QUIET = Load(1.0, 0.0, 2)


@pytest.fixture
def stored(tmp_path, monkeypatch):
    """The diamond's file, and the profile of it that is stored."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("two lanes need two cores")
    monkeypatch.setenv("PLACEMENT_STUDIO_HOME", str(tmp_path / "home"))
    model = diamond(tmp_path)
    machine = pl.machine_for(model, pl.machine(lanes=2))
    profile = profile_of(problem_of(model, machine))
    ProfileStore().put(profile)
    return tmp_path / "small.onnx", profile


def running(monkeypatch, profile, load=QUIET, times=1.5):
    """Let kernels take so many times as long as a profile says."""

    def run(model, problem, placement, options, **_):
        predicted = pl.simulate(problem, placement)
        slower = dict.fromkeys((op.kind for op in problem.kernels.ops), times)
        world = with_kinds(replace(problem, costs=profile.costs()), slower)
        took = run_of(world, predicted.schedule)
        done = emulated(problem, predicted.schedule, 3, lambda event: None)
        timeline = replace(done.timeline, origin="measured", step_s=took.step_s)
        steps = (took.step_s,) * 3
        return predicted, replace(
            done, timeline=timeline, step_s=steps, observed=took.observed, load=load
        )

    monkeypatch.setattr(pl, "run", run, raising=False)


def kept(profile):
    return ProfileStore().get(profile.graph, profile.machine.fingerprint)


def test_runs_refine_the_stored_times_until_they_are_taken_back(stored, monkeypatch):
    path, profile = stored
    running(monkeypatch, profile)
    run = ("run", path, "--lanes", 2, "--refine", "--placer")
    first = answer(*run, "round_robin")
    measured_s, told = first["step_s"]["median"], first["refined"]
    assert told["runs"] == 1 and "held_out_before" in told
    assert abs(told["after_s"] - measured_s) < abs(told["before_s"] - measured_s)
    (known,) = runs_of(kept(profile))
    assert known.placement == "round_robin" and known.step_s == measured_s
    second = answer(*run, "single")
    assert second["refined"]["runs"] == 2
    assert second["refined"]["held_out_after"] <= second["refined"]["held_out_before"]
    shown = answer("profile", path, "--lanes", 2)
    assert [text.split(",")[0] for text in shown["refined_by"]] == ["round_robin", "single"]
    assert "refined_by" not in answer("profile", path, "--lanes", 2, "--as-measured")
    assert kept(profile) == profile


@pytest.fixture
def meanwhile(stored, monkeypatch):
    """Refine by a run while `what` is done between reading the times and keeping them."""
    path, profile = stored
    model, machine = pl.load(str(path)), profile.machine
    problem = problem_of(model, machine)
    plain, pending = refining.refined_by, []

    def run(name):
        return replace(run_of(problem, random_schedule(problem, 0), name), placement=name)

    def refined_by(*given):
        found = plain(*given)
        if pending:
            pending.pop()()
        return found

    monkeypatch.setattr(refining, "refined_by", refined_by)

    def refine(name, what):
        pending.append(what)
        pl.refine(model, machine, run(name))
        return [run.placement for run in runs_of(kept(profile))]

    return refine, lambda name: pl.refine(model, machine, run(name))


def test_of_two_runs_that_refine_at_once_both_count(meanwhile):
    refine, plainly = meanwhile
    assert refine("first", lambda: plainly("second")) == ["second", "first"]


def test_times_that_are_taken_back_or_measured_anew_meanwhile_stay_so(stored, meanwhile):
    _, profile = stored
    refine, plainly = meanwhile
    plainly("before")
    assert refine("after", lambda: as_measured(kept(profile))) == ["after"]
    anew = replace(profile, all_cores_s=7.0)
    assert refine("anew", lambda: ProfileStore().put(anew)) == ["anew"]
    plainly("before")
    assert as_measured(profile) == kept(profile) == anew


def test_a_person_is_told_which_segments_explain_a_run(stored, monkeypatch):
    path, profile = stored
    running(monkeypatch, profile, times=4.0)
    said = call_here("run", path, "--lanes", 2, "--placer", "round_robin").stdout
    assert "Explains" in said and "longer than predicted" in said and "efined" not in said
    said = call_here("run", path, "--lanes", 2, "--placer", "round_robin", "--refine").stdout
    assert "Refined by 1 live run: predicted" in said


def test_a_run_on_a_busy_computer_refines_nothing_and_says_why(stored, monkeypatch):
    path, profile = stored
    running(monkeypatch, profile, Load(1.0, 0.9, 2))
    found = answer("run", path, "--lanes", 2, "--placer", "round_robin", "--refine")
    assert "other programs computed" in found["refined_note"] and "refined" not in found
    assert kept(profile) == profile


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (("--analytic",), "--analytic"),
        (("--objective", "throughput"), "single steps"),
        (("--profile", "FILE"), "leave out --profile"),
    ],
)
def test_only_stored_times_are_refined(stored, tmp_path, more, why):
    path, profile = stored
    file = tmp_path / "profile.json"
    file.write_text(json.dumps(profile.to_json()))
    more = [str(file) if part == "FILE" else part for part in more]
    said = refused("run", path, "--lanes", 2, "--placer", "single", "--refine", *more)
    assert why in said
