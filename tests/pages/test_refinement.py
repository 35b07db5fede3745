"""The Run page says which segments explain a run, and lets it refine predictions."""

from dataclasses import replace

import pytest

from pages.ui.session.current import snapshot
from placement.core.profile import Profile, runs_of
from placement.core.timeline import Observed, PartTime
from placement.schedule.simulated import simulate
from profiling.measuring.store import ProfileStore
from studio.jobs import jobs, refining
from tests.pages.test_pages import checked, finished_run, metric, own_home, placed, shown, texts

__all__ = ["own_home"]
SLOWER = 1.5


def profile_of(now):
    """The estimates as if they had been measured."""
    problem = now.problem
    costs, num = problem.costs, len(problem.machine.devices)
    names = [op.name for op in problem.graph.ops]
    return Profile(
        graph=problem.graph.fingerprint,
        machine=now.stated_machine,
        kernels=problem.kernels,
        sources=tuple(tuple(names[i] for i in ops) for ops in problem.sources),
        compute_s=tuple(map(tuple, costs.compute_s.tolist())),
        spread=tuple((0.0,) * num for _ in names),
        call_s=tuple(costs.call_s.tolist()),
        step_s=(None,) * num,
        measured_at="2026-01-02T03:04:05+00:00",
    )


@pytest.fixture
def ran():
    """A project whose model was measured, and a run in which all took half as long again."""
    project = placed()
    ProfileStore().put(profile_of(snapshot(project)))
    now = snapshot(project)
    found = simulate(now.problem, now.placement)
    spans = {s.segment: s for s in found.timeline.spans if s.kind == "compute"}
    parts = tuple(part(SLOWER * spans[i].duration_s) for i in range(len(spans)))
    seen = Observed(20, parts, (part(0.0),) * len(parts), (0.0,) * len(parts))
    step_s = SLOWER * found.value
    finished_run(
        project,
        step_s={"median": step_s, "p5": step_s, "p95": step_s},
        predicted_s=found.value,
        timeline={**found.timeline.to_json(), "origin": "measured"},
        predicted_timeline=found.timeline.to_json(),
        observed=seen.to_json(),
        schedule=found.schedule.to_json(),
        placement=now.placement.to_json(),
    )
    return project


def part(seconds):
    return PartTime(seconds, 0.99 * seconds, 1.01 * seconds)


def button(app, label):
    return next(b for b in app.button if label in b.label)


def test_a_run_tells_its_differences_and_refines_until_it_is_taken_back(ran):
    project = ran
    app = shown(project, "run")
    assert "longer than predicted" in texts(app)
    assert not any(m.label.startswith("Predicted, ") for m in app.metric)
    checked(button(app, "Refine predictions").click().run())
    known = runs_of(snapshot(project).profile)
    assert [run.placement for run in known] == [snapshot(project).named.name]
    assert "Refined by 1 live run" in texts(app)
    before, after = (metric(app, f"Predicted, {how}").value for how in BY)
    assert before != after and button(app, "Refine predictions").disabled
    assert "refined by 1 live run" in snapshot(project).costs
    checked(button(app, "Take back").click().run())
    assert not runs_of(snapshot(project).profile)
    assert "as they were measured again" in texts(app)


BY = ("as it was measured", "refined by runs")


def test_refined_predictions_come_nearer_to_the_run(ran):
    project = ran
    now = snapshot(project)
    (job_id,) = jobs.listed(project.folder, "run")
    job = jobs.read(project.folder, job_id)
    assert refining.predictions(now, job, now.profile) is None
    refining.refine(now, job)
    now = snapshot(project)
    before_s, after_s = refining.predictions(now, job, now.profile)
    assert before_s == pytest.approx(job.ran.predicted_s)
    measured_s = job.ran.step_s.median
    assert measured_s > after_s > before_s and after_s - before_s > 0.5 * (measured_s - before_s)


def test_a_run_that_cannot_refine_says_why(ran):
    project = ran
    now = snapshot(project)
    (job_id,) = jobs.listed(project.folder, "run")
    job = jobs.read(project.folder, job_id)
    assert refining.why_not(now, job) == ""
    ProfileStore().clear()
    assert "measure it first" in refining.why_not(snapshot(project), job)
    imported = replace(job, about=type(job.about)(shelf=job.about.shelf, imported=True))
    assert "another" in refining.why_not(now, imported)
