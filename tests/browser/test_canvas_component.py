"""Every gesture of the canvas in a real Chromium, against a page that holds nothing else."""

import pytest

pytestmark = pytest.mark.browser


def test_first_picture_shows_blocks_in_device_colours(opened):
    canvas = opened()
    probe = canvas.probe()
    assert len(probe["nodes"]) == 36 and len(probe["boxes"]) == 6
    assert {n["device"] for n in probe["nodes"]} == {0, 1}
    assert probe["counts"] == [36, 36, 0]
    stage = probe["stage"]
    for node in probe["nodes"]:
        assert stage["left"] < node["x"] - node["w"] / 2
        assert node["x"] + node["w"] / 2 < stage["left"] + stage["width"]


def test_clicks_boxes_and_lassos_select(opened):
    canvas = opened()
    _click_selects_and_empty_ground_clears(canvas)
    _ctrl_click_adds_and_takes_away(canvas)
    box = canvas.probe()["boxes"][0]
    for drag in (_drag_a_box, _draw_a_lasso):
        canvas.page.keyboard.press("Escape")
        assert canvas.held()["selection"] == []
        drag(canvas, box)
        selected = [n for n in canvas.probe()["nodes"] if n["selected"] == "2"]
        assert {n["parent"] for n in selected} == {box["id"]} and len(selected) == 6
        assert len(canvas.held()["selection"]) == 12


def _click_selects_and_empty_ground_clears(canvas):
    node = canvas.node("Identity")
    canvas.click(node)
    assert canvas.probe()["selection"] == [node["id"]]
    assert canvas.held()["selection"] == ["net/block0/split"]
    stage = canvas.probe()["stage"]
    canvas.page.mouse.click(stage["left"] + 6, stage["top"] + stage["height"] - 6)
    assert canvas.probe()["selection"] == []
    assert canvas.held()["selection"] == []


def _ctrl_click_adds_and_takes_away(canvas):
    first, second = canvas.node("b0"), canvas.node("b1")
    canvas.click(first)
    canvas.page.keyboard.down("Control")
    canvas.click(second)
    assert set(canvas.probe()["selection"]) == {first["id"], second["id"]}
    canvas.click(first)
    canvas.page.keyboard.up("Control")
    assert canvas.probe()["selection"] == [second["id"]]
    assert len(canvas.held()["selection"]) == second["ops"]


def _drag_a_box(canvas, box):
    """What it touches is selected."""
    start = (box["x"] - 4, box["y"] - 4)
    canvas.drag(start, (box["x"] + box["w"] + 4, box["y"] + box["h"]), key="Shift")


def _draw_a_lasso(canvas, box):
    page = canvas.page
    left, top = box["x"] - 6, box["y"] - 6
    right, bottom = box["x"] + box["w"] + 6, box["y"] + box["h"] + 6
    page.keyboard.down("Alt")
    page.mouse.move(left, top)
    page.mouse.down()
    for x, y in ((right, top), (right, bottom), (left, bottom)):
        page.mouse.move(x, y, steps=5)
    page.mouse.up()
    page.keyboard.up("Alt")


def test_keys_the_menu_and_dragging_assign(opened):
    canvas = opened()
    _keys_assign_undo_and_redo(canvas)
    _the_menu_assigns_by_mouse_and_by_keyboard(canvas)
    _dragging_onto_a_device_assigns_and_moves_nothing(canvas)


def _keys_assign_undo_and_redo(canvas):
    node = canvas.node("b0")
    canvas.click(node)
    canvas.page.keyboard.press("3")
    assert canvas.node("b0")["device"] == 2, "the colour does not wait for Python"
    assert canvas.held()["devices"].count(2) == node["ops"]
    assert canvas.probe()["counts"] == [36 - node["ops"], 36, node["ops"]]
    canvas.page.keyboard.press("Control+z")
    canvas.wait("p.counts[2] === 0")
    assert canvas.held()["devices"].count(2) == 0
    canvas.page.keyboard.press("Control+Shift+Z")
    canvas.wait("p.counts[2] > 0")
    canvas.page.keyboard.press("u")
    canvas.wait("p.counts[2] === 0")


