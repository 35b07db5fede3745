"""Files that must be refused: one clear sentence each, nothing read that should not be."""

import os

import onnx
import pytest
from onnx import helper

from placement.formats.onnx.checks.walk import MAX_NESTING
from placement.loaders import load
from tests.loaders.models import BOOL, FLOAT, INT64, model_of, value


def refused(path, *parts, dims=None):
    with pytest.raises(ValueError) as error:
        load(path, dims)
    message = str(error.value)
    assert type(error.value) is ValueError
    assert "\n" not in message and message.endswith(".") and len(message) < 600, message
    for part in parts:
        assert part in message, message


def relu(**settings):
    node = helper.make_node("Relu", ["x"], ["y"])
    return model_of([node], [value("x", (2,))], [value("y", (2,))], **settings)


def adding(stored):
    """x + w with `stored` as w."""
    node = helper.make_node("Add", ["x", "w"], ["y"])
    return model_of([node], [value("x", (1,))], [value("y")], [stored])


def external(location, dims=(4,), **entries):
    tensor = onnx.TensorProto(name="w", data_type=FLOAT, dims=dims)
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, text in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=text)
    return adding(tensor)


def test_empty_file(save):
    refused(save(b""), "model.onnx", "empty")


@pytest.mark.parametrize("text", ["hello, I am text\n", "{}", "<html></html>", "0" * 1000, "\n"])
def test_text_renamed(text, save):
    refused(save(text.encode()), "model.onnx", "export or download it again")


def test_every_cut_is_refused_or_loads_whole(save):
    """A file may end in fields that carry no meaning; any other cut is noticed."""
    data = relu().SerializeToString()
    whole = load(save(data)).graph
    for size in range(1, len(data)):
        path = save(data[:size])
        try:
            assert load(path).graph.ops[0].kind == whole.ops[0].kind
        except ValueError as error:
            assert "model" in str(error) and str(error).endswith(".")
    refused(save(data[: len(data) // 2]), "export or download it again")


def test_weights_that_are_claimed_but_absent(save):
    claim = onnx.TensorProto(name="w", data_type=FLOAT, dims=[750_000_000])
    path = save(adding(claim))
    assert os.path.getsize(path) < 1000
    refused(path, "'w'", "claims 3000000000 bytes", "holds 0")
    claim.raw_data = b"\0" * 10
    refused(save(adding(claim)), "claims 3000000000 bytes", "holds 10")


@pytest.mark.parametrize("dims", [[-1], [2**62, 2**62], [2**41], [2**20, 2**20, 4]])
def test_impossible_shapes(dims, save):
    refused(save(adding(onnx.TensorProto(name="w", data_type=FLOAT, dims=dims))), "'w'")


def test_weights_that_a_node_would_make(save):
    shape = helper.make_tensor("s", INT64, (2,), [30_000, 30_000])
    nodes = [
        helper.make_node("ConstantOfShape", ["s"], ["w"], name="huge"),
        helper.make_node("Add", ["x", "w"], ["y"]),
    ]
    path = save(model_of(nodes, [value("x", (1,))], [value("y")], [shape]))
    refused(path, "'huge'", "3600000000 bytes")


def test_values_larger_than_any_machine(save):
    node = helper.make_node("Relu", ["x"], ["y"])
    source = model_of([node], [value("x", ("n", 2**20))], [value("y")])
    refused(save(source), "'x'", dims={"n": 2**20})


@pytest.mark.parametrize(
    "location",
    ["../../etc/passwd", "/etc/passwd", "a/../../x", "..", "C:\\x", "..\\x", "", "a\0b"],
)
def test_external_data_outside_the_folder(location, save):
    refused(save(external(location)), "'w'")


def test_external_data_through_links(save, tmp_path):
    (tmp_path / "data").symlink_to("/etc/passwd")
    refused(save(external("data")), "link")
    (tmp_path / "folder").symlink_to("/etc")
    refused(save(external("folder/passwd")), "link")


def test_external_data_missing_short_or_no_file(save, tmp_path):
    refused(save(external("data")), "missing")
    (tmp_path / "data").write_bytes(b"\0" * 15)
    refused(save(external("data")), "16 bytes")
    (tmp_path / "data").write_bytes(b"\0" * 64)
    refused(save(external("data", offset="60")), "16 bytes")
    refused(save(external("data", offset="-4")), "16 bytes")
    refused(save(external("data", offset="x")), "number")
    refused(save(external("data", length="8")), "16 bytes")
    os.mkfifo(tmp_path / "pipe")
    refused(save(external("pipe")), "not a regular file")


def test_external_data_in_a_body_is_checked_too(save):
    tensor = external("../x").graph.initializer[0]
    body = helper.make_graph(
        [helper.make_node("Identity", ["w"], ["b"])], "b", [], [value("b")], initializer=[tensor]
    )
    node = helper.make_node("If", ["c"], ["y"], then_branch=body, else_branch=body)
    refused(save(model_of([node], [value("c", (), BOOL)], [value("y")])), "outside")


def test_a_cycle_names_an_op_on_it(save):
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], name="before"),
        helper.make_node("Add", ["a", "c"], ["b"], name="one"),
        helper.make_node("Relu", ["b"], ["c"], name="two"),
        helper.make_node("Relu", ["c"], ["y"], name="behind"),
    ]
    path = save(model_of(nodes, [value("x", (2,))], [value("y")]))
    with pytest.raises(ValueError, match=r"'(one|two)'.*cycle"):
        load(path)


