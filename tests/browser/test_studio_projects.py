"""Projects in a real browser: saved as one works, deleted and taken back, sent as one file."""

import json
import random
import re
import threading
from collections import Counter

import pytest
from playwright.sync_api import expect

from pages.ui.session.current import snapshot
from placement import place
from studio import editing
from studio.project import store
from tests.browser.conftest import LOCAL
from tests.browser.studio import (
    DIFFERS,
    SAME,
    drawn,
    open_tab,
    page_names,
    project_of,
    select,
    settled,
    until,
)

NUM_KILLS = 4
CHANGES = re.compile(r"(\d+) of \d+ steps? (?:is|are) made")


def edited(page):
    """Move one node by a key; the counts of ops by device afterwards."""
    before = drawn(page)["counts"]
    select(page, 0)
    page.keyboard.press("2" if before[0] else "1")
    return until(page, DIFFERS, before)["counts"]


def all_projects(page):
    page.get_by_test_id("stSidebar").get_by_text("Projects", exact=True).click()
    page.get_by_role("link", name=re.compile("All projects")).click()
    expect(page.get_by_role("heading", name="Projects")).to_be_visible()


def row(page, project):
    return page.locator(f".st-key-project-{project}")


@pytest.fixture
def worked_on(studio, monkeypatch):
    """The project that somebody has worked on last, and how many ops it has on each device."""
    monkeypatch.setenv("PLACEMENT_STUDIO_HOME", str(studio.home))
    project = store.create()
    project.change(model="onnx-squeezenet")
    now = snapshot(project)
    now.shelf.add("heft", place(now.problem, "heft").placement, "heft")
    [op, *_] = now.problem.graph.index
    device = snapshot(project).placement.device_of[op]
    other = next(name for name in now.problem.machine.index if name != device)
    editing.edit(snapshot(project), [op], other)
    placed = Counter(snapshot(project).placement.device_of.values())
    return project.id, [placed[device] for device in now.problem.machine.index]


def test_a_project_is_opened_again_sent_deleted_and_taken_back(new_page, worked_on, tmp_path):
    project, counts = worked_on
    # The bare address opens what was worked on last.
    page = new_page(bare=True)
    assert until(page, SAME, counts) and project_of(page) == project

    all_projects(page)
    with page.expect_download() as sent:
        row(page, project).get_by_role("button", name="Export").click()
        page.get_by_role("button", name="Download").click()
    sent.value.save_as(tmp_path / "mine.zip")
    page.keyboard.press("Escape")

    row(page, project).get_by_role("button", name="Delete").click()
    expect(page.get_by_text(re.compile("^Deleted: "))).to_be_visible()
    expect(row(page, project)).to_have_count(0)
    assert project_of(page) != project
    page.get_by_role("button", name="Undo", exact=True).click()
    expect(row(page, project)).to_be_visible()

    page.get_by_role("button", name="Import a project").click()
    field = page.locator('[data-testid="stPopoverBody"] input[type="file"]')
    field.set_input_files(tmp_path / "mine.zip")
    expect(page.get_by_text(re.compile("^Imported "))).to_be_visible()
    twin = project_of(page)
    assert twin != project
    sent_on, kept = (snapshot(store.find(one)).placement for one in (twin, project))
    assert sent_on == kept
    row(page, project).get_by_role("button", name="Open", exact=True).click()
    assert until(page, SAME, counts) and project_of(page) == project
    expect(page.get_by_text("Changes by hand").first).to_be_visible()


@pytest.mark.only_thorough
def test_no_page_asks_for_anything_from_outside(new_page):
    page = new_page()
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("websocket", lambda socket: asked.append(socket.url))
    start = re.sub(r"/model[?]project=.*", "", page.url)
    project = project_of(page)
    for name in page_names():
        page.goto(f"{start}/{name}?project={project}")
        settled(page)
    assert len(asked) > 10 and all(map(LOCAL.match, asked))


def number_of_changes(page):
    """How many edits the page has told of, which it does once they are on disk."""
    texts = page.get_by_text(CHANGES).all_inner_texts()
    return max((int(CHANGES.search(text)[1]) for text in texts), default=0)


def stored_changes(folder):
    """How many edits the files tell of; every file must be whole."""
    contents = {p: json.loads(p.read_text()) for p in folder.rglob("*.json")}
    histories = [json.loads(p.read_text()) for p in folder.rglob("*.history")]
    assert folder / "project.json" in contents
    return max((len(h["done"]) for h in histories), default=0)


@pytest.mark.only_thorough
def test_nothing_told_is_lost_when_the_server_is_killed(restartable, visitor):
    """Kill the server at any moment while somebody edits; what the page has told is on disk."""
    moments = random.Random(1)
    page = visitor.new_page()
    project, told = "", 0
    for _ in range(NUM_KILLS):
        page.goto(restartable.start())
        drawn(page)
        assert project in ("", project_of(page))
        project = project_of(page)
        folder = restartable.home / "projects" / project
        if not told:
            edited(page)
        open_tab(page, "History")
        expect(page.get_by_text(CHANGES)).to_be_visible()
        assert number_of_changes(page) == stored_changes(folder)
        select(page, 0)
        killer = threading.Timer(moments.uniform(0.2, 2.5), restartable.kill)
        killer.start()
        while killer.is_alive():
            page.keyboard.press(moments.choice("12"))
            page.wait_for_timeout(moments.uniform(20, 150))
        told = number_of_changes(page)
        assert stored_changes(folder) >= told
    assert told > 0
    page.close()
