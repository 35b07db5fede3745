"""What networks read of units and of groups of units, as numbers.

`op_features` and `group_features` are those of the hierarchical planner (Mirhoseini et al., ICLR
2018): type, output shapes and neighbours of an op; connections, types and summed shapes of a group.
A unit of several kernels has the type that most of them have and the outputs that leave it.
`scaled_features` says the same and costs besides, in numbers of like size.
"""

import numpy as np

from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.learning.carrying import Axis, devices, joined, kinds, plain
from placement.learning.environment import Environment

# Outputs of a unit, sizes of an output, and neighbours that are told.
NUM_OUTPUTS, NUM_SIZES, NUM_NEIGHBOURS = 5, 5, 20
MISSING = -1.0
# Types that have a column of their own in scaled features, and waves over the position.
MOST_KINDS, NUM_WAVES = 24, 4
# Bytes out and in, weights, readers and makers.
NUM_TOLD = 5


def kind_counts(environment: Environment) -> Floats:
    """Kernels of each type in each unit (U, T), types in order of their first kernel."""
    number = {name: i for i, name in enumerate(kind_names(environment))}
    of_kernel = [number[op.kind] for op in environment.problem.kernels.ops]
    counts = np.zeros((environment.num_units, max(1, len(number))))
    np.add.at(counts, (environment.unit_of_kernel, np.array(of_kernel, dtype=np.int64)), 1.0)
    return counts


def kind_names(environment: Environment) -> list[str]:
    """Types of op in order of their first kernel."""
    return list(dict.fromkeys(op.kind for op in environment.problem.kernels.ops))


def output_shapes(environment: Environment) -> Floats:
    """Sizes of the first outputs that leave each unit (U, 25), padded with -1.

    An output leaves where another unit reads it or where the model hands it back; one of unknown
    shape takes a place and tells nothing.
    """
    arrays = environment.problem.kernels.arrays
    shapes = np.full((environment.num_units, NUM_OUTPUTS, NUM_SIZES), MISSING)
    told = np.zeros(environment.num_units, dtype=np.int64)
    for t, tensor in enumerate(environment.problem.kernels.tensors):
        if arrays.producer[t] < 0:
            continue
        unit = environment.unit_of_kernel[arrays.producer[t]]
        readers = arrays.consumers[arrays.consumer_ptr[t] : arrays.consumer_ptr[t + 1]]
        leaves = tensor.is_output or (environment.unit_of_kernel[readers] != unit).any()
        if leaves and told[unit] < NUM_OUTPUTS:
            sizes = (tensor.shape or ())[:NUM_SIZES]
            shapes[unit, told[unit], : len(sizes)] = sizes
            told[unit] += 1
    return shapes.reshape(environment.num_units, -1)


def neighbours(environment: Environment) -> Ints:
    """Numbers of neighbours from 1 (U, 20): readers first, makers below zero, padded with 0."""
    edges = environment.edges
    found: list[list[int]] = [[] for _ in range(environment.num_units)]
    for source, target in sorted(zip(edges.source.tolist(), edges.target.tolist(), strict=True)):
        found[source].append(target + 1)
    for target, source in sorted(zip(edges.target.tolist(), edges.source.tolist(), strict=True)):
        found[target].append(-(source + 1))
    rows = np.zeros((environment.num_units, NUM_NEIGHBOURS), dtype=np.int64)
    for unit, around in enumerate(found):
        rows[unit, : len(around)] = around[:NUM_NEIGHBOURS]
    return rows


def op_features(environment: Environment) -> Floats:
    """Type, output shapes and neighbours of each unit (U, 46)."""
    kind = kind_counts(environment).argmax(axis=1)
    parts = [kind[:, None], output_shapes(environment), neighbours(environment)]
    return np.concatenate(parts, axis=1).astype(np.float64)


def group_features(environment: Environment, groups: Ints, num_groups: int) -> Floats:
    """Features of each group (G, 2 G + T + 25) for the groups (U,) of units.

    Edges to and from each group, those inside included, counts of types, and summed shapes; each
    row is divided by its largest number and 1.
    """
    edges = environment.edges
    between = np.zeros((num_groups, num_groups))
    np.add.at(between, (groups[edges.source], groups[edges.target]), 1.0)
    own = summed_features(environment)
    inside = np.zeros((num_groups, own.shape[1]))
    np.add.at(inside, groups, own)
    rows = np.concatenate([between, between.T, inside], axis=1)
    scaled: Floats = rows / (rows.max(axis=1, keepdims=True) + 1.0)
    return scaled


def summed_features(environment: Environment) -> Floats:
    """What groups add up over their units (U, T + 25): types and shapes, 0 where there is none."""
    shapes = np.maximum(output_shapes(environment), 0.0)
    return np.concatenate([kind_counts(environment), shapes], axis=1)


def summed_axis(environment: Environment) -> Axis:
    """Where the columns of `summed_features` stand in a policy's file."""
    return joined(kinds(kind_names(environment) or [""]), plain(NUM_OUTPUTS * NUM_SIZES))


def scaled_features(environment: Environment) -> Floats:
    """Features of units (U, F) in numbers of like size.

    Shares of the commonest types, logarithms of seconds on each device, of bytes in and out, of
    weights and of degrees (each with mean 0 and deviation 1 over the units), and waves over the
    unit's place in the order of units.
    """
    edges, num = environment.edges, environment.num_units
    counts = kind_counts(environment)
    common = _commonest(counts)
    shares = counts[:, common] / np.maximum(1.0, counts.sum(axis=1, keepdims=True))
    best_s = np.where(environment.allowed, environment.unit_s, np.inf).min(axis=1)
    best_s = np.where(np.isfinite(best_s), best_s, 0.0)
    unit_s = np.where(np.isfinite(environment.unit_s), environment.unit_s, best_s[:, None])
    sizes = [
        np.bincount(edges.source, edges.num_bytes, minlength=num),
        np.bincount(edges.target, edges.num_bytes, minlength=num),
        environment.size_bytes,
        np.bincount(edges.source, minlength=num),
        np.bincount(edges.target, minlength=num),
    ]
    floor_s = max(1e-12, float(unit_s.mean()) * 1e-3)
    logs = np.concatenate([np.log(unit_s + floor_s), np.log1p(np.stack(sizes, axis=1))], axis=1)
    logs = (logs - logs.mean(axis=0)) / np.maximum(1e-6, logs.std(axis=0))
    turns = np.arange(num)[:, None] / max(1, num) * 2.0 ** np.arange(NUM_WAVES) * np.pi
    return np.concatenate([shares, logs, np.sin(turns), np.cos(turns)], axis=1)


def scaled_axis(environment: Environment) -> Axis:
    """Where the columns of `scaled_features` stand in a policy's file."""
    names = kind_names(environment) or [""]
    common = [names[i] for i in _commonest(kind_counts(environment)).tolist()]
    return joined(kinds(common), devices(environment), plain(NUM_TOLD + 2 * NUM_WAVES))


def _commonest(counts: Floats) -> Ints:
    found: Ints = np.argsort(-counts.sum(axis=0), kind="stable")[:MOST_KINDS]
    return found
