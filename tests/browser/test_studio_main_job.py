"""The main job from end to end in a real browser: open, place, edit, undo, run, read the time."""

import re

import onnx
from onnx import TensorProto, helper
from playwright.sync_api import expect

from tests.browser.studio import (
    PATIENCE_MS,
    choose,
    drawn,
    go,
    metric,
    project_of,
    score,
    select,
    settled,
    until,
    upload,
)

# Of a live run, as few steps as tell what there is to tell.
FEW = {"steps": 3, "warmup": 1}


def test_open_place_edit_undo_and_run(new_page, project_about, timed):
    """With times that are there; those of the file below are measured when it is run."""
    timed("onnx-squeezenet")
    page = new_page(f"model{project_about(form=FEW)}")
    drawn(page)
    choose(page, "Sample", "onnx-squeezenet")
    expect(page.get_by_text("onnx-squeezenet (66 ops)").first).to_be_visible()
    until(page, "p.counts.reduce((a, b) => a + b) === 66")

    go(page, "Studio")
    settled(page)
    first = score(page).inner_text()
    choose(page, "Method", "round_robin")
    page.get_by_role("button", name="Place", exact=True).click()
    told = page.get_by_text(re.compile("Placed by round_robin"))
    expect(told.first).to_be_visible(timeout=PATIENCE_MS)
    expect(score(page)).not_to_have_text(first)
    expect(page.get_by_text("not run yet", exact=True)).to_be_visible()

    # The score may be there before the picture is that of the new placement.
    settled(page)
    before = drawn(page)["counts"]
    node = select(page, 1)
    key = 2 if before[0] >= before[1] else 1
    page.keyboard.press(str(key))
    after = until(page, "JSON.stringify(p.counts) !== JSON.stringify(given)", before)["counts"]
    assert sum(after) == sum(before) and after[key - 1] > before[key - 1]
    assert node["ops"] >= 1
    page.keyboard.press("Control+z")
    assert until(page, "JSON.stringify(p.counts) === JSON.stringify(given)", before)

    # The button of the strip opens the tab of the dock, and what was measured stands in both.
    page.get_by_role("button", name="Run", exact=True).click()
    expect(metric(page, "Measured step time")).to_have_text(
        re.compile(r"[\d.]+ (ms|s|µs)"), timeout=PATIENCE_MS
    )
    expect(page.get_by_role("tab", name="Run", exact=True)).to_have_attribute(
        "aria-selected", "true"
    )
    expect(page.locator(".st-key-desk-score")).to_contain_text(
        re.compile(r"measured\s*[\d.]+ (ms|s|µs) \((?:prediction|doubtful)|less than the \w+ allow")
    )
    expect(metric(page, "Outputs")).to_have_text("match")
    expect(page.locator(".js-plotly-plot").first).to_be_visible()
    expect(page.get_by_text(re.compile("is computing,")).first).to_be_visible()


OPSET = helper.make_opsetid("", 17)


def small_model(path):
    """Two convolutions and a sum, the way a person's own file looks."""
    tensors = [
        helper.make_tensor(n, TensorProto.FLOAT, [4, 4, 3, 3], [0.1] * 144) for n in ("w1", "w2")
    ]
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"], name="left", pads=[1, 1, 1, 1]),
        helper.make_node("Conv", ["x", "w2"], ["b"], name="right", pads=[1, 1, 1, 1]),
        helper.make_node("Add", ["a", "b"], ["y"], name="sum"),
    ]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["batch", 4, 32, 32]) for n in "xy"]
    graph = helper.make_graph(nodes, "mine", ends[:1], ends[1:], tensors)
    onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[OPSET]), path)


def test_an_uploaded_file_opens_runs_and_is_named_by_its_real_path(
    new_page, project_about, tmp_path
):
    page = new_page(f"model{project_about(form={**FEW, 'dock-tab': 'Run'})}")
    drawn(page)
    small_model(tmp_path / "my model.onnx")
    upload(page, str(tmp_path / "my model.onnx"))
    expect(page.get_by_text(re.compile(r"\(3 ops\)")).first).to_be_visible()
    until(page, "p.counts.reduce((a, b) => a + b) === 3")
    project = project_of(page)
    go(page, "Studio")
    page.get_by_text("The same on the command line").last.click()
    code = page.get_by_test_id("stCode").first
    expect(code).to_contain_text(f"projects/{project}/model/my_model.onnx")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(metric(page, "Outputs")).to_have_text("match", timeout=PATIENCE_MS)
