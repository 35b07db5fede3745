"""Several sessions at once, and reloads: nobody's placement is disturbed or lost."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.studio import (
    PATIENCE_MS,
    choose,
    drawn,
    metric,
    project_of,
    select,
    settled,
    until,
)

NOTICE = "This project is open in another session"


def test_two_sessions_do_not_disturb_each_other(new_page):
    one, two = new_page(), new_page()
    start = drawn(one)["counts"]
    assert drawn(two)["counts"] == start
    assert project_of(one) != project_of(two)
    select(one, 0)
    one.keyboard.press("2")
    changed = until(one, "JSON.stringify(p.counts) !== JSON.stringify(given)", start)["counts"]
    choose(two, "Sample", "onnx-squeezenet")
    until(two, "p.counts.reduce((a, b) => a + b) === 66")
    one.reload()
    assert drawn(one)["counts"] == changed
    expect(one.get_by_text("Changes by hand").first).to_be_visible()


@pytest.fixture(scope="module")
def tabs():
    """The pages that the tests of one project in two windows have left, the first one's first."""
    return []


@pytest.fixture
def both(lasting_page, tabs):
    """Two pages of one project, of which the first may edit it, whatever test was before."""
    if not tabs or tabs[0].is_closed():
        tabs[:1] = [lasting_page()]
        drawn(tabs[0])
    one = tabs[0]
    project = project_of(one)
    if len(tabs) == 1:
        tabs.append(lasting_page(f"?project={project}"))
    elif project_of(tabs[1]) != project:
        tabs[1].goto(one.url)
    drawn(tabs[1])
    expect(tabs[1].get_by_text(NOTICE).first).to_be_visible()
    return one, tabs[1]


def test_a_reload_keeps_the_project_from_a_window_that_looks_on(both):
    one, two = both
    expect(two.get_by_text(NOTICE).first).to_be_visible()
    one.reload()
    drawn(one)
    # Longer than it takes the other window to look whether the project is free.
    one.wait_for_timeout(5000)
    expect(one.get_by_text(NOTICE)).to_have_count(0)
    expect(two.get_by_text(NOTICE).first).to_be_visible()


def test_a_second_session_of_a_project_says_so_and_can_copy_it(both):
    one, two = both
    start = drawn(one)["counts"]
    project = project_of(one)
    assert project_of(two) == project
    expect(two.get_by_text(NOTICE).first).to_be_visible()
    expect(one.get_by_text(NOTICE)).to_have_count(0)
    node = drawn(two)["nodes"][0]
    two.mouse.click(node["x"], node["y"])
    two.keyboard.press("2")
    select(one, 0)
    one.keyboard.press("1")
    assert drawn(two)["counts"] == start
    two.get_by_role("button", name="Open a copy").click()
    expect(two.get_by_text(NOTICE)).to_have_count(0)
    assert project_of(two) != project


def test_a_project_is_free_again_when_its_tab_is_closed(both):
    one, two = both
    notice = two.get_by_text(NOTICE)
    expect(notice.first).to_be_visible()
    one.close()
    expect(notice).to_have_count(0, timeout=60_000)


def test_a_reload_keeps_the_project_and_may_go_on_editing(studio_page):
    page = studio_page
    start = drawn(page)["counts"]
    select(page, 0)
    page.keyboard.press("2")
    changed = until(page, "JSON.stringify(p.counts) !== JSON.stringify(given)", start)["counts"]
    page.reload()
    assert drawn(page)["counts"] == changed
    expect(page.get_by_text(NOTICE)).to_have_count(0)
    page.get_by_role("button", name="Undo", exact=True).first.click()
    until(page, "JSON.stringify(p.counts) === JSON.stringify(given)", start)


def test_two_live_runs_queue(new_page, project_about, timed):
    timed("onnx-squeezenet")
    asked = [project_about(model="onnx-squeezenet", form={"dock-tab": "Run"}) for _ in range(2)]
    one, two = map(new_page, asked)
    for page in (one, two):
        expect(page.get_by_text("onnx-squeezenet (66 ops)").first).to_be_visible()
        drawn(page)
        settled(page)
    one.get_by_role("spinbutton", name="Steps", exact=True).fill("100000")
    one.get_by_role("spinbutton", name="Steps", exact=True).press("Enter")
    one.get_by_role("button", name="Run", exact=True).click()
    expect(one.get_by_text(re.compile("Running: Step")).first).to_be_visible(timeout=PATIENCE_MS)
    # Its steps are drawn as they come, with a scale, beside what is predicted of one.
    chart = one.locator(".st-key-desk-dock .job-watch figure")
    expect(chart).to_contain_text(re.compile("The last step took .+; dashed: .+, as predicted"))
    expect(chart.locator("text").first).to_have_text("0 s")
    two.get_by_role("button", name="Run", exact=True).click()
    waiting = two.get_by_text(re.compile(r"Waiting for process \d+"))
    expect(waiting.first).to_be_visible(timeout=PATIENCE_MS)
    one.get_by_role("button", name="Cancel").click()
    expect(one.get_by_text("Stopped before it finished").first).to_be_visible(timeout=PATIENCE_MS)
    expect(metric(two, "Measured step time")).to_be_visible(timeout=PATIENCE_MS)
    expect(waiting).to_have_count(0)
