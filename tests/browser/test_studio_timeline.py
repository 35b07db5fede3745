"""The Timeline page in a real browser: bars and picture share one selection; training schedules."""

import json
import re

import pytest
from playwright.sync_api import expect

from pages.ui.session.current import snapshot
from placement import place
from studio.project import store
from tests.browser.studio import boxes, drawn, metric, open_tab, select, settled, until
from tests.instances import canonical_file
from tests.pages.test_pages import finished_run
from tests.thorough import either
from tests.workloads import edges, node, workload

# In one call, as what is drawn anew between two has no box for a moment.
LANES_IN_SIGHT = """(frame) => {
    const top = frame.getBoundingClientRect().top;
    const foot = frame.querySelector(".axis").getBoundingClientRect().top;
    const boxes = [...frame.querySelectorAll(".panel .row:not(.link)")].map((row) =>
        row.getBoundingClientRect());
    return boxes.flatMap((box, i) => (top <= box.top && box.bottom <= foot + 1 ? [i] : []));
}"""
NAME_PX = """(frame) => Math.min(...[...frame.querySelectorAll(".panel .row:not(.link)")]
    .map((row) => row.getBoundingClientRect().height))"""
# Of the smallest letters in a bar, on the screen.
LETTERS_PX = """(frame) => {
    const svg = frame.querySelector("svg");
    const zoom = svg.getBoundingClientRect().width / svg.width.baseVal.value;
    const inside = [...svg.querySelectorAll(".inside")];
    return Math.min(...inside.map((text) => parseFloat(text.style.fontSize) * zoom));
}"""
# Where notes behind titles begin and end, what is written, and what the tooltip says.
NOTES = """(gantt) => [...gantt.querySelectorAll(".title > .note")].map((note) => {
    const box = note.getBoundingClientRect();
    const whole = note.querySelector("title")?.textContent ?? "";
    return [box.left, box.right, note.firstChild.textContent, whole];
})"""
BARS, OUTLINES = ".gantt .bar", ".gantt rect.selected"


def in_sight(shown):
    """Number of a node in the upper middle of the picture, where nothing lies above it."""
    stage = shown["stage"]
    return next(
        i
        for i, n in enumerate(shown["nodes"])
        if stage["left"] + 120 < n["x"] < stage["left"] + stage["width"] - 120
        and stage["top"] + 40 < n["y"] < stage["top"] + stage["height"] / 2
    )


def whole(page):
    return page.locator(".gantt").first.get_attribute("data-zoomed") == "false"


@pytest.fixture(scope="module")
def lasting(lasting_page):
    """The Studio page of a new project, at rest, for tests that edit nothing."""
    page = lasting_page("")
    drawn(page)
    settled(page)
    return page


def test_bars_and_picture_share_the_selection_and_what_is_zoomed_stays(lasting):
    page = lasting
    open_tab(page, "Timeline")
    bar = page.locator(BARS).first
    expect(bar).to_be_visible()

    block = select(page, in_sight(drawn(page)))
    expect(page.get_by_text(re.compile(f"Selected: {block['ops']} ")).first).to_be_visible()
    expect(page.locator(OUTLINES).first).to_be_visible()

    frame = page.locator(".gantt svg").first.bounding_box()
    page.mouse.move(frame["x"] + frame["width"] * 0.2, frame["y"] + 60)
    page.mouse.down()
    page.mouse.move(frame["x"] + frame["width"] * 0.5, frame["y"] + 80, steps=4)
    page.mouse.up()
    assert not whole(page)
    seen = page.locator(".gantt").first.get_attribute("data-from")

    bar.hover()
    told = page.locator(".gantt .tip")
    expect(told).to_contain_text(re.compile(r"\d+ ops: .*on the critical path", re.DOTALL))
    num_ops = int(re.search(r"(\d+) ops:", told.inner_text())[1])
    bar.click()
    expect(page.get_by_text(f"Selected: {num_ops} ops").first).to_be_visible()
    until(page, "p.selection.length")
    expect(page.locator('.gantt rect.selected[data-bar="0"]')).to_have_count(1)
    assert page.locator(".gantt").first.get_attribute("data-from") == seen
    page.get_by_role("button", name="Whole").click()
    assert whole(page)
    _a_note_without_room_ends_in_dots(page)

    expect(page.get_by_text(re.compile("computed in half the time")).first).to_be_visible()
    open_tab(page, "Memory")
    memory = page.get_by_test_id("stPlotlyChart").last
    devices = len(drawn(page)["counts"])
    expect(memory.locator(".scatterlayer .trace")).to_have_count(devices)


