"""Following a method in a real browser: by keys and by clicks, on the graph and on the timeline."""

import json

import pytest
from playwright.sync_api import expect

from placement.placers import placer_class
from profiling.measuring.lock import measuring
from tests.browser.studio import (
    boxes,
    choose,
    drawn,
    open_tab,
    score,
    settled,
    step_in_sight,
    until,
)
from tests.instances import canonical_file

# Where HEFT puts the ops of the canonical example, in its order.
ORDER = ("n1", "n4", "n3", "n2", "n5", "n6", "n9", "n7", "n8", "n10")


@pytest.fixture(scope="module")
def canonical(project_about, tmp_path_factory):
    """Make a project with the canonical example; its address."""
    path = tmp_path_factory.mktemp("canonical") / "canonical.json"
    path.write_text(json.dumps(canonical_file()))
    limit = {"time-limit-auto": 1.0}
    return lambda: project_about(model_kind="path", model=str(path), form=limit)


@pytest.fixture
def steps(new_page, canonical):
    """The tab of a project with the canonical example, HEFT at its first step."""
    return opened(new_page(canonical()))


@pytest.fixture(scope="module")
def lasting(lasting_page, canonical):
    """The same for tests that change no placement."""
    return opened(lasting_page(canonical()))


@pytest.fixture
def followed(lasting):
    """That page with HEFT at its first step and at rest, its tab just pressed, in a window of the
    usual size, whatever test was before."""
    page, player = lasting, lasting.locator(".player")
    page.set_viewport_size({"width": 1440, "height": 900})
    if player.get_by_role("button", name="Pause", exact=True).count():
        press(page, "Pause")
    if not page.locator(".player", has_text=placer_class("heft").pseudo_code[0].strip()).count():
        follow(page, "heft")
    player.locator("input[type=range]").fill("0")
    at(page, 0)
    open_tab(page, "Timeline")
    open_tab(page, "Steps")
    at(page, 0)
    settled(page)
    # On a slow computer what the tab before has drawn stays for a moment.
    expect(page.locator(".gantt")).to_have_count(1)
    return page


def opened(page):
    until(page, "p.nodes.some((n) => n.sub === 'n10') && p.queues.length")
    settled(page)
    open_tab(page, "Steps")
    at(page, 0)
    return page


def at(page, number):
    expect(page.locator(f".player[data-at='{number}']")).to_be_visible()


def follow(page, method):
    """Choose a method, and wait until it is the one that is shown."""
    choose(page, "Method to follow", method)
    first = placer_class(method).pseudo_code[0].strip()
    expect(page.locator(".player")).to_contain_text(first)
    at(page, 0)


def press(page, name):
    page.locator(".player").get_by_role("button", name=name, exact=True).click()


def test_a_method_is_followed_by_keys_and_by_clicks(followed):
    page = followed
    # Nothing is placed yet, nothing is edited meanwhile.
    until(page, "p.nodes.every((n) => n.device < 0)")
    expect(page.locator(".player .why")).to_contain_text("n1 has the highest rank")
    for number, op in enumerate(ORDER[:3], 1):
        page.keyboard.press("ArrowRight")
        at(page, number)
        expect(page.locator(".player .why")).to_contain_text(f"{op} goes to")
    until(page, "p.nodes.filter((n) => n.device >= 0).length === 3")
    expect(page.locator(".player .lit")).to_have_text(
        "    put it on the device where it finishes first"
    )
    expect(page.locator(".gantt rect.alternative")).to_have_count(2)
    expect(page.locator(".player tr.marked").first).to_contain_text("P3")
    page.keyboard.press("ArrowLeft")
    at(page, 2)
    press(page, "Forward")
    at(page, 3)
    page.keyboard.press(" ")
    at(page, 5)
    page.keyboard.press(" ")
    page.keyboard.press("End")
    at(page, 11)
    expect(page.locator(".player .why")).to_contain_text("80 s")
    until(page, "p.nodes.every((n) => n.device >= 0)")
    slider = page.locator(".player input[type=range]")
    slider.fill("4")
    at(page, 4)
    page.keyboard.press("Home")
    at(page, 0)


def test_an_answer_is_hidden_until_somebody_has_given_one(followed):
    page = followed
    page.get_by_text("Predict first").click()
    expect(page.locator(".player .question .text")).to_have_text("Which op comes first?")
    expect(page.locator(".player .why")).to_be_empty()
    page.keyboard.press("1")
    expect(page.locator(".player .said.right")).to_be_visible()
    page.keyboard.press("ArrowRight")
    at(page, 1)
    expect(page.locator(".player .question .text")).to_have_text("Where does n1 finish first?")
    # Neither the graph nor the keys tell before there is an answer.
    until(page, "p.nodes.every((n) => n.device < 0)")
    expect(page.locator(".gantt rect.alternative")).to_have_count(3)
    page.keyboard.press("ArrowRight")
    at(page, 1)
    page.locator(".player .question button", has_text="P1").click()
    expect(page.locator(".player .said.wrong")).to_be_visible()
    expect(page.locator(".player .question button.right")).to_have_text("P3")
    expect(page.locator(".player .question")).to_contain_text("1 of 2 right")
    expect(page.locator(".player .why")).to_contain_text("n1 goes to P3")
    # Nobody gets past the next question.
    page.keyboard.press("End")
    at(page, 2)
    expect(page.locator(".player .question .text")).to_have_text("Where does n4 finish first?")
    page.get_by_text("Predict first").click()
    expect(page.locator(".player .question")).to_be_hidden()


