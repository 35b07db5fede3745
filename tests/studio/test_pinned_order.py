"""An order that is pinned is kept: by methods, by edits, in files; let go, it is as before."""

import json
from dataclasses import replace

import pytest

import placement as pl
from placement.core.placement import placement_from_json
from placement.schedule.order import order_of_ops
from placement.schedule.reordering import broken_sequences, in_sequence
from studio import consequence, editing
from studio.jobs import command_line
from studio.project import edits, pins
from studio.transfer import archive
from tests.command import answer
from tests.studio.test_order_kept import again, project_of, put

PLACERS = ("heft", "greedy_fill", "annealing", "single", "round_robin")


@pytest.fixture
def project(tmp_path, monkeypatch):
    """The canonical graph; by hand n6 runs before n4 on P2, which HEFT would not do."""
    monkeypatch.setenv("PLACEMENT_STUDIO_HOME", str(tmp_path / "home"))
    made = project_of("canonical", tmp_path, "latency")
    put(made, pl.place(again(made).problem, "heft").placement, "heft")
    editing.reorder(again(made), ("n6",), ("n4",))
    return made


def lane(now, device="P2", placement=None):
    found = placement or now.placement
    order = order_of_ops(now.problem, found)
    return [op for op in order if found.device_of[op] == device]


def test_methods_keep_an_order_that_is_pinned_and_only_that(project):
    assert lane(again(project)) == ["n6", "n4", "n9", "n10"]
    free = {name: pl.place(again(project).pinned_problem, name).placement for name in PLACERS}
    assert lane(again(project), placement=free["heft"]) == ["n4", "n6", "n9", "n10"]
    pins.pin_order(again(project), ("n4",))
    now = again(project)
    assert now.sequences == {"P2": ("n6", "n4", "n9", "n10")}
    for name in PLACERS:
        placed = pl.place(now.pinned_problem, name)
        there = [op for op in now.sequences["P2"] if placed.placement.device_of[op] == "P2"]
        ran = [op for op in lane(now, placement=placed.placement) if op in there]
        assert ran == there, name
        assert placed.placement.device_of == free[name].device_of, name
        assert placed.value == pl.simulate(now.problem, placed.placement).value, name
        assert not placed.violations and placed.value >= placed.lower_bound, name
    pins.free_order(again(project), ("P2",))
    now = again(project)
    assert not now.sequences
    assert pl.place(now.pinned_problem, "heft").placement == free["heft"]


def test_edits_keep_it_and_steps_of_it_are_undone(project):
    before = again(project).placement
    pins.pin_order(again(project), ("n4",))
    with pytest.raises(ValueError, match="order on P2 is pinned"):
        editing.reorder(again(project), ("n4",), ("n6",))
    told = editing.edit(again(project), ("n4",), "P1")
    assert not told and lane(again(project)) == ["n6", "n9", "n10"]
    told = editing.edit(again(project), ("n4",), "P2", before=("n6",))
    assert "order on P2 is pinned" in told
    assert lane(again(project)) == ["n6", "n4", "n9", "n10"]
    for _ in range(3):
        editing.undo(again(project))
    now = again(project)
    assert now.placement == before and not now.sequences
    editing.redo(now)
    assert again(project).sequences == {"P2": ("n6", "n4", "n9", "n10")}
    history = again(project).history
    assert edits.history_from_json(json.loads(history.text)) == history


def test_a_placement_with_another_order_says_so_and_blocks_no_other_device(project):
    """HEFT's own runs n4 before n6 on P2, against the order that is pinned there by then."""
    pins.pin_order(again(project), ("n4",))
    assert not editing.broken_orders(again(project))
    again(project).shelf.choose("heft")
    now = again(project)
    assert lane(now) == ["n4", "n6", "n9", "n10"] and editing.broken_orders(now) == ("P2",)
    assert lane(now, "P3") == ["n1", "n3", "n5", "n7"]
    assert not consequence.of_order(now, ("n5",), ("n3",)).note
    editing.reorder(now, ("n5",), ("n3",))
    now = again(project)
    assert lane(now, "P3") == ["n1", "n5", "n3", "n7"] and editing.broken_orders(now) == ("P2",)
    pins.return_orders(now)
    now = again(project)
    assert not editing.broken_orders(now) and not pins.return_orders(now)
    assert lane(now) == ["n6", "n4", "n9", "n10"] and lane(now, "P3") == ["n1", "n5", "n3", "n7"]
    with pytest.raises(ValueError, match="order on P2 is pinned"):
        editing.reorder(now, ("n4",), ("n6",))
    editing.undo(now)
    assert editing.broken_orders(again(project)) == ("P2",)


def test_the_command_line_and_archives_carry_it(project, tmp_path):
    pins.pin_order(again(project), ("n4",))
    now = again(project)
    argv = command_line.fixed_ops(now)
    assert argv[0] == "--sequences"
    out = tmp_path / "placed.json"
    given = ("place", now.project.source, *argv, "--placer", "heft", "--out", out)
    assert answer(*given)["value"] == pl.place(now.pinned_problem, "heft").value
    placed = placement_from_json(json.loads(out.read_text()))
    assert lane(now, placement=placed) == ["n6", "n4", "n9", "n10"]
    packed = archive.pack(now.project)
    assert again(archive.unpack(packed, pl.load)).sequences == now.sequences


def test_orders_that_contradict_each_other_are_told(project):
    """n6 reads n1 and feeds n9: no order has n9 before n6."""
    now = again(project)
    wrong = pl.place(now.problem, "heft").placement
    held = replace(now.problem, sequences=(("P2", ("n10", "n9")),))
    assert broken_sequences(held, wrong) == ("P2",)
    with pytest.raises(ValueError, match="contradict"):
        in_sequence(held, wrong)
    with pytest.raises(ValueError, match="which is not there"):
        replace(now.problem, sequences=(("P2", ("n99",)),))