def _a_note_without_room_ends_in_dots(page):
    gantt = page.locator(".gantt").first
    ((_, _, words, told),) = gantt.evaluate(NOTES)
    assert ", times " in words and not told
    gantt.evaluate("(gantt) => gantt.style.setProperty('--text-scale', '5')")
    expect(gantt.locator(".note title")).to_have_count(1)
    ((left, right, cut, told),) = gantt.evaluate(NOTES)
    assert told == words and cut.endswith("…") and words.startswith(cut[:-1]) and len(cut) > 3
    box = gantt.bounding_box()
    assert box["x"] < left < right <= box["x"] + box["width"]
    gantt.evaluate("(gantt) => gantt.style.removeProperty('--text-scale')")
    expect(gantt.locator(".note title")).to_have_count(0)


def bars_of(page, row):
    """The predicted bars of a device that are wide enough to be taken, from left to right."""
    bars = page.locator(".gantt").first.locator('[data-panel="predicted"] .bar.movable')
    found = bars.evaluate_all(
        "bars => bars.map((b) => ({...b.dataset, ...b.getBoundingClientRect().toJSON()}))"
    )
    tops = sorted({bar["y"] for bar in found})
    # None while the timeline is drawn anew.
    y = tops[row] if row < len(tops) else -1
    return sorted((b for b in found if b["y"] == y), key=lambda b: b["x"])


def drag(page, bar, to_x, to_y):
    """Take a bar in its middle and let it go elsewhere; what is said beside it on the way."""
    page.mouse.move(bar["x"] + bar["width"] / 2, bar["y"] + bar["height"] / 2)
    page.mouse.down()
    page.mouse.move(to_x, to_y, steps=4)
    said = page.locator(".gantt .said").text_content()
    page.mouse.up()
    return said


def names_on(page, row):
    """What is written on the predicted bars of a device, from left to right."""
    y = next((bar["y"] for bar in bars_of(page, row)), -100)
    texts = page.locator(".gantt").first.locator('[data-panel="predicted"] .inside')
    found = texts.evaluate_all(
        "all => all.map((t) => [t.textContent, t.getBoundingClientRect().toJSON()])"
    )
    on_row = [(box["x"], text) for text, box in found if y - 4 < box["y"] < y + 14]
    return [text for _, text in sorted(on_row)]


def wait_for_names(page, row, names):
    """The picture is drawn anew before the timeline is."""
    for _ in range(600):
        if names_on(page, row) == names:
            return
        page.wait_for_timeout(100)
    assert names_on(page, row) == names


def test_bars_go_to_another_device_along_their_own_and_back_again(
    new_page, project_about, tmp_path
):
    """HEFT puts n4, n6, n9 and n10 of the canonical graph on P2; n10 reads n9, n6 not n4."""
    path = tmp_path / "canonical.json"
    path.write_text(json.dumps(canonical_file()))
    page = new_page(project_about(model_kind="path", model=str(path)))
    drawn(page)
    open_tab(page, "Timeline")
    gantt = page.locator(".gantt").first
    expect(gantt.locator(".bar").first).to_be_visible()
    # Four links are many, so that the lanes stand close together.
    expect(gantt.locator(".row.link")).to_have_count(0)
    start = ["n4", "n6", "n9", "n10"]
    settled(page)
    wait_for_names(page, 1, start)
    n4, on_p3 = bars_of(page, 1)[0], bars_of(page, 2)[0]

    assert drag(page, n4, n4["x"] + 60, on_p3["y"] + 8) == "to P3"
    until(page, "p.counts.join() === '2,3,5'")
    wait_for_names(page, 1, ["n6", "n9", "n10"])
    gantt.press("Control+z")
    wait_for_names(page, 1, start)
    settled(page)

    n4, n6, n9, n10 = bars_of(page, 1)
    assert drag(page, n10, n9["x"] + 1, n9["y"] + 8) == "before n9"
    said = "'n10' cannot run before 'n9': it needs what that computes."
    expect(page.get_by_text(said).first).to_be_attached()
    settled(page)
    wait_for_names(page, 1, start)
    n4, n6, _, _ = bars_of(page, 1)
    assert drag(page, n6, n4["x"] + 1, n4["y"] + 8) == "before n4"
    wait_for_names(page, 1, ["n6", "n4", "n9", "n10"])


def test_a_timeline_is_hatched_at_once_and_plain_again(lasting):
    page = lasting
    open_tab(page, "Timeline")
    expect(page.locator(".gantt:not(.hatched) .bar").first).to_be_visible()
    page.get_by_text("Hatch devices").click()
    expect(page.locator(".gantt.hatched .hatching").first).to_be_visible()
    page.get_by_text("Hatch devices").click()
    expect(page.locator(".gantt:not(.hatched) .bar").first).to_be_visible()
    expect(page.locator(".gantt .hatching")).to_have_count(0)