def _the_menu_assigns_by_mouse_and_by_keyboard(canvas):
    node = canvas.node("b1")
    canvas.click(node, button="right")
    canvas.page.get_by_role("menuitem", name="cpu:1").click()
    assert canvas.node("b1")["device"] == 1
    canvas.page.keyboard.press("m")
    canvas.page.keyboard.press("ArrowDown")
    canvas.page.keyboard.press("ArrowDown")
    canvas.page.keyboard.press("Enter")
    assert canvas.node("b1")["device"] == 2
    canvas.page.keyboard.press("m")
    canvas.page.keyboard.press("Escape")
    assert canvas.page.get_by_role("menu").count() == 0
    assert canvas.held()["devices"].count(2) == node["ops"]


def _dragging_onto_a_device_assigns_and_moves_nothing(canvas):
    before, others = canvas.node("b2"), canvas.held()["devices"].count(2)
    chip = canvas.page.locator(".chip").nth(2).bounding_box()
    canvas.drag((before["x"], before["y"]), (chip["x"] + 20, chip["y"] + 10))
    after = canvas.node("b2")
    assert after["device"] == 2
    assert (after["x"], after["y"]) == (before["x"], before["y"])
    assert canvas.held()["devices"].count(2) == others + before["ops"]


def test_twenty_fast_keys_all_arrive(opened):
    canvas = opened("model=blocks&slow=0.05")
    canvas.click(canvas.node("b0"))
    for number in range(20):
        canvas.page.keyboard.press(str(number % 3 + 1))
    held = canvas.held()
    assert held["log"].count("assign") == 20
    assert held["devices"][1] == 19 % 3
    assert canvas.node("b0")["device"] == 19 % 3


def test_blocks_are_opened_and_closed_by_clicks_and_buttons(opened):
    canvas = opened()
    _double_click_opens_and_closes_where_the_block_is(canvas)
    box, scale = canvas.probe()["boxes"][1], canvas.probe()["scale"]
    # A title selects its block, and the minus before it closes it.
    canvas.page.mouse.click(box["x"] + box["w"] / 2, box["y"] + 12 * scale)
    assert len(canvas.held()["selection"]) == 12
    canvas.page.mouse.click(box["x"] + 15 * scale, box["y"] + 13 * scale)
    canvas.wait(f"p.nodes.some((n) => n.id === '{box['id']}')")
    canvas.page.get_by_role("button", name="Open all blocks").click()
    assert len(canvas.wait("p.nodes.length === 72")["nodes"]) == 72
    canvas.page.get_by_role("button", name="Close all blocks").click()
    canvas.wait("p.nodes.length === 6 && p.boxes.length === 0")
    assert canvas.held()["log"][-2:] == ["expand_all", "collapse_all"]


def _double_click_opens_and_closes_where_the_block_is(canvas):
    node = canvas.node("b1")
    canvas.page.mouse.dblclick(node["x"], node["y"])
    canvas.wait(f"p.boxes.some((b) => b.id === '{node['id']}')")
    probe = canvas.settled()
    box = next(b for b in probe["boxes"] if b["id"] == node["id"])
    assert abs(box["x"] + box["w"] / 2 - node["x"]) < 1
    assert abs(box["y"] - (node["y"] - node["h"] / 2)) < 1
    inner = next(n for n in probe["nodes"] if n["parent"] == node["id"])
    canvas.page.mouse.dblclick(inner["x"], inner["y"])
    canvas.wait(f"p.nodes.some((n) => n.id === '{node['id']}')")
    again = canvas.settled()
    back = next(n for n in again["nodes"] if n["id"] == node["id"])
    assert abs(back["x"] - node["x"]) < 1 and abs(back["y"] - node["y"]) < 1


