"""Are the outputs of a placed model those of the unplaced one?"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

# By dtype: the part of a number, and of the largest of its output, that it may differ by. For
# half precision two units and one in the last place; 1e-4 is less than it can tell apart.
DEFAULT = (1e-4, 1e-6)
# Where devices of several makers share a model: each sums in an order of its own.
ACROSS_DEVICES = (1e-3, 1e-4)
# How many times as far as by rounding what a model starts from its outputs may be off by rounding
# every sum on the way in another order. An output of which one number is noise alone is checked no
# closer than that noise.
ROUNDING = 8.0
_TOLERANCES = {"float16": (2**-9, 2**-10), "bfloat16": (2**-6, 2**-7)}
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Comparison:
    """`match` within the tolerance, the largest difference, and the first output that differs.

    `by_rounding` says that they are as close as rounding lets outputs of this model be, no closer.
    """

    match: bool
    max_abs_diff: float = 0.0
    where: str = ""
    by_rounding: bool = False


def compare(
    expected: Mapping[str, Any],
    actual: Mapping[str, Any],
    tolerance: tuple[float, float] = DEFAULT,
    nudged: Mapping[str, Any] | None = None,
) -> Comparison:
    """Compare outputs by name; NaN equals NaN, infinities equal themselves.

    Numbers may differ by 1e-4 of themselves plus 1e-6 of the largest of their output, for
    differences of large numbers lose digits, or by another `tolerance`; float16 and bfloat16 by
    2e-3 and 1e-3, 2e-2 and 8e-3. Where `nudged` has what the same model makes of numbers that are
    off by rounding, they may also differ by eight times the most that an output moved there.
    Everything else, numbers that only come as bytes included, is equal or not.
    """
    if list(expected) != list(actual):
        return Comparison(False, float("inf"), f"outputs {list(actual)}, expected {list(expected)}")
    worst, where = 0.0, ""
    for name, value in expected.items():
        moved = None if nudged is None else nudged.get(name)
        match, diff = _same(value, actual[name], tolerance, moved)
        worst = max(worst, diff)
        if not match and not where:
            where = name
    return Comparison(not where, worst, where)


def _same(
    expected: Any, actual: Any, tolerance: tuple[float, float], nudged: Any
) -> tuple[bool, float]:
    if isinstance(expected, Mapping):
        if not isinstance(actual, Mapping) or list(expected) != list(actual):
            return False, float("inf")
        inner = list(nudged.values()) if isinstance(nudged, Mapping) else None
        return _same(list(expected.values()), list(actual.values()), tolerance, inner)
    if isinstance(expected, list | tuple):
        if not isinstance(actual, list | tuple) or len(expected) != len(actual):
            return False, float("inf")
        rest = nudged if isinstance(nudged, list | tuple) else [None] * len(expected)
        triples = zip(expected, actual, rest, strict=True)
        each = [_same(a, b, tolerance, moved) for a, b, moved in triples]
        return all(m for m, _ in each), max((d for _, d in each), default=0.0)
    if expected is None or actual is None:
        return expected is actual, 0.0 if expected is actual else float("inf")
    moved = None if nudged is None else np.asarray(nudged)
    return _same_arrays(np.asarray(expected), np.asarray(actual), tolerance, moved)


def _same_arrays(
    a: Array, b: Array, tolerance: tuple[float, float], nudged: Array | None
) -> tuple[bool, float]:
    if a.shape != b.shape or a.dtype != b.dtype:
        return False, float("inf")
    if a.dtype.kind not in "fc" and a.dtype.name not in _TOLERANCES:
        equal = a.tobytes() == b.tobytes() if a.dtype.kind == "V" else bool((a == b).all())
        if a.dtype.kind not in "iu" or equal:
            return equal, 0.0 if equal else float("inf")
        return False, float(np.abs(a.astype(np.float64) - b.astype(np.float64)).max())
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    x, y = a.astype(wide), b.astype(wide)
    same = (x == y) | (np.isnan(x) & np.isnan(y))
    if same.all():
        return True, 0.0
    if not (np.isfinite(x[~same]).all() and np.isfinite(y[~same]).all()):
        return False, float("inf")
    diff = np.abs(x[~same] - y[~same])
    finite = np.abs(x[np.isfinite(x)])
    rtol, of_largest = _TOLERANCES.get(a.dtype.name, tolerance)
    atol = of_largest * float(finite.max(initial=0.0))
    if nudged is not None and nudged.shape == a.shape:
        moved = np.abs(x - nudged.astype(wide))
        atol += ROUNDING * float(moved[np.isfinite(moved)].max(initial=0.0))
    return bool((diff <= rtol * np.abs(x[~same]) + atol).all()), float(diff.max())


def nudged(value: Array, noise: np.random.Generator) -> Array:
    """The same float32 numbers, each off by up to eight units in its last place.

    Sums of hundreds of products are off by so much.
    """
    unit, drawn = np.finfo(np.float32).eps, noise.random(value.shape, np.float32)
    return np.asarray(value * (1 + 8 * unit * (2 * drawn - 1)), dtype=np.float32)


def num_bytes(value: Any) -> int:
    """Bytes of an array, or of all arrays in a list or dictionary."""
    if isinstance(value, Mapping):
        return sum(map(num_bytes, value.values()))
    if isinstance(value, list | tuple):
        return sum(map(num_bytes, value))
    return int(value.nbytes) if isinstance(value, np.ndarray) else 0
