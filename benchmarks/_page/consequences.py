"""Drags of ops over a device: from the pointer's entering it to the ghost of the new timeline.

Every drag takes another pair of blocks, so that no answer is known already, and ends with Escape,
so that nothing is edited. The clock is the browser's: from the event that reaches the device to the
second frame after the ghost was added to the page, the first at which it is certainly seen.
"""

import itertools
from typing import Any

from benchmarks._page.edits import IDLE

CHIPS = """() => {
  const roots = [...document.querySelectorAll("*")].map((e) => e.shadowRoot).filter(Boolean);
  const chips = roots.flatMap((root) => [...root.querySelectorAll(".chip")]);
  const boxes = chips.map((chip) => chip.getBoundingClientRect());
  return boxes.map((box) => [box.x + box.width / 2, box.y + box.height / 2]);
}"""
NODES = """() => {
  const { stage, nodes } = globalThis.__placementCanvas.probe("canvas");
  const inside = (n) => n.x > stage.left + 60 && n.x < stage.left + stage.width - 60
    && n.y > stage.top + 90 && n.y < stage.top + stage.height - 60;
  return nodes.filter(inside);
}"""
FORGET = "() => performance.clearMarks()"
TOOK = """() => {
  const last = (name) => performance.getEntriesByName(name).at(-1)?.startTime;
  const [asked, drawn] = [last("placement-asked"), last("placement-foretold")];
  return asked !== undefined && drawn > asked ? drawn - asked : null;
}"""


def drags(page: Any, number: int) -> list[float]:
    """Seconds from entering a device to its ghost, one drag at a time."""
    page.wait_for_function(IDLE)
    found: list[float] = []
    nodes, chips = page.evaluate(NODES), page.evaluate(CHIPS)
    for first, second in itertools.islice(itertools.combinations(nodes, 2), number):
        page.mouse.click(first["x"], first["y"])
        page.keyboard.down("Control")
        page.mouse.click(second["x"], second["y"])
        page.keyboard.up("Control")
        page.wait_for_function(IDLE)
        page.mouse.move(first["x"], first["y"])
        page.mouse.down()
        page.mouse.move(first["x"] + 20, first["y"] - 8, steps=3)
        page.evaluate(FORGET)
        x, y = chips[(first["device"] + 1) % len(chips)]
        page.mouse.move(x, y)
        page.wait_for_function(f"({TOOK})() !== null", timeout=30_000)
        found.append(page.evaluate(f"({TOOK})()") / 1000)
        page.keyboard.press("Escape")
        page.mouse.up()
    return found
