"""Comparing methods and asking what if, in a real browser, on a small workload."""

import json
import re

import pytest
from playwright.sync_api import expect

from pages.ui.what_if.conditions import SPEEDS
from studio.project import store
from tests.browser.studio import PATIENCE_MS, choose, metric, open_tab, settled, until
from tests.workloads import node, workload

# Methods are compiled when they are used for the first time on a computer.
COMPILING_MS = 2 * PATIENCE_MS
ROW_PX = 35


@pytest.fixture
def small(new_page, studio, tmp_path, monkeypatch):
    """Open a project of four nodes that need nothing of each other, of 1 to 4 ms each, at a tab of
    the dock."""

    def opened(tab):
        monkeypatch.setenv("PLACEMENT_STUDIO_HOME", str(studio.home))
        path = tmp_path / "four.json"
        nodes = [node(i, cpu_ms=40.0, acc_ms=float(i)) for i in (1, 2, 3, 4)]
        path.write_text(json.dumps(workload(nodes, [])))
        project = store.create()
        project.change(touch=False, model_kind="path", model=str(path), form={"dock-tab": tab})
        page = new_page(f"?project={project.id}")
        until(page, "p.counts.reduce((a, b) => a + b) === 4")
        settled(page)
        return page

    return opened


@pytest.mark.only_thorough
def test_methods_fill_the_board_and_two_placements_are_held_against_each_other(small):
    page = small("Board")
    page.get_by_role("button", name="Run all quick methods").click()
    told = page.get_by_text(re.compile(r"Compared \d methods: the best is metis, predicted"))
    expect(told.first).to_be_visible(timeout=COMPILING_MS)

    figures = page.get_by_test_id("stTable").first
    expect(figures).to_contain_text("5 ms, the best of these")
    expect(figures).to_contain_text("10 ms, +100%")
    moved = page.get_by_text(re.compile(r"From .+ to .+, . of 4 ops changes? (its|their) devices?"))
    expect(moved.first).to_be_visible()
    shown = until(page, "p.drawn && p.nodes.length === 4 && p.legend?.length !== 0")
    assert sum(shown["counts"]) == 4

    bars = page.locator("[data-bar]")
    expect(bars).to_have_count(3)
    bars.first.click()
    assert until(page, "p.selection.length > 0")["selection"]

    page.get_by_role("button", name="Show the dock alone").click()
    board = page.get_by_test_id("stDataFrame").first
    board.scroll_into_view_if_needed()
    box = board.bounding_box()
    expect(page.get_by_text(re.compile("The placement on the screen: greedy_fill"))).to_be_visible()
    page.mouse.click(box["x"] + box["width"] - 40, box["y"] + 1.5 * ROW_PX)
    opened = page.get_by_text("metis is now the placement on the screen")
    expect(opened.first).to_be_visible()
    expect(page.get_by_text(re.compile("The placement on the screen: metis"))).to_be_visible()


# The middle of a slider's handle, around its invisible field.
THUMB = """(field) => {
  const box = field.parentElement.parentElement.getBoundingClientRect();
  return [box.x + box.width / 2, box.y + box.height / 2];
}"""


@pytest.mark.only_thorough
def test_sliders_predict_another_machine_and_a_method_places_for_it(small):
    page = small("What if")
    expect(metric(page, "What-if time per step")).to_have_text("10 ms")
    slider = page.get_by_role("slider", name=re.compile("Speed of acc:0"))
    slider.focus()
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    expect(metric(page, "What-if time per step")).to_have_text("5 ms")
    sliders = page.get_by_role("slider", name=re.compile("^Speed of"))
    expect(metric(page, "Time per step as it is")).to_have_text("10 ms")
    expect(page.get_by_text("50% shorter").first).to_be_visible()
    page.reload()
    expect(metric(page, "What-if time per step")).to_have_text("5 ms")
    # After another tab all sliders stand where they were left, and untouched ones at no change.
    stood = [SPEEDS.index(2.0), *[SPEEDS.index(1.0)] * 2]
    for tab in ("", "Board"):
        if tab:
            open_tab(page, tab)
            open_tab(page, "What if")
        expect(sliders).to_have_count(3)
        for one, at in zip(sliders.all(), stood, strict=True):
            expect(one).to_have_value(str(at))
        expect(metric(page, "What-if time per step")).to_have_text("5 ms")
    # Held and not let go, it is simulated all the same; back where it was taken, nothing is kept.
    page.get_by_role("button", name="Show the dock alone").click()
    x, y = slider.evaluate(THUMB)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 60, y)
    expect(metric(page, "What-if time per step")).not_to_have_text("5 ms")
    page.mouse.move(x, y)
    expect(metric(page, "What-if time per step")).to_have_text("5 ms")
    page.mouse.move(x - 60, y)
    expect(metric(page, "What-if time per step")).not_to_have_text("5 ms")
    page.mouse.up()
    # Let go elsewhere and brought back by keys, it is not taken for held any more.
    for _ in range(SPEEDS.index(2.0) - int(slider.input_value())):
        page.keyboard.press("ArrowRight")
    expect(metric(page, "What-if time per step")).to_have_text("5 ms")

    choose(page, "Method", "single", within=page.locator(".st-key-desk-dock"))
    page.get_by_role("button", name="Place for the what-if machine").click()
    reached = page.get_by_text("On the what-if machine single would reach 5 ms (simulated).")
    expect(reached.first).to_be_visible(timeout=COMPILING_MS)
    page.get_by_role("button", name="Reset to the machine as it is").click()
    expect(metric(page, "What-if time per step")).to_have_text("10 ms")
    # What was found for the other machine is in a list of its own, not among the placements.
    page.get_by_role("combobox", name=re.compile("^Placement|Placement$")).first.click()
    expect(page.get_by_role("option")).to_have_count(1)
