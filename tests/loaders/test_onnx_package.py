"""Every model that the onnx package ships loads, and its graph is what a graph must be."""

import json
import math
import os
import subprocess
import sys

import onnx
import pytest
from onnx import helper

from placement.core.graph import topological_order
from placement.loaders import load
from tests.loaders.models import model_of, package_files, value
from tests.thorough import either

BYTES = {
    "float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "int64": 8, "int32": 4, "int16": 2,
    "int8": 1, "uint64": 8, "uint32": 4, "uint16": 2, "uint8": 1, "bool": 1, "complex64": 8,
    "complex128": 16,
}  # fmt: skip


def assert_sound(graph, source, name):
    """`source` is the model as it stands in the file."""
    positions = {op.name: i for i, op in enumerate(graph.ops)}
    assert len(positions) == len(graph.ops) > 0, name
    assert topological_order(len(graph.ops), [list(s) for s in graph.successors]) is not None
    for op in graph.ops:
        assert op.name.isprintable() and op.kind and op.flops >= 0 and op.param_bytes >= 0, name
        assert all(len(text) <= 200 for _, text in op.attributes), (name, op.name)
    for tensor in graph.tensors:
        assert tensor.name, name
        if tensor.shape is None:
            assert tensor.num_bytes == 0, (name, tensor)
        elif tensor.dtype in BYTES:
            assert tensor.num_bytes == math.prod(tensor.shape) * BYTES[tensor.dtype], (name, tensor)
    constants = {t.name for t in source.graph.initializer}
    constants |= {t.values.name for t in source.graph.sparse_initializer}
    assert [t.name for t in graph.inputs] == [
        i.name for i in source.graph.input if i.name not in constants
    ], name
    assert {t.name for t in graph.outputs} == {o.name for o in source.graph.output} - constants, (
        name
    )


@pytest.mark.parametrize(
    "path", package_files(), ids=lambda p: p.stem if p.stem != "model" else p.parent.name
)
def test_file(path):
    source = onnx.load(path)
    if source.functions:
        pytest.skip("inlining changes the list of values")
    model = load(str(path))
    assert model.graph.name == path.stem
    assert_sound(model.graph, source, str(path))
    assert model.executable.format == "onnx"


# In `make test` the node tests have no pooling; the files above have two of its three kinds.
LP_POOL = model_of(
    [helper.make_node("LpPool", ["x"], ["y"], kernel_shape=[2, 2])],
    [value("x", (1, 2, 8, 8))],
    [value("y", (1, 2, 7, 7))],
)


def with_every_kind(cases):
    """Those cases in which some kind of op is for the first time."""
    seen, found = set(), {}
    for name, source in cases.items():
        kinds = {(node.domain, node.op_type) for node in source.graph.node}
        if kinds - seen:
            found[name] = source
        seen |= kinds
    assert len(seen) > 180
    return found


@pytest.mark.thorough
def test_node_models(node_cases, tmp_path):
    """One of every kind of op, or all."""
    path = tmp_path / "case.onnx"
    assert len(node_cases) > 1500
    for name, source in either(with_every_kind, dict)({**node_cases, "pooled": LP_POOL}).items():
        path.write_bytes(source.SerializeToString())
        model = load(str(path))
        assert_sound(model.graph, source, name)
        assert not any("inference failed" in note for note in model.notes), (name, model.notes)


@pytest.mark.thorough
def test_fingerprints_do_not_depend_on_the_hash_seed(tmp_path):
    named = ("expand", either("light_shufflenet", "light"))
    files = [str(path) for path in package_files() if any(name in str(path) for name in named)]
    code = (
        "import json, sys; from placement.loaders import load; "
        "prints = [load(f).graph.fingerprint for f in json.loads(sys.argv[1])]; "
        "print(json.dumps([hash('placement'), prints]))"
    )
    # This process has a seed of its own, mostly a random one.
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    answer = subprocess.run(
        [sys.executable, "-c", code, json.dumps(files)],
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    other_hash, prints = json.loads(answer)
    assert other_hash != hash("placement"), "the seeds do not differ"
    assert prints == [load(file).graph.fingerprint for file in files]
