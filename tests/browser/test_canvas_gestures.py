"""Finding, widening, pinning and navigating on the canvas, in a real Chromium."""

import pytest

from tests.thorough import either

pytestmark = pytest.mark.browser

# Notes what a line says from now on.
TOLD = """(line) => {
  globalThis.told = [];
  const told = new MutationObserver(() => globalThis.told.push(line.textContent));
  told.observe(line, { childList: true, characterData: true, subtree: true });
}"""

# Takes the focus away from whatever has it, in the picture too.
BLUR = """() => {
  let at = document.activeElement;
  while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
  at?.blur();
}"""


def search(canvas, text, by="name"):
    """Open the search bar and type; what it tells about matches is awaited."""
    canvas.page.locator(".canvas").focus()
    canvas.page.keyboard.press("/")
    canvas.page.get_by_label("Search by").select_option(by)
    canvas.page.get_by_role("searchbox").fill(text)
    canvas.wait("p.found && p.found !== '…'")
    return canvas.settled()["found"]


def shown(canvas, node_id):
    """The node, once it is within the stage."""
    canvas.wait(
        f"(() => {{ const n = p.nodes.find((n) => n.id === '{node_id}'); return n &&"
        " n.x > p.stage.left && n.x < p.stage.left + p.stage.width &&"
        " n.y > p.stage.top && n.y < p.stage.top + p.stage.height; })()"
    )
    return next(n for n in canvas.probe()["nodes"] if n["id"] == node_id)


def test_search_opens_blocks_and_goes_from_match_to_match(opened):
    canvas = opened("model=blocks-20")
    page = canvas.page
    assert search(canvas, "block19/b2") == "2 ops"
    assert canvas.held()["selection"] == [], "typing alone selects nothing"
    page.keyboard.press("Enter")
    canvas.wait("p.found === '1 of 2'")
    held = canvas.held()["selection"]
    assert held == ["net/block19/b2/conv_0"]
    [selected] = canvas.probe()["selection"]
    assert not shown(canvas, selected)["closed"]
    page.keyboard.press("Enter")
    canvas.wait("p.found === '2 of 2'")
    assert canvas.held()["selection"] == ["net/block19/b2/relu_1"]
    page.keyboard.press("Shift+Enter")
    canvas.wait("p.found === '1 of 2'")
    assert search(canvas, "no such op") == "No match"
    assert canvas.probe()["said"] == "No match"
    assert search(canvas, "b[02]/conv_0$", "regex") == "40 ops"
    assert search(canvas, "block[", "regex").startswith("This is no regular expression")
    assert search(canvas, "concat", "type") == "20 ops"
    page.keyboard.press("Escape")
    assert canvas.probe()["found"] is None


def test_pins_are_drawn_at_once_and_what_is_told_of_a_move_is_what_moved(opened):
    """Pinned ops stay: of a node that is seen here at once, of those in closed blocks by Python."""
    canvas = opened()
    page = canvas.page
    node = canvas.node("b0")
    canvas.click(node)
    _pins_are_drawn_at_once_and_taken_away(canvas, node)
    page.keyboard.press("p")
    total = len(canvas.held()["devices"])
    page.keyboard.press("Control+a")
    other = next(one for one in canvas.probe()["nodes"] if one["label"] != "b0")
    page.mouse.move(other["x"], other["y"])
    page.mouse.down()
    page.mouse.move(other["x"] + 20, other["y"] + 20, steps=3)
    assert page.locator(".canvas .ghost").inner_text() == f"{total} ops, {node['ops']} pinned"
    page.mouse.up()
    page.keyboard.press("3")
    assert canvas.node("b0")["device"] == node["device"], "a pinned node does not even blink"
    moved = f"{total - node['ops']} ops on"
    assert canvas.probe()["status"].startswith(moved) and canvas.probe()["said"].startswith(moved)
    assert canvas.held()["devices"].count(2) == total - node["ops"]
    assert canvas.probe()["status"].startswith(moved)
    page.keyboard.press("Control+z")
    assert canvas.probe()["status"] == f"Selected: {total} ops"
    canvas.wait("p.counts[2] === 0")
    # All of them, of which one block is pinned in part: nothing is told before it is known.
    page.get_by_role("button", name="Close all blocks").click()
    canvas.wait("p.boxes.length === 0")
    page.locator(".canvas").focus()
    page.locator(".canvas .status").evaluate(TOLD)
    page.keyboard.press("3")
    canvas.wait(f"p.status.startsWith('{moved}')")
    assert len([said for said in page.evaluate("told") if " on " in said]) == 1
    page.keyboard.press("Control+z")
    canvas.wait("p.counts[2] === 0")
    _ops_inside_closed_blocks_are_placed_and_pinned(canvas)


