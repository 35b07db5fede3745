"""What comes out of a pipeline is compared while it lies where the next sample will be."""

from types import SimpleNamespace

import numpy as np
import pytest

from profiling.execution import stream_outputs
from profiling.execution.stream_outputs import Outputs, same_bits
from profiling.measuring.outputs import DEFAULT, compare


class Known:
    """What is expected, with the comparison of `profiling.measuring.reference.Expected`."""

    def __init__(self, **outputs):
        self.outputs = outputs

    def compared(self, program, outputs):
        return compare(self.outputs, outputs, program.tolerance)


def compared(known, *samples):
    """The outputs of samples that use one memory, one behind the other."""
    outputs = Outputs([known], SimpleNamespace(tolerance=DEFAULT, reuses_outputs=True))
    memory = np.empty_like(samples[0])
    for sample in samples:
        memory[...] = sample
        outputs.compare(0, {"y": memory})
    memory[...] = np.nan
    outputs.finish()
    return outputs


# More than is compared at once, and not a multiple of it.
RIGHT = np.random.default_rng(0).random((401, 700), np.float32) + 1


def test_samples_without_a_difference_are_bit_equal_whatever_follows_them():
    found = compared(Known(y=RIGHT), RIGHT, RIGHT)
    assert found.match and found.bit_equal and found.max_abs_diff == 0.0


@pytest.mark.parametrize("where", [(0, 0), (200, 350), (-1, -1)])
def test_a_difference_is_told_as_large_as_it_was_when_it_came_out(where):
    by_little, by_much = RIGHT.copy(), RIGHT.copy()
    by_little[where] = np.nextafter(RIGHT[where], np.float32(9))
    by_much[where] += 0.5
    found = compared(Known(y=RIGHT), RIGHT, by_little, RIGHT)
    assert found.match and not found.bit_equal
    assert found.max_abs_diff == pytest.approx(float(by_little[where] - RIGHT[where]))
    found = compared(Known(y=RIGHT), by_little, by_much, RIGHT)
    assert found.match is False and not found.bit_equal
    assert found.max_abs_diff == pytest.approx(0.5, rel=1e-6)


DTYPES = ["float32", "int8", "bool", "U3", "S2", "V4", "complex64"]


@pytest.mark.parametrize("block_bytes", [1, 5, 2**18])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_one_changed_number_is_a_difference_wherever_it_is(monkeypatch, dtype, order, block_bytes):
    monkeypatch.setattr(stream_outputs, "BLOCK_BYTES", block_bytes)
    zeros = np.zeros((3, 4), dtype, order)
    assert same_bits(zeros, np.zeros((3, 4), dtype))
    for where in np.ndindex(3, 4):
        other = zeros.copy(order)
        other[where] = b"abcd" if dtype == "V4" else 1
        assert not same_bits(zeros, other) and not same_bits(other, zeros), where


@pytest.mark.parametrize("dtype", [*DTYPES, "U0"])
@pytest.mark.parametrize("shape", [(), (0,), (3, 4), (2, 0, 3)])
def test_bits_are_compared_of_arrays_of_any_kind(dtype, shape):
    zeros = np.zeros(shape, dtype)
    assert same_bits(zeros, zeros.copy())
    assert not same_bits(zeros, zeros.reshape((1, *shape)))
    assert not same_bits({"y": zeros}, {"z": zeros})


def test_every_bit_counts_and_the_order_in_memory_does_not():
    assert not same_bits(np.array([0.0]), np.array([-0.0]))
    assert same_bits(np.array([np.nan, 1.0]), np.array([np.nan, 1.0]))
    square = np.arange(6).reshape(2, 3)
    assert same_bits(square, np.asfortranarray(square))
    assert not same_bits(square.T, square.T + 1)
    assert not same_bits([square, None], [square, 0])
