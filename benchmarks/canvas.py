"""The canvas in a real browser: page load to drawn graph, key press to repainted graph.

    python -m benchmarks.canvas [--json] [--loads 5] [--edits 30] [--query TEXT]

The server is warm (one page load before), every measured load has a browser profile of its own
with an empty cache. `painted` is the first frame with the new colours, drawn in the browser at
once; `confirmed` is the frame drawn from Python's answer.
"""

import json
import shutil
import statistics
from collections.abc import Callable
from typing import Any

from benchmarks._figures import parser
from benchmarks._ui_sides import running_studio

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run")
LOAD_TARGET_S, EDIT_TARGET_S = 5.0, 0.3

DRAWN = """() => {
  const marks = performance.getEntriesByName("placement-canvas-drawn");
  return marks.length ? marks[0].startTime : null;
}"""
IDLE = """() => {
  const p = globalThis.__placementCanvas?.probe?.();
  return p && p.pending === 0 && !p.busy && p.drawn === p.view;
}"""
WATCH = """() => {
  globalThis.watched = { key: 0, painted: 0, confirmed: 0 };
  window.addEventListener("keydown", (e) => {
    globalThis.watched = { key: e.timeStamp, painted: 0, confirmed: 0 };
  }, true);
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


def opened(browser: Any, url: str) -> tuple[Any, float]:
    """A page in a fresh profile, and the seconds from navigation to the drawn graph."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    page.goto(url)
    page.wait_for_function(DRAWN, timeout=120_000)
    return page, page.evaluate(DRAWN) / 1000


def edits(
    page: Any, number: int, after_each: Callable[[], object] = lambda: None
) -> tuple[list[float], list[float]]:
    """Seconds from key press to painted and to confirmed, one edit at a time."""
    page.wait_for_function(IDLE)
    node = page.evaluate("() => globalThis.__placementCanvas.probe().nodes[0]")
    page.mouse.click(node["x"], node["y"])
    page.wait_for_function(IDLE)
    page.evaluate(WATCH)
    painted, confirmed = [], []
    for i in range(number):
        page.keyboard.press("2" if i % 2 == 0 else "1")
        page.wait_for_function("() => watched.painted && watched.confirmed", timeout=30_000)
        seen = page.evaluate("() => watched")
        painted.append((seen["painted"] - seen["key"]) / 1000)
        confirmed.append((seen["confirmed"] - seen["key"]) / 1000)
        page.wait_for_function(IDLE)
        page.wait_for_timeout(120)
        after_each()
    return painted, confirmed


def summary(values: list[float]) -> dict[str, float]:
    ordered = sorted(values)
    at_95 = min(len(ordered) - 1, round(0.95 * (len(ordered) - 1)))
    return {
        "median_s": round(statistics.median(ordered), 4),
        "low_s": round(ordered[0], 4),
        "p95_s": round(ordered[at_95], 4),
        "high_s": round(ordered[-1], 4),
        "times": len(ordered),
    }


def measure(query: str, num_loads: int, num_edits: int) -> dict[str, Any]:
    from playwright.sync_api import sync_playwright

    executable = chromium()
    with running_studio() as (base, _), sync_playwright() as playwright:
        url = f"{base}/{query}"
        loads = []
        for i in range(num_loads + 1):
            # A browser process per load: nothing compiled or cached is left from the last one.
            browser = playwright.chromium.launch(executable_path=executable, args=list(FLAGS))
            page, load_s = opened(browser, url)
            if i:
                loads.append(load_s)
            if i < num_loads:
                browser.close()
        painted, confirmed = edits(page, num_edits)
        nodes = page.evaluate("() => globalThis.__placementCanvas.probe().nodes.length")
        browser.close()
    return {
        "nodes": nodes,
        "load": summary(loads),
        "painted": summary(painted),
        "confirmed": summary(confirmed),
        "load_target_s": LOAD_TARGET_S,
        "edit_target_s": EDIT_TARGET_S,
        "met": max(loads) < LOAD_TARGET_S and statistics.median(confirmed) < EDIT_TARGET_S,
    }


def main() -> None:
    given = parser(__doc__, loads=5, edits=30, query="").parse_args()
    result = measure(given.query, given.loads, given.edits)
    if given.json:
        print(json.dumps(result))
        return
    print(f"{result['nodes']} visible nodes; seconds")
    for name in ("load", "painted", "confirmed"):
        row = result[name]
        print(
            f"{name:10} median {row['median_s']:.3f}  95 % {row['p95_s']:.3f}"
            f"  range {row['low_s']:.3f} to {row['high_s']:.3f}  ({row['times']} times)"
        )


if __name__ == "__main__":
    main()
