"""A server that begins, is killed, may not write: the picture is there, and the reason."""

import pytest
from playwright.sync_api import expect

from tests.browser.studio import DIFFERS, SAME, drawn, project_of, select, until

# The same server for whom nobody's folder can be written, root's neither.
WITHOUT_RIGHTS = """
import os, sys
from pathlib import Path
from streamlit.web.cli import main
from tests.disks import without_rights
sys.path.insert(0, os.getcwd())
with without_rights(Path(os.environ["PLACEMENT_STUDIO_HOME"])):
    main(prog_name="streamlit")
"""
CAUSE = "cannot be written: you have no right to"


# Streamlit's own list of the files in pages/ must not show, not even for a moment.
WATCH = """
globalThis.listed = [];
new MutationObserver(() => {
  const list = document.querySelector('[data-testid="stSidebarNav"]');
  if (list) listed.push(list.innerText);
}).observe(document, { childList: true, subtree: true });
"""


def visited(visitor, address):
    """The first page that a server shows, with a picture."""
    page = visitor.new_page()
    page.add_init_script(WATCH)
    page.goto(address)
    drawn(page)
    assert page.evaluate("listed") == []
    return page


def test_a_server_shows_what_there_is_at_first_and_after_a_kill_without_rights_until_it_has_them(
    restartable, visitor
):
    """In a home of its own, where nobody has measured the sample; starting one takes seconds."""
    url = restartable.start()
    page = visited(visitor, url)
    start = drawn(page)["counts"]
    assert sum(start) == 371 and all(start), "the default sample coloured by device"
    expect(page.locator(".st-key-desk-score").get_by_text("estimated", exact=True)).to_be_visible()
    project = project_of(page)
    select(page, 0)
    page.keyboard.press("2")
    changed = until(page, DIFFERS, start)["counts"]
    saved = page.get_by_text("All changes saved").filter(visible=True)
    expect(saved.first).to_be_visible()

    restartable.kill()
    page.close()
    folders = [path for path in (restartable.home, *restartable.home.rglob("*")) if path.is_dir()]
    restartable.start(("-c", WITHOUT_RIGHTS))
    page = visited(visitor, f"{url}/place?project={project}")
    saved = page.get_by_text("All changes saved").filter(visible=True)
    assert drawn(page)["counts"] == changed, "the edit that was on the screen"
    expect(page.get_by_text(CAUSE).first).to_be_visible()
    expect(
        page.get_by_text("View only: nothing can be saved").filter(visible=True).first
    ).to_be_visible()
    expect(page.get_by_text("All changes saved")).to_have_count(0)
    select(page, 0)
    page.keyboard.press("1")
    page.wait_for_timeout(1000)
    assert drawn(page)["counts"] == changed

    # Under the page that is open somebody gives the right to write back.
    for folder in folders:
        folder.chmod(0o700)
    expect(saved.first).to_be_visible()
    expect(page.get_by_text(CAUSE)).to_have_count(0)
    expect(page.get_by_text("This project is open in another session")).to_have_count(0)
    page.get_by_role("button", name="Undo", exact=True).first.click()
    until(page, SAME, start)
    page.close()


@pytest.mark.only_thorough
def test_the_message_goes_away_by_itself_once_there_is_room_again(page, studio):
    """Something lies in the way under a page that is open, and is gone again."""
    counts = drawn(page)["counts"]
    claim = studio.home / "projects" / project_of(page) / "owner.json"
    expect(page.get_by_text("All changes saved").filter(visible=True).first).to_be_visible()
    claim.unlink()
    # A folder in the place of the file is something that root cannot write over either.
    claim.mkdir()
    (claim / "in the way").touch()
    expect(page.get_by_text("Nothing can be saved here")).to_be_visible()
    assert drawn(page)["counts"] == counts
    (claim / "in the way").unlink()
    claim.rmdir()
    expect(page.get_by_text("All changes saved").filter(visible=True).first).to_be_visible()
    expect(page.get_by_text("Nothing can be saved here")).to_have_count(0)
