"""The Studio page by keys alone: what Tab reaches, in which order, and what can be seen of it."""

from itertools import groupby

import pytest
from playwright.sync_api import TimeoutError, expect

from pages.ui.session.current import snapshot
from placement import place
from studio import editing
from studio.project import store
from tests.browser.studio import drawn, open_tab, settled
from tests.browser.test_studio_desk import TABS
from tests.pages.test_pages import finished_run
from tests.thorough import either

# Parts of the page in the order in which keys reach them.
ORDER = (
    '[data-testid="stHeader"]',
    '[data-testid="stSidebar"]',
    ".st-key-notices",
    ".st-key-desk-strip",
    ".st-key-desk-corner",
    ".st-key-desk-score",
    ".st-key-desk-graph",
    ".st-key-desk-inspector",
    ".st-key-desk-edges",
    ".st-key-desk-present",
    ".st-key-desk-dock",
    ".st-key-desk-working",
)
# What tells of the focus: the looks of a control, of what is around it and of what is in it.
LOOKS = """const looks = (one) => {
  const around = [];
  for (let e = one; e && around.length < 5; e = e.parentNode?.host ?? e.parentNode) {
    if (e instanceof Element) around.push(e);
  }
  const told = (e, part) => {
    const style = getComputedStyle(e, part);
    const { outlineStyle, outlineWidth, boxShadow, borderColor, backgroundColor, fill } = style;
    const line = [outlineStyle, outlineWidth, boxShadow, borderColor];
    return [...line, backgroundColor, fill, part && style.width];
  };
  const inside = [...one.children].slice(0, 5);
  return JSON.stringify([...around, ...inside].map((e) => told(e)).concat([told(one, "::before")]));
};"""
# What has the focus: its part and name, whether it can be seen, and its number among what had it
# before; nothing where the page itself has it.
FOCUS = f"""(parts) => {{
  {LOOKS}
  let one = document.activeElement;
  while (one?.shadowRoot?.activeElement) one = one.shadowRoot.activeElement;
  if (!one || one === document.body) return null;
  const up = [];
  for (let e = one; e && e !== document; e = e.parentNode?.host ?? e.parentNode) up.push(e);
  const part = parts.find((name) => up.some((e) => e.matches?.(name))) ?? "";
  const box = one.getBoundingClientRect();
  const isInside = box.right > 0 && box.bottom > 0
    && box.left < innerWidth && box.top < innerHeight;
  const isShown = one.checkVisibility({{ visibilityProperty: true }});
  const number = globalThis.walked.indexOf(one);
  if (number < 0) globalThis.walked.push(one), globalThis.looked.push(looks(one));
  const name = one.getAttribute("aria-label") || one.title || one.innerText || one.outerHTML;
  return {{ part, name: name.slice(0, 80), isSeen: isInside && isShown, number }};
}}"""
# What looks without the focus as it did with it.
UNMARKED = f"""() => {{
  {LOOKS}
  document.activeElement?.blur();
  const known = globalThis.walked;
  return known.filter((one, i) => one.isConnected && looks(one) === globalThis.looked[i])
    .map((one) => one.getAttribute("aria-label") || one.title || one.innerText || one.outerHTML);
}}"""
# Controls that can be seen and that Tab has not reached.
LEFT_OUT = """() => {
  const every = (root) => [...root.querySelectorAll("*")].flatMap((e) =>
    [e, ...(e.shadowRoot ? every(e.shadowRoot) : [])]);
  const wanted = 'button, a[href], input, select, textarea, [tabindex="0"]';
  return every(document).filter((e) => {
    if (!e.matches(wanted) || e.matches("main") || e.disabled || e.tabIndex < 0) return false;
    if (globalThis.walked.includes(e)) return false;
    const { width, height, right, bottom, left, top } = e.getBoundingClientRect();
    const isInside = right > 0 && bottom > 0 && left < innerWidth && top < innerHeight;
    const isShown = e.checkVisibility({ visibilityProperty: true, opacityProperty: true });
    return width > 1 && height > 1 && isInside && isShown;
  }).map((e) => e.getAttribute("aria-label") || e.title || e.innerText || e.outerHTML);
}"""
# What shows the focus comes within some frames, and fades in.
MARKED = """async () => {
  for (let frame = 0; frame < 4; frame++) await new Promise(requestAnimationFrame);
  const ends = (one) => Number.isFinite(one.effect.getComputedTiming().endTime);
  const fading = document.getAnimations().filter(ends);
  await Promise.all(fading.map((one) => one.finished.catch(() => null)));
}"""
MARKED_FOCUS = f"async (parts) => {{ await ({MARKED})(); return ({FOCUS})(parts); }}"
MOST = 200
BOX = ".st-key-desk-inspector summary"
# Notes what a key does, and lets nothing come of it: a click, or a letter that is written.
HEAR = """() => {
  const note = (event) => {
    if (!event.isTrusted || event.detail) return;
    globalThis.pressed = true;
    event.preventDefault();
    event.stopImmediatePropagation();
  };
  for (const type of ["click", "beforeinput"]) window.addEventListener(type, note, true);
  window.addEventListener("keydown", (event) => (globalThis.isTaken = event.defaultPrevented));
  globalThis.tried = new WeakSet();
}"""
# Goes to a control that Tab has reached; the keys that are for it. Rows of a table are alike, and
# what stands beside every tab is tried once, and again beside the steps, which alone hear keys
# wherever the focus is.
GO_TO = """(i) => {
  const known = globalThis.walked[i], { fold } = known.dataset;
  // What folds is drawn anew with what it folds.
  const every = (root) => [...root.querySelectorAll("*")].flatMap((e) =>
    [e, ...(e.shadowRoot ? every(e.shadowRoot) : [])]);
  const one = fold ? every(document).find((e) => e.dataset.fold === fold) : known;
  if (!one?.isConnected || one.closest("tbody tr:nth-child(n + 3)")) return [];
  if (globalThis.tried.has(known)) return [];
  one.focus();
  globalThis.wasOpen = one.getAttribute("aria-expanded");
  globalThis.pressed = globalThis.isTaken = false;
  const kinds = [
    // Arrows are for these, and a mark of help tells while it has the focus.
    ["[role=tab], [role=slider], [type=range], [type=radio], [data-testid=stTooltipIcon] *", []],
    ["button, summary, [role=button]", ["Enter", " "]],
    ["a[href]", ["Enter"]],
    ["input, textarea", [" "]],
  ];
  return kinds.find(([kind]) => one.matches(kind))?.[1] ?? [];
}"""
# Whether the key has done something: pressed or opened what has the focus, or reached a field, for
# which a space may be no letter.
IS_HEARD = """() => {
  let one = document.activeElement;
  while (one?.shadowRoot?.activeElement) one = one.shadowRoot.activeElement;
  if (globalThis.pressed || one.getAttribute("aria-expanded") !== globalThis.wasOpen) return true;
  const field = "input:not([type=checkbox], [type=radio], [role=combobox]), textarea";
  return one.matches(field) && !globalThis.isTaken;
}"""


