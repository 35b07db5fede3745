"""Traced graphs without side effects: op by op, or traced again where that is not safe."""

import pytest
import torch
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx

from placement.formats.torch import functional as _torch_functional
from placement.formats.torch.functional import functional


def own_name(x):
    y = x + 1
    y.sigmoid_()
    return y * 2 + y


def parts_apart(x):
    left, right = (x + 1).split(2, 1)
    left.tanh_()
    right.add_(left)
    return left * right


def new_view_of_what_was_written(x):
    y = x + 1
    y.mul_(3)
    return y.view(-1).add_(1) * 2


def a_table_counts(x):
    counter = x.new_zeros(3, 4, dtype=torch.int64)
    counter.add_(1)
    return x * counter


def through_a_view(x):
    y = x + 1
    y.view(-1).relu_()
    return y


def view_made_before(x):
    y = x + 1
    row = y[0]
    y.exp_()
    return row + y


def whole_of_parts(x):
    y = x - 1
    left, _ = y.split(2, 1)
    left.relu_()
    return y + 1


def twice_by_two_names(x):
    y = x + 1
    z = y.add_(1)
    z.mul_(2)
    return y


def wider_type(x):
    y = x + 1
    y.add_(torch.ones(4, dtype=torch.float64))
    return y


def copied(x):
    y = torch.zeros_like(x)
    y.copy_(x[0])
    return y


REWRITTEN = (
    own_name,
    parts_apart,
    new_view_of_what_was_written,
    twice_by_two_names,
    a_table_counts,
)
TRACED_AGAIN = (through_a_view, view_made_before, whole_of_parts, wider_type, copied)


@pytest.mark.parametrize("function", REWRITTEN + TRACED_AGAIN)
def test_the_graph_without_side_effects_makes_the_same(function, monkeypatch):
    x = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
    again = []
    monkeypatch.setattr(
        _torch_functional, "make_fx", lambda *a, **more: again.append(a) or make_fx(*a, **more)
    )
    traced = make_fx(function, tracing_mode="fake")(x)
    graph = functional(traced, (x,))
    assert bool(again) == (function in TRACED_AGAIN)
    ops = [node.target for node in graph.nodes if node.op == "call_function"]
    assert not any(isinstance(op, torch._ops.OpOverload) and op._schema.is_mutable for op in ops)
    module = torch.fx.GraphModule({}, graph)
    given = x.clone()
    made, wanted = module(given), function(x.clone())
    assert torch.equal(made, wanted)
    assert made.dtype == wanted.dtype
    assert torch.equal(given, x)


def test_a_normalisation_hands_on_its_new_statistics():
    norm = nn.BatchNorm1d(4)
    x = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))

    def step(x, weight, bias, mean, var):
        made = _torch_functional.BATCH_NORM(x, weight, bias, mean, var, True, 0.1, 1e-5)[0]
        return made, mean, var

    held = (norm.weight, norm.bias, norm.running_mean, norm.running_var)
    given = tuple(value.detach().clone() for value in held)
    graph = functional(make_fx(step, tracing_mode="fake")(x, *given), (x, *given))
    made, mean, var = torch.fx.GraphModule({}, graph)(x, *given)
    assert torch.equal(given[2], torch.zeros(4))
    assert torch.allclose(made, norm(x))
    assert torch.equal(mean, norm.running_mean)
    assert torch.equal(var, norm.running_var)
