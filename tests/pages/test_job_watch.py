"""What a browser is told of a job past Streamlit."""

import json
import sys
import time

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
    assert found["steps_ms"] == [12.35] and found["stamp"] == 1
    assert found["draw_s"] == job_watch.MEASURING_DRAW_S


def test_a_search_is_drawn_more_often(going):
    found = job_watch.told(going(event="progress", seconds=1.0, best=0.1))
    assert found["draw_s"] == job_watch.SEARCHING_DRAW_S < job_watch.MEASURING_DRAW_S


def test_only_jobs_that_a_session_was_shown_are_told_of(going, monkeypatch):
    job = going(event="step", seconds=0.01)
    monkeypatch.setattr(job_watch, "watched", {"session-job": job.folder})
    asked = TestClient(Starlette(routes=[job_watch.route()]))
    answer = asked.get(f"{job_watch.address()}/session-job")
    assert answer.json()["stamp"] == 1 and answer.headers["cache-control"] == "no-store"
    assert asked.get(f"{job_watch.address()}/{job.id}").status_code == 404
