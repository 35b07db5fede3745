"""Colours by another measure, hatches, and the table that shares its selection with the picture."""

import re

import pytest
from playwright.sync_api import expect

from placement.drawing.colours.palette import colours
from tests.browser.studio import SHOWN, choose, drawn, until

PIXEL = """(canvas, [x, y]) => {
  const box = canvas.getBoundingClientRect();
  const zoom = canvas.width / box.width;
  const at = [Math.round((x - box.left) * zoom), Math.round((y - box.top) * zoom)];
  const [r, g, b] = canvas.getContext("2d").getImageData(...at, 1, 1).data;
  return "#" + [r, g, b].map((v) => v.toString(16).padStart(2, "0")).join("");
}"""


def colour_at(page, node):
    """The colour on the screen near the upper right corner of a node, where nothing is written."""
    spot = [node["x"] + node["w"] * 0.3, node["y"] - node["h"] / 2 + 4]
    return page.locator(".drawing canvas").evaluate(PIXEL, spot)


def layout(shown):
    """Where the nodes are in relation to the first, at a scale of 1."""
    first, scale = shown["nodes"][0], shown["scale"]
    return [
        (n["id"], round((n["x"] - first["x"]) / scale), round((n["y"] - first["y"]) / scale))
        for n in shown["nodes"]
    ]


@pytest.fixture(scope="module")
def lasting(lasting_page):
    """The page of a model; each test takes it as `closed` makes it."""
    return lasting_page()


def closed(page, height=900):
    """The picture on a light ground with all blocks closed, all of it in sight."""
    page.set_viewport_size({"width": 1440, "height": height})
    page.emulate_media(color_scheme="light")
    drawn(page)
    page.get_by_role("button", name="Close all blocks").click()
    until(page, "p.drawn === p.view && !p.boxes.length")
    page.get_by_role("button", name="Show everything").click()
    page.wait_for_timeout(400)


@pytest.mark.only_thorough
def test_colours_follow_the_switch_and_the_legend_says_what_they_mean(lasting):
    page = lasting
    closed(page)
    legend = page.locator(".legend")
    choose(page, "Colour by", "Time")
    shown = until(page, "p.nodes.every((n) => n.tone !== '')")
    expect(legend).to_contain_text("Time on its device")
    expect(legend.locator(".step")).to_have_count(len(colours("scale")))
    expect(legend.locator(".end").nth(0)).to_have_text("0 s")
    expect(legend.locator(".end").nth(1)).to_have_text(re.compile(r"[\d.]+ (ms|s|µs)"))
    tones = [node["tone"] for node in shown["nodes"]]
    assert len(set(tones)) > 2
    most = shown["nodes"][max(range(len(tones)), key=lambda i: tones[i])]
    # On a light ground the most is the darkest.
    assert most["fill"] == colours("scale")[0] == colour_at(page, most)
    page.emulate_media(color_scheme="dark")
    until(page, "p.dark")
    node = next(n for n in drawn(page)["nodes"] if n["id"] == most["id"])
    assert node["fill"] == colours("scale")[-1] == colour_at(page, node)
    page.emulate_media(color_scheme="light")

    choose(page, "Colour by", "Op type")
    shown = until(page, "p.nodes.some((n) => n.tone === '*')")
    expect(legend).to_contain_text("Conv69")
    page.mouse.move(shown["nodes"][1]["x"], shown["nodes"][1]["y"])
    expect(page.locator(".tooltip")).to_contain_text(re.compile("about [0-9]+%: Conv"))
    before = layout(shown)
    choose(page, "Colour by", "Device")
    shown = until(page, "p.nodes.every((n) => n.tone === '')")
    assert layout(shown) == before, "nothing is laid out anew"
    chips = page.locator(".chip")
    expect(chips.nth(0)).to_contain_text(re.compile(r"ops\s*busy [\d.]+ ms · [\d.]+ MiB"))
    assert "data:" not in chips.nth(1).locator(".swatch").get_attribute("style")
    bars = page.locator("[data-testid=stHtml] .track > div")
    assert "url(" not in bars.nth(2).get_attribute("style")
    page.get_by_text("Hatch devices").click()
    expect(chips.nth(1).locator(".swatch")).to_have_attribute("style", re.compile("data:image/png"))
    # So are the loads beside the picture; the first device is plain everywhere.
    expect(bars.nth(2)).to_have_css("background-image", re.compile("data:image/svg"))
    expect(bars.nth(0)).to_have_css("background-image", "none")


def test_the_table_and_the_picture_share_one_selection(lasting):
    page = lasting
    closed(page, height=1700)
    for _ in range(7):
        page.get_by_role("button", name="Zoom in").click()
    away = drawn(page)["centre"]
    page.get_by_text("Table of ops").click()
    rows = page.locator("tbody tr[data-op]")
    expect(rows).to_have_count(50)
    expect(page.locator("caption")).to_contain_text("371 of 371 ops")

    # What is selected by a row is brought into view.
    rows.nth(0).click()
    shown = until(page, "p.numSelected === 1 && Math.abs(p.centre.y - given.y) > 50", away)
    assert [n["selected"] for n in shown["nodes"][:2]] == ["1", "0"]
    until(page, SHOWN, shown["nodes"][0]["id"])
    rows.nth(1).get_by_role("checkbox").check()
    expect(page.get_by_text("Selected: 2 ops").first).to_be_visible()
    expect(page.locator("caption")).to_contain_text("Selected: 2, together")

    page.get_by_role("button", name="Show everything").click()
    page.wait_for_timeout(400)
    last = drawn(page)["nodes"][-1]
    page.mouse.click(last["x"], last["y"])
    expect(page.locator("caption")).to_contain_text(f"Selected: {last['ops']}, together")
    expect(page.locator(".where")).to_have_text("Page 8 of 8")
    expect(page.locator("tr.chosen")).to_have_count(last["ops"])
    expect(page.locator("tr.chosen").first).to_be_in_viewport()

    page.get_by_role("columnheader", name="Time").get_by_role("button").click()
    expect(page.locator("th[aria-sort=descending]")).to_have_count(1)
    page.get_by_role("textbox", name="Filter").fill("maxpool")
    page.get_by_role("textbox", name="Filter").press("Enter")
    expect(page.locator("caption")).to_contain_text("5 of 371 ops")
    page.get_by_role("checkbox", name="Select all rows of this page").check()
    expect(page.locator("caption")).to_contain_text(f"Selected: {last['ops'] + 5}, together")
    until(page, "p.nodes.filter((n) => n.selected === '1').length >= 3")
    page.get_by_role("checkbox", name="Select all rows of this page").uncheck()
    rows.nth(0).click()
    expect(page.locator("caption")).to_contain_text("Selected: 1, together")
    page.get_by_role("button", name="Show in the picture").click()
    until(page, "p.nodes.some((n) => n.label === 'MaxPool' && n.selected === '2')")
