"""A server that is killed, and one that may not write: the picture is there, and the reason."""

from playwright.sync_api import expect

from tests.browser.studio import drawn, project_of, select, until

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


def test_a_project_is_shown_with_the_reason_where_it_cannot_be_written(restartable, visitor):
    """After a kill on the spot: the edit that was on the screen is there."""
    url = restartable.start()
    page = visitor.new_page()
    page.goto(f"{url}/place")
    start = drawn(page)["counts"]
    project = project_of(page)
    select(page, 0)
    page.keyboard.press("2")
    changed = until(page, "JSON.stringify(p.counts) !== JSON.stringify(given)", start)["counts"]
    expect(page.get_by_text("All changes saved").filter(visible=True).first).to_be_visible()
    restartable.kill()
    page.close()
    restartable.start(("-c", WITHOUT_RIGHTS))
    page = visitor.new_page()
    page.goto(f"{url}/place?project={project}")
    assert drawn(page)["counts"] == changed
    expect(page.get_by_text(CAUSE).first).to_be_visible()
    expect(
        page.get_by_text("View only: nothing can be saved").filter(visible=True).first
    ).to_be_visible()
    expect(page.get_by_text("All changes saved")).to_have_count(0)
    select(page, 0)
    page.keyboard.press("1")
    page.wait_for_timeout(1000)
    assert drawn(page)["counts"] == changed
    page.close()
    restartable.start()
    page = visitor.new_page()
    page.goto(f"{url}/place?project={project}")
    assert drawn(page)["counts"] == changed
    expect(page.get_by_text("All changes saved").filter(visible=True).first).to_be_visible()
    expect(page.get_by_text(CAUSE)).to_have_count(0)
    page.close()


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
