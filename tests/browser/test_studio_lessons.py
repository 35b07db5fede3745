"""Lessons in a real browser: solved by clicks and keys, and failed by one wrong answer each.

One page goes through them, since opening one anew takes longer than a lesson. `make test` solves
two of them and answers a third one's question for the order of ops: questions of every kind. The
lessons that ask for a method are solved here in `make fuzz` alone. That each can be solved is shown
in tests/lessons.
"""

import pytest
from playwright.sync_api import expect

from placement.api import lessons
from placement.lessons.grading import grade
from placement.lessons.lesson import QUESTIONS, ChoiceCheck, OrderCheck
from tests.browser.studio import choose, drawn, settled, until
from tests.lessons.test_shipped import SOLVED
from tests.thorough import either

PANEL = ".st-key-lesson-panel"
# What a method has to find; the others are solved by moves.
BY_METHOD = "10-a-learned-policy"
# With checks of every kind but one among them, and the one that asks for an order.
SOLVED_BY_HAND = ("02-chains", "03-the-critical-path")
BY_ORDER, AFTER_IT = "04-heft-by-hand", "05-beat-heft"


@pytest.fixture(scope="module")
def read():
    return {name: lessons.lesson(name) for name in lessons.lessons()}


@pytest.fixture(scope="module")
def lessons_page(lasting_page):
    """For tests that begin a lesson in it, whatever was begun there before."""
    return lasting_page("lessons")


def kinds(lessons):
    return {type(task.check) for lesson in lessons for task in lesson.tasks}


def begin(page, name, lesson):
    page.get_by_role("link", name="Lessons", exact=True).first.click()
    page.locator(f".st-key-begin-{name} button, .st-key-anew-{name} button").click()
    expect(page.locator(f"{PANEL} h3")).to_have_text(lesson.header.title)
    num_ops = len(lessons.posed(lesson).problem.graph.ops) if not lesson.header.live else 1
    until(page, "p.drawn && p.nodes.length >= Math.min(given, 20)", num_ops)


def move(page, ops, number):
    """Click the cards of ops, all but the first with Ctrl, then the key of a device."""
    # The lesson's text grows beside the graph, which then is drawn elsewhere.
    nodes, before = drawn(page)["nodes"], None
    while nodes != before:
        page.wait_for_timeout(300)
        nodes, before = drawn(page)["nodes"], nodes
    nodes = {node["sub"]: node for node in nodes}
    for op in ops:
        if op != ops[0]:
            page.keyboard.down("Control")
        page.mouse.click(nodes[op]["x"], nodes[op]["y"])
        page.keyboard.up("Control")
        until(page, "p.selection.includes(given)", nodes[op]["id"])
    page.keyboard.press(str(number))
    until(page, "p.confirmed && p.pending === 0")


def reply(page, task, given):
    """Give an answer as a person does, and wait until it has been looked at."""
    box = page.locator(f"{PANEL} .st-key-task-{task.number}")
    if isinstance(task.check, ChoiceCheck):
        box.locator("label").filter(has_text=given).last.click()
    else:
        text = ", ".join(given) if isinstance(task.check, OrderCheck) else f"{given:g}"
        field = box.locator("input").first
        field.fill(text)
        field.press("Enter")
    return box


def wrong(check):
    if isinstance(check, ChoiceCheck):
        return next(choice for choice in check.choices if choice != check.right)
    return check.ops[::-1] if isinstance(check, OrderCheck) else check.right + 50


def right(check):
    return check.ops if isinstance(check, OrderCheck) else check.right


def points(page, lesson, missing=0):
    """Wait until the panel says how many points there are."""
    said = f"{lesson.points - missing} of {lesson.points} points"
    expect(page.locator(PANEL).get_by_text(said).first).to_be_visible()


