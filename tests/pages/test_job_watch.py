"""What a browser is told of a job past Streamlit."""

import json
import sys
import time
from dataclasses import replace

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from pages.ui.shell import job_watch
from studio.jobs import jobs
from studio.jobs.records import About

SAY = "import json, sys, time; print(sys.argv[2], flush=True); time.sleep(60)"


@pytest.fixture
def going(tmp_path):
    """Start a job that says one thing and lives; it as it stands then."""
    started = []

    def start(**event):
        command = (sys.executable, "-c", SAY)
        told = json.dumps(event)
        started.append(jobs.start(tmp_path, "run", [told], About(steps=4), command=command))
        while not (job := jobs.read(tmp_path, started[-1])).events:
            time.sleep(0.02)
        return job

    yield start
    for job_id in started:
        jobs.stop(tmp_path, job_id)


def test_a_run_is_told_with_its_steps_and_looked_at_rarely(going):
    found = job_watch.told(going(event="step", seconds=0.0123456))
    assert found["live"] and found["share"] == 0.25 and found["text"] == "Running: Step 1 of 4"
    assert found["steps_s"] == [0.01235] and found["num_steps"] == found["stamp"] == 1
    assert found["look_s"] == job_watch.MEASURING_LOOK_S


@pytest.mark.parametrize(("age_s", "draw_s"), [(1, 2), (20, 10), (600, 20)])
def test_a_measurement_is_drawn_the_more_rarely_the_longer_it_takes(going, age_s, draw_s):
    job = going(event="step", seconds=0.01)
    aged = replace(job, started_at=time.time() - age_s)
    assert job_watch.told(aged)["draw_s"] == pytest.approx(draw_s, abs=0.1)


def test_a_search_is_drawn_often_all_along(going):
    job = going(event="progress", seconds=1.0, best=0.1)
    aged = replace(job, started_at=time.time() - 600)
    assert job_watch.told(aged)["draw_s"] == job_watch.SEARCHING_DRAW_S


def test_a_search_that_measures_what_it_found_is_left_alone(going):
    job, measured = going(event="progress", seconds=1.0), going(event="step", seconds=0.01)
    both = replace(job, events=job.events + measured.events)
    assert job_watch.told(both)["look_s"] == job_watch.MEASURING_LOOK_S


def test_of_many_steps_the_last_are_told_and_how_many_there_were(going):
    job = going(event="step", seconds=0.01)
    found = job_watch.told(replace(job, events=1000 * job.events))
    assert len(found["steps_s"]) == job_watch.MOST_STEPS and found["num_steps"] == 1000


def test_a_job_of_another_version_is_told_of(going):
    found = job_watch.told(replace(going(event="step", seconds=0.01), verb="dream"))
    assert found["text"] == "dream: Step 1 of 4"


def test_only_jobs_that_a_session_was_shown_are_told_of(going, monkeypatch):
    job = going(event="step", seconds=0.01)
    monkeypatch.setattr(job_watch, "watched", {"session-job": job.folder})
    asked = TestClient(Starlette(routes=[job_watch.route()]))
    answer = asked.get(f"{job_watch.address()}/session-job")
    assert answer.json()["stamp"] == 1 and answer.headers["cache-control"] == "no-store"
    assert asked.get(f"{job_watch.address()}/{job.id}").status_code == 404


def test_a_job_that_is_gone_is_told_as_ended(going, monkeypatch, tmp_path):
    monkeypatch.setattr(job_watch, "watched", {"session-job": tmp_path / "jobs" / "gone"})
    asked = TestClient(Starlette(routes=[job_watch.route()]))
    assert asked.get(f"{job_watch.address()}/session-job").json()["live"] is False
