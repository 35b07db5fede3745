"""Which share of the window the graph of the Studio page has: parts open, folded, and enlarged."""

from typing import Any

from benchmarks._page.sides import PROBE
from benchmarks._page.watch import HEIGHT, WIDTH

DOCK, INSPECTOR = "Fold the dock", "Hide details: fold the panel beside the graph"
DETAILS = "Details: show what is selected, and the load of each device"
OPEN, FOLDED, ENLARGED = "dock open", "dock and inspector folded", "at 150 %, dock open"
LEAST = {OPEN: 0.40, FOLDED: 0.70, ENLARGED: 0.35}
# What the window comes to in a browser at 150 %.
ZOOM = 1.5
REST_MS = 500


def shares(page: Any) -> dict[str, float]:
    """The share in each state; the page is left as it was found."""
    found = {OPEN: _share(page)}
    page.set_viewport_size({"width": round(WIDTH / ZOOM), "height": round(HEIGHT / ZOOM)})
    found[ENLARGED] = _share(page)
    page.set_viewport_size({"width": WIDTH, "height": HEIGHT})
    for name in (DOCK, INSPECTOR):
        page.get_by_role("button", name=name, exact=True).click()
    found[FOLDED] = _share(page)
    for name in ("Open the dock", DETAILS):
        page.get_by_role("button", name=name, exact=True).click()
    return found


def _share(page: Any) -> float:
    page.wait_for_timeout(REST_MS)
    stage, size = page.evaluate(f"{PROBE}.stage"), page.viewport_size
    return float(stage["width"] * stage["height"] / (size["width"] * size["height"]))
