"""Pins, rules, the list of changes and placing the selection, in a real browser."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.studio import (
    DIFFERS,
    PATIENCE_MS,
    SAME,
    choose,
    drawn,
    open_tab,
    select,
    settled,
    until,
)


@pytest.fixture
def page(new_page, project_about, timed):
    """The Studio page with a network of 66 ops, where a method is chosen that takes no time."""
    timed("onnx-squeezenet")
    page = new_page(project_about(model="onnx-squeezenet", form={"placer": "single"}))
    settled(page)
    return page


def button(page, name):
    exact = isinstance(name, str)
    return page.get_by_role("button", name=name, exact=exact).first


@pytest.mark.only_thorough
def test_pins_hold_against_keys_and_reload_and_are_undone(page):
    before = drawn(page)["counts"]
    node = select(page, 1)
    button(page, "Pin").click()
    pinned = page.get_by_text(re.compile(r"Pinned: \d+ on "))
    expect(pinned.first).to_be_visible()
    # The focus is on the button, and what it did is taken back all the same.
    settled(page)
    page.keyboard.press("Control+z")
    expect(pinned).to_have_count(0)
    page.keyboard.press("Control+y")
    expect(pinned.first).to_be_visible()
    page.mouse.click(node["x"], node["y"])
    for key in ("1", "2"):
        page.keyboard.press(key)
    expect(page.get_by_text(re.compile("pinned and stayed; to move")).first).to_be_visible()
    assert drawn(page)["counts"] == before
    page.reload()
    assert drawn(page)["counts"] == before
    expect(pinned.first).to_be_visible()
    button(page, "Undo").click()
    expect(pinned).to_have_count(0)
    select(page, 1)
    page.keyboard.press("1" if before[1] >= before[0] else "2")
    until(page, DIFFERS, before)


@pytest.mark.only_thorough
def test_rules_are_added_ordered_applied_and_left_by_a_click_on_an_earlier_state(page):
    before = drawn(page)["counts"]
    page.get_by_text("Rules by op type, block or name").click()
    choose(page, "New rule for", "Pattern or list of rules")
    page.get_by_role("textbox", name="Pattern or list of rules").fill(
        "*=cpu:0; Conv=cpu:1; Gone=cpu:0"
    )
    # Pressed before the page was drawn with what was typed.
    button(page, "Add").click()
    expect(page.get_by_text("matches no op").first).to_be_visible()
    button(page, "Apply rules").click()
    expect(page.get_by_text(re.compile("Without effect: Gone=cpu:0")).first).to_be_visible()
    by_rule = until(page, DIFFERS, before)["counts"]
    assert sum(by_rule) == 66 and by_rule[1] >= 26
    # Who types takes back letters, and no step of the placement.
    page.get_by_role("textbox", name="Pattern or list of rules").press("Control+z")
    page.locator(".st-key-rule-up-1 button:visible").click()
    expect(page.get_by_text("later rules take all of its ops").first).to_be_visible()
    button(page, "Apply rules").click()
    until(page, SAME, [66, 0])
    open_tab(page, "History")
    button(page, re.compile("^1: rules ")).click()
    until(page, SAME, by_rule)
    button(page, re.compile("^0: as it was made")).click()
    until(page, SAME, before)
    button(page, "Redo").click()
    until(page, SAME, by_rule)


def test_a_placement_is_started_deleted_brought_back_and_the_selection_placed_alone(page):
    before = drawn(page)["counts"]
    button(page, re.compile("^Edit")).click()
    button(page, "Start").click()
    until(page, SAME, [66, 0])
    restored = button(page, re.compile("Bring back manual"))
    for name, shown in (("Delete", before), (restored, [66, 0])):
        wanted = button(page, name) if isinstance(name, str) else name
        if not wanted.is_visible():
            button(page, re.compile("^Edit")).click()
        wanted.click()
        until(page, SAME, shown)
    page.keyboard.press("Escape")

    button(page, "Place").click()
    told = page.get_by_text(re.compile("Placed by single"))
    expect(told.first).to_be_visible(timeout=60_000)
    settled(page)
    start = drawn(page)["counts"]
    key = "2" if start[0] else "1"
    select(page, 3)
    page.keyboard.press(key)
    moved = until(page, DIFFERS, start)
    by_hand, start = moved["nodes"][3], moved["counts"]
    select(page, 1)
    page.keyboard.press(key)
    before = until(page, DIFFERS, start)["counts"]
    # It told what the method found, and that is not on the screen any more.
    expect(told).to_have_count(0, timeout=30_000)
    unit = abs(before[0] - start[0])  # what is fused with the selected op moves along
    button(page, "Place selection").click()
    placed = page.get_by_text(re.compile(r"Placed by single on \d+ ops?: predicted"))
    expect(placed.first).to_be_visible(timeout=PATIENCE_MS)
    number = int(re.search(r"on (\d+) op", placed.first.inner_text())[1])
    shown = drawn(page)
    after = shown["counts"]
    assert abs(after[0] - before[0]) <= unit and number <= unit < 66 and sum(after) == 66
    assert shown["nodes"][3]["device"] == by_hand["device"], "it was not selected"
    expect(page.get_by_role("combobox", name=re.compile("Placement")).first).to_have_value(
        re.compile(f"single on {number} op")
    )
