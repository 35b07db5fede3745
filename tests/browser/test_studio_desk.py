"""The Studio page in a real browser: shares of the window, folding, tabs, and a picture at rest."""

import re

import pytest
from playwright.sync_api import expect

from pages.ui.session.current import snapshot
from profiling.measuring.store import ProfileStore
from studio.project import store
from tests.browser.studio import (
    IS_SEEN,
    PROBE,
    drawn,
    open_tab,
    select,
    settled,
    until,
)
from tests.pages.test_pages import profile_for
from tests.thorough import either

# How far anything around the parts can be scrolled, in pixels.
SCROLLS = """() => {
  const around = [document.scrollingElement, document.querySelector('[data-testid="stMain"]')];
  const hidden = (e) => [e.scrollHeight - e.clientHeight, e.scrollWidth - e.clientWidth];
  return Math.max(...around.flatMap(hidden));
}"""
# The texts of a kind of which a part is out of sight.
CUT = """(what) => [...document.querySelectorAll(what)]
  .filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.textContent)"""
# Of notices and progress at the foot: whether each lies whole inside the window and what it is in,
# is not under something else, and leaves nothing to scroll where all notices are open.
WHOLE = """(parts) => {
  const found = parts.flatMap((part) => [...document.querySelectorAll(part)]);
  const seen = (e) => {
    const { left, right, top, bottom } = e.getBoundingClientRect();
    const inside = left >= 0 && top >= 0 && right <= innerWidth && bottom <= innerHeight;
    const at = [[left + 3, top + 3], [right - 3, bottom - 3], [left + 3, bottom - 3]];
    return inside && at.every(([x, y]) => e.contains(document.elementFromPoint(x, y)));
  };
  const around = document.querySelector(".st-key-notices");
  const isOpen = document.documentElement.dataset.notices === "open";
  return found.length >= parts.length && found.every(seen)
    && !(isOpen && around.scrollHeight > around.clientHeight)
    && around.scrollWidth <= around.clientWidth;
}"""
# Whether all words of the score are whole, and its last button ends before the next thing begins.
UNCUT = """() => {
  const row = document.querySelector(".st-key-desk-score");
  const end = document.querySelector(".st-key-colours").getBoundingClientRect().left;
  const cut = (p) => p.offsetParent && p.scrollWidth > p.clientWidth + 1;
  const more = row.querySelector('[data-testid="stPopover"]').getBoundingClientRect();
  return more.width > 0 && more.right <= end + 1 && ![...row.querySelectorAll("p")].some(cut);
}"""
NOTICE = (
    '.st-key-notices [data-testid="stAlert"]',
    '.st-key-notices [data-testid="stAlert"] p',
    ".st-key-yardstick-known button",
)
PROGRESS = (
    ".st-key-desk-working progress",
    ".st-key-desk-working p",
    ".st-key-cancel-place button",
)
# Whether all of the graph is in sight.
ALL_IN_SIGHT = """p.nodes.every(({ x, y, w, h }) =>
  x - w / 2 >= p.stage.left && x + w / 2 <= p.stage.left + p.stage.width
  && y - h / 2 >= p.stage.top && y + h / 2 <= p.stage.top + p.stage.height)"""
# Notes for every frame where the parts of the inspector stand, until a method has an answer, and
# what is said of its progress meanwhile.
WATCH_INSPECTOR = """() => {
  const inspector = document.querySelector(".st-key-desk-inspector");
  const tops = (globalThis.inspectorTops = new Set());
  const told = (globalThis.progressTold = new Set());
  const note = () => {
    const parts = [...inspector.querySelectorAll("button, summary, p, table")];
    const known = parts.filter((e) => e.offsetParent && !e.closest(".st-key-follow-place"));
    const isAnswered = inspector.textContent.includes("by auto");
    if (document.querySelector(".st-key-cancel-place") && !isAnswered) {
      const at = known.map((e) => [e.textContent, Math.round(e.getBoundingClientRect().top)]);
      tops.add(JSON.stringify([inspector.scrollTop, at]));
      told.add(document.querySelector(".st-key-desk-working p")?.textContent);
    }
    requestAnimationFrame(note);
  };
  note();
}"""
# Notes which tab of the dock is open in each frame.
NOTE_TABS = """() => {
  const open = (globalThis.tabsOpen = new Set());
  const note = () => {
    open.add(document.querySelector(".st-key-desk-dock [aria-selected=true]").textContent);
    requestAnimationFrame(note);
  };
  requestAnimationFrame(note);
}"""
STREAM = "**/_stcore/stream"
TABS = {
    "Timeline": ".gantt .bar",
    "Board": '[data-testid="stDataFrame"]',
    "Run": '[data-testid="stNumberInput"]',
    "What if": '[data-testid="stMetric"]',
    "Memory": ".js-plotly-plot",
    "Table": "tbody tr[data-op]",
    "Steps": ".player .code li",
    "Hints": 'p:text-matches("Predicted, each as if|helps")',
    "History": 'p:text-matches("steps? (is|are) made|Nothing was changed")',
    "Exercise": '[role="radiogroup"]',
}


