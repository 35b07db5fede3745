"""What a network is told of a unit: op types, degrees, fractal dimension, position and shape.

The features of Duan et al., "A Structure-Aware Framework for Learning Device Placements on
Computation Graphs", NeurIPS 2024. A unit of several kernels has the mean of their one-hot types and
the shape of the last tensor that it makes; counts and extents enter as logarithms, and every column
is scaled to mean 0 and deviation 1, since they differ by orders of magnitude.
"""

import heapq
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.learning.carrying import Axis, joined, kinds, plain
from placement.learning.environment import Edges, Environment

# What may be left out to see what it is good for.
Part = Literal["", "shape", "id", "structure"]
# Distances at which units around a unit are counted, and axes of a shape.
FURTHEST, NUM_AXES = 16, 6
# Waves by which a position is told; the longest is this many positions long.
NUM_WAVES, LONGEST_WAVE = 8, 10_000.0


def unit_features(environment: Environment, without: Part = "") -> NDArray[np.float32]:
    """A row of numbers for every unit (U, F); `without` leaves one part out."""
    edges, num = environment.edges, environment.num_units
    columns = [kind_shares(environment)]
    if without != "structure":
        columns.append(np.log1p(degrees(edges, num)))
        columns.append(fractal_dimensions(edges, num)[:, None])
    if without != "id":
        columns.append(waves(positions(edges, num)))
    if without != "shape":
        columns.append(np.log1p(output_shapes(environment)))
    return scaled(np.concatenate(columns, axis=1)).astype(np.float32)


def feature_axis(environment: Environment, without: Part = "") -> Axis:
    """Where the columns of `unit_features` stand in a policy's file."""
    names, _ = kind_numbers(environment)
    return joined(
        kinds(names.tolist()),
        plain(3, is_told=without != "structure"),
        plain(2 * NUM_WAVES, is_told=without != "id"),
        plain(NUM_AXES, is_told=without != "shape"),
    )


def kind_numbers(environment: Environment) -> tuple[NDArray[np.str_], Ints]:
    """The kinds of op in order of name, and the number of each kernel's (K,)."""
    of_kernel = np.array([op.kind for op in environment.problem.kernels.ops], dtype=np.str_)
    return np.unique(of_kernel, return_inverse=True)


def kind_shares(environment: Environment) -> Floats:
    """The share of each kind of op among a unit's kernels (U, kinds), kinds in order of name."""
    names, number = kind_numbers(environment)
    counts = np.zeros((environment.num_units, names.size))
    np.add.at(counts, (environment.unit_of_kernel, number), 1.0)
    shares: Floats = counts / np.maximum(1.0, counts.sum(axis=1, keepdims=True))
    return shares


def degrees(edges: Edges, num_units: int) -> Floats:
    """Edges that end and edges that begin at each unit (U, 2)."""
    ends = [np.bincount(end, minlength=num_units) for end in (edges.target, edges.source)]
    return np.stack(ends, axis=1).astype(np.float64)


def fractal_dimensions(edges: Edges, num_units: int, furthest: int = FURTHEST) -> Floats:
    """How fast the number of units around a unit grows with the distance (U,).

    It is the slope of log N(r) against log r by least squares, where N(r) are the units at most r
    edges away in either direction, the unit itself among them, for r from 1 to the distance of the
    last unit that is reached, or to `furthest`. 0 where fewer than two distances are there.
    """
    from placement.learning.compiled.features import slopes

    return slopes(num_units, edges.source, edges.target, furthest)


def positions(edges: Edges, num_units: int) -> Ints:
    """The place of each unit in the topological order (U,), the lower number first of equals.

    Where units wait for each other, the one with the lowest number goes first.
    """
    waiting = np.bincount(edges.target, minlength=num_units).tolist()
    after: list[list[int]] = [[] for _ in range(num_units)]
    for source, target in zip(edges.source.tolist(), edges.target.tolist(), strict=True):
        after[source].append(target)
    ready = [unit for unit in range(num_units) if waiting[unit] == 0]
    place, num_placed, lowest = np.full(num_units, -1, dtype=np.int64), 0, 0
    while num_placed < num_units:
        while not ready:
            if place[lowest] < 0:
                ready.append(lowest)
            lowest += 1
        unit = heapq.heappop(ready)
        if place[unit] >= 0:
            continue
        place[unit] = num_placed
        num_placed += 1
        for other in after[unit]:
            waiting[other] -= 1
            if waiting[other] == 0 and place[other] < 0:
                heapq.heappush(ready, other)
    return place


def waves(position: Ints) -> Floats:
    """Positions as sines and cosines of growing wavelength (U, 2 waves); Vaswani et al., 2017."""
    steps = LONGEST_WAVE ** (-np.arange(NUM_WAVES) / NUM_WAVES)
    angles = position[:, None] * steps
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)


def output_shapes(environment: Environment) -> Floats:
    """The shape of the last tensor that each unit makes (U, axes), zeros where it has no more.

    The last tensor is that of the last kernel, and of several of that kernel the first.
    """
    kernels = environment.problem.kernels
    producer = kernels.arrays.producer
    shapes, maker = np.zeros((environment.num_units, NUM_AXES)), np.full(environment.num_units, -1)
    for t, tensor in enumerate(kernels.tensors):
        if producer[t] < 0:
            continue
        unit = environment.unit_of_kernel[producer[t]]
        if producer[t] > maker[unit]:
            maker[unit], shape = producer[t], (tensor.shape or ())[:NUM_AXES]
            shapes[unit] = 0.0
            shapes[unit, : len(shape)] = shape
    return shapes


def scaled(columns: Floats) -> Floats:
    """Columns (U, F) with mean 0 and deviation 1; those that are all the same become 0."""
    spread = columns.std(axis=0)
    found: Floats = (columns - columns.mean(axis=0)) / np.where(spread > 1e-9, spread, np.inf)
    return found
