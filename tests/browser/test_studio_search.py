"""Searching in a real browser: auto with a limit, how it went, and a move that saves time."""

import re

import pytest
from playwright.sync_api import expect

import placement as pl
from pages.ui.session.current import snapshot
from studio.project import store
from studio.snapshot import facts_of
from tests.browser.studio import PATIENCE_MS, drawn, score, settled, until

# A method is compiled when it is used for the first time on a computer.
COMPILING_MS = 2 * PATIENCE_MS
FORM = {"dock-tab": "Hints", "placer": "auto", "time-limit-auto": 1.0}


def seconds(text):
    value, unit = text.split()
    return float(value) * {"s": 1.0, "ms": 1e-3, "µs": 1e-6}[unit]


@pytest.fixture
def dealt_out(studio, timed, monkeypatch):
    """The address of a project whose placement deals the ops out in turn, so that moves help."""
    timed("onnx-squeezenet")
    monkeypatch.setenv("PLACEMENT_STUDIO_HOME", str(studio.home))
    project = store.create()
    project.change(touch=False, model="onnx-squeezenet", form=FORM)
    now = snapshot(project)
    placed = pl.place(now.problem, "round_robin")
    now.shelf.add("round_robin", placed.placement, "round_robin", facts_of(placed))
    return f"?project={project.id}"


def test_a_move_that_saves_time_is_made_and_undone_and_auto_tells_how_its_search_went(
    new_page, dealt_out
):
    page = new_page(dealt_out)
    before = drawn(page)["counts"]
    settled(page)
    slow = score(page).inner_text()
    page.get_by_role("button", name="Apply", exact=True).first.click()
    until(page, "JSON.stringify(p.counts) !== JSON.stringify(given)", before)
    expect(score(page)).not_to_have_text(slow)
    assert seconds(score(page).inner_text()) < seconds(slow)
    # Long enough to be read.
    page.wait_for_timeout(1000)
    expect(page.get_by_text("Your edit went to a new placement")).to_be_visible()
    page.get_by_role("button", name="Undo", exact=True).first.click()
    until(page, "JSON.stringify(p.counts) === JSON.stringify(given)", before)
    expect(score(page)).to_have_text(slow)

    page.get_by_role("button", name="Place", exact=True).click()
    told = page.get_by_text(re.compile("Placed by auto")).first
    expect(told).to_be_visible(timeout=COMPILING_MS)
    settled(page)
    expect(page.get_by_text(re.compile(r"Found by auto in .+: .+ms.+optim")).first).to_be_visible()
    page.get_by_text("How the search went").click()
    chart = page.locator(".js-plotly-plot").filter(has_text="Best so far (predicted)")
    expect(chart.locator(".scatterlayer .js-line")).to_have_count(2)
    expect(chart).to_contain_text("proven bound")
    expect(chart).to_contain_text("seconds of search")
