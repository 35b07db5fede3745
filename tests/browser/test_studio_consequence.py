"""What a move would do, in a real browser: shown before it is made, and told after it."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.serving import ROOT
from tests.browser.studio import drawn, score, select, settled, until

FORECAST, GHOST, PAST = ".canvas .forecast", ".gantt .foretold path", ".gantt .past path"
CHIPS = ".canvas .chip"
CONSEQUENCE = ROOT / "assets" / "consequence" / "consequence.js"


@pytest.fixture
def desk(new_page, project_about):
    return opened(new_page, project_about)


@pytest.fixture(scope="module")
def lasting_desk(lasting_page, project_about):
    """For tests that take back all that they begin."""
    return opened(lasting_page, project_about)


def opened(new_page, project_about):
    """The Studio page of a new project, at rest, with its timeline drawn."""
    page = new_page(project_about(model="onnx-squeezenet"))
    drawn(page)
    settled(page)
    expect(page.locator(".gantt .bar").first).to_be_visible()
    return page


def middle(box):
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def elsewhere(page, node):
    """The number of a device that a node is not on."""
    return next(i for i in range(len(drawn(page)["counts"])) if i != node["device"])


def told_after(page):
    """The step time that the forecast says a move would lead to."""
    expect(page.locator(f"{FORECAST} .score")).to_have_text(re.compile("→"))
    expect(page.locator(GHOST)).to_have_attribute("d", re.compile("^M"))
    text = page.locator(f"{FORECAST} .score").inner_text()
    return re.search(r"→ ([\d.]+ \S+),", text)[1]


def unchanged(page, before):
    expect(page.locator(FORECAST)).to_be_hidden()
    expect(page.locator(GHOST)).to_have_count(0)
    now = drawn(page)
    assert now["counts"] == before["counts"] and now["pending"] == 0
    expect(page.get_by_role("button", name="Undo", exact=True).first).to_be_disabled()


@pytest.mark.only_thorough
def test_the_menu_foretells_the_entry_in_focus_or_under_the_pointer(lasting_desk):
    desk = lasting_desk
    node = select(desk, 1)
    before, device = drawn(desk), elsewhere(desk, node)
    desk.keyboard.press("m")
    entries = desk.locator(".canvas .menu .entry")
    entries.nth(device).focus()
    told = told_after(desk)
    entries.last.focus()
    expect(desk.locator(FORECAST)).to_be_hidden()
    entries.nth(device).hover()
    assert told_after(desk) == told
    desk.keyboard.press("Escape")
    unchanged(desk, before)


def test_a_bar_over_another_lane_foretells_and_escape_takes_it_back(lasting_desk):
    desk = lasting_desk
    bar = desk.locator(".gantt .bar.movable").first
    before, box = drawn(desk), bar.bounding_box()
    lanes = desk.locator(".gantt .row:not(.link)")
    x, y = middle(box)
    others = (lanes.nth(i).bounding_box() for i in range(lanes.count()))
    other = next(lane for lane in others if abs(middle(lane)[1] - y) > 10)
    desk.mouse.move(x, y)
    desk.mouse.down()
    desk.mouse.move(x + 10, middle(other)[1], steps=4)
    expect(desk.locator(GHOST)).to_have_attribute("d", re.compile("^M"))
    expect(desk.locator(".gantt .foretold .told")).to_have_text(re.compile("→"))
    # What is said beside the bar lies above what is foretold.
    expect(desk.locator(".gantt .foretold ~ .plate")).to_have_count(1)
    desk.keyboard.press("Escape")
    desk.mouse.up()
    unchanged(desk, before)


ASK = """async () => {
  const asked = [];
  globalThis.fetch = async (address, { body }) => {
    asked.push(JSON.parse(body));
    return { status: 200, json: async () => ({ of: "p", number: asked.length }) };
  };
  consequences.about({ address: "/", of: "p" }, "s");
  const bar = { kind: "drop", bar: 1, all: true }, numbers = [];
  const questions = [{ nodes: ["o1"] }, { nodes: null }, { bar }, { bar: { ...bar, all: false } }];
  for (const what of [...questions, ...questions]) {
    const told = new Promise((resolve) => {
      const hear = ({ detail }) => {
        if (!detail) return;
        window.removeEventListener("placement-consequence", hear);
        resolve(detail.number);
      };
      window.addEventListener("placement-consequence", hear);
    });
    consequences.ask({ device: 1, ...what });
    numbers.push(await told);
    consequences.end();
  }
  return numbers;
}"""


def test_what_depends_on_the_selection_is_asked_again(visitor):
    """The selection may be another by then; what nodes and lone bars do is known."""
    page = visitor.new_page()
    page.add_script_tag(path=CONSEQUENCE)
    assert page.evaluate(ASK) == [1, 2, 3, 4, 1, 5, 6, 4]
    page.close()


def test_the_box_holds_what_stands_against_a_move(lasting_desk):
    node = select(lasting_desk, 1)
    chip = lasting_desk.locator(CHIPS).nth(elsewhere(lasting_desk, node))
    chip.focus()
    told_after(lasting_desk)
    note = "Device 'gpu:0' needs 13.2 MiB but has 2.05 MiB. " * 3
    told = {"about": "78 ops to gpu:0", "text": "1 ms → 2 ms, +100%", "way": 1, "note": note}
    lasting_desk.evaluate(
        "told => window.dispatchEvent(new CustomEvent('placement-consequence', { detail: told }))",
        told,
    )
    words = lasting_desk.locator(f"{FORECAST} .against")
    expect(words).to_have_text(note.strip())
    inner, outer = words.bounding_box(), lasting_desk.locator(FORECAST).bounding_box()
    above = lasting_desk.locator(f"{FORECAST} .about").bounding_box()
    assert above["y"] + above["height"] <= inner["y"]
    assert inner["y"] + inner["height"] <= outer["y"] + outer["height"]
    assert outer["x"] <= inner["x"]
    assert inner["x"] + inner["width"] <= outer["x"] + outer["width"]
    chip.blur()
    expect(lasting_desk.locator(FORECAST)).to_be_hidden()


def test_a_key_and_a_drag_show_what_they_do_and_do_it_when_let_go(desk):
    node = select(desk, 1)
    before, first = drawn(desk), score(desk).inner_text()
    device = elsewhere(desk, node)
    key = str(device + 1)
    desk.keyboard.down(key)
    told = told_after(desk)
    desk.keyboard.press("Escape")
    desk.keyboard.up(key)
    unchanged(desk, before)
    assert drawn(desk)["selection"] == [node["id"]]

    chip = middle(desk.locator(CHIPS).nth(device).bounding_box())
    axis = desk.locator(".gantt").first.get_attribute("data-to")
    desk.mouse.move(node["x"], node["y"])
    desk.mouse.down()
    desk.mouse.move(*chip, steps=4)
    # What is dragged has words of its own, which hide nothing of the device.
    words, tile = (
        desk.locator(part).bounding_box()
        for part in (".canvas .ghost", f"{CHIPS}[data-device='{device}']")
    )
    assert words["y"] >= tile["y"] + tile["height"]
    assert told_after(desk) == told
    assert score(desk).inner_text() == first
    assert desk.locator(".gantt").first.get_attribute("data-to") == axis
    # Off the device again, nothing is foretold; Escape ends the drag.
    desk.mouse.move(chip[0], chip[1] + 200)
    expect(desk.locator(FORECAST)).to_be_hidden()
    desk.mouse.move(*chip)
    assert told_after(desk) == told
    desk.keyboard.press("Escape")
    desk.mouse.up()
    # A pointer that rests on a chip is told again.
    desk.mouse.move(chip[0], chip[1] + 200)
    unchanged(desk, before)

    # What is zoomed into stays, though the edit goes to a placement of its own.
    gantt = desk.locator(".gantt").first
    gantt.get_by_role("button", name="Zoom in").click()
    seen = gantt.get_attribute("data-from"), gantt.get_attribute("data-to")
    desk.locator(".canvas").first.focus()
    desk.keyboard.down(key)
    assert told_after(desk) == told
    desk.keyboard.up(key)
    expect(desk.locator(FORECAST)).to_be_hidden()
    until(desk, "p.nodes[1].device === given", device)
    settled(desk)
    expect(desk.locator(PAST)).to_have_count(1)
    assert (gantt.get_attribute("data-from"), gantt.get_attribute("data-to")) == seen
    # The timeline's keys hold as the picture's do.
    gantt.focus()
    desk.keyboard.down(str(node["device"] + 1))
    expect(desk.locator(GHOST)).to_have_attribute("d", re.compile("^M"))
    desk.keyboard.press("Escape")
    desk.keyboard.up(str(node["device"] + 1))
    expect(desk.locator(GHOST)).to_have_count(0)
    gantt.press(str(node["device"] + 1))
    until(desk, "p.nodes[1].device === given", node["device"])
    gantt.get_by_role("button", name="Whole").click()

    desk.mouse.move(node["x"], node["y"])
    desk.mouse.down()
    desk.mouse.move(*chip, steps=4)
    desk.mouse.up()
    until(desk, "p.nodes[1].device === given", device)
    number, unit = told.split()
    expect(score(desk)).to_have_text(re.compile(rf"^[\d.]+ {unit}$|^[\d.]+ \S+$"))
    said = desk.locator('[class*="st-key-last-edit"]')
    expect(said).to_contain_text(re.compile(rf"→ {re.escape(number)} {unit}"))
    expect(desk.locator(PAST)).to_have_attribute("d", re.compile("^M"))
    assert float(desk.locator(".gantt").first.get_attribute("data-to")) >= float(axis)
