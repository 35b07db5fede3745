"""A small made-up problem for the tests of the pages: four fused pairs in a diamond."""

import numpy as np

from placement.core.costs import Costs
from placement.core.graph import Graph, Op, Tensor
from placement.core.machine import Device, Link, Machine
from placement.core.placement import Placement
from placement.core.problem import Problem

PAIRS = ("a", "b", "c", "d")
MACHINE = Machine(
    "two",
    (Device("cpu:0"), Device("cpu:1")),
    (Link("cpu:0", "cpu:1", 0.001, 1e9), Link("cpu:1", "cpu:0", 0.001, 1e9)),
)


def diamond(pins: tuple[tuple[str, str], ...] = (), runs_b: bool = True) -> Problem:
    """Ops a_conv, a_relu, ... of kernels a -> (b, c) -> d; each relu is fused into its conv.

    With `runs_b` False device cpu:1 has no kernel for b.
    """
    ops = [Op(f"{p}_{kind}", kind.title(), flops=1e6) for p in PAIRS for kind in ("conv", "relu")]
    inner = [Tensor(f"{p}_t", f"{p}_conv", (f"{p}_relu",), 1000) for p in PAIRS]
    outer = [
        Tensor("x", None, ("a_conv",), 1000),
        Tensor("ra", "a_relu", ("b_conv", "c_conv"), 1_000_000),
        Tensor("rb", "b_relu", ("d_conv",), 1_000_000),
        Tensor("rc", "c_relu", ("d_conv",), 1_000_000),
        Tensor("rd", "d_relu", (), 1000, is_output=True),
    ]
    graph = Graph("diamond", tuple(ops), tuple(outer + inner))
    kernels = Graph(
        "kernels",
        tuple(Op(p, "Fused") for p in PAIRS),
        (
            Tensor("x", None, ("a",), 1000),
            Tensor("ra", "a", ("b", "c"), 1_000_000),
            Tensor("rb", "b", ("d",), 1_000_000),
            Tensor("rc", "c", ("d",), 1_000_000),
            Tensor("rd", "d", (), 1000, is_output=True),
        ),
    )
    compute_s = np.array([[0.001, 0.002], [0.010, 0.010], [0.010, 0.010], [0.001, 0.002]])
    if not runs_b:
        compute_s[1, 1] = np.inf
    away = 1.0 - np.eye(2)
    costs = Costs(compute_s, np.zeros(2), away * 0.001, away * 1e-9, "given")
    sources = tuple((2 * i, 2 * i + 1) for i in range(4))
    return Problem(graph, MACHINE, costs, kernels, sources, pins=pins)


def everywhere(problem: Problem, device: str = "cpu:0", **others: str) -> Placement:
    """All ops on one device, but for the pairs named."""
    device_of = {op.name: others.get(op.name[0], device) for op in problem.graph.ops}
    return Placement(problem.graph.fingerprint, problem.machine.name, device_of)
