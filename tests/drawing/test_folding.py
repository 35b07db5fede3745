"""Drawings fill the places they are folded for: a desk's, and an audience's wide and low one."""

from itertools import pairwise

import pytest

from pages.ui.session.choices import ASPECT, ENLARGED, PRESENTED_ASPECT
from placement.drawing.layout.expansion import PRESENTED_SIGHT, default_expanded
from placement.drawing.layout.nested import DESK, LOW
from placement.drawing.views import build_view
from placement.loaders import load
from tests.pages.graphs import blocks, chain, stacked
from tests.towers import save_three_ways

# What the picture has before an audience in windows of 1440 x 900, 1280 x 720, 1024 x 768 and
# 960 x 600, without margins, legend and the buttons that zoom.
PLACES = ((1320, 370), (1165, 250), (905, 290), (850, 225))
# Pixels of a name before an audience, units of it at the most, its letters' width as a share of
# their height, and what of a card it cannot have (nodes.js).
LEAST_PX, MOST, LETTER, BESIDE = 7.5 * ENLARGED, 29.0, 0.54, 18.0


def scale_in(view, place):
    """How large all of a drawing is in a place."""
    return min(place[0] / view.width, place[1] / view.height)


def presented(graph):
    return build_view(graph, default_expanded(graph, PRESENTED_SIGHT), aspect=PRESENTED_ASPECT)


def check_names(view):
    """All names are whole in all places, and large enough."""
    for place in PLACES:
        for node in view.nodes:
            size = min(MOST, (node.width - BESIDE) / (LETTER * len(node.label)))
            size_px = size * scale_in(view, place)
            assert size_px > LEAST_PX, (place, view.width, view.height, node.label, size_px)


@pytest.mark.parametrize("num_blocks", [3, 6, 9])
def test_names_of_blocks_in_a_row_can_be_read_before_an_audience(num_blocks, tmp_path):
    save_three_ways(tmp_path / "ways.onnx", num_blocks)
    view = presented(load(str(tmp_path / "ways.onnx")).graph)
    assert 3 <= len(view.nodes) <= PRESENTED_SIGHT
    check_names(view)


@pytest.mark.parametrize(
    "model", ["onnx-resnet50", "onnx-inception-v2", "onnx-shufflenet", "onnx-vgg19"]
)
def test_names_of_known_networks_can_be_read_before_an_audience(model):
    check_names(presented(load(model).graph))


@pytest.mark.parametrize("graph", [blocks(), chain(30), stacked()], ids=lambda graph: "")
@pytest.mark.parametrize("most", [6, 36])
def test_what_is_folded_for_a_place_is_larger_there_than_what_is_folded_for_another(graph, most):
    opened = default_expanded(graph, most)
    views = {aspect: build_view(graph, opened, aspect=aspect) for aspect in (0.8, ASPECT, 4.3)}
    for aspect, view in views.items():
        # What is low enough is large enough.
        enough = aspect / DESK / LOW[0]
        sizes = [min(enough, scale_in(other, (aspect, 1.0))) for other in views.values()]
        # Every line from column to column is worth somewhat less.
        assert scale_in(view, (aspect, 1.0)) > 0.85 * max(sizes), (aspect, sizes)


def test_lines_around_a_column_begin_and_end_at_the_ports_of_boxes(tmp_path):
    """Between level and upright stretches alone, wherever in its box an op is."""
    save_three_ways(tmp_path / "ways.onnx")
    view = presented(load(str(tmp_path / "ways.onnx")).graph)
    offs = []
    for edge in view.edges:
        ends = (view.nodes[edge.start], view.nodes[edge.end])
        points = [(ends[0].x, ends[0].y), *(edge.way or ()), (ends[1].x, ends[1].y)]
        for k, (a, b) in enumerate(pairwise(points)):
            if a[1] == b[1]:
                offs += [points[k - 1][0] - a[0], points[k + 2][0] - b[0]]
    assert len(view.boxes) == 1 and offs
    assert max(map(abs, offs)) < 0.2, offs