@pytest.mark.thorough
def test_every_lesson_is_solved_by_clicks_and_keys_and_failed_by_a_wrong_answer(
    lessons_page, read, tmp_path
):
    tried = {name: read[name] for name in either(SOLVED_BY_HAND, tuple(read))}
    assert kinds([*tried.values(), read[BY_ORDER]]) == kinds(read.values())
    page = lessons_page
    page.set_viewport_size({"width": 1440, "height": 900})
    for name, lesson in tried.items():
        begin(page, name, lesson)
        posed = lessons.posed(lesson)
        solved = SOLVED.get(name, {})
        for number, device in enumerate(posed.problem.machine.devices, 1):
            ops = [op for op, to in solved.items() if to == device.name]
            moving = [op for op in ops if posed.start.device_of[op] != device.name]
            if moving:
                move(page, moving, number)
        if name == BY_METHOD:
            choose(page, "Method", "ceft_pbqp")
            page.get_by_role("button", name="Place", exact=True).click()
        questions = [task for task in lesson.tasks if isinstance(task.check, QUESTIONS)]
        for task in questions[1:]:
            expect(reply(page, task, right(task.check))).to_contain_text("right")
        first = questions[0]
        partly = "the first 0" if isinstance(first.check, OrderCheck) else "not right"
        expect(reply(page, first, wrong(first.check))).to_contain_text(partly)
        points(page, lesson, missing=first.check.points)
        reply(page, first, right(first.check))
        points(page, lesson)
        insight = lesson.insight.split("**")[1]
        expect(page.locator(PANEL).get_by_text(insight).first).to_be_visible()
        hand_in = page.get_by_role("button", name="Hand in").first
        if name == next(iter(tried)):
            expect(hand_in).to_be_disabled()
            page.get_by_label("Your name").fill("Ada")
            page.get_by_label("Your name").press("Enter")
        expect(page.get_by_label("Your name")).to_have_value("Ada")
        expect(hand_in).to_be_enabled()
        with page.expect_download() as download:
            hand_in.click()
        file = tmp_path / f"{name}.json"
        download.value.save_as(file)
        (found,) = grade(lesson, posed, [file])
        assert (found.error, found.name) == ("", "Ada") and found.mark.is_solved, (name, found)


def test_from_one_lesson_to_the_next_the_whole_page_goes(lessons_page, read):
    page, lesson = lessons_page, read[BY_ORDER]
    begin(page, BY_ORDER, lesson)
    (order,) = (task for task in lesson.tasks if isinstance(task.check, OrderCheck))
    expect(reply(page, order, wrong(order.check))).to_contain_text("the first 0")
    expect(reply(page, order, right(order.check))).to_contain_text("right")
    panel, onward = (
        page.locator(".st-key-desk-inspector"),
        page.locator(f"{PANEL} .st-key-next-lesson"),
    )
    onward.scroll_into_view_if_needed()
    assert panel.evaluate("(one) => one.scrollTop") > 0
    top = panel.bounding_box()["y"]
    head = page.locator(f"{PANEL} .st-key-lesson-head").bounding_box()["y"]
    assert top - 1 <= head <= top + 20, "how far the lesson is stays in sight"
    assert {node["device"] for node in drawn(page)["nodes"]} == {0}
    onward.locator("button").click()
    expect(page.locator(f"{PANEL} h3")).to_have_text(read[AFTER_IT].header.title)
    until(page, "p.drawn && new Set(p.nodes.map((n) => n.device)).size === 3")
    expect(page.locator(".st-key-desk-opened")).to_contain_text("Beat HEFT")
    assert panel.evaluate("(one) => one.scrollTop") == 0, "it is read from its beginning"
    _what_a_lesson_asks_stands_as_a_line_on_the_timeline(page)


def _what_a_lesson_asks_stands_as_a_line_on_the_timeline(page):
    expect(page.locator(".gantt .targets text")).to_have_text(
        ["bound: 54 s · star: 73 s · asked: 76 s"]
    )
    at = page.locator(".gantt .targets line").evaluate_all("all => all.map((l) => l.dataset.at)")
    assert [round(float(each)) for each in at] == [54, 73, 76]
    # Words about what was and about what would be stand beside them, in a narrow window too.
    for width in (1440, 1024):
        page.set_viewport_size({"width": width, "height": 768})
        node = drawn(page)["nodes"][0]
        page.mouse.click(node["x"], node["y"])
        shown = until(page, "p.selection.includes(given)", node["id"])
        device = next(n["device"] for n in shown["nodes"] if n["id"] == node["id"])
        key = str(1 + (device + 1) % 3)
        page.keyboard.down(key)
        expect(page.locator(".gantt .foretold .told")).to_have_count(1)
        assert not page.locator(".gantt").first.evaluate(COLLIDING)
        page.keyboard.up(key)
        expect(page.locator(".gantt .past path")).to_have_count(1)
        settled(page)
        assert not page.locator(".gantt").first.evaluate(COLLIDING)


# Words in the line above the bars that lie on each other.
COLLIDING = """(gantt) => {
  const seen = [...gantt.querySelectorAll(".told, .targets > text, .panel > .title")]
    .filter((one) => getComputedStyle(one).visibility !== "hidden")
    .map((one) => [one.textContent, one.getBoundingClientRect()]);
  return seen.flatMap(([a, x], i) => seen.slice(i + 1)
    .filter(([, y]) => x.left < y.right && y.left < x.right
      && x.top < y.bottom - 3 && y.top < x.bottom - 3)
    .map(([b]) => `${a} / ${b}`)).join();
}"""