def test_links_fold_into_a_strip_for_each_device(lasting):
    page = lasting
    open_tab(page, "Timeline")
    gantt = page.locator(".gantt").first
    expect(gantt.locator(".bar").first).to_be_visible()
    links, knobs = gantt.locator(".row.link"), gantt.locator(".knob")
    open_ones, height = links.count(), gantt.locator("svg").first.bounding_box()["height"]
    assert open_ones and knobs.count()
    before = gantt.locator(".bar").count()
    gantt.get_by_role("button", name="Links").click()
    expect(links).to_have_count(0)
    assert gantt.locator("svg").first.bounding_box()["height"] < height
    assert gantt.locator(".bar").count() == before
    knobs.first.focus()
    page.keyboard.press("Enter")
    expect(links.first).to_be_visible()
    # Where some are open all are folded, and then all are open, as they were at first.
    for number in (0, open_ones):
        gantt.get_by_role("button", name="Links").click()
        expect(links).to_have_count(number)


@pytest.fixture
def run_on(studio, monkeypatch):
    """The id of a new project with a placement on a machine, and a run of it."""

    def made(machine):
        monkeypatch.setenv("PLACEMENT_STUDIO_HOME", str(studio.home))
        project = store.create()
        project.change(touch=False, model="onnx-alexnet", machine=machine)
        now = snapshot(project)
        now.shelf.add("heft", place(now.problem, "heft").placement, "heft")
        finished_run(project)
        return project.id

    return made


AT_A_DESK = ((1440, 900), (1024, 768))
BEFORE_AN_AUDIENCE = either(
    ((1440, 900), (960, 600)), ((1440, 900), (1280, 720), (1024, 768), (960, 600))
)


@pytest.mark.thorough
def test_prediction_run_and_axis_are_seen_together(new_page, run_on):
    """In the dock as high as it is at first, on a small screen and before an audience too."""
    page = new_page(f"?project={run_on('null-2')}")
    drawn(page)
    settled(page)
    gantt, dock = page.locator(".gantt").first, page.locator(".st-key-desk-dock")
    lanes = gantt.locator(".panel .row:not(.link)")
    for sizes in (AT_A_DESK, BEFORE_AN_AUDIENCE):
        if sizes is BEFORE_AN_AUDIENCE:
            page.get_by_role("button", name="Present", exact=True).click()
            expect(page).to_have_url(re.compile("[?&]present"))
            settled(page)
        for width, height in sizes:
            page.set_viewport_size({"width": width, "height": height})
            page.wait_for_timeout(500)
            expect(lanes).to_have_count(4)
            place_of = dock.bounding_box()
            parts = boxes(gantt, ".panel .row:not(.link)", ".axis .unit")
            assert len(parts) == 5
            foot = place_of["y"] + place_of["height"]
            assert all(part["y"] + part["height"] <= foot for part in parts), (width, foot, parts)
            assert parts == sorted(parts, key=lambda part: part["y"])
            assert 8.99 < gantt.locator(".frame").evaluate(LETTERS_PX) < 20, width


# Whether an outline of what is selected lies between the frame's upper edge and its axis.
OUTLINE_IN_SIGHT = """(frame) => {
  const axis = frame.querySelector(".axis");
  const top = frame.getBoundingClientRect().top - 1;
  return axis !== null && [...frame.querySelectorAll("rect.selected")]
    .map((one) => one.getBoundingClientRect())
    .some((box) => top <= box.top && box.bottom <= axis.getBoundingClientRect().top + 1);
}"""


