"""The picture that is there before a session is: the one that the session will draw."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.canvas_page import LOOK_EVERY_MS
from tests.browser.studio import PATIENCE_MS, drawn, project_of, until

ENTRY = re.compile(r"/static/js/index\.[^/]*\.js$")
EARLY = "globalThis.__placementCanvas?.probe?.('canvas', true)"
HOST = "!!document.getElementById('placement-first-sight')"


@pytest.fixture(scope="module")
def placed(lasting_page, studio_url):
    """A project that has been drawn, and is free again."""
    page = lasting_page()
    drawn(page)
    project = project_of(page)
    expect(page.get_by_test_id("stException")).to_have_count(0)
    # Where no session is; the page stays, so that what it remembers is cleared at the end.
    page.goto(f"{studio_url}/_stcore/health")
    return project


@pytest.fixture
def held(new_page, placed):
    """The page of a placed project whose program does not begin before `let` is called."""
    # Somewhere that has no program.
    page, project, waiting = new_page(f"_stcore/health?project={placed}"), placed, []
    page.route(ENTRY, lambda route: waiting.append(route))

    def let():
        for route in waiting:
            route.continue_()

    return page, project, let


def seen(page):
    found = page.wait_for_function(
        f"() => {{ const p = {EARLY}; return p && p.drawn === p.view && p; }}",
        polling=LOOK_EVERY_MS,
        timeout=PATIENCE_MS,
    )
    return found.json_value()


def test_a_session_goes_on_with_the_canvas_that_was_there_before_it(held, studio_url):
    page, project, let = held
    page.goto(f"{studio_url}/?project={project}", wait_until="commit")
    before = seen(page)
    assert page.evaluate("globalThis.__placementCanvas.probe()") is None, "nobody may edit it yet"
    node = before["nodes"][1]
    page.mouse.click(node["x"], node["y"])
    let()
    after = until(page, "p.drawn && p.selection.length")
    assert after["selection"] == [node["id"]]
    assert not page.evaluate(HOST)
    for name in ("view", "counts", "scale"):
        assert after[name] == pytest.approx(before[name]), name
    for side, size in before["stage"].items():
        assert after["stage"][side] == pytest.approx(size, abs=1), side
    for name in ("id", "label", "colour", "mark"):
        assert [n[name] for n in after["nodes"]] == [n[name] for n in before["nodes"]], name
    for old, new in zip(before["nodes"], after["nodes"], strict=True):
        assert (new["x"], new["y"]) == pytest.approx((old["x"], old["y"]), abs=1)


def test_it_goes_where_another_page_is_gone_to(held, studio_url):
    page, project, _ = held
    page.goto(f"{studio_url}/?project={project}", wait_until="commit")
    seen(page)
    page.evaluate("history.pushState(null, '', 'devices' + location.search)")
    page.wait_for_function(f"!{HOST}", timeout=PATIENCE_MS)