def walk(page):
    """What Tab reaches from where the focus is to the end of the page, one after the other."""
    page.evaluate("() => ([globalThis.walked, globalThis.looked] = [[], []])")
    found = []
    for _ in range(MOST):
        page.keyboard.press("Tab")
        focus = page.evaluate(MARKED_FOCUS, list(ORDER))
        if focus is None or focus["number"] >= 0:
            break
        found.append(focus)
    return found


def check(page, found, around):
    # All of the page is one stop, too, as it could be scrolled.
    parts = [part for part, _ in groupby(focus["part"] for focus in found if focus["part"])]
    assert parts == [part for part in ORDER if part in parts], parts
    assert set(around) <= set(parts), parts
    assert not [focus for focus in found if not focus["isSeen"]]
    assert not page.evaluate(LEFT_OUT)
    page.wait_for_timeout(400)
    assert not page.evaluate(UNMARKED)


def test_tab_reaches_what_is_seen_in_the_order_in_which_it_stands(studio_page):
    """At the desk and before an audience."""
    page = studio_page
    drawn(page)
    settled(page)
    everywhere = [".st-key-desk-graph", ".st-key-desk-edges", ".st-key-desk-dock"]
    at_the_desk = [part for part in ORDER if "strip" in part or "inspector" in part]
    for parts in (at_the_desk + everywhere, everywhere):
        if parts == everywhere:
            page.get_by_role("button", name="Present").click()
            expect(page.get_by_role("region", name="Presentation")).to_be_visible()
            settled(page)
        page.evaluate("document.activeElement?.blur()")
        page.mouse.click(2, 2)
        check(page, walk(page), parts)


