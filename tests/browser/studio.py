"""What the browser tests of the studio do over and over."""

import re
from contextlib import suppress

from playwright.sync_api import Locator, Page, TimeoutError, expect

from tests.browser.canvas_page import LOOK_EVERY_MS
from tests.browser.serving import ROOT

PROBE = "globalThis.__placementCanvas?.probe?.('canvas')"
PATIENCE_MS = 180_000
# What of the canvas is told where a wait was in vain.
TOLD = ("pending", "counts", "selection", "status", "said", "busy", "error")
expect.set_options(timeout=PATIENCE_MS)
BOXES = """(around, parts) => parts.flatMap((part) => [...around.querySelectorAll(part)])
  .map((one) => one.getBoundingClientRect().toJSON())"""
# Rows of a table that are to be seen at once, where it has as many.
MOST_ROWS = 3
# Whether as many ops are on each device as given, or not; conditions for `until`, like the next.
SAME = "JSON.stringify(p.counts) === JSON.stringify(given)"
DIFFERS = f"!({SAME})"
# Whether the node with the given id is within the stage.
SHOWN = """(() => {
    const n = p.nodes.find((n) => n.id === given);
    return n.x > p.stage.left && n.x < p.stage.left + p.stage.width &&
        n.y > p.stage.top && n.y < p.stage.top + p.stage.height;
})()"""
IS_SEEN = """(part) => {
  const { left, right, top, bottom } = part.getBoundingClientRect();
  const x = Math.min((left + right) / 2, left + 20), y = (top + bottom) / 2;
  const found = part.getRootNode().elementFromPoint(x, y);
  return part === found || part.contains(found);
}"""


def drawn(page: Page) -> dict:
    """What the canvas shows, once it shows a graph and nothing is under way."""
    return until(page, "p.drawn && p.nodes.length")


def until(page: Page, condition: str, given: object = None) -> dict:
    """What the canvas shows once a JavaScript condition on `p` (and `given`) holds."""
    try:
        found = page.wait_for_function(
            f"(given) => {{ const p = {PROBE}; return p && !p.pending && ({condition}) && p; }}",
            arg=given,
            polling=LOOK_EVERY_MS,
            timeout=PATIENCE_MS,
        )
    except TimeoutError:
        shown = {word: (page.evaluate(PROBE) or {}).get(word) for word in TOLD}
        raise AssertionError(f"{condition} with {given} never held; shown are {shown}") from None
    return found.json_value()


def go(page: Page, name: str, tab: str = "") -> None:
    """Open a page by the menu, and on the Studio page a tab of the dock."""
    page.get_by_role("link", name=name, exact=True).first.click()
    expect(page).to_have_url(re.compile(f"/{'' if name == 'Studio' else name.lower()}[?]project="))
    if tab:
        open_tab(page, tab)


def open_tab(page: Page, name: str) -> None:
    # One that is pressed while the page is being drawn may stay empty until the next press.
    app = page.get_by_test_id("stApp")
    with suppress(AssertionError):
        expect(app).to_have_attribute("data-test-script-state", "notRunning", timeout=10_000)
    tab = page.get_by_role("tab", name=name, exact=True).first
    tab.click()
    expect(tab).to_have_attribute("aria-selected", "true")


def score(page: Page):
    """The predicted time in the strip."""
    return page.locator(".st-key-desk-score strong").first


def boxes(around: Locator, *parts: str) -> list[dict]:
    """Where the parts of something stand, asked at once: what is drawn anew between two questions
    has no place for a moment."""
    return around.evaluate(BOXES, list(parts))


def select(page: Page, number: int) -> dict:
    """Click the n-th node and wait until Python has answered; the node is returned.

    The page may still be growing around the canvas, so the node is waited for to rest in its place.
    """
    node, before = drawn(page)["nodes"][number], None
    while node != before:
        page.wait_for_timeout(300)
        node, before = drawn(page)["nodes"][number], node
    page.mouse.click(node["x"], node["y"])
    until(page, "p.selection.includes(given)", node["id"])
    expect(page.get_by_text(re.compile(r"Selected: \d+"), exact=False).first).to_be_visible()
    return node


def choose(page: Page, label: str, option: str, within: Locator | None = None) -> None:
    """Pick an option of a Streamlit select box, which a redraw may close, or leave open.

    A press during which the list is drawn anew opens or picks nothing, so it is pressed again, with
    more patience each time. Of a long list only what is in view is there, so an option that does
    not show up is typed.
    """
    box = (within or page).get_by_role("combobox", name=re.compile(label)).first
    listed = page.get_by_role("option")
    wanted = page.get_by_role("option", name=option, exact=True)
    for patience_ms in (1_000, 2_000, 4_000, 10_000, PATIENCE_MS):
        try:
            if not wanted.is_visible():
                box.click(timeout=max(patience_ms, 10_000))
                listed.first.wait_for(timeout=patience_ms)
            if not wanted.is_visible():
                box.fill(option, timeout=patience_ms)
            wanted.click(timeout=patience_ms)
            wanted.wait_for(state="hidden", timeout=max(patience_ms, 10_000))
        except TimeoutError:
            continue
        return
    raise AssertionError(f"{option!r} of {label!r} cannot be picked")


def upload(page: Page, path: str) -> None:
    # What is chosen while the page is still being drawn goes with the element that is replaced.
    settled(page)
    page.locator('section[data-testid="stSidebar"] input[type="file"]').set_input_files(path)


def step_in_sight(page: Page, said: Locator) -> None:
    """Of a method's step all is in sight that a person reads: what is `said`, the line of the
    pseudo-code, and what the step compares, with the row that wins."""
    dock = page.locator(".st-key-desk-dock").bounding_box()
    foot = dock["y"] + dock["height"]
    player = page.locator(".player")
    rows = player.locator("figure").first.locator("tr")
    assert rows.count() > 1
    parts = [player.locator(".lit"), player.locator("figcaption").first]
    parts += [player.locator("tr.marked").first, *rows.all()[: MOST_ROWS + 1]]
    for part in parts:
        box = part.bounding_box()
        assert dock["y"] <= box["y"] and box["y"] + box["height"] <= foot + 1, (part, box, dock)
        # Nothing lies over it, and what holds it does not cut it off.
        assert part.evaluate(IS_SEEN), part
    expect(said).to_be_visible()
    assert said.bounding_box()["y"] + said.bounding_box()["height"] <= page.viewport_size["height"]


def metric(page: Page, label: str):
    """The value of the metric with this label."""
    found = page.get_by_test_id("stMetric").filter(has_text=label)
    return found.get_by_test_id("stMetricValue")


def page_names() -> list[str]:
    """The pages by their addresses, each a file; the first one's is empty."""
    names = sorted(file.stem for file in (ROOT / "pages").glob("*.py"))
    return ["" if name == "studio" else name for name in names]


def settled(page: Page) -> None:
    """Wait until Streamlit has drawn the page to its end."""
    app = page.get_by_test_id("stApp")
    expect(app).to_have_attribute("data-test-script-state", "notRunning", timeout=PATIENCE_MS)
    expect(page.get_by_test_id("stSpinner")).to_have_count(0, timeout=PATIENCE_MS)


def project_of(page: Page) -> str:
    named = re.compile("project=([a-z0-9]{10})")
    page.wait_for_url(named, timeout=PATIENCE_MS)
    return named.search(page.url)[1]
