"""What a notebook shows, read as a browser would and held against the values that it shows."""

import copy
import dataclasses
import operator
import pickle
import re
from html.parser import HTMLParser
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

import placement as pl
from placement.api.compare import Board
from placement.api.results.placing import CompareRow
from placement.api.run import LiveRun
from placement.core import formatting
from placement.core.formatting import Drawn
from placement.drawing import svg
from placement.drawing.colours.palette import device_colour
from placement.drawing.layout.expansion import default_expanded
from placement.drawing.timelines_svg import LABELS, RIGHT, WIDTH
from placement.drawing.views import build_view
from tests.exporters.exports import HOSTILE, dealt, hostile_model, machine

SVG = "{http://www.w3.org/2000/svg}"
# All that is drawn with; none of it runs or is fetched.
TAGS = {
    *("div", "table", "tbody", "tr", "th", "td"),
    *("svg", "g", "rect", "path", "text", "title"),
}
MODELS = {"squeezenet": lambda: pl.load("onnx-squeezenet"), "hostile": hostile_model}


# What a notebook calls.
shown = operator.methodcaller("_repr_html_")


class Page(HTMLParser):
    """The elements of some markup, and the text in its cells."""

    def __init__(self, markup):
        super().__init__()
        self.tags, self.attributes, self.open, self.cells = [], [], [], []
        self.feed(markup)
        self.close()
        assert not self.open, "elements are left open"

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        self.open.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "td" in self.open or "th" in self.open:
            self.cells[-1] += data


@pytest.fixture(scope="module", params=MODELS)
def placed(request):
    model = MODELS[request.param]()
    problem = pl.make_problem(model, machine())
    return model, problem, pl.place(problem, "round_robin")


def drawings(value):
    """The drawings of a value, each as a tree."""
    found = re.findall(r"<div[^>]*>(<svg .*?</svg>)</div>", shown(value), re.DOTALL)
    assert found
    return [ElementTree.fromstring(each) for each in found]


def texts(root):
    return [element.text for element in root.iter(f"{SVG}text")]


def bars(root):
    return [e for e in root.iter(f"{SVG}rect") if e.find(f"{SVG}title") is not None]


def require_bars(found, spans, longest_s, colour_of):
    """A bar for each span, of its length, where it begins, in the colour of its device."""
    scale = (WIDTH - LABELS - RIGHT) / longest_s
    for bar, span in zip(found, spans, strict=True):
        assert float(bar.get("x")) == pytest.approx(LABELS + scale * span.start_s, abs=0.01)
        wide = max(0.5, scale * span.duration_s)
        assert float(bar.get("width")) == pytest.approx(wide, abs=0.02)
        assert bar.get("fill") == colour_of.get(span.device, svg.LINK)


def test_a_placement_is_drawn_by_device_and_over_time(placed):
    model, problem, answer = placed
    graph, timeline = drawings(answer)
    counts = answer.placement.ops_per_device()
    named = [d.name for d in problem.machine.devices]
    colour_of = {name: device_colour(i) for i, name in enumerate(named)}
    for name in named:
        ops = formatting.counted(counts.get(name, 0), "op")
        assert any(text.startswith(f"{name}: {ops}, busy") for text in texts(graph))
    view = build_view(model.graph, default_expanded(model.graph))
    cards = [e for e in graph.iter(f"{SVG}rect") if e.get("stroke-width") == "1.4"]
    single = [card.get("stroke") for card in cards if card.get("stroke") in colour_of.values()]
    wanted = []
    for number, _ in enumerate(view.nodes):
        inside = {
            answer.placement.device_of[op.name]
            for op, node in zip(model.graph.ops, view.node_of_op, strict=True)
            if node == number
        }
        wanted += [colour_of[next(iter(inside))]] if len(inside) == 1 else []
    assert sorted(set(single)) == sorted(set(wanted))
    assert len(single) >= len(wanted) > 0
    spans = answer.timeline.spans
    require_bars(bars(timeline), spans, answer.timeline.step_s, colour_of)