@pytest.fixture
def filled(studio, monkeypatch):
    """The address of a new project that has something to press in every tab."""
    monkeypatch.setenv("PLACEMENT_STUDIO_HOME", str(studio.home))
    project = store.create()
    project.change(touch=False, model="onnx-squeezenet", machine="null-2")
    now = snapshot(project)
    for method in ("heft", "round_robin"):
        now.shelf.add(method, place(now.problem, method).placement, method)
    finished_run(project)
    device = now.machine.devices[0].name
    editing.edit(snapshot(project), [op.name for op in now.model.graph.ops[:9]], device)
    return f"?project={project.id}"


def unheard(page, found):
    """Keys that do nothing of what they do everywhere, with the controls that Tab has found."""
    left = []
    for number, focus in enumerate(found):
        for key in page.evaluate(GO_TO, number):
            page.evaluate(GO_TO, number)
            page.keyboard.press(key)
            try:
                page.wait_for_function(IS_HEARD, timeout=2_000)
            except TimeoutError:
                left.append((key, focus["name"]))
            if not page.evaluate("globalThis.pressed"):
                page.keyboard.press("Escape")
        page.evaluate("(i) => globalThis.tried.add(globalThis.walked[i])", number)
    return left


@pytest.mark.thorough
def test_keys_go_through_every_tab_of_the_dock_press_what_is_there_and_go_out_of_it(
    new_page, filled
):
    page = new_page(filled)
    drawn(page)
    page.evaluate(HEAR)
    for name in either(("Board", "Timeline", "Table", "Steps"), TABS):
        content = TABS[name]
        open_tab(page, name)
        # What came late stands, unseen, in the tab before.
        expect(page.locator(f".st-key-desk-dock {content} >> visible=true").first).to_be_visible()
        settled(page)
        if name == "Board":
            _shows_the_focus_also_where_a_cell_has_taken_it_over(page)
        page.get_by_role("tab", name=name, exact=True).first.focus()
        found = walk(page)
        assert found and len(found) < MOST, f"{name} keeps the focus"
        assert {focus["part"] for focus in found} == {".st-key-desk-dock"}
        page.wait_for_timeout(400)
        assert not page.evaluate(UNMARKED), name
        if name == "Steps":
            page.evaluate("globalThis.tried = new WeakSet()")
        assert not unheard(page, found), name
        # Whatever tab is open, keys beside the dock are those of what has the focus: beside the
        # steps, too, which hear keys wherever it is.
        if name in either(("Timeline", "Steps"), TABS):
            page.evaluate(f"walked = [document.querySelector('{BOX}')]; tried.delete(walked[0])")
            assert not unheard(page, [{"name": BOX}]), name


def _shows_the_focus_also_where_a_cell_has_taken_it_over(page):
    table = page.locator(f".st-key-desk-dock {TABS['Board']} canvas").first
    expect(table).to_have_css("outline-style", "none")
    page.get_by_role("tab", name="Board", exact=True).first.focus()
    for _ in range(MOST):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('canvas, canvas *')"):
            break
    page.wait_for_function("document.activeElement.matches('canvas td')")
    expect(table).to_have_css("outline-style", "solid")
