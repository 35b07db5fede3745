"""Files that are broken or mean harm: one sentence each, nothing executed, the open model kept."""

import onnx
import pytest
from onnx import TensorProto, helper
from playwright.sync_api import expect

from tests.browser.studio import drawn, go, select, settled, until, upload
from tests.thorough import either

HOSTILE = "<img src=x onerror=alert(1)>"


def model_of(nodes, initializers=()):
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 4]) for n in "xy"]
    graph = helper.make_graph(nodes, "made up", ends[:1], ends[1:], list(initializers))
    opset = helper.make_opsetid("", 17)
    return helper.make_model(graph, ir_version=10, opset_imports=[opset])


def adds(weight):
    return model_of([helper.make_node("Add", ["x", "w"], ["y"], name="add")], [weight])


def outside():
    weight = TensorProto(name="w", dims=[1, 4], data_type=TensorProto.FLOAT)
    weight.data_location = TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="../../etc/passwd")
    return adds(weight).SerializeToString()


def claim_of_3_gb():
    weight = TensorProto(name="w", dims=[800_000_000], data_type=TensorProto.FLOAT, raw_data=b"abc")
    return adds(weight).SerializeToString()


def truncated():
    whole = adds(helper.make_tensor("w", TensorProto.FLOAT, [1, 4], [1.0] * 4)).SerializeToString()
    return whole[: len(whole) // 2]


BAD = {
    "empty.onnx": lambda: b"",
    "letter.onnx": lambda: b"Dear friend, this is a letter and no model.\n" * 20,
    "truncated.onnx": truncated,
    "claim.onnx": claim_of_3_gb,
    "outside.onnx": outside,
    "broken.json": lambda: b'{"format": "placement-problem", "ops": [',
}


@pytest.mark.thorough
def test_bad_files_change_nothing_and_hostile_names_are_shown_and_never_executed(page, tmp_path):
    dialogs = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    before = drawn(page)["counts"]
    for name in either(("truncated.onnx", "outside.onnx", "broken.json"), tuple(BAD)):
        (tmp_path / name).write_bytes(BAD[name]())
        upload(page, str(tmp_path / name))
        error = page.get_by_test_id("stAlert").filter(has_text=name.split(".")[0])
        expect(error).to_have_count(1, timeout=60_000)
        said = error.inner_text()
        assert "Traceback" not in said and "root:" not in said and len(said) < 500, said
        assert until(page, "p.nodes.length > 0")["counts"] == before
        expect(page.get_by_text("onnx-inception-v2 (371 ops)").first).to_be_visible()

    nodes = [
        helper.make_node("Relu", ["x"], [HOSTILE], name=HOSTILE),
        helper.make_node("Neg", [HOSTILE], ["y"], name=f"![x](http://192.0.2.1/{HOSTILE})"),
    ]
    path = tmp_path / "hostile.onnx"
    onnx.save(model_of(nodes), path)
    upload(page, str(path))
    until(page, "p.counts.reduce((a, b) => a + b) === 2")
    # The second name has all that the first one has.
    for where, key, chosen in (("Model", "2", (1,)), ("Studio", "1", (0, 1))):
        if where != "Model":
            go(page, where)
        for number in chosen:
            select(page, number)
        page.keyboard.press(key)
        until(page, "p.confirmed && p.nodes[1].device === given", int(key) - 1)
        settled(page)
        assert page.locator('img[src="x"]').count() == 0
        assert page.locator('img[src*="192.0.2.1"]').count() == 0
    assert not dialogs
