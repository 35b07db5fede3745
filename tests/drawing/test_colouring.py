"""Scales, categories and what ops are coloured by, each against its definition."""

import dataclasses
import math
from itertools import pairwise

import numpy as np
import pytest

import placement as pl
from pages.ui import canvas
from placement.costs.op_times import placed_seconds
from placement.drawing import op_values
from placement.drawing.colours import scales
from placement.drawing.colours.palette import colours, device_pattern
from placement.drawing.colours.toning import NUM_BANDS, shared_out
from placement.drawing.gantt import LINK_COLOUR
from tests.eyes import BLIND, lab
from tests.pages.graphs import blocks, hostile
from tests.pages.problems import diamond, everywhere

VALUES = [0.0, 1e-9, 3e-4, 1e-3, 0.02, 0.5, 1.0, 1.0, math.nan, math.inf, -1.0]


def step_by_definition(value, edges):
    """The step k with edges[k] <= value < edges[k + 1], the ends open outwards."""
    if not math.isfinite(value) or value <= 0:
        return -1
    inside = [k for k in range(len(edges) - 1) if edges[k] <= value < edges[k + 1]]
    return inside[0] if inside else (0 if value < edges[0] else len(edges) - 2)


@pytest.mark.parametrize("make", [scales.linear, scales.logarithmic])
@pytest.mark.parametrize("num_steps", [1, 2, 10])
def test_steps_follow_their_edges(make, num_steps):
    scale = make(VALUES, num_steps)
    edges = scale.edges()
    assert list(scale.steps(VALUES)) == [step_by_definition(v, edges) for v in VALUES]
    assert len(edges) == num_steps + 1
    assert edges[-1] == pytest.approx(1.0), "the largest value is the upper end"


def test_a_linear_scale_has_steps_of_one_width_from_zero():
    scale = scales.linear([0.5, 2.0, 8.0], 4)
    assert scale.edges() == (0.0, 2.0, 4.0, 6.0, 8.0)
    assert list(scale.steps([0.5, 1.999, 2.0, 8.0, 0.0])) == [0, 0, 1, 3, -1]


def test_a_logarithmic_scale_has_steps_of_one_factor():
    scale = scales.logarithmic([1e-3, 1.0, 0.0], 3)
    assert scale.edges() == pytest.approx((1e-3, 1e-2, 1e-1, 1.0))
    assert list(scale.steps([1e-3, 5e-3, 5e-2, 1.0, 0.0])) == [0, 0, 1, 2, -1]


def test_a_logarithmic_scale_spans_six_decades_at_most():
    scale = scales.logarithmic([1e-12, 1.0], 2)
    assert scale.low == pytest.approx(1e-6)
    assert list(scale.steps([1e-12, 1.0])) == [0, 1]


@pytest.mark.parametrize("make", [scales.linear, scales.logarithmic])
def test_scales_of_equal_and_of_no_values(make):
    assert make([], 5) is None and make([0.0, math.nan, math.inf], 5) is None
    assert list(make([3.0, 3.0], 5).steps([3.0])) == [4], "the most there is"


def test_places_are_shared_out_by_largest_remainder():
    assert shared_out([1, 1], 8) == [4, 4]
    assert shared_out([5, 3, 0], 8) == [5, 3, 0]
    assert shared_out([1, 1, 1], 8) == [3, 3, 2], "equal remainders by order"
    for counts in ([7, 2, 1], [100, 1, 1], [3, 3, 3, 3, 3]):
        shares = shared_out(counts, 8)
        assert sum(shares) == 8
        exact = [c * 8 / sum(counts) for c in counts]
        assert all(abs(s - e) < 1 for s, e in zip(shares, exact, strict=True))


