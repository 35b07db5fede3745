"""The critical path in a real browser: its edges, its waits, and the pointer on them."""

import json
import re

import pytest

from tests.browser.studio import PROBE, drawn, settled, until
from tests.instances import canonical_file

CRITICAL = {4, 5}


@pytest.fixture(scope="module")
def canonical(lasting_page, project_about, tmp_path_factory):
    """The Studio page of the canonical example, as HEFT places it; only the last test edits it."""
    path = tmp_path_factory.mktemp("canonical") / "canonical.json"
    path.write_text(json.dumps(canonical_file()))
    page = lasting_page(project_about(model_kind="path", model=str(path)))
    until(page, "p.nodes.some((n) => n.sub === 'n10') && p.queues.length")
    settled(page)
    return page


def names(shown, *pairs):
    return {tuple(shown["nodes"][n]["sub"] for n in pair) for pair in pairs}


def node(page, name):
    """Where an op is drawn, once the page around the picture has come to rest."""
    found, before = None, 0
    while found != before:
        page.wait_for_timeout(300)
        before = found
        found = next(n for n in drawn(page)["nodes"] if n["sub"] == name)
    return found


def test_the_path_is_painted_along_its_own_edges_and_its_wait_is_no_edge(canonical):
    shown = drawn(canonical)
    red = names(shown, *((e["from"], e["to"]) for e in shown["edges"] if e["style"] in CRITICAL))
    assert red == {("n1", "n4"), ("n6", "n8"), ("n8", "n10")}
    assert names(shown, *((q["from"], q["to"]) for q in shown["queues"])) == {("n4", "n6")}
    assert canonical.get_by_text("waits its turn").is_visible()


@pytest.mark.only_thorough
def test_pointing_at_a_node_leaves_the_path_in_its_colour(canonical):
    for name in ("n6", "n9", "n8"):
        at = node(canonical, name)
        canonical.mouse.move(at["x"], at["y"])
        shown = until(canonical, "p.tooltip && p.tooltip.startsWith(given)", name)
        for edge in shown["edges"]:
            assert (edge["styleNow"] in CRITICAL) == edge["onPath"], (name, edge)
    canonical.mouse.move(5, 5)
    shown = until(canonical, "!p.tooltip")
    assert sum(edge["styleNow"] in CRITICAL for edge in shown["edges"]) == 3


@pytest.mark.only_thorough
def test_the_card_under_the_pointer_follows_an_edit_at_once(canonical):
    at = node(canonical, "n2")
    canonical.mouse.click(at["x"], at["y"])
    until(canonical, "p.selection.length === 1")
    canonical.mouse.move(at["x"] + 2, at["y"] + 2)
    until(canonical, "/\\nP1(\\n|$)/.test(p.tooltip ?? '')")
    # What stands there in the very frame of the key, before Python has said anything.
    canonical.keyboard.press("3")
    assert re.search(r"\nP3(\n|$)", canonical.evaluate(f"{PROBE}.tooltip"))
    shown = until(canonical, "p.confirmed && /\\nP3(\\n|$)/.test(p.tooltip ?? '')")
    assert "P1" not in shown["tooltip"]