def _pins_are_drawn_at_once_and_taken_away(canvas, node):
    page = canvas.page
    page.keyboard.press("p")
    assert canvas.node("b0")["pin"] == "2", "the sign does not wait for Python"
    assert len(canvas.held()["pins"]) == node["ops"]
    assert "pinned" in page.locator(".legend").inner_text()
    page.keyboard.press("m")
    page.get_by_role("menuitem", name="Unpin").click()
    assert canvas.held()["pins"] == [] and canvas.node("b0")["pin"] == "0"
    page.keyboard.press("p")
    page.keyboard.press("Delete")
    assert canvas.held()["pins"] == []


def _ops_inside_closed_blocks_are_placed_and_pinned(canvas):
    """Some ops of every block, a few of them pinned, which no card can tell."""
    page = canvas.page
    search(canvas, "Conv", "type")
    page.keyboard.press("Control+Enter")
    canvas.wait("p.nodes.every((n) => n.selected === '1')")
    page.keyboard.press("Escape")
    held = canvas.held()
    convs, pins = held["selection"], held["pins"]
    assert len(convs) > 6 and canvas.probe()["numSelected"] == len(convs)
    free = set(convs) - set(pins)
    assert free < set(convs)
    page.keyboard.press("3")
    canvas.wait(f"p.status.startsWith('{len(free)} ops on')")
    assert canvas.held()["devices"].count(2) == canvas.probe()["counts"][2] == len(free)
    page.keyboard.press("Control+z")
    canvas.wait("p.counts[2] === 0")
    assert " on " not in canvas.probe()["status"]
    page.keyboard.press("Control+y")
    canvas.wait(f"p.counts[2] === {len(free)}")
    page.keyboard.press("p")
    assert canvas.held()["pins"] == sorted({*convs, *pins})
    assert {n["pin"] for n in canvas.settled()["nodes"]} == {"1"}


def test_selecting_all_before_after_and_alike(opened):
    canvas = opened()
    page = canvas.page
    box = canvas.probe()["boxes"][2]
    scale = canvas.probe()["scale"]

    def select_title():
        page.mouse.click(box["x"] + box["w"] / 2, box["y"] + 12 * scale)
        assert len(canvas.held()["selection"]) == 12

    select_title()
    page.keyboard.press("Shift+ArrowUp")
    canvas.wait("p.numSelected === 36")
    assert len(canvas.held()["selection"]) == 36
    select_title()
    page.keyboard.press("Shift+ArrowDown")
    canvas.wait("p.numSelected === 48")
    select_title()
    page.keyboard.press("m")
    page.get_by_role("menuitem", name="Select all alike").click()
    canvas.wait("p.numSelected === 72")
    assert {n["selected"] for n in canvas.settled()["nodes"]} == {"2"}
    first = canvas.probe()["nodes"][0]
    canvas.click(first)
    page.keyboard.press("a")
    canvas.wait("p.numSelected === 6")
    assert {n["label"] for n in canvas.settled()["nodes"] if n["selected"] == "2"} == {"Identity"}


def test_a_title_and_a_whole_selection_are_dragged_onto_a_device(opened):
    canvas = opened()
    box = canvas.probe()["boxes"][1]
    scale = canvas.probe()["scale"]
    chip = canvas.page.locator(".chip").nth(2).bounding_box()
    target = (chip["x"] + 20, chip["y"] + 10)
    canvas.drag((box["x"] + box["w"] / 2, box["y"] + 12 * scale), target)
    assert canvas.held()["devices"].count(2) == 12
    canvas.page.keyboard.press("Control+a")
    node = canvas.probe()["nodes"][0]
    canvas.drag((node["x"], node["y"]), target)
    assert canvas.held()["devices"] == [2] * 72