def test_values_without_or_with_two_writers(save):
    lost = helper.make_node("Relu", ["nowhere"], ["y"])
    refused(save(model_of([lost], [], [value("y")])), "'nowhere'", "nothing writes")
    twice = [helper.make_node("Relu", ["x"], ["y"]) for _ in range(2)]
    refused(save(model_of(twice, [value("x", (2,))], [value("y")])), "'y'", "written twice")
    refused(save(model_of(twice[:1], [value("x", (2,))], [value("z")])), "'z'", "no node")


def test_nesting_without_end(save):
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [], [value("y")])
    for _ in range(MAX_NESTING + 1):
        node = helper.make_node("If", ["c"], ["y"], then_branch=graph, else_branch=graph)
        node.attribute[1].g.Clear()
        graph = helper.make_graph([node], "g", [], [value("y")])
    source = model_of(list(graph.node), [value("c", (), BOOL), value("x", (1,))], [value("y")])
    refused(save(source), f"more than {MAX_NESTING} deep")


def test_too_many_nodes(save, monkeypatch):
    monkeypatch.setattr("placement.formats.onnx.checks.claims.MAX_NODES", 3)
    nodes = [helper.make_node("Relu", [f"v{i}"], [f"v{i + 1}"]) for i in range(4)]
    refused(save(model_of(nodes, [value("v0", (2,))], [value("v4")])), "more than 3 nodes")


def test_too_large_a_file_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "large.onnx"
    with open(path, "wb") as stream:
        stream.truncate(3 * 2**30)  # sparse: takes no space on disk
    refused(str(path), "3221225472 bytes", "external data")


def test_names_that_are_no_text(save):
    data = relu().SerializeToString().replace(b"Relu", b"\xff\xfe\xfd\xfc")
    refused(save(data), "UTF-8")


@pytest.mark.parametrize(("kind", "domain", "told"), [
    ("FooBar", "", True), ("Relu", "", False), ("FooBar", "mine.own", False)
])  # fmt: skip
def test_op_types_that_onnx_does_not_know_are_told(save, kind, domain, told):
    ends = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [8]) for n in "xy"]
    node = helper.make_node(kind, ["x"], ["y"], domain=domain)
    graph = helper.make_graph([node], "g", ends[:1], ends[1:])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("mine.own", 1)]
    model = helper.make_model(graph, opset_imports=opsets)
    notes = load(str(save(model.SerializeToString()))).notes
    assert any("knows the op type 'FooBar'" in note for note in notes) == told