@pytest.mark.only_thorough
def test_the_picture_marks_what_is_clicked_and_shows_a_placement_that_comes(steps):
    """Arrows go from step to step from the graph, too; what Place makes is what is seen then, and
    so is what a method that is followed comes to once somebody takes it."""
    page = steps
    page.keyboard.press("ArrowRight")
    at(page, 1)
    node = until(page, "p.selection.length === 1")["nodes"][-1]
    page.mouse.click(node["x"], node["y"])
    until(page, "p.selection.length === 1 && p.selection[0] === given", node["id"])
    settled(page)
    until(page, "p.selection.length === 1 && p.selection[0] === given", node["id"])
    page.keyboard.press("ArrowRight")
    at(page, 2)
    # The next step is about another op, and the digits are no edits of it.
    until(page, "p.selection.length === 1 && p.selection[0] !== given", node["id"])
    page.keyboard.press("2")
    until(page, "p.status.endsWith('cannot be changed here')")
    page.get_by_role("button", name="Place", exact=True).click()
    expect(page.get_by_role("tab", name="Timeline")).to_have_attribute("aria-selected", "true")
    until(page, "p.nodes.every((n) => n.device >= 0) && !p.numSelected")
    settled(page)
    # The dock is lower beside a timeline, and the picture is fitted to the place that it leaves.
    before, node = None, drawn(page)["nodes"][-1]
    while node != before:
        page.wait_for_timeout(300)
        before, node = node, drawn(page)["nodes"][-1]
    page.mouse.click(node["x"], node["y"])
    until(page, "p.selection[0] === given", node["id"])
    given = {"id": node["id"], "to": (drawn(page)["nodes"][-1]["device"] + 1) % 3}
    page.keyboard.press(str(given["to"] + 1))
    until(page, "p.nodes.some((n) => n.id === given.id && n.device === given.to)", given)
    # The tab shows steps again, beside the placement that there is now.
    open_tab(page, "Steps")
    at(page, 2)
    until(page, "p.nodes.some((n) => n.device < 0)")
    follow(page, "cpop")
    page.get_by_role("button", name="Make this the placement").click()
    expect(score(page)).to_have_text("86 s")
    open_tab(page, "Timeline")
    until(page, "p.nodes.every((n) => n.device >= 0)")


def test_the_timeline_of_a_step_is_in_sight_with_its_axis(followed):
    dock = followed.locator(".st-key-desk-dock").bounding_box()
    foot = dock["y"] + dock["height"]
    for part in (".title", ".row", ".axis .unit"):
        found = boxes(followed.locator(".gantt"), part)
        assert found, part
        for box in found:
            assert dock["y"] <= box["y"] and box["y"] + box["height"] <= foot, part


@pytest.mark.only_thorough
def test_a_step_is_in_sight_in_every_window_and_so_is_the_picture(followed):
    page = followed
    for width, height in ((1440, 900), (1024, 768)):
        page.set_viewport_size({"width": width, "height": height})
        for number in (2, 3):
            page.locator(".player input[type=range]").fill(str(number))
            at(page, number)
            settled(page)
            step_in_sight(page, page.locator(".player .why"))
        shown = drawn(page)
        end = shown["stage"]["top"] + shown["stage"]["height"]
        assert max(node["y"] + node["h"] / 2 for node in shown["nodes"]) <= end + 1, width


@pytest.mark.only_thorough
def test_the_page_is_alive_while_a_search_is_followed(steps, studio):
    """It says how far it is, can be cancelled, and nothing of the method before stays in sight."""
    page = steps
    page.keyboard.press("ArrowRight")
    at(page, 1)
    dock = page.locator(".st-key-desk-dock")
    # A search needs all cores, so it waits for whoever measures, here for as long as we want.
    with measuring("another network", folder=studio.home):
        choose(page, "Method to follow", "hsdag")
        expect(dock.get_by_text("Following hsdag: Waiting for process")).to_be_visible()
        expect(page.locator(".player")).to_have_count(0)
        until(page, "p.nodes.every((n) => n.device >= 0)")
        open_tab(page, "Board")
        expect(dock.get_by_test_id("stDataFrame").first).to_be_visible()
        open_tab(page, "Steps")
        dock.get_by_role("button", name="Cancel").click()
        expect(dock.get_by_text("Stopped before it finished.")).to_be_visible()
    choose(page, "Method to follow", "cpop")
    at(page, 0)
    # Whoever has chosen a method goes on with the arrows.
    page.keyboard.press("ArrowRight")
    at(page, 1)
    until(page, "p.status.startsWith('Step 2 of ') && p.status.endsWith(' of cpop')")


@pytest.mark.only_thorough
def test_chances_are_drawn_as_opacity_and_a_guess_has_a_sign(followed):
    """A learner draws ops as strongly as they are likely; the program fades what it takes out."""
    page = followed
    follow(page, "group_pg")
    until(page, "p.nodes.every((n) => n.opacity === 1)")
    press(page, "Forward")
    at(page, 1)
    until(page, "p.nodes.every((n) => n.device >= 0) && p.nodes.some((n) => n.opacity < 1)")
    expect(page.locator(".player figcaption", has_text="Chances of the least sure")).to_be_visible()
    follow(page, "ceft_pbqp")
    player = page.locator(".player")
    while not player.locator("figcaption", has_text="Taken out so far").count():
        number = int(player.get_attribute("data-at"))
        press(page, "Forward")
        at(page, number + 1)
    until(page, "p.nodes.some((n) => n.opacity < 0.3 && n.device < 0)")
    expect(player.locator("tr", has_text="exact").first).to_be_visible()