@pytest.fixture(scope="module")
def lasting_desk(lasting_page):
    """The Studio page of a new project, at rest, for tests that leave it as they found it but for
    the selection, the zoom, the panel beside the graph and the size of the window."""
    page = lasting_page("")
    drawn(page)
    settled(page)
    return page


class Held:
    """What the studio tells a page is kept back while somebody wants it so."""

    def __init__(self):
        self.told, self.is_holding = [], False

    def pass_on(self, browser):
        self.browser, server = browser, browser.connect_to_server()
        browser.on_message(server.send)
        server.on_message(
            lambda told: (self.told.append if self.is_holding else browser.send)(told)
        )

    def let_go(self):
        self.is_holding = False
        for told in self.told:
            self.browser.send(told)
        self.told.clear()


@pytest.fixture(scope="module")
def held_desk(lasting_page):
    """One more such page for tests that mind neither edits nor the tab that is open, with a hold
    on what it is told."""
    held = Held()
    page = lasting_page("", prepare=lambda page: page.route_web_socket(STREAM, held.pass_on))
    drawn(page)
    settled(page)
    return page, held


def share(page):
    """Of the window, what the stage of the graph has."""
    stage, size = page.evaluate(f"{PROBE}.stage"), page.viewport_size
    return stage["width"] * stage["height"] / (size["width"] * size["height"])


def press(page, name):
    page.get_by_role("button", name=name, exact=True).click()


def test_names_and_what_is_saved_can_be_read(lasting_desk):
    """Project, model, machine, whether all is saved, and the way to an audience: side by side."""
    desk = lasting_desk
    for size in ((1024, 768), (1440, 900)):
        desk.set_viewport_size({"width": size[0], "height": size[1]})
        desk.wait_for_timeout(300)
        _names_stand_side_by_side(desk, size)


def _names_stand_side_by_side(desk, size):
    corner = desk.locator(".st-key-desk-corner")
    names = [name for name in desk.locator(".st-key-desk-opened a").all() if name.is_visible()]
    parts = [*names, corner.locator("p").first, corner.get_by_role("button", name="Present")]
    boxes = [part.bounding_box() for part in parts]
    assert len(boxes) == 5 and all(box["width"] >= 40 for box in boxes), boxes
    assert all(b["x"] >= 0 and b["x"] + b["width"] <= size[0] for b in boxes)
    for i, a in enumerate(boxes):
        for b in boxes[i + 1 :]:
            beside = a["x"] + a["width"] <= b["x"] + 1 or b["x"] + b["width"] <= a["x"] + 1
            above = a["y"] + a["height"] <= b["y"] + 1 or b["y"] + b["height"] <= a["y"] + 1
            assert beside or above, (a, b)
    expect(corner.locator("p").first).to_contain_text("aved")


def test_a_window_of_another_size_shows_all_of_the_graph_unless_somebody_looks_at_a_part(
    lasting_desk,
):
    desk = lasting_desk
    desk.set_viewport_size({"width": 1440, "height": 900})
    press(desk, "Show everything (F)")
    select(desk, 1)
    for width, height in ((1024, 768), (1440, 900), (960, 600)):
        desk.set_viewport_size({"width": width, "height": height})
        until(desk, ALL_IN_SIGHT)
        desk.wait_for_timeout(600)
        before = until(desk, ALL_IN_SIGHT)
        press(desk, "Show everything (F)")
        desk.wait_for_timeout(600)
        assert drawn(desk)["scale"] == pytest.approx(before["scale"]), (width, height)
    press(desk, "Zoom in (+)")
    scale = drawn(desk)["scale"]
    desk.set_viewport_size({"width": 1024, "height": 768})
    desk.wait_for_timeout(600)
    assert drawn(desk)["scale"] == pytest.approx(scale)


@pytest.mark.only_thorough
def test_folding_the_sidebar_leaves_all_of_the_graph_in_the_middle(lasting_desk):
    desk = lasting_desk
    desk.set_viewport_size({"width": 1440, "height": 900})
    press(desk, "Show everything (F)")
    select(desk, 1)
    for button in ("stExpandSidebarButton", "stSidebarCollapseButton"):
        found = desk.get_by_test_id(button)
        if button == "stSidebarCollapseButton":
            # It is there while the pointer is over the sidebar.
            desk.get_by_test_id("stSidebarHeader").hover()
            found = found.locator("button")
        found.click(timeout=20_000)
        desk.wait_for_timeout(1200)
        before = until(desk, ALL_IN_SIGHT)["nodes"][0]
        press(desk, "Show everything (F)")
        desk.wait_for_timeout(600)
        after = drawn(desk)["nodes"][0]
        assert before["x"] == pytest.approx(after["x"], abs=2)
        assert before["y"] == pytest.approx(after["y"], abs=2)


