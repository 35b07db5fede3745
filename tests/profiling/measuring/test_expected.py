"""A training step on a device that rounds in another order: which differences are the device's.

Convolutions of the same network by two of PyTorch's libraries take the part of two devices.
"""

import numpy as np
import pytest
import torch

from profiling import backends
from profiling.backends.base import Program
from profiling.measuring.reference import Expected
from tests.profiling.backends.test_torch import lanes
from tests.profiling.backends.test_torch_memories import network


class Elsewhere(Program):
    """A program of devices that need not agree to the last bit."""

    tolerance = (1e-3, 1e-4)

    def run(self, segment):
        raise NotImplementedError

    def outputs(self):
        return {}


@pytest.fixture(scope="module")
def compared():
    """What is expected of a training step, and what another library makes of it."""
    model = network("training")
    machine = lanes(model)
    compiled = backends.usable("torch").compile(model, machine)
    feeds = compiled.feeds(0, {})
    expected = Expected(compiled, machine.devices[0], feeds, 60.0)
    torch.backends.mkldnn.set_flags(False)
    try:
        other = Expected(compiled, machine.devices[0], feeds, 60.0)
    finally:
        torch.backends.mkldnn.set_flags(True)
    return expected, other.outputs


def test_a_step_along_a_gradient_of_noise_may_go_either_way(compared):
    """A bias before a batch norm has none; Adam divides what rounding leaves by itself."""
    expected, other = compared
    moved = np.abs(expected.outputs["conv.bias"] - other["conv.bias"]).max()
    assert moved > 1e-3, "both libraries round alike: this test shows nothing"
    found = expected.compared(Elsewhere(), other)
    assert found.match and found.by_rounding and found.max_abs_diff >= moved


@pytest.mark.parametrize("name", ["conv.weight", "loss", "norm.running_mean"])
def test_what_rounding_does_not_move_must_be_right(compared, name):
    expected, other = compared
    wrong = other[name] * np.float32(1.01) + np.float32(0.01)
    found = expected.compared(Elsewhere(), {**other, name: wrong})
    assert not found.match and not found.by_rounding and found.where == name


def test_equal_outputs_need_no_second_run(compared):
    expected, _ = compared
    found = expected.compared(Elsewhere(), expected.outputs)
    assert found.match and not found.by_rounding and found.max_abs_diff == 0