def test_a_prediction_and_a_run_are_on_one_axis(placed):
    _, problem, answer = placed
    predicted = pl.simulate(problem, answer.placement)
    assert [len(bars(root)) for root in drawings(predicted)[1:]] == [len(answer.timeline.spans)]
    slow = dataclasses.replace(
        predicted.timeline,
        spans=tuple(
            dataclasses.replace(s, start_s=2 * s.start_s, end_s=2 * s.end_s)
            for s in predicted.timeline.spans
        ),
        step_s=2 * predicted.timeline.step_s,
        origin="measured",
    )
    (root,) = drawings(LiveRun(predicted, SimpleNamespace(timeline=slow)))
    colour_of = {d.name: device_colour(i) for i, d in enumerate(problem.machine.devices)}
    both = (*predicted.timeline.spans, *slow.spans)
    require_bars(bars(root), both, slow.step_s, colour_of)
    heads = [text for text in texts(root) if re.match("(Predicted|Measured): ", text)]
    assert [head.split(":")[0] for head in heads] == ["Predicted", "Measured"]
    (alone,) = drawings(slow)
    assert len(bars(alone)) == len(slow.spans)


def test_a_run_is_a_pair_as_before():
    model = pl.load("onnx-squeezenet")
    problem = pl.make_problem(model, pl.machine("null-2"))
    ran = pl.run(model, problem, dealt(model.graph, 0, ("null:0", "null:1")), steps=2)
    predicted, measured = ran
    assert ran == (predicted, measured) and predicted.problem is problem
    assert len(bars(drawings(ran)[0])) == len(predicted.timeline.spans) + len(
        measured.timeline.spans
    )


def test_a_model_is_drawn_without_devices(placed):
    model, *_ = placed
    (root,) = drawings(model)
    view = build_view(model.graph, default_expanded(model.graph))
    titles = [element.text for element in root.iter(f"{SVG}title")]
    assert all(svg.UNFIT.sub("\ufffd", node.title) in titles for node in view.nodes)
    assert any(text.startswith(f"{len(model.graph.ops)} ops, weights") for text in texts(root))


def test_a_comparison_is_a_table_with_the_best_first():
    ours = {"cpu:1": 3, "cpu:0": 1}
    rows = (
        CompareRow(placer="slow", value=3.0, unit="ms", gap=0.5, ops_per_device=ours),
        CompareRow(placer=HOSTILE, value=None, unit="ms", error=f"It failed: {HOSTILE}"),
        CompareRow(placer="fast", value=2.0, unit="ms", measured_s=0.0021),
    )
    board = Board(rows, ("cpu:0", "cpu:1"))
    assert board == rows and isinstance(board, tuple)
    for again in (copy.deepcopy(board), pickle.loads(pickle.dumps(board))):
        assert again == rows and again.devices == board.devices
    page = Page(shown(board))
    cells = [page.cells[i : i + 6] for i in range(0, len(page.cells), 6)]
    assert [row[0] for row in cells] == ["Method", "fast", "slow", HOSTILE]
    assert cells[1][1:5] == ["2 ms", "best", "–", "2.1 ms"]
    assert cells[2][1:4] == ["3 ms", "+50%", "50%"]
    assert re.sub(r"\s+", " ", cells[2][5]).strip() == "cpu:1: 3 cpu:0: 1"
    assert cells[3][1] == f"It failed: {HOSTILE}"
    fills = [value for name, value in page.attributes if name == "fill"]
    assert fills == [device_colour(1), device_colour(0)]
    assert set(page.tags) <= TAGS


def test_the_verb_compare_gives_such_a_table():
    model = pl.load("onnx-squeezenet")
    problem = pl.make_problem(model, pl.machine("null-2"))
    page = Page(shown(pl.compare(model, problem, ["single", "heft"])))
    assert {"single", "heft"} <= set(page.cells) and "best" in page.cells


def test_nothing_that_is_shown_runs_or_is_fetched(placed):
    model, problem, answer = placed
    for value in (model, answer, answer.timeline, pl.simulate(problem, answer.placement)):
        assert isinstance(value, Drawn)
        page = Page(shown(value))
        assert set(page.tags) <= TAGS
        names = {name for name, _ in page.attributes}
        assert not {n for n in names if n.startswith("on") or n in ("src", "href", "xlink:href")}
        assert not any("url(" in (value or "") for _, value in page.attributes)
