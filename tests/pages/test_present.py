"""What is said before an audience: what is predicted, and what a run of the same placement took."""

import re

import pytest

from pages.ui.desk import present
from pages.ui.session import choices
from pages.ui.timeline.timelines import Measured
from placement.core import formatting
from studio import editing
from studio.jobs import runs
from tests.pages.test_pages import checked, finished_run, opened, own_home, snapshot, texts
from tests.pages.test_yardstick import REASON, measured

__all__ = ["own_home"]
# A run takes so many times as long as was predicted.
SLOWER = 4.0
TOOK = r"; (it|its segment of \d+ ops) took (.*) in the measured step"


@pytest.fixture
def presented(monkeypatch):
    """A project with a run of the placement on the screen, of long segments and a short one."""
    _, project = opened("studio", model="onnx-squeezenet", machine="null-2")
    ops = tuple(snapshot(project).placement.device_of)
    move(project, ops[len(ops) // 2])
    timeline = snapshot(project).simulated.timeline.to_json()
    for span in timeline["spans"]:
        span["start_s"], span["end_s"] = SLOWER * span["start_s"], SLOWER * span["end_s"]
    finished_run(project, timeline={**timeline, "origin": "measured"})

    def newest(now):
        job = runs.here(now)[0]
        return Measured(job, job.ran)

    monkeypatch.setattr(present.timelines, "chosen", newest)
    monkeypatch.setattr(choices, "kept", lambda key, default: default)
    return project


def move(project, op):
    """Put an op on the other device."""
    now = snapshot(project)
    home = now.placement.device_of[op]
    editing.edit(now, [op], next(d.name for d in now.machine.devices if d.name != home))


def test_a_stop_says_what_is_predicted_and_what_its_segment_took(presented):
    now = snapshot(presented)
    took, stops = set(), present.stops_of(now)
    for stop in stops:
        told, predicted_s = (
            present.stop_in_words(now, stop),
            formatting.seconds(stop.duration_s, "s"),
        )
        assert "predicted to" in told and predicted_s in told, told
        if found := re.search(
            r"; (it|its segment of \d+ ops?) took (.*) in the measured step", told
        ):
            took.add(found[1].partition(" ")[0])
            same = formatting.seconds(SLOWER * stop.duration_s, "s")
            assert (found[2] == same) == (found[1] == "it"), told
    assert took == {"it", "its"}
    assert re.match(r".* per step predicted .*; measured 30 ms; → ", present.overview_of(now, 3))


def test_the_run_of_another_placement_says_nothing_of_this_one(presented):
    move(presented, next(iter(snapshot(presented).placement.device_of)))
    now = snapshot(presented)
    told = [present.stop_in_words(now, stop) for stop in present.stops_of(now)]
    assert not any("took" in one for one in (*told, present.overview_of(now, len(told))))


def test_what_asks_to_be_taken_note_of_waits_for_the_desk():
    app, project = opened("studio", model="onnx-squeezenet", machine="null-2")
    measured(project)
    app.query_params["present"] = ""
    assert REASON not in texts(checked(app.run()))
    del app.query_params["present"]
    assert REASON in texts(checked(app.run()))