def test_the_graph_has_most_of_the_window_and_the_page_never_scrolls(lasting_desk):
    desk = lasting_desk
    for width, height in ((1024, 768), (1440, 900)):
        desk.set_viewport_size({"width": width, "height": height})
        desk.wait_for_timeout(300)
        assert desk.evaluate(SCROLLS) <= 0, (width, height)
    assert share(desk) >= 0.40
    press(desk, "Fold the dock")
    press(desk, "Hide details: fold the panel beside the graph")
    desk.wait_for_function(f"{PROBE}.stage.height > 600")
    assert share(desk) >= 0.70 and desk.evaluate(SCROLLS) <= 0
    # Remembered by the browser, for this project.
    desk.reload()
    drawn(desk)
    desk.wait_for_function(f"{PROBE}.stage.height > 600")
    press(desk, "Open the dock")
    # What 1440 x 900 comes to at 150 %, with the inspector over the graph.
    desk.set_viewport_size({"width": 960, "height": 600})
    press(desk, "Details: show what is selected, and the load of each device")
    expect(desk.get_by_text("Predicted load of each device")).to_be_visible()
    desk.wait_for_timeout(300)
    assert share(desk) >= 0.35 and desk.evaluate(SCROLLS) <= 0


@pytest.mark.thorough
def test_the_dock_is_dragged_and_each_tab_shows_what_it_holds(lasting_desk):
    desk = lasting_desk
    desk.set_viewport_size({"width": 1440, "height": 900})
    desk.wait_for_timeout(300)
    before = desk.evaluate(f"{PROBE}.stage.height")
    _drag_the_dock(desk, -100)
    desk.wait_for_function(f"Math.abs({PROBE}.stage.height - {before - 100}) < 2")
    # In `make test` those that no other test in the browser looks into.
    for name in either(("What if", "History", "Exercise", "Timeline"), (*TABS, "Timeline")):
        open_tab(desk, name)
        # What came late stands, unseen, in the tab before.
        shown = desk.locator(f".st-key-desk-dock {TABS[name]} >> visible=true").first
        expect(shown).to_be_visible()
    press(desk, "Full: show the dock alone")
    expect(desk.locator(".canvas").first).not_to_be_visible()
    press(desk, "Show graph: show the graph above the dock again")
    assert desk.evaluate(f"{PROBE}.stage.height") == pytest.approx(before - 100, abs=2)
    _drag_the_dock(desk, 100)
    desk.wait_for_function(f"Math.abs({PROBE}.stage.height - {before}) < 2")


def _drag_the_dock(desk, down):
    grip = desk.get_by_role("separator", name="Height of the dock").bounding_box()
    x, y = grip["x"] + grip["width"] / 2, grip["y"] + 4
    desk.mouse.move(x, y)
    desk.mouse.down()
    desk.mouse.move(x, y + down, steps=4)
    desk.mouse.up()


@pytest.mark.thorough
def test_a_tab_that_is_pressed_before_the_one_before_it_was_drawn_stays_open(held_desk):
    desk, held = held_desk
    open_tab(desk, "Timeline")
    more = either((), (("Memory", "Table"),))
    for first, then in (("Board", "Memory"), *more):
        held.is_holding = True
        desk.get_by_role("tab", name=first, exact=True).first.click()
        # Of Python's answer nothing arrives before the second press.
        for _ in range(600):
            if any(first.encode() in told for told in held.told):
                break
            desk.wait_for_timeout(100)
        else:
            pytest.fail(f"Python never answered that {first} was pressed")
        desk.get_by_role("tab", name=then, exact=True).first.click()
        desk.evaluate(NOTE_TABS)
        held.let_go()
        expect(desk.locator(f".st-key-desk-dock {TABS[then]}").first).to_be_visible()
        settled(desk)
        assert desk.evaluate("[...globalThis.tabsOpen]") == [then]


