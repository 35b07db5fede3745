"""Gestures in the studio itself: what the browser draws, and what the project holds after it."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.studio import SHOWN, drawn, settled, until


def press(page, keys):
    page.locator(".canvas").focus()
    page.keyboard.press(keys)


def test_search_pin_drag_undo_and_widen_reach_the_project(page):
    drawn(page)
    press(page, "/")
    page.get_by_label("Search by").select_option("type")
    page.get_by_role("searchbox").fill("conv")
    page.get_by_role("searchbox").press("Enter")
    until(page, "p.found?.startsWith('1 of ')")
    [selected] = until(page, "p.selection.length === 1")["selection"]
    expect(page.get_by_text("Selected: 1 Conv op")).to_be_visible()
    pinned = page.get_by_text(re.compile(r"Pinned: \d+ on"))
    page.get_by_role("button", name="Pin", exact=True).first.click()
    expect(pinned.first).to_be_visible()
    # The focus is on the button, and what it did is taken back all the same.
    settled(page)
    page.keyboard.press("Control+z")
    expect(pinned).to_have_count(0)
    press(page, "p")
    until(page, "p.nodes.find((n) => n.id === given).pin === '2'", selected)
    node = next(n for n in until(page, SHOWN, selected)["nodes"] if n["id"] == selected)
    expect(pinned.first).to_be_visible()

    other = 1 - node["device"]
    page.keyboard.press(str(other + 1))
    expect(page.get_by_text("pinned and stayed").first).to_be_visible()
    until(page, "p.nodes.find((n) => n.id === given).device !== " + str(other), selected)

    press(page, "Delete")
    until(page, "p.nodes.find((n) => n.id === given).pin === '0'", selected)
    chip = page.locator(".chip").nth(other).bounding_box()
    now = next(n for n in drawn(page)["nodes"] if n["id"] == selected)
    page.mouse.move(now["x"], now["y"])
    page.mouse.down()
    page.mouse.move(chip["x"] + 30, chip["y"] + 12, steps=6)
    page.mouse.up()
    moved = until(
        page, "p.nodes.find((n) => n.id === given[0]).device === given[1]", [selected, other]
    )
    expect(page.get_by_role("button", name=re.compile(r"^Undo .+ to .+ \(Ctrl"))).to_be_visible()
    press(page, "Control+z")
    until(page, "JSON.stringify(p.counts) !== JSON.stringify(given)", moved["counts"])
    press(page, "Control+y")
    until(page, "JSON.stringify(p.counts) === JSON.stringify(given)", moved["counts"])

    press(page, "Shift+ArrowDown")
    before = until(page, "p.numSelected > 1")["numSelected"]
    expect(page.get_by_text(f"Selected: {before} ops").first).to_be_visible()


SEEN_CHIPS = """(all) => all.filter((chip) => {
  const { left, right, top, bottom } = chip.getBoundingClientRect(), root = chip.getRootNode();
  const on = (x) => root.elementFromPoint(x, (top + bottom) / 2)?.closest('.chip') === chip;
  const row = chip.parentElement.getBoundingClientRect();
  return left >= row.left - 1 && right <= row.right + 1 && on(left + 4) && on(right - 4);
}).length"""


@pytest.mark.only_thorough
def test_devices_that_have_no_room_are_counted_and_one_press_away(new_page, project_about):
    page = new_page(project_about(machine="two-hosts-16gpu", model="onnx-squeezenet"))
    page.set_viewport_size({"width": 1280, "height": 720})
    settled(page)
    # The picture follows the window, and what is in it for a while after that.
    until(page, "p.stage.left + p.stage.width <= 1280 && p.stage.top + p.stage.height <= 720")
    page.wait_for_timeout(600)
    before = drawn(page)
    chips, more = page.locator(".canvas .chip"), page.locator(".places .more")
    number = chips.count()
    assert number == 18
    shut = chips.evaluate_all(SEEN_CHIPS)
    assert 0 < shut < number
    expect(more).to_have_text(f"+{number - shut}")
    expect(more).to_have_attribute("aria-expanded", "false")
    more.focus()
    page.keyboard.press("Enter")
    expect(more).to_have_attribute("aria-expanded", "true")
    assert chips.evaluate_all(SEEN_CHIPS) == number
    # It lies over the picture, which stays as it was.
    shown = drawn(page)
    assert (shown["stage"], shown["scale"], shown["centre"]) == (
        before["stage"],
        before["scale"],
        before["centre"],
    )
    page.keyboard.press("Escape")
    expect(more).to_have_text(f"+{number - shut}")
    # What is dragged finds all of them.
    node = shown["nodes"][-1]
    page.mouse.move(node["x"], node["y"])
    page.mouse.down()
    page.mouse.move(node["x"] + 12, node["y"] + 12, steps=3)
    last = chips.nth(number - 1).bounding_box()
    page.mouse.move(last["x"] + 30, last["y"] + 12, steps=6)
    page.mouse.up()
    until(page, f"p.counts[{number - 1}] > 0")
    expect(more).to_have_attribute("aria-expanded", "false")
    # With room for all of them there is nothing to open.
    page.set_viewport_size({"width": 4200, "height": 900})
    expect(more).to_be_hidden()
    assert chips.evaluate_all(SEEN_CHIPS) == number
