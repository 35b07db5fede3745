"""Whatever bytes a file holds, loading answers with a graph or a ValueError."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from placement.core.model import Model
from placement.formats.onnx.attributes import MAX_NAME, readable
from placement.formats.scopes.paths import node_path, tidy, weight_path
from placement.loaders import load
from tests.loaders.models import package_files
from tests.thorough import either

SETTINGS = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=either(40, 100)
)
SMALL = [p for p in package_files() if p.stat().st_size < 5000]
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=20,
)


def answers(path, data):
    path.write_bytes(data)
    try:
        model = load(str(path))
    except ValueError as error:
        assert type(error) is ValueError and "\n" not in str(error)
        return
    assert isinstance(model, Model)
    assert model.graph.arrays.producer.shape == (len(model.graph.tensors),)


@pytest.mark.thorough
@SETTINGS
@given(st.binary(min_size=1, max_size=300))
def test_random_bytes(tmp_path, data):
    answers(tmp_path / "m.onnx", data)
    answers(tmp_path / "m.json", data)


@pytest.mark.thorough
@SETTINGS
@given(
    st.sampled_from(SMALL),
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), min_size=1, max_size=6),
    st.sampled_from(["change", "remove", "insert", "cut"]),
)
def test_mutated_models(tmp_path, file, edits, how):
    data = bytearray(file.read_bytes())
    for where, byte in edits:
        at = min(int(where * len(data)), len(data) - 1)
        if how == "change":
            data[at] = byte
        elif how == "remove" and len(data) > 1:
            del data[at]
        elif how == "insert":
            data.insert(at, byte)
        elif how == "cut" and at:
            del data[at:]
    answers(tmp_path / "m.onnx", bytes(data))


@pytest.mark.thorough
@SETTINGS
@given(JSON, JSON, JSON)
def test_random_node_link_json(tmp_path, nodes, edges, graph):
    content = {
        "directed": True,
        "multigraph": False,
        "graph": graph,
        "nodes": nodes,
        "edges": edges,
    }
    answers(tmp_path / "m.json", json.dumps(content).encode())


@pytest.mark.thorough
@SETTINGS
@given(
    st.lists(
        st.fixed_dictionaries({"id": st.integers(0, 4)}, optional={"flops": JSON}), max_size=5
    ),
    st.lists(
        st.fixed_dictionaries(
            {"source": st.integers(0, 4), "target": st.integers(0, 4)},
            optional={"bytes": JSON, "tensor": JSON},
        ),
        max_size=6,
    ),
    st.one_of(st.just({}), st.fixed_dictionaries({"tensors": JSON})),
)
def test_almost_right_node_link_json(tmp_path, nodes, edges, graph):
    content = {
        "directed": True,
        "multigraph": False,
        "graph": graph,
        "nodes": nodes,
        "edges": edges,
    }
    answers(tmp_path / "m.json", json.dumps(content).encode())


@given(st.text(max_size=2000))
def test_names(name):
    shown = readable(name)
    assert len(shown) <= MAX_NAME and (shown.isprintable() or not shown)
    assert readable(shown) == shown


@given(st.lists(st.text(alphabet="ab1_./", max_size=20), max_size=8))
def test_labels_never_have_empty_levels(names):
    for read in (weight_path, node_path):
        labels = [read(name) for name in names]
        for before, after in zip(labels, tidy(labels), strict=True):
            assert after is None or (before is not None and all(after) and after)