@pytest.mark.only_thorough
def test_what_has_no_room_before_an_audience_is_reached_by_a_key(new_page, run_on):
    """Twice sixteen devices: D leads on to the last lane, and then to the first again."""
    page = new_page(f"?project={run_on('two-hosts-16gpu')}&present")
    page.set_viewport_size({"width": 960, "height": 600})
    drawn(page)
    settled(page)
    frame = page.locator(".gantt .frame").first
    lanes = frame.locator(".panel .row:not(.link)")
    expect(lanes).to_have_count(2 * 18)

    def seen():
        """Numbers of the lanes between the frame's upper edge and its axis."""
        return set(frame.evaluate(LANES_IN_SIGHT))

    met, last = set(), frame.evaluate("(one) => one.scrollHeight - one.clientHeight")
    assert last > 0 and seen() < set(range(36))
    assert frame.evaluate(LETTERS_PX) > 1.4 * 11
    more = frame.locator(".axis .more")
    expect(more).to_have_text(f"+{36 - len(seen())} ▾")
    said, unit = boxes(frame, ".axis .more", ".axis .unit")
    assert said["x"] + said["width"] <= unit["x"], "one beside the other"
    for _ in range(40):
        met |= seen()
        if frame.evaluate("(one) => one.scrollTop") >= last - 1:
            break
        page.keyboard.press("d")
    assert met | seen() == set(range(36))
    expect(more).to_have_text(re.compile(r"^\+\d+ ▴$"))
    # Below it is what else the tab holds; after its end all of it begins anew.
    for _ in range(20):
        page.keyboard.press("d")
        if not frame.evaluate("(one) => one.scrollTop"):
            break
    assert 0 in seen()
    # A bar that a step of the walk selects is brought into sight.
    outlines = frame.locator("rect.selected")
    for key in ("PageDown", "End"):
        page.keyboard.press(key)
        until(page, "p.numSelected > 0")
        expect(outlines).not_to_have_count(0)
        for _ in range(100):
            # In one call, for what is being drawn anew is gone for a moment.
            if frame.evaluate(OUTLINE_IN_SIGHT):
                break
            page.wait_for_timeout(100)
        else:
            pytest.fail(f"{key} leaves what it selects out of sight.")


def training():
    """Two layers, forward and back again; a device has room for one layer."""
    nodes = [
        node(1, 500, 5, colorClass=0),
        node(2, 600, 6, colorClass=1),
        node(3, 700, 7, colorClass=1, isBackwardNode=True),
        node(4, 800, 8, colorClass=0, isBackwardNode=True),
    ]
    return workload(nodes, edges((1, 2, 0.1), (2, 3, 0.1), (3, 4, 0.1)), maxSizePerFPGA=2.0)


@pytest.mark.only_thorough
def test_a_training_workload_shows_gpipe_above_1f1b(new_page, project_about, tmp_path):
    path = tmp_path / "training.json"
    path.write_text(json.dumps(training()))
    page = new_page(project_about(model_kind="path", model=str(path)))
    drawn(page)
    open_tab(page, "Timeline")
    schedules = page.locator(".gantt").last
    expect(page.get_by_text("Training over micro-batches")).to_be_visible()
    field = page.get_by_role("spinbutton", name="Micro-batches per step")
    field.fill("3")
    field.press("Enter")
    for key in ("gpipe", "1f1b"):
        bars = schedules.locator(f'[data-panel="{key}"] .bar')
        expect(bars).to_have_count(3 * 2 * 2)
        assert len(set(bars.evaluate_all("found => found.map((r) => r.getAttribute('fill'))"))) == 2
    expect(metric(page, "GPipe bubble")).to_have_text(re.compile(r"[\d.]+%"))
    expect(metric(page, "1F1B step")).to_have_text(re.compile(r"[\d.]+ ms"))


@pytest.mark.only_thorough
def test_names_of_many_lanes_stay_large_before_an_audience_and_lanes_out_of_sight_are_counted(
    new_page, project_about
):
    """Eighteen devices, in every window; D leads on to those that are counted."""
    page = new_page(project_about(machine="two-hosts-16gpu"))
    address, frame = page.url, page.locator(".gantt .frame").first
    lanes, more = frame.locator(".panel .row:not(.link)"), frame.locator(".axis .more")
    drawn(page)
    expect(lanes).to_have_count(18)
    at_desk_px = frame.evaluate(NAME_PX)
    # Lanes that have to be scrolled are no lower than their bars' names need.
    assert frame.evaluate(LETTERS_PX) == pytest.approx(11)
    expect(more).to_have_text(re.compile(r"^\+\d+ ▾$"))
    page.goto(f"{address}&present")
    drawn(page)
    settled(page)
    expect(lanes).to_have_count(18)
    for width, height in BEFORE_AN_AUDIENCE:
        page.set_viewport_size({"width": width, "height": height})
        page.wait_for_timeout(500)
        assert frame.evaluate(NAME_PX) > 1.2 * at_desk_px, (width, at_desk_px)
        assert frame.evaluate(LETTERS_PX) > 1.4 * 11, width
        seen = frame.evaluate(LANES_IN_SIGHT)
        assert 2 <= len(seen) < 18, width
        expect(more).to_have_text(f"+{18 - len(seen)} ▾")
        said, unit = boxes(frame, ".axis .more", ".axis .unit")
        assert said["x"] + said["width"] <= unit["x"], "one beside the other"
    for _ in range(20):
        if 17 in frame.evaluate(LANES_IN_SIGHT):
            break
        page.keyboard.press("d")
    expect(more).to_have_text(re.compile(r"^\+\d+ ▴$"))
