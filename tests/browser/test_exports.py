"""The exported page that works from disk, in a real browser."""

from pathlib import Path

import pytest
from playwright.sync_api import expect

from placement.loaders import load
from tests.exporters.exports import HOSTILE, export_of, hostile_model, written

PIXEL = """(canvas, id) => {
  const node = graph.nodes.get(id);
  const spot = { x: node.x - node.w / 2 + 9, y: node.y + node.h / 2 - 4 };
  const at = graph.net.canvasToDOM(spot);
  const zoom = canvas.width / canvas.clientWidth;
  const [r, g, b] = canvas.getContext("2d").getImageData(at.x * zoom, at.y * zoom, 1, 1).data;
  return "#" + [r, g, b].map((v) => v.toString(16).padStart(2, "0")).join("");
}"""


@pytest.fixture
def open_file(chromium):
    """Open a file from disk; requests, dialogs and errors of the page are collected."""
    context = chromium.new_context(viewport={"width": 1440, "height": 900})
    asked, wrong = [], []

    def open_page(path: Path):
        page = context.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda m: wrong.append(m.text) if m.type == "error" else 0)
        page.goto(path.as_uri())
        page.wait_for_function("globalThis.graph?.net.getScale() > 0")
        return page

    yield open_page, asked, wrong
    context.close()


def test_the_page_from_disk_shows_the_placement_and_asks_for_nothing(open_file, tmp_path):
    open_page, asked, wrong = open_file
    export = export_of(load("onnx-squeezenet"), label="mine")
    path = written("html", export, tmp_path)
    page = open_page(path)
    expect(page.get_by_role("heading")).to_have_text("onnx-squeezenet on two-lanes, placement mine")
    expect(page.get_by_text("cpu:0: 33 ops").first).to_be_visible()
    assert page.evaluate("graph.nodes.length") == len(export.view().nodes)
    canvas = page.locator("#graph canvas")
    for i in (0, len(export.view().nodes) - 1):
        node = export.view().nodes[i].id
        page.evaluate("(id) => graph.net.moveTo({ position: graph.net.getPosition(id), scale: 1 })",
                      node)  # fmt: skip
        fill = page.evaluate("(id) => graph.nodes.get(id).color.background", node)
        page.wait_for_timeout(100)
        assert canvas.evaluate(PIXEL, node) == fill, "the node has its device's colour"
    page.get_by_role("searchbox").fill("softmax")
    expect(page.get_by_role("status")).to_have_text("1 found")
    assert len(page.evaluate("graph.net.getSelectedNodes()")) == 1
    page.get_by_role("searchbox").fill("nowhere")
    expect(page.get_by_role("status")).to_have_text("nothing found")
    page.get_by_role("button", name="Show all").click()
    assert asked == [path.as_uri()] and not wrong


def test_names_that_are_markup_stay_text_on_the_page_from_disk(open_file, tmp_path):
    open_page, asked, wrong = open_file
    export = export_of(hostile_model(), label=HOSTILE)
    path = written("html", export, tmp_path)
    page = open_page(path)
    expect(page.get_by_role("heading")).to_contain_text(HOSTILE)
    assert page.evaluate("graph.nodes.length") == len(export.view().nodes) == 4
    spot = page.evaluate(
        "() => graph.net.canvasToDOM(graph.net.getPosition(graph.nodes.getIds()[0]))"
    )
    box = page.locator("#graph").bounding_box()
    page.mouse.move(box["x"] + spot["x"] - 3, box["y"] + spot["y"])
    page.mouse.move(box["x"] + spot["x"], box["y"] + spot["y"])
    tooltip = page.locator(".vis-tooltip")
    expect(tooltip).to_contain_text("onerror=alert(1)")
    page.mouse.click(box["x"] + spot["x"], box["y"] + spot["y"])
    expect(page.get_by_role("status")).to_contain_text("onerror=alert(1)")
    assert page.locator("img").count() == 0
    assert asked == [path.as_uri()] and not wrong