def test_the_minimap_appears_when_needed_and_moves_the_drawing(opened):
    canvas = opened()
    assert canvas.probe()["map"] is None, "everything is in sight"
    for _ in range(6):
        canvas.page.get_by_role("button", name="Zoom in").click()
    before = canvas.wait("p.map")
    area = before["map"]
    canvas.page.mouse.click(area["left"] + area["width"] * 0.8, area["top"] + area["height"] * 0.7)
    after = canvas.wait(f"p.centre.x > {before['centre']['x']} + 20")
    assert after["scale"] == before["scale"]
    assert canvas.held()["log"] == []


def test_a_slow_layout_is_cancelled_and_the_drawing_stays(opened):
    # A graph that no other test lays out, for layouts are kept.
    canvas = opened("model=chain-900&breath_ms=1000")
    before = canvas.probe()
    canvas.page.get_by_role("button", name="Open all blocks").click()
    canvas.wait("p.laying")
    canvas.page.get_by_role("button", name="Cancel and keep").click()
    after = canvas.settled()
    assert after["view"] == before["view"] and not after["laying"]
    canvas.click(after["nodes"][0])
    assert canvas.held()["selection"] != []


def test_stacks_hidden_edges_and_device_loads_are_shown(opened):
    canvas = opened("model=stacked")
    canvas.page.get_by_role("button", name="Close all blocks").click()
    probe = canvas.wait("p.nodes.some((n) => n.stack)")
    stack = next(n for n in probe["nodes"] if n["stack"])
    assert (stack["label"], stack["sub"]) == ("layer0–11", "×12 · 36 ops")
    constants = next(n for n in probe["nodes"] if n["label"] == "constants")
    assert constants["hiddenEdges"] > 0 and constants["closed"]
    canvas.page.mouse.dblclick(stack["x"], stack["y"])
    canvas.wait("p.nodes.filter((n) => n.label.startsWith('layer')).length === 12")
    chip = canvas.page.locator(".chip").nth(1)
    assert "busy 1 µs · 1 KiB" in chip.inner_text()
    canvas.page.keyboard.press("?")
    canvas.page.get_by_text("search ops by name, type or regular expression").wait_for()


@pytest.mark.thorough
def test_the_list_of_gestures_closes_by_escape_and_by_a_press_elsewhere(opened):
    canvas = opened()
    page = canvas.page
    question = page.get_by_role("button", name="What mouse and keys do here")
    panel = page.locator(".canvas .gestures")
    node = canvas.probe()["nodes"][0]
    canvas.click(node)
    canvas.held()
    # After a press the focus is on the button, after the key on the picture; and nowhere at all.
    for focus in ("button", "picture", "nothing"):
        if focus == "button":
            question.click()
        else:
            page.locator(".canvas").focus()
            page.keyboard.press("?")
        if focus == "nothing":
            page.evaluate(BLUR)
        panel.wait_for()
        page.keyboard.press("Escape")
        panel.wait_for(state="hidden")
        assert question.get_attribute("aria-expanded") == "false"
        assert canvas.probe()["numSelected"] == 1, "the first Escape closes the list alone"
    page.locator(".canvas").focus()
    page.keyboard.press("Escape")
    canvas.wait("p.numSelected === 0")
    places = [page.get_by_test_id("stCode").first, page.locator(".canvas .legend")]
    more = [page.get_by_text("Main", exact=True).first, page.locator(".canvas .status")]
    for place in either(places, places + more):
        question.click()
        panel.wait_for()
        panel.get_by_text("Right-click, M").click()
        assert panel.is_visible(), "whoever reads it may press on it"
        place.click()
        panel.wait_for(state="hidden")
    question.click()
    panel.wait_for()
    question.click()
    panel.wait_for(state="hidden")