@pytest.mark.thorough
def test_edits_leave_the_picture_where_it_is_and_a_tab_pressed_meanwhile_is_drawn(held_desk):
    desk, _ = held_desk
    desk.set_viewport_size({"width": 1440, "height": 900})
    open_tab(desk, "Timeline")
    undo = desk.get_by_role("button", name="Undo", exact=True).first
    expect(undo).to_be_disabled()
    select(desk, 1)
    before = drawn(desk)
    for number in range(20):
        desk.keyboard.press(str(1 + number % 2))
    until(desk, "p.confirmed && p.pending === 0")
    settled(desk)
    after = drawn(desk)
    for what in ("scale", "centre", "stage"):
        assert after[what] == before[what], what
    expect(undo).to_be_enabled()
    # What the edits did stands beside all other figures, on a small screen too.
    for width, height in ((1440, 900), (1024, 768)):
        desk.set_viewport_size({"width": width, "height": height})
        expect(desk.get_by_text("best possible")).to_be_visible()
        desk.wait_for_function(UNCUT, timeout=10_000)
    more = either((), ("Memory", "Timeline", "Table", "Hints"))
    for number, name in enumerate(("Table", "Board", *more)):
        desk.locator(".canvas").first.focus()
        desk.keyboard.press(str(1 + number % 2))
        desk.get_by_role("tab", name=name, exact=True).first.click()
        shown = desk.locator(f".st-key-desk-dock {TABS[name]}").first
        expect(shown).to_be_visible(timeout=30_000)


def test_notices_have_one_line_and_all_of_them_one_press_away(new_page, studio, monkeypatch):
    """On a small screen too; the picture stays where it is, and so do the dock and, while a method
    is at work, all that is in the inspector."""
    monkeypatch.setenv("PLACEMENT_STUDIO_HOME", str(studio.home))
    project = store.create()
    limit = {"time-limit-auto": 2.0}
    project.change(touch=False, model="onnx-squeezenet", machine="null-2", form=limit)
    page = new_page(f"?project={project.id}")
    before = drawn(page)["stage"]
    settled(page)
    dock, more = page.locator(".st-key-desk-dock"), page.locator("[data-do=notices]")
    high = dock.bounding_box()["height"]
    now = snapshot(project)
    ProfileStore().put(profile_for(now.model, now.machine))
    try:
        expect(page.get_by_text(re.compile("^The times are measured now")).first).to_be_visible()
        settled(page)
        assert drawn(page)["stage"] == before
        assert dock.bounding_box()["height"] == high
        # Before an audience nobody presses anything: there it is whole.
        page.set_viewport_size({"width": 1024, "height": 768})
        page.get_by_role("button", name="Present").click()
        expect(page.get_by_role("region", name="Presentation")).to_be_visible()
        page.wait_for_function("() => !('notices' in document.documentElement.dataset)")
        assert page.evaluate(CUT, NOTICE[1]) == []
        page.keyboard.press("Escape")
        expect(page.get_by_role("region", name="Presentation")).to_be_hidden()
        page.set_viewport_size({"width": 1440, "height": 900})
        settled(page)
        # A second one: the newest is in sight, and the first one counted.
        node = select(page, 0)
        page.keyboard.press("p")
        until(page, "p.nodes[0].pin === '2'")
        page.keyboard.press(str(2 - node["device"]))
        stayed = page.locator(".st-key-notices").get_by_text(re.compile("pinned and stayed"))
        expect(stayed).to_be_visible()
        expect(more).to_have_text("+1")
        for width, height in ((1024, 768), (1440, 900)):
            page.set_viewport_size({"width": width, "height": height})
            expect(more).to_have_text("+1")
            assert stayed.evaluate(IS_SEEN)
            high = dock.bounding_box()["height"]
            more.focus()
            page.keyboard.press("Enter")
            expect(more).to_have_attribute("aria-expanded", "true")
            page.wait_for_function(WHOLE, arg=list(NOTICE), timeout=10_000)
            assert dock.bounding_box()["height"] == high
            assert page.evaluate(SCROLLS) <= 0, (width, height)
            more.click()
            expect(more).to_have_attribute("aria-expanded", "false")
        more.click()
        # A press while the page is drawn anew is lost.
        settled(page)
        press(page, "Understood")
        expect(page.get_by_text(re.compile("^The times are measured now"))).to_have_count(0)
        # With one there is nothing to open, and progress stands above it.
        expect(more).to_be_hidden()
        settled(page)
        page.evaluate(WATCH_INSPECTOR)
        press(page, "Place")
        page.wait_for_function(WHOLE, arg=[NOTICE[0], *PROGRESS], timeout=60_000)
        expect(page.get_by_text(re.compile("Placed by auto")).first).to_be_visible()
        seen = page.evaluate("[...globalThis.inspectorTops]")
        assert len(seen) == 1, seen[:2]
        # It was at work for long enough that something could have moved.
        told = page.evaluate("[...globalThis.progressTold].filter(Boolean)")
        assert len(told) > 1, told
    finally:
        ProfileStore().clear(now.model.graph.fingerprint)
