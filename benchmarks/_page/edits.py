"""Edits on the studio's canvas: key press to repainted graph.

`painted` is the first frame with the new colours, drawn in the browser at once; `confirmed` is the
frame drawn from Python's answer. A move is made when its key is let go, since a key that is held
shows what would come of the move: for so long (`held`) nothing is there to paint.
"""

import shutil
from collections.abc import Callable
from typing import Any, NamedTuple

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run")

IDLE = """() => {
  const p = globalThis.__placementCanvas?.probe?.();
  return p && p.pending === 0 && !p.busy && p.drawn === p.view;
}"""
WATCH = """() => {
  globalThis.watched = { key: 0, up: 0, painted: 0, confirmed: 0 };
  window.addEventListener("keydown", (e) => {
    globalThis.watched = { key: e.timeStamp, up: 0, painted: 0, confirmed: 0 };
  }, true);
  window.addEventListener("keyup", (e) => (globalThis.watched.up = e.timeStamp), true);
  window.addEventListener("placement-canvas", (e) => {
    const { what, at } = e.detail;
    if (what === "painted" || what === "confirmed") globalThis.watched[what] ||= at;
  });
}"""


def chromium() -> str:
    """The browser on the path; ends the program where there is none."""
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        raise SystemExit("There is no Chromium or Chrome on the path; install one.")
    return found


class Edits(NamedTuple):
    """Seconds from key press to each frame, and to the key's release, by edit."""

    painted: list[float]
    confirmed: list[float]
    held: list[float]


def edits(page: Any, number: int, after_each: Callable[[], object] = lambda: None) -> Edits:
    """Edits one at a time."""
    page.wait_for_function(IDLE)
    node = page.evaluate("() => globalThis.__placementCanvas.probe().nodes[0]")
    page.mouse.click(node["x"], node["y"])
    page.wait_for_function(IDLE)
    page.evaluate(WATCH)
    found = Edits([], [], [])
    for i in range(number):
        page.keyboard.press("2" if i % 2 == 0 else "1")
        page.wait_for_function("() => watched.painted && watched.confirmed", timeout=30_000)
        seen = page.evaluate("() => watched")
        for seconds, when in zip(found, ("painted", "confirmed", "up"), strict=True):
            seconds.append((seen[when] - seen["key"]) / 1000)
        page.wait_for_function(IDLE)
        page.wait_for_timeout(120)
        after_each()
    return found
