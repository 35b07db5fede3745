"""The Studio page by keys alone: what Tab reaches, in which order, and what can be seen of it."""

from itertools import groupby

import pytest
from playwright.sync_api import expect

from tests.browser.studio import drawn, open_tab, settled
from tests.browser.test_studio_desk import TABS

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
MOST = 200


def walk(page):
    """What Tab reaches from where the focus is to the end of the page, one after the other."""
    page.evaluate("() => ([globalThis.walked, globalThis.looked] = [[], []])")
    found = []
    for _ in range(MOST):
        page.keyboard.press("Tab")
        page.evaluate(MARKED)
        focus = page.evaluate(FOCUS, list(ORDER))
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


@pytest.mark.parametrize("view", ["", "&present"])
def test_tab_reaches_what_is_seen_in_the_order_in_which_it_stands(new_page, view):
    page = new_page(f"?project=new{view}")
    drawn(page)
    settled(page)
    parts = [part for part in ORDER if "strip" in part or "inspector" in part] if not view else []
    parts += [".st-key-desk-graph", ".st-key-desk-edges", ".st-key-desk-dock"]
    page.evaluate("document.activeElement?.blur()")
    page.mouse.click(2, 2)
    check(page, walk(page), parts)


def test_tab_goes_through_every_tab_of_the_dock_and_out_of_it(new_page):
    page = new_page("?project=new")
    drawn(page)
    for name, content in TABS.items():
        open_tab(page, name)
        expect(page.locator(f".st-key-desk-dock {content}").first).to_be_visible()
        settled(page)
        page.get_by_role("tab", name=name, exact=True).first.focus()
        found = walk(page)
        assert found and len(found) < MOST, f"{name} keeps the focus"
        assert {focus["part"] for focus in found} == {".st-key-desk-dock"}
        page.wait_for_timeout(400)
        assert not page.evaluate(UNMARKED), name
