"""Products join the sums which alone read them: the same bits, and no two wait for each other."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import placement as pl
from placement.core.graph import Graph, Op, Tensor
from placement.core.machine import Device, Machine
from placement.core.schedule import Schedule, Segment
from placement.core.verb_options import RunOptions
from profiling import backends
from profiling.backends._torch.kernels import joined
from profiling.devices.local import nominal_links
from profiling.execution.execute import compiled_for, execute
from tests.exporters.torch_models import Rereading
from tests.profiling.live import measure_briefly, problem_of, random_schedule, steps

LANES = tuple(
    Device(f"cpu:{i}", "cpu", "torch", "cpu", flops_per_s=1e10, memory_bytes_per_s=1e10)
    for i in range(2)
)
TWO = Machine("two", LANES, nominal_links(LANES))
JOINED = {"mm+add", "sum+add"}


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    return pl.from_torch(Rereading(), torch.randn(3, 5), training=True, optimizer="adam")


@pytest.fixture(scope="module")
def profile(model):
    with pytest.MonkeyPatch.context() as patch:
        measure_briefly(patch)
        return pl.profile(model, TWO)


def opened(compiled, schedule, num=3):
    """The outputs of some steps that follow one another."""
    program = compiled.open(schedule, compiled.feeds(0, {}))
    found = steps(program, schedule, num)
    program.close()
    return found


def whole(compiled):
    return Schedule((Segment("cpu:0", tuple(op.name for op in compiled.kernels.ops)),))


def same(found, wanted):
    for one, other in zip(found, wanted, strict=True):
        assert one.keys() == other.keys()
        for label in one:
            np.testing.assert_array_equal(one[label], other[label], err_msg=label)


def test_each_sum_of_gradients_has_one_product(model):
    compiled, graph = backends.compiled(model, TWO), model.graph
    ran = [op for ops in compiled.sources for op in ops]
    assert sorted(ran) == sorted(op.name for op in graph.ops)
    pairs = zip(compiled.kernels.ops, compiled.sources, strict=True)
    several = {kernel.name: ops for kernel, ops in pairs if len(ops) > 1}
    # Four times a weight and a bias are used, so three sums of each; the weight's last belongs to
    # its update, which goes where the weight does, and the products do not.
    assert {compiled.kernels.ops[compiled.kernels.index[n]].kind for n in several} == JOINED
    sums = [op for op in graph.ops if op.kind == "add" and op.phase == "backward"]
    free = [op for op in sums if op.colocation_group is None]
    assert {ops[-1] for ops in several.values()} == {op.name for op in free}
    for ops in several.values():
        product = graph.ops[graph.index[ops[0]]]
        assert product.kind in ("mm", "sum")
        for before, after in itertools.pairwise(ops):
            assert graph.successors[graph.index[before]] == (graph.index[after],)


def test_what_stays_inside_is_no_tensor_and_all_else_is(model):
    compiled, graph = backends.compiled(model, TWO), model.graph
    kernel_of = {
        op: kernel.name
        for kernel, ops in zip(compiled.kernels.ops, compiled.sources, strict=True)
        for op in ops
    }
    found = {tensor.name: tensor for tensor in compiled.kernels.tensors}
    for tensor in graph.tensors:
        readers = list(dict.fromkeys(kernel_of[name] for name in tensor.consumers))
        if tensor.producer is not None and kernel_of[tensor.producer] in readers:
            assert tensor.name not in found and not tensor.is_output and len(readers) == 1
            continue
        kernel = found.pop(tensor.name)
        assert kernel.producer == kernel_of.get(tensor.producer)
        assert list(kernel.consumers) == readers
        assert (kernel.num_bytes, kernel.is_output) == (tensor.num_bytes, tensor.is_output)
    assert not found
    assert compiled.kernels.param_bytes == graph.param_bytes
    assert compiled.kernels.flops == pytest.approx(graph.flops)


@pytest.mark.parametrize("seed", range(4))
def test_any_placement_of_them_has_the_bits_of_single_ops(model, seed):
    compiled = backends.compiled(model, TWO)
    by_op = compiled.by_op()
    assert by_op.kernels is model.graph
    wanted = opened(by_op, whole(by_op))
    same(opened(compiled, whole(compiled)), wanted)
    rng = np.random.default_rng(seed)
    problem = problem_of(model, TWO)
    same(opened(compiled, random_schedule(problem, rng)), wanted)
    same(opened(compiled.in_python(), random_schedule(problem, rng)), wanted)


def test_a_measured_profile_is_of_them_and_runs(model, profile):
    problem = pl.make_problem(model, TWO, profile)
    compiled = compiled_for(problem, model)
    assert compiled.kernels.fingerprint == problem.kernels.fingerprint
    assert {op.kind for op in problem.kernels.ops} >= JOINED
    placed = pl.place(problem, "heft")
    ran = pl.run(model, problem, placed.placement, steps=2, warmup=1).measured
    assert ran.outputs_match and ran.max_abs_diff == 0


def test_costs_of_single_ops_run_as_single_ops(model):
    problem = pl.make_problem(model, TWO)
    assert len(problem.kernels.ops) == len(model.graph.ops)
    assert len(compiled_for(problem, model).kernels.ops) == len(model.graph.ops)
    schedule = pl.place(problem, "heft").schedule
    assert execute(problem, schedule, RunOptions(steps=2, warmup=1), model=model).outputs_match


def test_state_is_renewed_by_kernels(model):
    compiled = backends.compiled(model, TWO)
    assert compiled.renewals
    for renewal in compiled.renewals:
        assert {renewal.maker, *renewal.readers} <= compiled.kernels.index.keys()


def graph_of(*ops, outputs=()):
    """Ops of a backward pass, each a name, a kind, what it reads, and what else there is to say."""
    made = [Op(name, kind, phase="backward", **more) for name, kind, _, more in ops]
    readers = {name: tuple(n for n, _, reads, _ in ops if name in reads) for name, *_ in ops}
    tensors = [Tensor(n, n, readers[n], 4, is_output=n in outputs) for n, *_ in ops]
    return Graph("backward", tuple(made), tuple(tensors))


FIRST, PRODUCT = ("first", "tanh", (), {}), ("product", "mm", ("first",), {})
VIEW = ("view", "t", ("product",), {"moved_bytes": 0.0})


def total(*reads, **more):
    return ("total", "add", reads, more)


@pytest.mark.parametrize(
    ("ops", "kept", "found"),
    [
        ((FIRST, PRODUCT, total("first", "product")), (), ("product", "total")),
        ((FIRST, PRODUCT, VIEW, total("first", "view")), (), ("product", "view", "total")),
        ((FIRST, PRODUCT, total("product")), (), ("product", "total")),
        # Of two products the one that is made last.
        (
            (FIRST, ("early", "mm", ("first",), {}), PRODUCT, total("early", "product")),
            (),
            ("product", "total"),
        ),
        # Held back for what comes later it would gain nothing.
        ((FIRST, PRODUCT, ("late", "mul", ("first",), {}), total("product", "late")), (), ()),
        ((FIRST, PRODUCT, total("first", "product")), ("product",), ()),
        ((FIRST, PRODUCT, VIEW, total("first", "view")), ("view",), ()),
        (
            (FIRST, PRODUCT, total("first", "product"), ("other", "mul", ("product",), {})),
            (),
            (),
        ),
        ((FIRST, PRODUCT, VIEW, total("first", "view"), ("o", "mul", ("product",), {})), (), ()),
        ((FIRST, PRODUCT, total("first", "product", colocation_group="g")), (), ()),
        ((FIRST, PRODUCT, ("copy", "clone", ("product",), {}), total("first", "copy")), (), ()),
        ((FIRST, ("product", "mul", ("first",), {}), total("first", "product")), (), ()),
    ],
)
def test_what_joins_and_what_does_not(ops, kept, found):
    graph = graph_of(*ops, outputs=kept)
    kernels = joined(graph, kept)
    assert [names for names in kernels if len(names) > 1] == ([found] if found else [])
    assert sorted(name for names in kernels for name in names) == sorted(graph.index)


def test_sums_of_a_forward_pass_are_as_they_were():
    model = pl.from_torch(nn.Bilinear(3, 3, 3), (torch.randn(3, 3), torch.randn(3, 3)))
    compiled = backends.compiled(model, TWO)
    assert compiled.kernels is model.graph
    assert compiled.sources == tuple((op.name,) for op in model.graph.ops)


def test_a_profile_of_single_ops_is_run_as_such(model, profile):
    """As in projects that were measured before products were joined."""
    num, each = len(model.graph.ops), len(TWO.devices)
    before = replace(
        profile,
        kernels=model.graph,
        sources=tuple((op.name,) for op in model.graph.ops),
        compute_s=tuple((1e-4,) * each for _ in range(num)),
        spread=tuple((0.1,) * each for _ in range(num)),
    )
    problem = pl.make_problem(model, TWO, before)
    schedule = pl.place(problem, "heft").schedule
    assert execute(problem, schedule, RunOptions(steps=2, warmup=1), model=model).outputs_match
