"""Comparison of outputs: what counts as the same."""

import numpy as np
import pytest

from profiling.measuring.outputs import compare

X = np.array([1.0, np.nan, np.inf, -np.inf], dtype=np.float32)


def test_nan_and_infinities_equal_themselves():
    assert compare({"y": X}, {"y": X.copy()}) == compare({}, {})


@pytest.mark.parametrize(
    "other",
    [
        np.array([1.0, np.nan, np.inf, np.inf], dtype=np.float32),
        np.array([1.0, 0.0, np.inf, -np.inf], dtype=np.float32),
        np.array([1.1, np.nan, np.inf, -np.inf], dtype=np.float32),
        X.astype(np.float64),
        X.reshape(2, 2),
        [X],
        None,
    ],
)
def test_differences_are_seen(other):
    found = compare({"y": X}, {"y": other})
    assert not found.match and found.where == "y" and found.max_abs_diff > 0


def test_small_differences_pass_and_are_reported():
    a = np.array([1.0, 100.0])
    found = compare({"y": a}, {"y": a + 1e-5})
    assert found.match and found.max_abs_diff == pytest.approx(1e-5)
    assert not compare({"y": a}, {"y": a + 0.1}).match


def test_strings_sequences_and_dictionaries_by_structure():
    words = np.array(["a", "b"], dtype=object)
    for value, other in (
        (words, np.array(["a", "c"], dtype=object)),
        ([X, X], [X]),
        ([{"a": 1.0}], [{"b": 1.0}]),
        (np.array([1, 2]), np.array([1, 3])),
        (np.array([True]), np.array([False])),
    ):
        assert compare({"y": value}, {"y": value}).match
        assert not compare({"y": value}, {"y": other}).match


def test_what_rounding_moves_may_differ_as_far_and_nothing_else():
    """Two outputs: noise that rounding turns around, and a number that it leaves alone."""
    a = {"noise": np.float32([1e-3, -1e-3, 1e-3]), "sum": np.float32([5.0, 6.0])}
    nudged = {"noise": np.float32([1e-3, 1e-3, -1e-3]), "sum": a["sum"]}
    found = {"noise": -a["noise"], "sum": a["sum"]}
    assert not compare(a, found, (1e-3, 1e-4)).match
    assert compare(a, found, (1e-3, 1e-4), nudged).match
    wrong = compare(a, {**found, "sum": np.float32([5.0, 6.1])}, (1e-3, 1e-4), nudged)
    assert not wrong.match and wrong.where == "sum"
    assert not compare(a, {**found, "noise": a["noise"] * 20}, (1e-3, 1e-4), nudged).match


def test_names_count():
    assert not compare({"y": X}, {"z": X}).match


def test_a_small_number_beside_large_ones_may_not_be_wrong():
    """A difference of 1e-3 among hundreds is lost digits for the large ones only."""
    a = np.array([1.0, 100.0], dtype=np.float32)
    assert compare({"y": a}, {"y": a + np.float32([0.0, 5e-3])}).match
    assert not compare({"y": a}, {"y": a + np.float32([5e-3, 0.0])}).match
    assert compare({"y": a}, {"y": a + np.float32([1.5e-4, 0.0])}).match


def test_half_precision_by_what_it_can_tell_apart():
    a = np.array([1.0, 3.0], dtype=np.float16)
    near = np.nextafter(a, np.float16(10))
    assert compare({"y": a}, {"y": near}).match
    assert not compare({"y": a}, {"y": a + np.float16(0.02)}).match
    assert not compare({"y": a.astype(np.float32)}, {"y": near.astype(np.float32)}).match
