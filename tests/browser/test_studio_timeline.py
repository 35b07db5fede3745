"""The Timeline page in a real browser: bars and picture share one selection; training schedules."""

import json
import re

from playwright.sync_api import expect

from tests.browser.studio import drawn, go, metric, open_tab, select, until, upload
from tests.workloads import edges, node, workload

BARS, OUTLINES = ".gantt .bar", ".gantt rect.selected"


def in_sight(shown):
    """Number of a node in the upper middle of the picture, where nothing lies above it."""
    stage = shown["stage"]
    return next(
        i
        for i, n in enumerate(shown["nodes"])
        if stage["left"] + 120 < n["x"] < stage["left"] + stage["width"] - 120
        and stage["top"] + 40 < n["y"] < stage["top"] + stage["height"] / 2
    )


def whole(page):
    return page.locator(".gantt").first.get_attribute("data-zoomed") == "false"


def test_bars_and_picture_share_the_selection_and_what_is_zoomed_stays(page):
    drawn(page)
    go(page, "Studio", "Timeline")
    bar = page.locator(BARS).first
    expect(bar).to_be_visible()

    block = select(page, in_sight(drawn(page)))
    expect(page.get_by_text(re.compile(f"Selected: {block['ops']} ")).first).to_be_visible()
    expect(page.locator(OUTLINES).first).to_be_visible()

    frame = page.locator(".gantt svg").first.bounding_box()
    page.mouse.move(frame["x"] + frame["width"] * 0.2, frame["y"] + 60)
    page.mouse.down()
    page.mouse.move(frame["x"] + frame["width"] * 0.5, frame["y"] + 80, steps=4)
    page.mouse.up()
    assert not whole(page)
    seen = page.locator(".gantt").first.get_attribute("data-from")

    bar.hover()
    told = page.locator(".gantt .tip")
    expect(told).to_contain_text(re.compile(r"\d+ ops: .*on the critical path", re.DOTALL))
    num_ops = int(re.search(r"(\d+) ops:", told.inner_text())[1])
    bar.click()
    expect(page.get_by_text(f"Selected: {num_ops} ops").first).to_be_visible()
    until(page, "p.selection.length")
    expect(page.locator('.gantt rect.selected[data-bar="0"]')).to_have_count(1)
    assert page.locator(".gantt").first.get_attribute("data-from") == seen
    page.get_by_role("button", name="Whole").click()
    assert whole(page)

    expect(page.get_by_text(re.compile("computed in half the time")).first).to_be_visible()
    open_tab(page, "Memory")
    memory = page.get_by_test_id("stPlotlyChart").last
    devices = len(drawn(page)["counts"])
    expect(memory.locator(".scatterlayer .trace")).to_have_count(devices)


def training():
    """Two layers, forward and back again; a device has room for one layer."""
    nodes = [
        node(1, 500, 5, colorClass=0),
        node(2, 600, 6, colorClass=1),
        node(3, 700, 7, colorClass=1, isBackwardNode=True),
        node(4, 800, 8, colorClass=0, isBackwardNode=True),
    ]
    return workload(nodes, edges((1, 2, 0.1), (2, 3, 0.1), (3, 4, 0.1)), maxSizePerFPGA=2.0)


def test_a_training_workload_shows_gpipe_above_1f1b(page, tmp_path):
    drawn(page)
    path = tmp_path / "training.json"
    path.write_text(json.dumps(training()))
    upload(page, str(path))
    expect(page.get_by_text(re.compile(r"\(4 ops\)")).first).to_be_visible()
    go(page, "Studio", "Timeline")
    schedules = page.locator(".gantt").last
    expect(page.get_by_text("Training over micro-batches")).to_be_visible()
    field = page.get_by_role("spinbutton", name="Micro-batches per step")
    field.fill("3")
    field.press("Enter")
    for key in ("gpipe", "1f1b"):
        bars = schedules.locator(f'[data-panel="{key}"] .bar')
        expect(bars).to_have_count(3 * 2 * 2)
        assert len(set(bars.evaluate_all("found => found.map((r) => r.getAttribute('fill'))"))) == 2
    expect(metric(page, "GPipe bubble")).to_have_text(re.compile(r"[\d.]+%"))
    expect(metric(page, "1F1B step")).to_have_text(re.compile(r"[\d.]+ ms"))
