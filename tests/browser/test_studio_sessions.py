"""Several sessions at once, and reloads: nobody's placement is disturbed or lost."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.studio import (
    DIFFERS,
    PATIENCE_MS,
    SAME,
    drawn,
    metric,
    project_of,
    select,
    settled,
    until,
)

NOTICE = "This project is open in another session"


def test_sessions_do_not_disturb_each_other_and_one_may_edit_a_project(new_page, project_about):
    one, two = new_page(), new_page(project_about(model="onnx-squeezenet"))
    start, others = drawn(one)["counts"], drawn(two)["counts"]
    assert sum(others) == 66 and project_of(one) != project_of(two)
    select(one, 0)
    one.keyboard.press("2")
    changed = until(one, DIFFERS, start)["counts"]
    assert drawn(two)["counts"] == others

    # Who comes second looks on, also while the first one's page is loaded again.
    two.goto(one.url)
    notice = two.get_by_text(NOTICE)
    expect(notice.first).to_be_visible()
    one.reload()
    assert drawn(one)["counts"] == drawn(two)["counts"] == changed
    expect(one.get_by_text("Changes by hand").first).to_be_visible()
    # Longer than it takes the other window to look whether the project is free.
    one.wait_for_timeout(5000)
    expect(one.get_by_text(NOTICE)).to_have_count(0)
    expect(notice.first).to_be_visible()
    node = drawn(two)["nodes"][0]
    two.mouse.click(node["x"], node["y"])
    two.keyboard.press("1")
    one.get_by_role("button", name=re.compile("^Undo .+ to ")).click()
    until(one, SAME, start)
    assert drawn(two)["counts"] == changed

    two.get_by_role("button", name="Open a copy").click()
    expect(notice).to_have_count(0)
    assert project_of(two) != project_of(one)

    # It is free again when the page of who edits it is closed.
    one.goto(two.url)
    expect(one.get_by_text(NOTICE).first).to_be_visible()
    two.close()
    expect(one.get_by_text(NOTICE)).to_have_count(0, timeout=60_000)


@pytest.mark.only_thorough
def test_two_live_runs_queue(new_page, project_about, timed):
    timed("onnx-squeezenet")
    forms = ({"dock-tab": "Run", "steps": steps} for steps in (100_000, 3))
    asked = [project_about(model="onnx-squeezenet", form=form) for form in forms]
    one, two = map(new_page, asked)
    for page in (one, two):
        until(page, "p.counts.reduce((a, b) => a + b) === 66")
        settled(page)
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
    one.close()
    expect(metric(two, "Measured step time")).to_be_visible(timeout=PATIENCE_MS)
    expect(waiting).to_have_count(0)
