"""Placements side by side: figures against their definitions, and one axis of time for all."""

import pytest

from pages.ui.compare import board, differences
from pages.ui.panels import side_by_side
from placement import place, simulate
from placement.core import formatting
from placement.core.placement import Placement
from placement.schedule.simulated import busy_of
from studio import standings
from studio.project.placements import HAND
from studio.standings import Measured, Standing
from tests.pages.problems import diamond, everywhere
from tests.pages.test_pages import checked, menu, texts
from tests.pages.test_pages import opened as on_page
from tests.studio.test_standings import again, opened, own_home, placed

__all__ = ["own_home"]


def row(**changes):
    values = {
        "name": "a",
        "made_by": "heft",
        "value_s": 0.012,
        "bound_s": 0.010,
        "search_s": 0.1,
        "measured": None,
        "broken": (),
        "notes": (),
    }
    return Standing(**{**values, **changes})


def sides_of(now, *names):
    return [side_by_side.side_of(now, r) for r in standings.standings(now) if r.name in names]


def test_the_table_says_what_is_predicted_of_each_side():
    now = opened()
    for placer in ("heft", "single"):
        placed(now, placer)
    sides = sides_of(again(now.project), "heft", "single")
    rows = dict(side_by_side.rows_of(now, sides))
    best, other = rows["Predicted step"]
    assert sides[0].name == "heft" and best.endswith("the best of these")
    more = sides[1].row.value_s / sides[0].row.value_s - 1
    assert other.endswith(formatting.percent(more, signed=True))
    assert rows["Segments"] == [str(len(s.simulated.schedule.segments)) for s in sides]
    assert rows["Sent per step"][1] == "0 B" and rows["Measured"] == ["not yet", "not yet"]
    device = next(iter(set(sides[1].placement.device_of.values())))
    cell = next(cells for label, cells in rows.items() if label.startswith(device))[1]
    assert cell.startswith(f"{len(now.model.graph.ops)} ops, busy ") and "(100%)" in cell


def test_busy_counts_sending_where_the_goal_is_throughput():
    now = opened(objective="throughput")
    placed(now, "round_robin")
    [side] = sides_of(now, "round_robin")
    busy = busy_of(now.problem, side.simulated, side.placement)
    assert max(busy.values()) == pytest.approx(side.row.value_s)
    assert "Predicted rate" in dict(side_by_side.rows_of(now, [side]))


@pytest.mark.parametrize(
    ("measured", "said"),
    [
        (None, "not yet"),
        (Measured(0.010, 0.2, False, False), "10 ms, predicted +20%"),
        (Measured(0.010, None, True, True), "10 ms, emulated, placed again by its method since"),
    ],
)
def test_what_was_measured_is_told_with_its_doubts(measured, said):
    assert side_by_side.measured_in_words(row(measured=measured)) == said
    by_hand = side_by_side.measured_in_words(row(measured=measured, made_by=HAND))
    assert by_hand == said.replace("placed again by its method", "edited")


def two_sides():
    """The diamond on one device, and with its pair b on the other."""
    problem = diamond()
    placements = (everywhere(problem), everywhere(problem, b="cpu:1"))
    return [
        side_by_side.Side(row(name=name), placement, simulate(problem, placement))
        for name, placement in zip(("one", "two"), placements, strict=True)
    ]


def test_every_span_of_every_side_is_a_bar_that_stands_for_its_ops():
    now = opened()
    placed(now, "round_robin")
    [side] = sides_of(now, "round_robin")
    parts = [(name, now.problem, side.simulated) for name in ("one", "<b>two</b>")]
    drawn = side_by_side.panels(now, parts)
    assert [panel.title for panel in drawn] == ["one", "<b>two</b>"]
    assert len({panel.key for panel in drawn}) == 2
    spans = side.simulated.timeline.spans
    for panel in drawn:
        bars = sorted((bar.start_s, bar.end_s) for bar in panel.bars)
        assert bars == sorted((s.start_s, s.end_s) for s in spans)
        assert {op for bar in panel.bars for op in bar.ops} == set(now.model.graph.index)
        assert "simulated" in panel.note


def test_moves_are_counted_by_where_ops_were_and_where_they_go():
    here, there = two_sides()
    moves = differences.moves_of(here.placement, there.placement)
    assert moves == {("cpu:0", "cpu:1"): 2}
    assert differences.in_words(moves) == "2 from cpu:0 to cpu:1"
    back = Placement("", "", {**here.placement.device_of, "a_conv": "cpu:1"})
    assert differences.in_words(differences.moves_of(there.placement, back)) == (
        "2 from cpu:1 to cpu:0, 1 from cpu:0 to cpu:1"
    )


def test_placements_within_what_predictions_err_by_are_a_tie_and_none_is_called_better():
    best = row(name="best", value_s=0.0120, range_s=(0.0116, 0.0130))
    near = row(name="near", value_s=0.0125, made_by=HAND, range_s=(0.0120, 0.0131))
    far = row(name="far", value_s=0.0150, range_s=(0.0140, 0.0160))
    said = board.verdict([best, near, far], "s")
    assert "a tie, within what predictions err by: near" in said and "longer" not in said
    assert best.ties_with(near) and not best.ties_with(far)
    assert "tie" not in board.verdict([best, far], "s")


def test_the_graph_shows_the_difference_that_the_board_tells():
    """On the screen is then the first of the two, coloured by where the second has its ops."""
    app, project = on_page("compare", model="onnx-squeezenet", machine="null-2")
    now = again(project)
    for placer in ("heft", "single"):
        now.shelf.add(placer, place(now.problem, placer).placement, placer)
    checked(app.run())
    names = {item.name for item in now.shelf.items}
    assert "ops change their device" in texts(app)
    checked(next(b for b in app.button if b.label == "Show in the graph").click().run())
    assert menu(app, "Colour by").value == "difference"
    shown, compared = menu(app, "Placement").value, menu(app, "Compared with").value
    assert shown != compared and {shown, compared} <= names
