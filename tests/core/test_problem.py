"""Units: source ops and kernels that belong together move together."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

from placement.core.costs import Costs
from placement.core.graph import Graph, Op, Tensor
from placement.core.machine import Device, Link, Machine
from placement.core.problem import Problem
from placement.schedule.order import kernel_order
from placement.schedule.segments import make_schedule


def chain(names, kind):
    ops = tuple(Op(n, kind) for n in names)
    tensors = tuple(
        Tensor(f"{kind}:{a}", a, (b,) if b else (), 4, is_output=b is None)
        for a, b in zip(names, [*names[1:], None], strict=True)
    )
    return Graph(kind, ops, tensors)


def fused_problem():
    """conv + bn + relu run as one kernel after a change of layout; shape is folded; pool is alone.

    source: conv bn relu shape pool gemm      kernels: reorder conv_nchwc pool matmul bias
    """
    graph = chain(["conv", "bn", "relu", "shape", "pool", "gemm"], "source")
    kernels = chain(["reorder", "conv_nchwc", "pool_k", "matmul", "bias"], "kernel")
    sources = ((), (0, 1, 2), (4,), (5,), (5,))
    devices = (Device("d0"), Device("d1"))
    machine = Machine("m", devices, (Link("d0", "d1", 0, 1), Link("d1", "d0", 0, 1)))
    zero = np.zeros((2, 2))
    costs = Costs(np.ones((5, 2)), np.zeros(2), zero, zero, "given")
    return Problem(graph, machine, costs, kernels, sources)


def test_kernels_and_ops_of_one_unit():
    problem = fused_problem()
    ops = [[problem.graph.ops[i].name for i in unit] for unit in problem.ops_of_unit]
    kernels = [[problem.kernels.ops[k].name for k in unit] for unit in problem.kernels_of_unit]
    # The runtime's own kernel joins its consumer, the folded op its reader.
    assert ops == [["conv", "bn", "relu"], ["shape", "pool"], ["gemm"]]
    assert kernels == [["reorder", "conv_nchwc"], ["pool_k"], ["matmul", "bias"]]


def test_placements_translate_both_ways():
    problem = fused_problem()
    placement = problem.placement_of([0, 1, 0])
    assert dict(placement.device_of) == {
        "conv": "d0",
        "bn": "d0",
        "relu": "d0",
        "shape": "d1",
        "pool": "d1",
        "gemm": "d0",
    }
    assert problem.kernel_devices(placement).tolist() == [0, 0, 1, 0, 0]
    schedule = make_schedule(problem, placement)
    assert [s.kernels for s in schedule.segments] == [
        ("reorder", "conv_nchwc"),
        ("pool_k",),
        ("matmul", "bias"),
    ]


def test_an_order_of_source_ops_orders_kernels():
    problem = fused_problem()
    placement = problem.placement_of([0, 0, 0], order=[0, 1, 2, 3, 4])
    devices = problem.kernel_devices(placement)
    assert placement.order[-1] == "gemm"
    assert kernel_order(problem, placement, devices) == [0, 1, 2, 3, 4]


def test_a_split_fusion_group_is_refused_by_name():
    problem = fused_problem()
    split = dict(problem.placement_of([0, 0, 0]).device_of) | {"bn": "d1"}
    from placement.core.placement import Placement

    with pytest.raises(ValueError, match="'conv' and 'bn' run as one kernel"):
        problem.kernel_devices(Placement(problem.graph.fingerprint, "m", split))


def test_one_order_is_pinned_on_a_device():
    problem = fused_problem()
    ops = [op.name for op in problem.graph.ops]
    replace(problem, sequences=(("d0", tuple(ops)), ("d1", tuple(ops))))
    with pytest.raises(ValueError, match="order on 'd0' is pinned twice"):
        replace(problem, sequences=(("d0", tuple(ops)), ("d0", tuple(ops[::-1]))))


def test_what_comes_from_another_process_cannot_be_written_either():
    """What is compiled would be compiled once more for arrays that can."""
    problem = fused_problem()
    given = (problem.costs, problem.kernels.arrays, problem.graph.arrays)
    again = pickle.loads(pickle.dumps(problem))
    assert again.fingerprint == problem.fingerprint
    for own, found in zip(
        given, (again.costs, again.kernels.arrays, again.graph.arrays), strict=True
    ):
        for name, array in vars(own).items():
            if isinstance(array, np.ndarray):
                np.testing.assert_array_equal(getattr(found, name), array)
                assert not getattr(found, name).flags.writeable, name
