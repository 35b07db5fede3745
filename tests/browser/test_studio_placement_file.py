"""A placement in a file, in a real browser: exported, and opened again beside the menu."""

import json
import re

import pytest
from playwright.sync_api import expect

from pages.ui.session.current import snapshot
from studio.project import store
from tests.browser.studio import drawn, open_tab, project_of, settled

FIELD = '[data-testid="stPopoverBody"] input[type="file"]'


def give(page, path):
    page.get_by_role("button", name="Open a placement", exact=True).click()
    page.locator(FIELD).set_input_files(str(path))


@pytest.fixture(scope="module")
def lasting(lasting_page):
    """The Studio page of a new project, at rest, for tests that leave nothing open over it."""
    page = lasting_page("")
    drawn(page)
    settled(page)
    return page


def test_what_the_button_opens_does_not_lie_under_its_tip(lasting):
    page = lasting
    button = page.get_by_role("button", name="Open a placement", exact=True)
    button.hover()
    tip = page.get_by_role("tooltip")
    expect(tip).to_be_visible()
    button.click()
    expect(page.locator(FIELD)).to_be_attached()
    expect(tip).to_be_hidden()
    button.click()
    expect(page.locator(FIELD)).to_have_count(0)


def test_an_exported_placement_is_opened_again_and_a_broken_one_refused(
    lasting, studio, tmp_path, monkeypatch
):
    monkeypatch.setenv("PLACEMENT_STUDIO_HOME", str(studio.home))
    page = lasting
    before = snapshot(store.find(project_of(page)))
    former = before.named.name
    page.get_by_test_id("stExpander").filter(has_text="Export").locator("summary").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download", exact=True).click()
    path = tmp_path / "mine.json"
    download.value.save_as(path)
    give(page, path)
    shown = page.locator(".st-key-desk-menus").get_by_role("combobox", name="Placement")
    expect(shown).to_have_value("mine")
    expect(page.locator(".st-key-notices")).to_contain_text("mine is the placement now")
    now = snapshot(store.find(project_of(page)))
    assert now.named.name == "mine" and now.placement == before.placement
    # It was a step as an edit is; all of the page goes back with it and comes again.
    board = page.get_by_text(re.compile("The placement on the screen: "))
    open_tab(page, "Board")
    back = ("Control+z", former)
    for key, name in (back, ("Control+y", "mine"), back):
        settled(page)
        page.keyboard.press(key)
        expect(shown).to_have_value(name)
        expect(board).to_contain_text(f"The placement on the screen: {name}.")
        assert snapshot(store.find(project_of(page))).named.name == name
    away = {"device_of": dict.fromkeys(before.placement.device_of, "cuda:7")}
    path.write_text(json.dumps(away))
    give(page, path)
    expect(page.locator(".st-key-notices")).to_contain_text("it uses device 'cuda:7'")
    assert snapshot(store.find(project_of(page))).placement == before.placement
    page.keyboard.press("Escape")
    expect(page.locator(FIELD)).to_have_count(0)
    page.mouse.move(2, 2)
