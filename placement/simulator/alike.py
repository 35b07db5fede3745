"""Devices that a path through the graph cannot tell apart, as one device of a smaller problem.

Sixteen hosts of one kind have few kinds of device. Two devices are in one class if they compute the
same kernels in the same times, and have links of each kind from and to equally many devices of
every class: the coarsest such classes are found by refining coarser ones until they hold (colour
refinement; Paige and Tarjan, "Three partition refinement algorithms", SIAM J. Computing 16(6),
1987). Whatever is worked out for a device from its own times, its links and the same of all others,
never mind which of a class they are, is one number for all devices of a class. Paths wait for no
link, so it does not matter to them which links lie on one network card; `alone_alike` tells that
apart, too.
"""

from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from placement.core.costs import Floats
from placement.core.graph import Ints
from placement.core.problem import Problem
from placement.simulator.flat import Flat, flatten


class Classes(NamedTuple):
    """The class of each device (D,), and the first device of each class (C,), which are in order;
    devices of a class are alike."""

    of_device: Ints
    first: Ints

    @property
    def sizes(self) -> Ints:
        """Devices of each class (C,)."""
        return np.bincount(self.of_device, minlength=self.first.size)


class Quotient(NamedTuple):
    """A problem with one device for each class, and the class of each device (D,)."""

    flat: Flat
    of_device: Ints


def numbered(looks: Iterable[Hashable]) -> Classes:
    """Classes of what looks the same, in the order in which they are met."""
    number: dict[Hashable, int] = {}
    of_device = np.array([number.setdefault(look, len(number)) for look in looks], dtype=np.int64)
    return Classes(of_device, np.unique(of_device, return_index=True)[1])


def alike_rows(rows: Floats) -> Classes:
    """Classes of equal rows (D, N)."""
    return numbered(row.tobytes() for row in np.ascontiguousarray(rows))


def classes_of(problem: Problem, apart: Iterable[int] = ()) -> Classes:
    """The coarsest classes of devices in which the host and those named `apart` are alone."""
    flat = flatten(problem)
    alone = {flat.host, *apart}
    times, allowed = (np.ascontiguousarray(a.T) for a in (flat.compute_s, flat.allowed))
    looks = numbered(
        (
            d if d in alone else -1,
            bool(flat.on_host[d]),
            float(flat.call_s[d]),
            times[d].tobytes(),
            allowed[d].tobytes(),
        )
        for d in range(problem.num_devices)
    )
    return _refined(looks, _link_kinds(flat))


def alone_alike(problem: Problem, apart: Iterable[int]) -> Classes:
    """Classes of devices that do the same for a step whose work is on one of them and on the host
    and those `apart`: links among these share the same channels, too, and nobody's turn differs."""
    flat, classes = flatten(problem), classes_of(problem, apart)
    if not flat.shares_channels:
        return classes
    alone = np.array(sorted({flat.host, *apart} - {-1}), dtype=np.int64)
    channel = flat.channel.reshape(problem.num_devices, -1)
    common = set(channel[np.ix_(alone, alone)].ravel().tolist())

    def queues(d: int) -> Hashable:
        own = [*channel[d, alone].tolist(), *channel[alone, d].tolist()]
        shared = tuple(c if c in common else ~own.index(c) for c in own)
        # Of what is sent by one channel at the same time a device's number tells who is first.
        return shared, int((alone < d).sum())

    return numbered(
        (c, () if d in alone else queues(d)) for d, c in enumerate(classes.of_device.tolist())
    )


def _link_kinds(flat: Flat) -> Ints:
    """A number for each pair of devices (D, D): equal for equal links, one of its own for a device
    and itself, and others for two devices with one engine."""
    kinds: Ints = np.zeros(flat.move_s.shape, dtype=np.int64)
    for figures in (flat.move_s, flat.s_per_byte, *flat.overhead):
        different, kind = np.unique(figures, return_inverse=True)
        kinds = kinds * different.size + kind.reshape(kinds.shape)
    kinds = 2 * kinds + (flat.engine[:, None] == flat.engine)
    np.fill_diagonal(kinds, kinds.max(initial=0) + 1)
    return kinds


def _refined(classes: Classes, kinds: Ints) -> Classes:
    """The coarsest classes within these that links do not tell apart."""
    num_kinds = int(kinds.max(initial=0)) + 1
    while classes.first.size < classes.of_device.size:
        there = classes.of_device * num_kinds
        rows = (
            classes.of_device[:, None],
            np.sort(there + kinds, axis=1),
            np.sort(there + kinds.T, axis=1),
        )
        finer = numbered(row.tobytes() for row in np.concatenate(rows, axis=1))
        if finer.first.size == classes.first.size:
            return classes
        classes = finer
    return classes


_known: WeakKeyDictionary[Problem, Quotient] = WeakKeyDictionary()


def quotient(problem: Problem) -> Quotient:
    """The problem with one device for each class, for paths; worked out once.

    A value that comes from a class comes over the best link from any device of it, or over none
    from the device itself. Where the best link of two classes depends on a value's size the
    problem stays as it is.
    """
    if problem not in _known:
        _known[problem] = _quotient(problem)
    return _known[problem]


def _quotient(problem: Problem) -> Quotient:
    flat, classes = flatten(problem), classes_of(problem)
    own = np.arange(problem.num_devices)
    found = _best_links(flat, classes) if classes.first.size < own.size else None
    if found is None:
        return Quotient(flat, own)
    first, of_device = classes.first, classes.of_device
    by_device: dict[str, Any] = {
        name: np.ascontiguousarray(getattr(flat, name)[first])
        for name in ("call_s", "on_host", "wide", "limit_bytes")
    }
    places: dict[str, Any] = {
        name: of_device[getattr(flat, name)[first]]
        for name in ("engine", "values_in", "weights_in")
    }
    fewer = flat._replace(
        compute_s=np.ascontiguousarray(flat.compute_s[:, first]),
        allowed=np.ascontiguousarray(flat.allowed[:, first]),
        move_s=found[0],
        s_per_byte=found[1],
        overhead=np.zeros((2, *found[0].shape)),
        has_overhead=False,
        way_s=found[0],
        way_s_per_byte=found[1],
        host=int(of_device[flat.host]) if flat.host >= 0 else -1,
        **by_device,
        **places,
    )
    return Quotient(fewer, of_device)


def _best_links(flat: Flat, classes: Classes) -> tuple[Floats, Floats] | None:
    """Latency and seconds per byte (C, C) of the best links between classes; None where a link has
    the least of the one and another the least of the other."""
    by_class = np.argsort(classes.of_device, kind="stable")
    begins = np.flatnonzero(np.diff(classes.of_device[by_class], prepend=-1))
    move_s = flat.move_s[by_class][:, classes.first]
    s_per_byte = flat.s_per_byte[by_class][:, classes.first]
    least_move_s = np.minimum.reduceat(move_s, begins)
    least_s_per_byte = np.minimum.reduceat(s_per_byte, begins)
    sizes = classes.sizes
    is_best = move_s == np.repeat(least_move_s, sizes, axis=0)
    is_best &= s_per_byte == np.repeat(least_s_per_byte, sizes, axis=0)
    attained = np.logical_or.reduceat(is_best, begins)
    # Inside a class a value may stay where it is.
    np.fill_diagonal(attained, True)
    if not attained.all():
        return None
    for least in (least_move_s, least_s_per_byte):
        np.fill_diagonal(least, 0.0)
    return least_move_s, least_s_per_byte
