"""Files of what is on the screen, in a real browser: downloaded, and a placement opened again."""

import csv
import io
import json
import re

import pytest
from PIL import Image
from playwright.sync_api import expect

from pages.ui.canvas import device_colour
from pages.ui.session.current import snapshot
from studio.project import store
from tests.browser.studio import choose, drawn, open_tab, project_of, settled

FIELD = '[data-testid="stPopoverBody"] input[type="file"]'


def downloaded(page, button):
    with page.expect_download() as found:
        page.get_by_role("button", name=button, exact=button == "Download").click()
    return found.value


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


@pytest.mark.only_thorough
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


def test_what_is_shown_is_exported_and_a_placement_opened_again_and_a_broken_one_refused(
    lasting, studio, tmp_path, monkeypatch
):
    monkeypatch.setenv("PLACEMENT_STUDIO_HOME", str(studio.home))
    page = lasting
    counts = drawn(page)["counts"]
    before = snapshot(store.find(project_of(page)))
    former = before.named.name
    page.get_by_test_id("stExpander").filter(has_text="Export").locator("summary").click()
    path = tmp_path / "mine.json"
    downloaded(page, "Download").save_as(path)

    choose(page, "Format", "Ops as a table (.csv)")
    expect(page.get_by_text("Every op with its device").first).to_be_visible()
    table = downloaded(page, "Download")
    assert table.suggested_filename == "onnx-inception-v2-heft-csv.csv"
    rows = list(csv.DictReader(io.StringIO(table.path().read_text(encoding="utf-8"))))
    written = [sum(row["device"] == f"cpu:{d}" for row in rows) for d in range(2)]
    assert written == counts, "Python wrote the placement that the canvas shows"

    picture = downloaded(page, "Picture as PNG")
    assert picture.suggested_filename == "onnx-inception-v2-heft.png"
    picture.save_as(tmp_path / "picture.png")
    image = Image.open(tmp_path / "picture.png").convert("RGB")
    drawing = page.locator(".drawing canvas").bounding_box()
    assert image.width == round(drawing["width"]) and image.height > drawing["height"]
    seen = {f"#{r:02x}{g:02x}{b:02x}" for _, (r, g, b) in image.getcolors(1 << 20)}
    assert {device_colour(0), device_colour(1)} <= seen, "the devices' colours are in the picture"

    give(page, path)
    shown = page.locator(".st-key-desk-menus").get_by_role("combobox", name="Placement")
    expect(shown).to_have_value("mine")
    expect(page.locator(".st-key-notices")).to_contain_text("mine is the placement now")
    now = snapshot(store.find(project_of(page)))
    assert now.named.name == "mine" and now.placement == before.placement
    # It was a step as an edit is; all of the page goes back with it and comes again.
    board = page.get_by_text(re.compile("The placement on the screen: "))
    open_tab(page, "Board")
    for key, name in (("Control+z", former), ("Control+y", "mine")):
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
