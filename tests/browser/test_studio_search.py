"""Searching in a real browser: auto with a limit, how it went, and a move that saves time."""

import re

from playwright.sync_api import expect

from tests.browser.studio import PATIENCE_MS, choose, drawn, open_tab, score, settled, until

# A method is compiled when it is used for the first time on a computer.
COMPILING_MS = 2 * PATIENCE_MS


def place(page, method):
    """Press the button and wait until the page shows all of what the chosen method finds."""
    page.get_by_role("button", name="Place", exact=True).click()
    told = page.get_by_text(re.compile(f"Placed by {method}")).first
    expect(told).to_be_visible(timeout=COMPILING_MS)
    settled(page)


def test_auto_tells_how_its_search_went(new_page, timed):
    timed("onnx-inception-v2")
    page = new_page("")
    drawn(page)
    page.get_by_role("button", name="Settings").click()
    limit = page.get_by_role("spinbutton", name=re.compile("Time limit"))
    expect(limit).to_have_value("5.00")
    limit.fill("1")
    limit.press("Enter")
    page.keyboard.press("Escape")
    page.get_by_text("The same on the command line").click()
    expect(page.get_by_test_id("stCode").first).to_contain_text("--placer auto")
    expect(page.get_by_test_id("stCode").first).to_contain_text("--time-limit 1")

    place(page, "auto")
    expect(page.get_by_text(re.compile(r"Found by auto in .+: .+ms.+optim")).first).to_be_visible()
    page.get_by_text("How the search went").click()
    chart = page.locator(".js-plotly-plot").filter(has_text="Best so far (predicted)")
    expect(chart.locator(".scatterlayer .js-line")).to_have_count(2)
    expect(chart).to_contain_text("proven bound")
    expect(chart).to_contain_text("seconds of search")


def seconds(text):
    value, unit = text.split()
    return float(value) * {"s": 1.0, "ms": 1e-3, "µs": 1e-6}[unit]


def test_a_move_that_saves_time_is_applied_and_undone(new_page, timed):
    timed("onnx-inception-v2")
    page = new_page("")
    first = drawn(page)["counts"]
    choose(page, "Method", "round_robin")
    page.get_by_text("The same on the command line").click()
    expect(page.get_by_test_id("stCode").first).to_contain_text("--placer round_robin")
    place(page, "round_robin")
    # The message may be there before the picture is.
    before = until(page, "JSON.stringify(p.counts) !== JSON.stringify(given)", first)["counts"]
    slow = score(page).inner_text()
    open_tab(page, "Hints")
    page.get_by_role("button", name="Apply", exact=True).first.click()
    until(page, "JSON.stringify(p.counts) !== JSON.stringify(given)", before)
    expect(score(page)).not_to_have_text(slow)
    assert seconds(score(page).inner_text()) < seconds(slow)
    page.wait_for_timeout(1000)
    expect(page.get_by_text("Your edit went to a new placement")).to_be_visible()
    page.get_by_role("button", name="Undo", exact=True).first.click()
    until(page, "JSON.stringify(p.counts) === JSON.stringify(given)", before)
    expect(score(page)).to_have_text(slow)