def test_keyboard_alone_walks_opens_selects_and_assigns(opened):
    canvas = opened()
    page = canvas.page
    page.locator(".canvas").focus()
    page.keyboard.press("ArrowDown")
    first = canvas.wait("p.ring")
    assert first["selection"] == [] and first["ring"] == first["nodes"][0]["id"]
    page.keyboard.press("ArrowDown")
    ring = canvas.probe()["ring"]
    at = next(i for i, n in enumerate(first["nodes"]) if n["id"] == ring)
    assert any(e["from"] == 0 and e["to"] == at for e in first["edges"]), "along an edge"
    block = first["nodes"][at]
    said = canvas.probe()["said"]
    assert said.startswith(f"Closed block {block['label']}; {block['sub']}; on cpu:0; not selected")
    page.keyboard.press("Space")
    assert canvas.held()["selection"] != [] and canvas.probe()["selection"] == [ring]
    page.keyboard.press("2")
    assert canvas.held()["devices"].count(1) == 36 + block["ops"]
    page.keyboard.press("Enter")
    canvas.wait(f"p.boxes.some((b) => b.id === '{ring}')")
    opened_block = canvas.probe()
    box = next(b for b in opened_block["boxes"] if b["id"] == ring)
    inner = next(n for n in opened_block["nodes"] if n["id"] == opened_block["ring"])
    assert box["x"] < inner["x"] < box["x"] + box["w"] and opened_block["said"].startswith(
        "Opened;"
    )
    page.keyboard.press("Backspace")
    canvas.wait(f"p.nodes.some((n) => n.id === '{ring}')")
    assert canvas.probe()["ring"] == ring and canvas.probe()["said"].startswith("Closed; Closed")
    page.keyboard.press("Escape")
    assert canvas.held()["selection"] == []
    assert canvas.page.locator(".live").inner_text() == "Nothing selected"


def test_zoom_fit_and_pan_leave_the_placement_alone(opened):
    canvas = opened()
    page = canvas.page
    scale = canvas.probe()["scale"]
    page.get_by_role("button", name="Zoom in").click()
    assert canvas.probe()["scale"] > scale
    page.locator(".canvas").focus()
    page.keyboard.press("f")
    canvas.wait(f"Math.abs(p.scale - {scale}) < 1e-6")
    page.wait_for_timeout(300)
    stage = canvas.probe()["stage"]
    x = canvas.node("Identity")["x"]
    corner = (stage["left"] + 10, stage["top"] + stage["height"] - 10)
    canvas.drag(corner, (corner[0] + 80, corner[1] - 40))
    canvas.wait(f"p.nodes[0].x - {x} > 20")
    assert canvas.held()["log"] == []
    # Titles can be read also where the wheel has made everything small.
    page.mouse.move(600, 400)
    for _ in range(20):
        if canvas.probe()["scale"] < 0.45:
            break
        page.mouse.wheel(0, 100)
        page.wait_for_timeout(100)
    far = canvas.probe()
    assert 0.31 <= far["scale"] < 0.45 and 9 <= far["titlePx"] < 10


def test_the_tab_key_stops_once_in_each_part_and_streamlit_hears_no_shortcuts(opened):
    canvas = opened()
    page = canvas.page
    page.locator(".canvas").focus()
    stops = []
    for _ in range(4):
        page.keyboard.press("Tab")
        stops.append(
            page.evaluate(
                "() => { let e = document.activeElement;"
                " while (e.shadowRoot?.activeElement) e = e.shadowRoot.activeElement;"
                " return e.parentElement.getAttribute('aria-label') ?? e.parentElement.className; }"
            )
        )
    assert stops == ["Devices", "Canvas tools", "Zoom", "foot"]
    canvas.click(canvas.node("b0"))
    for key in ("r", "c", " ", "PageDown", "End"):
        page.keyboard.press(key)
    page.wait_for_timeout(300)
    assert page.get_by_text("Clear caches").count() == 0
    assert page.evaluate("document.querySelector('.stMain').scrollTop") == 0


