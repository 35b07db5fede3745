"""Pictures are sound XML that says everything, whatever names a model has."""

import dataclasses
import re
from xml.etree import ElementTree

import pytest

from pages.ui.canvas import build_view
from placement import place
from placement.core.model import Model
from placement.core.problem_json import problem_from_json
from placement.drawing import svg
from placement.drawing.colours.painting import colours, mixes
from placement.drawing.edge_paths import path_of
from placement.exporters import Export
from placement.exporters._picture import picture
from placement.exporters.graph_svg import QUEUE_WORDS
from placement.loaders import load
from tests.exporters.exports import export_of, hostile_model, machine, measured_like, written
from tests.instances import canonical_file

SVG = "{http://www.w3.org/2000/svg}"
MODELS = {
    "squeezenet": lambda: load("onnx-squeezenet"),
    "inception": lambda: load("onnx-inception-v1"),
    "hostile": hostile_model,
}


@pytest.fixture(scope="module", params=MODELS)
def export(request):
    made = export_of(MODELS[request.param](), label='<"mine">')
    return dataclasses.replace(made, measured=measured_like(made))


def root_of(path):
    return ElementTree.fromstring(path.read_text(encoding="utf-8"))


def numbers(root, *names):
    return [float(e.get(n)) for e in root.iter(f"{SVG}rect") for n in names if e.get(n)]


def test_the_graph_shows_every_node_edge_and_block_inside_its_frame(export, tmp_path):
    root = root_of(written("graph-svg", export, tmp_path))
    view, shown = export.view(), picture(export)
    titles = [e.text for e in root.iter(f"{SVG}title")]
    for node in view.nodes:
        assert svg.UNFIT.sub("\ufffd", node.title) in titles
    dashed = [e for e in root.iter(f"{SVG}path") if e.get("stroke-dasharray")]
    # In the legend there is one more sign for queues.
    dotted = [e for e in dashed if e.get("stroke-linecap")]
    assert len(dotted) == len(shown.queues) + bool(shown.queues)
    assert len(dashed) - len(dotted) == sum(line.crosses for line in shown.lines)
    tucked = {(edge.start, edge.end) for edge in view.edges if edge.way is None}
    assert all(line.critical for line in shown.lines if (line.start, line.end) in tucked)
    drawn = {(line.start, line.end) for line in shown.lines}
    assert drawn | tucked == {(edge.start, edge.end) for edge in view.edges}
    (left, top), (width, height) = shown.corner, shown.size
    for node in view.nodes:
        assert left <= node.x - node.width / 2 and node.x + node.width / 2 <= left + width
        assert top <= node.y - node.height / 2 and node.y + node.height / 2 <= top + height
    texts = [e.text for e in root.iter(f"{SVG}text")]
    assert any("cpu:0: " in text for text in texts) and any('<"mine">' in t for t in texts)


def test_an_edge_crosses_where_its_ends_are_on_different_devices(export):
    shown = picture(export)
    device_of = export.placement.device_of
    ops = [op.name for op in export.model.graph.ops]
    for line in shown.lines:
        used = [
            {device_of[ops[i]] for i, n in enumerate(export.view().node_of_op) if n == end}
            for end in (line.start, line.end)
        ]
        assert line.crosses == (len(used[0]) == len(used[1]) == 1 and used[0] != used[1])


@pytest.mark.parametrize("format", ["graph-svg", "html"])
def test_the_canonical_example_shows_its_path_and_the_wait_for_a_device(format, tmp_path):
    problem = problem_from_json(canonical_file(), name="canonical")
    model = Model("canonical", problem.graph, problem=problem)
    placement = place(problem, "heft").placement
    export = Export(model, problem, placement, view=lambda: build_view(problem.graph, frozenset()))
    shown = picture(export)
    named = [shown.view.nodes[n].title.split("\n")[0] for n in shown.view.node_of_op]
    critical = {(named[line.start], named[line.end]) for line in shown.lines if line.critical}
    assert critical == {("n1", "n4"), ("n6", "n8"), ("n8", "n10")}
    assert [(named[q.start], named[q.end]) for q in shown.queues] == [("n4", "n6")]
    path = written(format, export, tmp_path)
    text = path.read_text(encoding="utf-8")
    assert shown.queues[0].way in text and QUEUE_WORDS in text
    if format == "graph-svg":
        red = [
            e
            for e in root_of(path).iter(f"{SVG}path")
            if e.get("stroke") == svg.CRITICAL and not e.get("stroke-linecap")
        ]
        assert sorted(e.get("d") for e in red) == sorted(
            line.path for line in shown.lines if line.critical
        )


def test_the_timeline_draws_every_span_on_one_axis(export, tmp_path):
    root = root_of(written("timeline-svg", export, tmp_path))
    bars = [e for e in root.iter(f"{SVG}rect") if e.find(f"{SVG}title") is not None]
    spans = export.simulated.timeline.spans
    assert len(bars) == 2 * len(spans)
    for predicted, measured in zip(bars[: len(spans)], bars[len(spans) :], strict=True):
        assert predicted.get("x") == measured.get("x")
        assert float(predicted.get("y")) < float(measured.get("y"))
    width = float(root.get("width"))
    assert all(0 <= float(b.get("x")) <= width - float(b.get("width")) for b in bars)


def test_nothing_in_a_picture_comes_from_elsewhere(export, tmp_path):
    for name in ("graph-svg", "timeline-svg"):
        text = written(name, export, tmp_path).read_text(encoding="utf-8")
        assert not re.search(r"<(script|image|use|foreignObject|style|a)\b|url\(|href", text), name
        named = text.count("HYPERLINK(&quot;http")
        assert text.count("http") == text.count("http://www.w3.org/2000/svg") + named


def test_shares_of_nodes_count_their_ops(export):
    index = machine().index
    device_of_op = [index[d] for d in export.placement.device_of.values()]
    found = mixes(export.view(), device_of_op)
    for number, node in enumerate(export.view().nodes):
        inside = [device_of_op[i] for i, n in enumerate(export.view().node_of_op) if n == number]
        assert dict(found[number]) == {d: inside.count(d) for d in set(inside)}
        assert sum(count for _, count in found[number]) == node.num_ops


def test_devices_have_the_colours_of_the_canvas():
    from pages.ui.canvas import device_keys

    names = [d.name for d in machine().devices]
    assert colours(machine()) == [key.colour for key in device_keys(names)]


def test_paths():
    """A straight way, a curve, and a corner that is rounded."""
    assert path_of([(0, 0), (0, 10)]) == "M0 0L0 10"
    assert path_of([(0, 0), (20, 10)]) == "M0 0C0 5 20 5 20 10"
    assert path_of([(0, 0), (0, 50), (50, 50)]) == "M0 0L0 42Q0 50 8 50L50 50"


def test_words_are_fit_for_xml():
    hostile = 'a<b>&"\0\x1b\ud800\u202e\uffff é模'
    element = ElementTree.fromstring(svg.text(0, 0, hostile, id=hostile))
    assert element.text == 'a<b>&"' + "\ufffd" * 5 + " é模"
    assert element.get("id") == element.text
    assert svg.number(1.005) == "1" or svg.number(1.005) == "1.01"
    assert svg.number(-0.0) == "0" and svg.number(12.5) == "12.5"
    assert svg.blend("#ffffff", "#000000", 0.5) == "#808080"
