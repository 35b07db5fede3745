"""Modules that switch gradients off (or autocast on) inside: opened, placed, run, and equal."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

import placement as pl
from profiling import backends
from tests.profiling.backends.test_torch import lanes, run_once, schedules
from tests.thorough import either

SIZES = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": either(1, 2),
    "num_attention_heads": 4,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
GROUPED = {**SIZES, "num_key_value_heads": 2}
FAMILIES = {
    "Llama": GROUPED,
    "Mistral": GROUPED,
    "Qwen2": GROUPED,
    "Gemma2": {**GROUPED, "head_dim": 8},
    "Phi3": GROUPED,
    "Olmo2": GROUPED,
    "GPTNeoX": SIZES,
    # Its first layer looks at all words, its second at those of a window.
    "ModernBert": {**SIZES, "num_hidden_layers": 2, "cls_token_id": 1, "sep_token_id": 2},
}


class LastHidden(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, ids):
        return self.inner(ids).last_hidden_state


class Mixed(nn.Module):
    """Wrappers inside wrappers, a result passed through, and a buffer written under no_grad."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.register_buffer("count", torch.zeros(4))

    def forward(self, x):
        with torch.no_grad():
            self.count.add_(1.0)
            y = self.linear(x) * 2
            with torch.enable_grad():
                y = torch.relu(y) + self.linear.bias
        with torch.autocast("cpu", dtype=torch.bfloat16):
            z = self.linear(y)
            with torch.no_grad(), torch.autocast("cpu", enabled=False):
                z = z.float() @ self.linear.weight
        return y, y + z + self.count


def family(name: str):
    import transformers

    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(**FAMILIES[name], use_cache=False)
    return LastHidden(getattr(transformers, f"{name}Model")(config)).eval()


def assert_placed_equals(module, *inputs):
    """Every op of the module finds a device, and what lanes compute is what the module says."""
    with torch.no_grad():
        expected = copy.deepcopy(module)(*inputs)
    expected = expected if isinstance(expected, tuple) else (expected,)
    model = pl.from_torch(module, inputs)
    machine = lanes(model)
    compiled = backends.usable("torch").compile(model, machine)
    feeds = compiled.feeds(0, dict(zip((t.name for t in model.graph.inputs), inputs, strict=True)))
    for schedule in schedules(model, machine, 3):
        outputs = run_once(compiled.open(schedule, feeds), schedule)
        values = list(outputs.values())[: len(expected)]
        for value, wanted in zip(values, expected, strict=True):
            assert np.allclose(value, wanted.detach().numpy(), rtol=1e-5, atol=1e-5)
    return model


# The others wrap nothing in another way than these and Llama, of which a training step is below.
FEW = ["GPTNeoX", "ModernBert"]


@pytest.mark.thorough
@pytest.mark.parametrize("name", either(FEW, [*FAMILIES]))
def test_a_language_model_is_opened_placed_and_run(name):
    model = assert_placed_equals(family(name), torch.arange(12).reshape(1, 12) % 60)
    assert not any("wrap" in op.kind for op in model.graph.ops)
    rotary = [op for op in model.graph.ops if "rotary" in op.scope]
    assert {op.kind for op in rotary} & {"aten.cos", "cos"}, "ops keep the module they are from"


def test_wrappers_inside_wrappers_and_casts_of_autocast():
    model = assert_placed_equals(Mixed().eval(), torch.randn(2, 4))
    assert not any("wrap" in op.kind for op in model.graph.ops)
    assert any(t.dtype == "bfloat16" for t in model.graph.tensors), "autocast is casts"


def test_a_branch_on_data_inside_a_wrapper_is_refused_by_name():
    class Branches(nn.Module):
        def forward(self, x):
            with torch.no_grad():
                y = torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,))
            return y + x

    with pytest.raises(ValueError, match=r"branches or loops on data \(cond\)"):
        pl.from_torch(Branches(), torch.randn(3))


def test_a_training_step_of_such_a_model_trains():
    module, ids = family("Llama"), torch.arange(12).reshape(1, 12)
    target = torch.randn(1, 12, 32)
    wanted = nn.functional.mse_loss(module(ids), target).item()
    model = pl.from_torch(
        module, ids, training=True, loss=nn.functional.mse_loss, targets=(target,)
    )
    machine = lanes(model)
    compiled = backends.usable("torch").compile(model, machine)
    feeds = compiled.feeds(0, {"ids": ids, "target": target})
    for schedule in schedules(model, machine, 1):
        assert run_once(compiled.open(schedule, feeds), schedule)["loss"] == pytest.approx(wanted)
