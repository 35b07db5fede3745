"""Gestures in the studio itself: what the browser draws, and what the project holds after it."""

import re

from playwright.sync_api import expect

from tests.browser.studio import drawn, select, until

# Whether the node with the given id is within the stage.
SHOWN = """(() => {
    const n = p.nodes.find((n) => n.id === given);
    return n.x > p.stage.left && n.x < p.stage.left + p.stage.width &&
        n.y > p.stage.top && n.y < p.stage.top + p.stage.height;
})()"""


def press(page, keys):
    page.locator(".canvas").focus()
    page.keyboard.press(keys)


def search(page, text, by="name"):
    press(page, "/")
    page.get_by_label("Search by").select_option(by)
    page.get_by_role("searchbox").fill(text)
    page.get_by_role("searchbox").press("Enter")
    return until(page, "p.found && /of|No|no/.test(p.found)")


def test_search_pin_drag_undo_and_widen_reach_the_project(page):
    select(page, 0)
    found = search(page, "conv", "type")
    assert found["found"].startswith("1 of ")
    [selected] = until(page, "p.selection.length === 1")["selection"]
    expect(page.get_by_text("Selected: 1 Conv op")).to_be_visible()
    press(page, "p")
    page.keyboard.press("Escape")
    until(page, "p.nodes.find((n) => n.id === given).pin === '2'", selected)
    node = next(n for n in until(page, SHOWN, selected)["nodes"] if n["id"] == selected)
    expect(page.get_by_text(re.compile(r"Pinned: \d+ on")).first).to_be_visible()

    other = 1 - node["device"]
    page.keyboard.press(str(other + 1))
    expect(page.get_by_text("pinned and stayed").first).to_be_visible()
    until(page, "p.nodes.find((n) => n.id === given).device !== " + str(other), selected)

    search(page, "conv", "type")
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
    assert search(page, "no such op at all")["found"] == "No match"


def test_a_row_of_the_table_is_brought_into_view(page):
    drawn(page)
    for _ in range(7):
        page.get_by_role("button", name="Zoom in").click()
    away = drawn(page)["centre"]
    page.get_by_text("Table of ops").click()
    rows = page.locator("tbody tr[data-op]")
    expect(rows).to_have_count(50)
    rows.nth(0).click()
    shown = until(page, "p.numSelected === 1 && Math.abs(p.centre.y - given.y) > 50", away)
    node = next(n for n in shown["nodes"] if n["selected"] != "0")
    until(page, SHOWN, node["id"])
