"""A project for each model: what was made for one is neither renamed nor out of sight."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from pages.ui.session import choices
from pages.ui.session.current import snapshot
from pages.ui.shell import model_project, model_request, opening_wait
from studio import editing
from studio.project import store
from tests.pages.test_pages import checked, open_id, opened, own_home, texts, uploader

__all__ = ["own_home"]


def open_sample(app, name):
    return checked(
        next(s for s in app.sidebar.selectbox if s.label == "Sample").set_value(name).run()
    )


def edit_by_hand(project):
    """Move the first op elsewhere; the devices of the placement that this makes."""
    now = snapshot(project)
    name = now.model.graph.ops[0].name
    target = next(d.name for d in now.machine.devices if d.name != now.placement.device_of[name])
    editing.edit(now, (name,), target)
    return dict(snapshot(project).placement.device_of)


def test_another_model_gets_a_project_and_the_first_is_returned_to():
    goal = "throughput"
    app, first = opened(model="onnx-squeezenet", machine="null-2", name="mine", objective=goal)
    made = edit_by_hand(first)
    open_sample(checked(app.run()), "onnx-alexnet")
    second = store.find(open_id(app))
    assert second.id != first.id
    assert (second.settings.name, second.settings.machine) == ("onnx-alexnet", "null-2")
    # A goal is of the project that it was chosen for.
    assert second.settings.objective == store.Settings("", 0.0).objective != goal
    assert (first.settings.name, first.settings.model) == ("mine", "onnx-squeezenet")
    assert "'mine' is kept as it was" in texts(app)
    assert {p.id for p in store.recent()} == {first.id, second.id}

    open_sample(app, "onnx-squeezenet")
    assert open_id(app) == first.id and "Back in the project 'mine'" in texts(app)
    assert first.settings.objective == goal
    now = snapshot(first)
    assert now.named.by_hand and dict(now.placement.device_of) == made
    open_sample(app, "onnx-alexnet")
    assert open_id(app) == second.id


def test_a_project_in_which_nothing_was_done_takes_the_model():
    app, project = opened()
    open_sample(app, "onnx-squeezenet")
    assert open_id(app) == project.id and project.settings.name == "onnx-squeezenet"
    assert "kept as it was" not in texts(app)


def test_nobody_is_led_back_to_a_project_that_is_new():
    """A new project begins with the default sample, which is opened here."""
    app, first = opened(model="onnx-squeezenet", machine="null-2", name="mine")
    open_sample(app, store.DEFAULT_SAMPLE)
    assert "Back in the project" not in texts(app) and open_id(app) != first.id
    made = store.find(open_id(app))
    assert made.settings.touched and made.id in {p.id for p in store.recent()}


def own_file(num_ops: int, weight: float) -> tuple[str, bytes, str]:
    """What a person drops: a chain of sums with a weight, always under the same name."""
    nodes = [
        helper.make_node("Add", [f"v{i}", "w"], [f"v{i + 1}"], f"add{i}") for i in range(num_ops)
    ]
    last = f"v{num_ops}"
    ends = [helper.make_tensor_value_info(v, TensorProto.FLOAT, [4]) for v in ("v0", last)]
    value = numpy_helper.from_array(np.full(4, weight, np.float32), "w")
    graph = helper.make_graph(nodes, "chain", ends[:1], ends[1:], [value])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    return "own.onnx", model.SerializeToString(), "application/octet-stream"


def drop(app, given):
    checked(uploader(app, "File (.json, .onnx, .pt2)").set_value(given).run())
    return store.find(open_id(app))


def test_an_uploaded_file_is_found_again_by_its_content():
    app, first = opened(model="onnx-squeezenet", machine="null-2")
    own = drop(app, own_file(3, 1.0))
    assert own.id != first.id and own.settings.name == "own"
    with_other_weights = drop(app, own_file(3, 2.0))
    assert with_other_weights.id == own.id
    other = drop(app, own_file(2, 1.0))
    assert other.id != own.id and other.settings.name == "own 2"
    assert drop(app, own_file(3, 2.0)).id == own.id
    (own.folder / "model" / "own.onnx").unlink()
    assert drop(app, own_file(3, 3.0)).id == own.id, "its placements tell that it is the same"
    assert "own (3 ops)" in texts(app)


def test_a_model_called_off_leaves_no_project_behind(monkeypatch):
    first, kept = store.create(), {}
    first.change(name="first", machine="null-2")
    monkeypatch.setattr(choices, "project", lambda: first)
    monkeypatch.setattr(choices, "renew_claim", lambda opened: True)
    monkeypatch.setattr(choices, "kept", kept.get)
    monkeypatch.setattr(choices, "keep", kept.__setitem__)
    monkeypatch.setattr(choices, "put", lambda key, value: None)
    model_request.ask(model_request.sample("onnx-alexnet"))
    opening_wait.cancel()
    opening_wait.wait(first)
    assert [p.id for p in store.recent(untouched=True)] == [first.id]
    assert first.settings.model == store.DEFAULT_SAMPLE


def test_a_model_is_opened_with_the_sizes_that_it_has_in_its_project(monkeypatch):
    first, other = store.create(), store.create()
    first.change(name="first")
    other.change(model="rnnlm", dims={"batch": 1})
    monkeypatch.setattr(choices, "project", lambda: first)
    assert model_request.sample("rnnlm").dims == {"batch": 1}
    assert model_request.sample("onnx-alexnet").dims == {}


@pytest.mark.parametrize(
    "taken, name", [((), "net"), (("net",), "net 2"), (("net", "net 2"), "net 3")]
)
def test_names_of_projects_are_told_apart(taken, name):
    for one in taken:
        store.create().change(name=one)
    assert model_project.free_name("path", "/some/where/net.onnx") == name
    assert model_project.free_name("path", "/some/where/llama-3.1/config.json") == "llama-3.1"
    assert model_project.free_name("path", "/some/where/llama-3.1") == "llama-3.1", "a folder"
    assert model_project.free_name("path", "/some/where/NET-1.5.ONNX") == "NET-1.5"
    assert model_project.free_name("file", "config.json") == "config"
    assert model_project.free_name("sample", "llama-3.1-70b") == "llama-3.1-70b"
