"""Equal devices on the pages: exchanged names are no difference, and a person's work takes part."""

import json
import random
from dataclasses import replace

import pytest

import placement as pl
from pages.ui import canvas
from pages.ui.canvas import colour_switch
from pages.ui.compare import board, differences
from pages.ui.panels import side_by_side
from placement.core.placement import placement_from_json
from placement.drawing.colours.palette import lone_colour
from placement.schedule.symmetry import with_names
from studio import snapshot, standings
from studio.jobs import kinds, outcomes
from studio.project import store
from studio.project.facts import HAND, origin_of
from studio.project.files import write_json
from tests.studio.test_standings import again, comparison, own_home, placed, rows_of
from tests.towers import save_towers

assert own_home
GPUS = ("cuda:0", "cuda:1", "cuda:2", "cuda:3")


@pytest.fixture
def now(tmp_path):
    """The four towers on four equal GPUs, dealt out in turn."""
    save_towers(tmp_path / "towers.onnx")
    project = store.create()
    project.change(model_kind="path", model=str(tmp_path / "towers.onnx"), machine="pcie-4gpu")
    opened = again(project)
    placed(opened, "round_robin")
    return again(project)


def exchanged(now, placement, seed=0):
    """The same with the GPUs under other names."""
    shuffled = list(GPUS)
    while tuple(shuffled) == GPUS:
        random.Random(seed).shuffle(shuffled)
        seed += 1
    return with_names(placement, dict(zip(GPUS, shuffled, strict=True)))


def two_sides(now, other):
    now.shelf.add("mine", other, HAND, show=False)
    rows = {row.name: row for row in standings.standings(again(now.project))}
    return [
        side_by_side.side_of(again(now.project), rows[name]) for name in ("round_robin", "mine")
    ]


def test_exchanged_names_are_no_difference(now):
    sides = two_sides(now, exchanged(now, now.placement))
    assert sides[0].placement.device_of != sides[1].placement.device_of
    new = differences.renaming(now.problem, *(side.placement for side in sides))
    said = differences.sameness(now, *sides, new).replace("\\", "")
    assert said.startswith("round_robin and mine are the same up to the names of equal devices.")
    assert " Equal devices are matched first: cuda:" in said and " of mine counts as cuda:" in said
    assert sides[1].row.notes[-1].startswith("the same as ")


def test_beside_exchanged_names_only_true_moves_are_counted_and_coloured(now):
    op = now.model.graph.ops[6].name
    other = exchanged(now, now.placement)
    device_of = {**other.device_of, op: "cpu:0"}
    sides = two_sides(now, replace(other, device_of=device_of))
    new = differences.renaming(now.problem, *(side.placement for side in sides))
    after = with_names(sides[1].placement, new)
    moves = differences.moves_of(sides[0].placement, after)
    assert moves == {(now.placement.device_of[op], "cpu:0"): 1}
    view = canvas.build_view(now.model.graph, canvas.default_expanded(now.model.graph))
    tones = colour_switch.difference(now, view, now.placement, sides[1].placement, "mine")
    assert [key.label for key in tones.keys] == [
        "same device",
        f"{now.placement.device_of[op]} → cpu:0",
    ]
    assert tones.keys[0].colour == lone_colour("same") and "equal devices alike" in tones.title


def test_an_order_of_its_own_is_told_where_no_op_changes_its_device(now):
    backwards = replace(now.placement, order=tuple(op.name for op in now.model.graph.ops))
    sides = two_sides(now, backwards)
    said = differences.sameness(now, *sides, {})
    assert "put every op on the same device, but run the ops in another order." in said


def test_placing_again_with_equal_devices_exchanged_changes_nothing(now):
    before = now.shelf.read("round_robin")
    found = exchanged(now, before, seed=3)
    result = {
        "placement": found.to_json(),
        "value": 1.0,
        "unit": "ms",
        "objective": "latency",
    }
    folder = now.project.folder / "jobs" / "00000000000000000001-0000"
    record = {"verb": "place", "argv": [], "pid": -1, "born_at": 0, "started_at": 0}
    about = {"shelf": now.shelf.folder.name, "placer": "round_robin"}
    write_json(folder / "job.json", {**record, "about": about})
    (folder / "events.jsonl").write_text(json.dumps({"event": "result", **result}) + "\n")
    (told,) = kinds.collect(now)
    assert told.startswith("Placed by round_robin")
    assert again(now.project).shelf.read("round_robin") == before


def test_what_a_person_made_takes_part_in_the_verdict(now):
    best = pl.place(now.problem, "single").placement
    now.shelf.add("mine", best, HAND, show=False)
    rows = rows_of(now, "round_robin", "m_topo")
    later = again(now.project)
    job = comparison(later, rows)
    known = kinds.known(later, job)
    mine_s = pl.simulate(later.problem, best).value
    assert known == {"mine": outcomes.Known(mine_s, origin_of(HAND))}
    assert mine_s < min(row["value"] for row in rows)
    told = outcomes.rows_taken_over(later.project, job, known)
    assert told.startswith(
        "Compared 2 methods and 1 placement made by hand: the best is mine, made by hand, predicted"
    )
    said = board.verdict(standings.standings(again(later.project)), "s").replace("\\", "")
    assert said.startswith("Best of 3: **mine**, made by hand, predicted ")


def test_a_slower_one_made_by_hand_is_told_beside_the_best(now):
    now.shelf.add("mine", now.placement, HAND, show=False)
    placed(now, "single")
    rows = standings.standings(again(now.project))
    by_name = {row.name: row for row in rows}
    said = board.verdict(rows, "s").replace("\\", "")
    longer = by_name["mine"].value_s / by_name["single"].value_s - 1
    assert said.startswith("Best of 3: **single**, predicted ")
    assert f"**mine**, made by hand, takes {longer:.1%}" in said


def test_the_verdict_of_another_problem_leaves_work_by_hand_out(now):
    now.shelf.add("mine", now.placement, HAND, show=False)
    rows = [{**row, "problem": "another"} for row in rows_of(now, "single")]
    assert kinds.known(again(now.project), comparison(now, rows)) == {}


def test_a_stored_placement_is_what_was_compared(now):
    stored = placement_from_json(json.loads(now.shelf.path("round_robin").read_text()))
    assert standings.placement_of(now, "round_robin") == stored
    value_s = pl.simulate(now.problem, stored).value
    assert snapshot.predicted_s(now, ["round_robin"]) == {"round_robin": value_s}


def test_a_board_is_as_high_as_its_rows():
    for num_rows in (1, 14, 30):
        for enlarged in (1.0, 1.5):
            rows_px = enlarged * board.ROW * (num_rows + 1)
            assert rows_px < board.height_px(num_rows, enlarged) < rows_px + 6
    # Of a very long one half of a row says that there is more.
    assert board.height_px(500, 1.0) % board.ROW == board.ROW // 2
