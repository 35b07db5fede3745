"""Equal devices: which may exchange their names, and how two placements differ up to that.

Devices are equal where a problem stays what it is when they exchange their names: memory, kind, the
times of every kernel, the links to all others, which links share a network card, and what pins
allow. Such exchanges are the automorphisms of machine and costs. Two devices are twins if
exchanging just them is one; twins form classes in which any exchange is one; what remains are
exchanges of whole classes, such as two pairs of GPUs with a fast link inside each. Inside classes
the best names are an assignment problem, over classes they are searched. What is sent by one card
at the same moment goes in the order of devices, so there alone names may matter to a step.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from placement.core.costs import Costs, Floats
from placement.core.graph import Ints
from placement.core.placement import Placement
from placement.core.problem import Problem

# Exchanges of whole classes that are looked at; few machines have more than a handful.
MOST_EXCHANGES = 20_000


@dataclass(frozen=True)
class Symmetry:
    """Classes of twins, all devices in one each, and the classes that each might stand for."""

    classes: tuple[tuple[int, ...], ...]
    images: tuple[tuple[int, ...], ...]

    @property
    def is_trivial(self) -> bool:
        """Whether no two devices are equal."""
        return all(len(members) == 1 for members in self.classes) and all(
            image == (c,) for c, image in enumerate(self.images)
        )


_known: WeakKeyDictionary[Problem, Symmetry] = WeakKeyDictionary()


def symmetry_of(problem: Problem) -> Symmetry:
    """Which devices of a problem are equal; found once."""
    if problem not in _known:
        looks = _looks(problem)
        classes = _twins(problem, looks)
        _known[problem] = Symmetry(classes, _images(problem, looks, classes))
    return _known[problem]


def renaming(problem: Problem, here: Placement, there: Placement) -> dict[str, str]:
    """New names for equal devices of `there`, so that it differs from `here` in as few ops as can.

    Only devices that get another name are listed; of equally good names the present ones stay.
    """
    if symmetry_of(problem).is_trivial:
        return {}
    names = [d.name for d in problem.machine.devices]
    new = _best_names(problem, _overlap(problem, here, there))
    return {names[a]: names[b] for a, b in enumerate(new.tolist()) if a != b}


def aligned(problem: Problem, here: Placement, there: Placement) -> Placement:
    """The second placement with equal devices named so that it differs least from the first."""
    return with_names(there, renaming(problem, here, there))


def with_names(placement: Placement, new: Mapping[str, str]) -> Placement:
    """The placement with some devices under other names; calls and replicas go with them."""
    if not new:
        return placement
    calls, replicas = (
        counts and {new.get(d, d): n for d, n in counts.items()}
        for counts in (placement.calls, placement.replicas)
    )
    device_of = {op: new.get(d, d) for op, d in placement.device_of.items()}
    return replace(placement, device_of=device_of, calls=calls, replicas=replicas)


def num_changed(problem: Problem, here: Placement, there: Placement) -> int:
    """Ops that are on another device, but for the names of equal devices."""
    after = aligned(problem, here, there).device_of
    return sum(after[op] != device for op, device in here.device_of.items())


def _overlap(problem: Problem, here: Placement, there: Placement) -> Ints:
    """Ops (D, D) by their device there, row, and here, column."""
    index, num = problem.machine.index, problem.num_devices
    pairs = [index[there.device_of[op]] * num + index[d] for op, d in here.device_of.items()]
    counts: Ints = np.bincount(np.array(pairs, dtype=np.int64), minlength=num * num)
    return counts.reshape(num, num)


def _looks(problem: Problem) -> list[Any]:
    """What equal devices share on their own, hashable, by device.

    The host is where inputs start and outputs end: no other device is like it, unless all compute
    in its memory and nothing of this crosses a link. Accelerators of different clusters exchange no
    names.
    """
    from placement.simulator.call_costs import clusters_of
    from placement.simulator.lowering import host_of

    cluster_of = clusters_of(problem).tolist()
    costs, devices = problem.costs, problem.machine.devices
    host = -1 if all(d.on_host for d in devices) else host_of(problem)
    return [
        (
            (device.kind, device.runtime, device.provider, device.memory_bytes, d == host),
            cluster_of[d],
            np.ascontiguousarray(costs.compute_s[:, d]).tobytes(),
            float(costs.call_s[d]),
            np.ascontiguousarray(problem.allowed[:, d]).tobytes(),
        )
        for d, device in enumerate(devices)
    ]


def _twins(problem: Problem, looks: Sequence[Any]) -> tuple[tuple[int, ...], ...]:
    """Classes of devices of which any two may exchange their names alone."""
    links = _figures(problem.costs)

    def are_twins(a: int, b: int) -> bool:
        order = np.arange(problem.num_devices)
        order[[a, b]] = b, a
        return (
            looks[a] == looks[b]
            and all(_exchange(each, a, b) for each in links)
            and _keeps_cards(problem, order)
        )

    classes: list[list[int]] = []
    for d in range(problem.num_devices):
        found = next((members for members in classes if are_twins(members[0], d)), None)
        if found is None:
            classes.append([d])
        else:
            found.append(d)
    return tuple(map(tuple, classes))


def _figures(costs: Costs) -> tuple[Floats, ...]:
    """What is said of the links, each (D, D)."""
    return costs.latency_s, costs.s_per_byte, *costs.overhead


def _keeps_cards(problem: Problem, new: Ints) -> bool:
    """Whether links share a channel where they did when devices get new numbers (D,)."""
    machine = problem.machine
    if not (problem.link_contention and machine.shares_channels):
        return True
    channel = machine.channels.reshape(problem.num_devices, -1)
    both = np.unique(np.stack([channel, channel[np.ix_(new, new)]]).reshape(2, -1), axis=1)
    return all(np.unique(side).size == both.shape[1] for side in both)


def _exchange(links: Any, a: int, b: int) -> bool:
    """Whether links are the same when two devices exchange their names."""
    order = np.arange(len(links))
    order[[a, b]] = b, a
    return bool(
        (links[a] == links[b, order]).all()
        and (links[:, a] == links[order, b]).all()
        and links[a, b] == links[b, a]
    )


def _images(
    problem: Problem, looks: Sequence[Any], classes: Sequence[Sequence[int]]
) -> tuple[tuple[int, ...], ...]:
    """For each class those that look like it from themselves, itself first."""

    def look(members: Sequence[int]) -> tuple[Any, ...]:
        first, last = members[0], members[-1]
        inside = tuple(each[first, last] for each in _figures(problem.costs))
        return looks[first], len(members), inside

    seen = [look(members) for members in classes]
    alike: dict[tuple[Any, ...], list[int]] = {}
    for c, own in enumerate(seen):
        alike.setdefault(own, []).append(c)
    return tuple((c, *(i for i in alike[own] if i != c)) for c, own in enumerate(seen))


def _best_names(problem: Problem, overlap: Ints) -> Ints:
    """For each device the equal one whose name it gets, so that the overlap is the most."""
    found = symmetry_of(problem)
    # Equal overlaps are decided by the number of names that stay.
    worth = overlap * (overlap.shape[0] + 1) + np.eye(overlap.shape[0], dtype=np.int64)
    pairs = {
        (c, image): _assignment(worth, found.classes[c], found.classes[image])
        for c, images in enumerate(found.images)
        for image in images
    }
    gains = {both: sum(int(worth[a, b]) for a, b in names) for both, names in pairs.items()}
    best_images, best = tuple(range(len(found.classes))), -1
    for number, images in enumerate(_exchanges(problem, found)):
        gain = sum(gains[both] for both in enumerate(images))
        if gain > best and _keeps_cards(problem, _exchanged(found, images)):
            best_images, best = images, gain
        if number >= MOST_EXCHANGES:
            break
    new = np.arange(overlap.shape[0])
    for both in enumerate(best_images):
        for a, b in pairs[both]:
            new[a] = b
    return new


def _exchanges(problem: Problem, found: Symmetry) -> Iterator[tuple[int, ...]]:
    """Ways in which whole classes may stand for each other by their links' figures, the identity
    first."""
    first = [members[0] for members in found.classes]
    links = _figures(problem.costs)

    def agrees(images: tuple[int, ...], image: int) -> bool:
        c, to = first[len(images)], first[image]
        return image not in images and all(
            a[c, first[other]] == a[to, first[at]] and a[first[other], c] == a[first[at], to]
            for a in links
            for other, at in enumerate(images)
        )

    waiting: list[tuple[int, ...]] = [()]
    while waiting:
        images = waiting.pop()
        if len(images) == len(first):
            yield images
            continue
        further = [i for i in found.images[len(images)] if agrees(images, i)]
        waiting += [(*images, image) for image in reversed(further)]


def _exchanged(found: Symmetry, images: Sequence[int]) -> Ints:
    """New numbers of devices (D,) whose classes stand for others."""
    pairs = [
        both
        for members, image in zip(found.classes, images, strict=True)
        for both in zip(members, found.classes[image], strict=True)
    ]
    return np.array([image for _, image in sorted(pairs)], dtype=np.int64)


def _assignment(worth: Ints, rows: Sequence[int], columns: Sequence[int]) -> list[tuple[int, int]]:
    """Each row with a column of its own, so that what the pairs are worth is the most."""
    if len(rows) == 1:
        return [(rows[0], columns[0])]
    import networkx as nx

    graph = nx.Graph()
    graph.add_weighted_edges_from(
        ((0, a), (1, b), int(worth[a, b])) for a in rows for b in columns if worth[a, b] > 0
    )
    edges = (sorted(edge) for edge in nx.max_weight_matching(graph))
    names = {a: b for (_, a), (_, b) in edges}
    free = [b for b in columns if b not in names.values()]
    return [(a, names[a] if a in names else free.pop(0)) for a in rows]
