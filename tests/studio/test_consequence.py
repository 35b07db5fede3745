"""What is foretold of a move is what the move then does, and asking changes nothing."""

import math

import pytest

import placement as pl
from pages.ui.session.current import snapshot
from placement import simulate
from studio import consequence, editing
from studio.consequence import Change
from studio.project import pins
from tests.studio.test_order_kept import again, project_of, put


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.setenv("PLACEMENT_STUDIO_HOME", str(tmp_path / "home"))
    made = project_of("canonical", tmp_path, "latency")
    put(made, pl.place(again(made).problem, "heft").placement, "heft")
    return made


def test_every_move_of_one_op_does_what_was_foretold(project):
    now = snapshot(project)
    files = {path: path.read_bytes() for path in project.folder.rglob("*") if path.is_file()}
    for op in now.model.graph.ops:
        for device in now.machine.devices:
            told = consequence.of_move(now, (op.name,), device.name)
            if now.placement.device_of[op.name] == device.name:
                assert told.change is None and told.note == "already there"
                continue
            after = editing.after(now, editing.move_step(now, (op.name,), device.name)[0])
            predicted = simulate(now.problem, after)
            assert told.change.before_s == now.simulated.value
            assert told.change.after_s == predicted.value
            assert told.bars.end_s == predicted.timeline.step_s
            assert told.about == f"{op.name} to {device.name}"
    assert all(path.read_bytes() == content for path, content in files.items())
    told = consequence.of_move(now, ("n4",), "P3")
    editing.edit(now, ("n4",), "P3")
    assert again(project).simulated.value == told.change.after_s


def test_what_stays_or_breaks_a_rule_is_said(project):
    now = snapshot(project)
    held = now.placement.device_of["n4"]
    pins.pin(now, ("n4",))
    elsewhere = next(d.name for d in now.machine.devices if d.name != held)
    told = consequence.of_move(again(project), ("n4",), elsewhere)
    assert told.change is None and "pinned and stayed" in told.note


def test_a_drop_keeps_its_place_where_data_allow_it(project):
    """HEFT puts n4, n6, n9, n10 on P2, and n3, n5, n7 on P3; n9 reads what n6 does not write."""
    now = snapshot(project)
    for before in ("n3", "n5", "n7", None):
        place = () if before is None else (before,)
        told = consequence.of_move(now, ("n4",), "P3", place)
        step, note = editing.move_step(now, ("n4",), "P3", place)
        after = editing.after(now, step)
        assert told.change.after_s == simulate(now.problem, after).value and note == told.note
        lane = [op for op in after.order if after.device_of[op] == "P3"]
        at = lane.index("n4")
        assert (lane[at + 1] if before else lane[-1]) == (before or "n4"), lane
    first = consequence.of_move(now, ("n10",), "P3", ("n3",))
    assert "cannot run before" in first.note and first.change is not None


def test_both_times_of_a_change_have_one_unit():
    faster = Change(1.2e-3, 868e-6, "s")
    assert faster.text == "1.2 ms → 0.868 ms, -27.7%" and faster.way == -1
    assert Change(868e-6, 1.2e-3, "s").text == "0.868 ms → 1.2 ms, +38.2%"
    assert Change(1.0, 1.00001, "s").text == "1 s → 1 s, no change"
    assert Change(3.0, math.inf, "s").text == "it could not run like this"
