"""Networks drawn by chance: each opens, and is the same wherever it is drawn."""

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from benchmarks._fidelity.drawn import NAME, drawn
from placement import loaders


def test_names_have_the_seed():
    assert NAME.fullmatch("drawn-12")[1] == "12" and not NAME.fullmatch("drawn-x")


@pytest.mark.parametrize("seed", [2, 8])
def test_a_seed_is_one_network_that_opens_and_computes_numbers(tmp_path, seed):
    first = drawn(seed, tmp_path).read_bytes()
    path = drawn(seed, tmp_path)
    assert path.read_bytes() == first != drawn(seed + 1, tmp_path).read_bytes()
    model = onnx.load(path)
    graph = loaders.load(str(path)).graph
    assert graph.name == f"drawn-{seed}" and len(graph.ops) == len(model.graph.node)
    (given,) = model.graph.input
    dims = [d.dim_value for d in given.type.tensor_type.shape.dim]
    values = np.random.default_rng(0).random(dims, dtype=np.float32)
    (made,) = ReferenceEvaluator(model).run(None, {given.name: values})
    assert made.shape[0] == 1 and np.isfinite(made).all() and made.std() > 0.0
