"""Roofline costs against numbers worked out by hand."""

from dataclasses import replace

import numpy as np
import pytest

from placement.core.graph import Graph, Op, Tensor
from placement.core.machine import Device, Link, Machine, Rate
from placement.costs.roofline import CALL_S, EFFICIENCY, LAUNCH_S, roofline

CPU = Device("cpu:0", "cpu", flops_per_s=1e9, memory_bytes_per_s=1e8)
GPU = Device("gpu:0", "gpu", flops_per_s=1e12, memory_bytes_per_s=1e11)
LINKS = (Link("cpu:0", "gpu:0", 1e-5, 1e9), Link("gpu:0", "cpu:0", 2e-5, 2e9))
GRAPH = Graph(
    "g",
    (
        Op("matmul", "MatMul", flops=1e9, param_bytes=4000),
        Op("relu", "Relu", flops=1000),
        Op("view", "Reshape", flops=0),
    ),
    (
        Tensor("x", None, ("matmul",), 4000),
        Tensor("a", "matmul", ("relu",), 4_000_000),
        Tensor("b", "relu", ("view",), 4_000_000),
        Tensor("y", "view", (), 4_000_000, is_output=True),
    ),
)


def test_a_kernel_is_bound_by_arithmetic_or_by_memory():
    costs = roofline(GRAPH, Machine("m", (CPU, GPU), LINKS))
    assert costs.origin == "analytic"
    expected = [
        [1e9 / (EFFICIENCY["cpu"] * 1e9), 1e9 / (EFFICIENCY["gpu"] * 1e12)],
        [8e6 / 1e8, 8e6 / 1e11],
        [0.0, 0.0],
    ]
    launch = [LAUNCH_S["cpu"], LAUNCH_S["gpu"]]
    np.testing.assert_allclose(costs.compute_s, np.array(expected) + launch)
    np.testing.assert_allclose(costs.call_s, [CALL_S["cpu"], CALL_S["gpu"]])


def test_a_kernel_computes_at_the_rate_of_its_type():
    """The first tensor of numbers that it reads or else writes says the type; float32 is usual."""

    def reads(name, dtype):
        return Tensor(f"of {name}", None, (name,), 1, dtype=dtype)

    names = ("half", "quantised", "masked", "single", "table", "brain")
    graph = Graph(
        "g",
        tuple(Op(name, "MatMul", flops=1e12) for name in names),
        (
            reads("half", "float16"),
            reads("quantised", "int8"),
            Tensor("mask", None, ("masked",), 1, dtype="bool"),
            Tensor("data", None, ("masked",), 1, dtype="float16"),
            reads("single", "float32"),
            reads("table", "int64"),
            Tensor("row", "table", (), 1, dtype="float16"),
            reads("brain", "bfloat16"),
        ),
    )
    rates = (Rate("float16", 4e12), Rate("int8", 8e12))
    fast = replace(GPU, rates=rates)
    seconds = roofline(graph, Machine("m", (fast,))).compute_s[:, 0] - LAUNCH_S["gpu"]
    expected = [0.25, 0.125, 0.25, 1.0, 0.25, 1.0]
    np.testing.assert_allclose(seconds, np.array(expected) / EFFICIENCY["gpu"])
    assert fast.flops_per_s_in("bfloat16") == GPU.flops_per_s
    for wrong in ({"dtype": "", "flops_per_s": 1.0}, {"dtype": "int8", "flops_per_s": 0.0}):
        with pytest.raises(ValueError, match="no rate"):
            Rate(**wrong)
    with pytest.raises(ValueError, match="two rates"):
        replace(GPU, rates=(*rates, rates[0]))


def test_links_are_the_machines():
    costs = roofline(GRAPH, Machine("m", (CPU, GPU), LINKS))
    assert costs.transfer_s(0, 1, 1e6) == pytest.approx(1e-5 + 1e-3)
    assert costs.transfer_s(1, 0, 1e6) == pytest.approx(2e-5 + 5e-4)


def test_unstated_speeds_are_refused():
    with pytest.raises(ValueError, match=r"'cpu:0'.*memory_bytes_per_s"):
        roofline(GRAPH, Machine("m", (Device("cpu:0", flops_per_s=1.0),)))
    with pytest.raises(ValueError, match="no link"):
        roofline(GRAPH, Machine("m", (CPU, GPU)))


def test_an_empty_graph_has_empty_costs():
    assert roofline(Graph("g", (), ()), Machine("m", (CPU,))).compute_s.shape == (0, 1)