def test_read_only_selects_but_assigns_nothing(opened):
    canvas = opened("model=blocks&readonly=1")
    canvas.click(canvas.node("b0"))
    canvas.page.keyboard.press("3")
    assert canvas.node("b0")["device"] == 0
    assert "Read only" in canvas.probe()["status"]
    assert canvas.held()["log"] == ["select"]


def test_hostile_names_are_shown_and_not_executed(opened):
    canvas = opened("model=hostile")
    node = canvas.probe()["nodes"][0]
    assert node["label"].startswith("<img src=x")
    canvas.click(node)
    canvas.page.mouse.move(node["x"] + 3, node["y"] + 3)
    tooltip = canvas.page.locator(".tooltip")
    tooltip.wait_for(state="visible")
    assert "‹img src=x onerror=alert(1)›" in tooltip.inner_text()
    canvas.page.keyboard.press("m")
    assert canvas.page.locator(".canvas img, .canvas script").count() == 0
    canvas.page.keyboard.press("Escape")
    canvas.held()


def test_another_page_and_back_keeps_colours_selection_and_view(opened):
    canvas = opened()
    canvas.click(canvas.node("b0"))
    canvas.page.keyboard.press("3")
    canvas.page.get_by_role("button", name="Zoom in").click()
    before = canvas.settled()
    canvas.page.get_by_role("link", name="Other").click()
    canvas.page.get_by_text("Another page").wait_for()
    canvas.page.get_by_role("link", name="Main", exact=True).click()
    canvas.wait("p.drawn === p.view")
    after = canvas.settled()
    assert after["selection"] == before["selection"]
    assert after["counts"] == before["counts"]
    assert after["scale"] == pytest.approx(before["scale"])
    assert after["nodes"][0]["x"] == pytest.approx(before["nodes"][0]["x"], abs=2)
    canvas.page.keyboard.press("Escape")


def test_theme_and_size_may_change(opened):
    """The first sight follows the size until somebody moves, and what is seen then stays."""
    canvas = opened()
    before = canvas.probe()
    canvas.page.set_viewport_size({"width": 900, "height": 860})
    after = canvas.wait(
        f"p.stage.width < {before['stage']['width']} - 80 && p.scale < {before['scale']}"
    )
    right = after["stage"]["left"] + after["stage"]["width"]
    assert all(node["x"] + node["w"] / 2 < right for node in after["nodes"])
    canvas.page.set_viewport_size({"width": 1280, "height": 860})
    canvas.wait(f"Math.abs(p.scale - {before['scale']}) < 1e-6")
    canvas.click(canvas.node("b0"))
    canvas.page.get_by_role("button", name="Zoom in").click()
    before = canvas.settled()
    canvas.page.emulate_media(color_scheme="dark")
    canvas.wait("p.dark")
    canvas.page.set_viewport_size({"width": 1000, "height": 700})
    canvas.wait(f"p.stage.width < {before['stage']['width']} - 100")
    after = canvas.probe()
    assert after["selection"] == before["selection"]
    assert after["scale"] == pytest.approx(before["scale"])


@pytest.mark.only_thorough
def test_a_thousand_nodes_are_drawn_and_edited(opened):
    canvas = opened("model=chain-1000")
    canvas.page.get_by_role("button", name="Open all blocks").click()
    canvas.wait("p.nodes.length === 1000")
    canvas.page.locator(".canvas").focus()
    canvas.page.keyboard.press("Control+a")
    canvas.page.keyboard.press("3")
    assert canvas.held()["devices"] == [2] * 1000


def test_the_drawing_stays_where_it_is_when_something_is_selected(opened):
    canvas = opened()
    for width in (1280, 700):
        canvas.page.set_viewport_size({"width": width, "height": 860})
        canvas.settled()
        before = canvas.probe()
        canvas.page.mouse.click(before["stage"]["left"] + 6, before["stage"]["top"] + 6)
        node = canvas.node("Identity")
        canvas.click(node)
        after = canvas.probe()
        assert after["selection"] == [node["id"]] and after["stage"] == before["stage"]
        status = canvas.page.locator(".foot .status")
        assert status.get_attribute("title") == status.inner_text() == after["status"]