def test_tones_of_classes_name_each_node_and_share_out_the_mixed():
    graph = blocks(num_blocks=3)
    view = canvas.build_view(graph, frozenset())
    size = view.nodes[0].num_ops
    classes = [0] * size + [1] * (size // 2) + [0] * (size - size // 2) + [-1] * size
    tones = canvas.tones_by_class(
        view, classes, [("a", "#000000"), ("b", "#ffffff")], by="kind", title="t"
    )
    assert tones.codes == "0*."
    assert tones.bands == {1: "0" * (NUM_BANDS // 2) + "1" * (NUM_BANDS // 2)}
    assert [key.count for key in tones.keys] == [2 * size - size // 2, size // 2]
    assert not tones.is_scale


def test_tones_of_values_add_up_in_closed_groups():
    graph = blocks(num_blocks=3)
    view = canvas.build_view(graph, frozenset())
    node_of_op = np.array(view.node_of_op)
    values = np.where(node_of_op == 0, 1.0, np.where(node_of_op == 1, 0.5, 0.0))
    values[0] = math.inf
    tones = canvas.tones_by_value(
        view, values, lambda v: f"{v:g} s", by="time", title="t", logarithmic=False
    )
    top = float((node_of_op == 0).sum() - 1)
    last = len(colours("scale")) - 1
    assert tones.codes[0] == str(last) and tones.codes[2] == "."
    assert tones.codes[1] == str(step_by_definition(top / 2 + 0.5, np.linspace(0, top, last + 2)))
    assert tones.ends == ("0 s", f"{top:g} s")
    assert sum(key.count for key in tones.keys) == 2


def test_the_message_of_tones_is_a_character_per_node():
    view = canvas.build_view(blocks(100), frozenset())
    classes = [i % 9 for i in range(len(view.op_names))]
    keys = [(f"kind {k}", c) for k, c in enumerate(colours("kinds"))]
    tones = canvas.tones_by_class(view, classes, keys, by="kind", title="Op type")
    sent = tones.payload()
    assert len(sent["codes"]) == len(view.nodes)
    assert all(len(band) == NUM_BANDS for band in sent["bands"].values())


def test_seconds_of_kernels_are_shared_out_and_keep_their_sum():
    problem = diamond()
    placement = everywhere(problem, b="cpu:1")
    seconds = placed_seconds(problem, placement)
    device = problem.kernel_devices(placement)
    for k, sources in enumerate(problem.sources):
        assert seconds[list(sources)].sum() == pytest.approx(problem.costs.compute_s[k, device[k]])
    assert seconds[0] == pytest.approx(seconds[1]), "both have the same arithmetic"


def test_seconds_are_infinite_where_the_device_has_no_kernel():
    problem = diamond(runs_b=False)
    seconds = placed_seconds(problem, everywhere(problem, "cpu:0", b="cpu:1"))
    assert [bool(np.isinf(s)) for s in seconds] == [n[0] == "b" for n in _names(problem)]


def test_bytes_are_weights_and_what_is_written():
    problem = diamond()
    graph = problem.graph
    expected = [
        op.param_bytes + sum(t.num_bytes for t in graph.tensors if t.producer == op.name)
        for op in graph.ops
    ]
    assert list(op_values.num_bytes(problem)) == expected
    stated = dataclasses.replace(problem, memory_model="sum")
    assert list(op_values.num_bytes(stated)) == [op.param_bytes for op in graph.ops]


def test_kinds_are_the_commonest_first_and_the_rest_together():
    classes, common = op_values.kinds(["A", "B", "B", "C", "C", "D"], 2)
    assert common == ["B", "C"] and list(classes) == [2, 0, 0, 1, 1, 2]
    assert op_values.kinds([], 3)[1] == []


def test_slack_classes_name_the_critical_path_and_the_slack_beside_it():
    problem = diamond()
    placement = everywhere(problem, b="cpu:1")
    predicted = pl.simulate(problem, placement)
    classes = op_values.slack_classes(problem, predicted)
    critical = {s.segment for s in predicted.critical_path if s.kind == "compute"}
    on_path = {k for segment in critical for k in predicted.schedule.segments[segment].kernels}
    for i, name in enumerate(_names(problem)):
        assert (classes[i] == op_values.ON_PATH) == (name[0] in on_path), name
    assert op_values.ON_PATH in classes and len(set(classes)) > 1


def test_differences_name_moves_the_commonest_first():
    here, there = np.array([0, 0, 0, 1, 2, 2]), np.array([0, 1, 1, 0, 0, 1])
    classes, moves = op_values.differences(here, there, 2)
    assert moves == [(0, 1), (1, 0)]
    assert list(classes) == [0, 1, 1, 2, 3, 3]
    assert list(op_values.differences(here, here, 2)[0]) == [0] * 6


def test_hatches_and_colours_are_distinct_and_follow_the_devices():
    keys = canvas.device_keys([f"d{i}" for i in range(16)])
    assert len({key.pattern for key in keys}) == 16
    assert device_pattern(16) == device_pattern(0) == ""


@pytest.mark.parametrize("eyes", [None, *BLIND])
@pytest.mark.parametrize(
    ("name", "first", "least"),
    [("devices", 8, 14), ("kinds", 9, 25), ("path", 4, 15), ("moves", 6, 20)],
)
def test_colours_stay_apart_for_colour_blind_eyes(eyes, name, first, least):
    seen = [lab(c, BLIND.get(eyes)) for c in colours(name)[:first]]
    for i, a in enumerate(seen):
        for j, b in enumerate(seen[:i]):
            assert np.linalg.norm(a - b) > least, (name, eyes, i, j, np.linalg.norm(a - b))


@pytest.mark.parametrize("eyes", [None, *BLIND])
@pytest.mark.parametrize(
    ("name", "least"), [("path", 12), ("moves", 12), ("kinds", 12), ("scale", 10)]
)
def test_other_colours_stay_apart_from_the_devices_beside_them(name, least, eyes):
    devices = [lab(c, BLIND.get(eyes)) for c in colours("devices")]
    for i, colour in enumerate(colours(name)):
        seen = lab(colour, BLIND.get(eyes))
        apart = [np.linalg.norm(seen - device) for device in devices]
        assert min(apart[:8]) > least and min(apart) > 6, (name, eyes, i, apart)


@pytest.mark.parametrize("eyes", [None, *BLIND])
def test_bars_of_transfers_stay_apart_from_those_of_devices(eyes):
    sent = lab(LINK_COLOUR, BLIND.get(eyes))
    apart = [np.linalg.norm(sent - lab(c, BLIND.get(eyes))) for c in colours("devices")]
    assert min(apart[:8]) > 18 and min(apart) > 10, (eyes, apart)


@pytest.mark.parametrize("eyes", [None, *BLIND])
def test_the_scale_grows_lighter_step_by_step_for_all_eyes(eyes):
    lightness = [lab(c, BLIND.get(eyes))[0] for c in colours("scale")]
    assert all(b - a > 3 for a, b in pairwise(lightness))


def test_hostile_types_are_short_and_printable():
    graph = hostile()
    _, common = op_values.kinds([op.kind for op in graph.ops], 9)
    assert len(common) == 2


def _names(problem):
    return [op.name for op in problem.graph.ops]


def test_crossings_count_what_changes_device_inside_closed_blocks_too():
    graph = blocks(num_blocks=3)
    view = canvas.build_view(graph, frozenset())
    devices = np.array([i % 3 for i in range(len(graph.ops))])
    index, node_of = graph.index, view.node_of_op
    expected = []
    for edge in view.edges:
        moves = [
            devices[index[t.producer]] != devices[index[c]]
            for t in graph.tensors
            for c in t.consumers
            if (node_of[index[t.producer]], node_of[index[c]]) == (edge.start, edge.end)
        ]
        expected.append("2" if all(moves) else "1" if any(moves) else "0")
    assert canvas.crossings(view, graph, devices) == "".join(expected)
    assert set(canvas.crossings(view, graph, devices * 0)) == {"0"}
