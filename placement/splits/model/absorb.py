"""Units without work join a neighbour, where no split can be better without.

Take a unit v without work, a neighbour w, and any split with v on device B and w on A. Moving v to
A makes every net that holds both cheaper or equal. A net of v without w may now be paid once more,
by A or by B; each of them saves the nets that hold v and w only. So v may join w when those cost
no less than all nets of v without w. A contiguous split stays one if w is v's only neighbour on
one side of the forward order, and memory is kept if v has no size or all sizes fit one accelerator.

Of two sums over the same device the longer never gets longer either, if one of them stays and the
other gets no longer: the same holds where transfers overlap compute. Where phases count apart it
must hold for the nets of each phase. With clusters it must hold for third devices, too, for which
a net may become slower when its maker v moves: so every net of v must have w, and those that v
makes must have nobody else. Where replicas exchange weights v must have no size.
"""

import numpy as np

from placement.core.costs import Floats
from placement.splits.model.instance import Bools, SplitInstance

_FEW_PINS = 8


class _Merging:
    """Classes by representative: members' sums, nets, and forward neighbours with closures."""

    def __init__(
        self, instance: SplitInstance, first: list[int], edges: list[tuple[int, int]] | None
    ) -> None:
        self.first = first
        self.members: dict[int, list[int]] = {}
        for c, f in enumerate(first):
            self.members.setdefault(f, []).append(c)
        sizes = instance.class_sums(instance.size_bytes)
        self.allowed: dict[int, list[bool]] = {}
        self.idle: set[int] = set()
        idle = _without_work(instance)
        for f, classes in self.members.items():
            self.allowed[f] = list(np.asarray(instance.allowed[classes].all(axis=0)))
            no_room = not sizes[classes].any()
            if instance.rules.sync_bytes_per_ms is None:
                no_room |= bool(sizes.sum() <= instance.limit_bytes)
            if no_room and idle[classes].all():
                self.idle.add(f)
        self._read_nets(instance)
        self.ordered = edges is not None
        self._read_order(edges or [])

    def _read_nets(self, instance: SplitInstance) -> None:
        class_of = instance.class_of.tolist()
        self.rules = instance.rules
        self.cost: list[float] = []
        self.pins: list[set[int]] = []
        self.late: list[bool] = []
        self.maker: list[int] = []
        self.nets: dict[int, list[int]] = {f: [] for f in self.members}
        for net, cost in enumerate(instance.net_cost_s.tolist()):
            nodes = instance.net_nodes[instance.net_ptr[net] : instance.net_ptr[net + 1]].tolist()
            pins = {self.first[class_of[node]] for node in nodes}
            if cost > 0 and len(pins) > 1:
                for f in sorted(pins):
                    self.nets[f].append(len(self.pins))
                self.pins.append(pins)
                self.cost.append(cost)
                self.late.append(bool(instance.backward[nodes[0]]))
                self.maker.append(class_of[nodes[0]])

    def _read_order(self, edges: list[tuple[int, int]]) -> None:
        """Neighbours on both sides, and all before and after each unit as bits."""
        self.before: dict[int, set[int]] = {f: set() for f in self.members}
        self.after: dict[int, set[int]] = {f: set() for f in self.members}
        for a, b in edges:
            if self.first[a] != self.first[b]:
                self.before[self.first[b]].add(self.first[a])
                self.after[self.first[a]].add(self.first[b])
        self.all_before = _closure(self.before, self.after)
        self.all_after = _closure(self.after, self.before)

    def candidates(self, v: int) -> list[int]:
        """Units that v may join as far as the forward order is concerned."""
        if not self.ordered:
            small = [self.pins[n] for n in self.nets[v] if len(self.pins[n]) <= _FEW_PINS]
            return sorted({w for pins in small for w in pins if w != v})
        sides = ((self.before[v], self.all_before), (self.after[v], self.all_after))
        return [w for near, closure in sides for w in _nearest(near, closure)]

    def may_join(self, v: int, w: int) -> bool:
        if any(b and not a for a, b in zip(self.allowed[v], self.allowed[w], strict=True)):
            return False
        nets = self.nets[v]
        if self.rules.has_clusters:
            return all(
                w in self.pins[n] and (len(self.pins[n]) == 2 or self.first[self.maker[n]] != v)
                for n in nets
            )
        if not self.rules.gpipe:
            return self._saves(v, w, nets)
        phases = ([n for n in nets if self.late[n] == late] for late in (False, True))
        return all(self._saves(v, w, some) for some in phases)

    def _saves(self, v: int, w: int, nets: list[int]) -> bool:
        """Whether some nets of v cost no more where v is with w."""
        saved = sum(self.cost[n] for n in nets if len(self.pins[n]) == 2 and w in self.pins[n])
        lost = sum(self.cost[n] for n in nets if w not in self.pins[n])
        return lost <= saved

    def join(self, v: int, w: int) -> None:
        """v becomes part of w; closures of others stay true (see the module's text)."""
        for c in self.members.pop(v):
            self.first[c] = w
            self.members[w].append(c)
        for n in self.nets.pop(v):
            self.pins[n].discard(v)
            if w not in self.pins[n]:
                self.pins[n].add(w)
                self.nets[w].append(n)
            if len(self.pins[n]) == 1:
                self.nets[w].remove(n)
        for near, far in ((self.before, self.after), (self.after, self.before)):
            for other in sorted(near.pop(v)):
                far[other].discard(v)
                if other != w:
                    far[other].add(w)
                    near[w].add(other)
        self.idle.discard(v)


def absorbed(
    instance: SplitInstance, first: list[int], edges: list[tuple[int, int]] | None
) -> list[int]:
    """Representative of each class after all units without work that may join another have.

    `first` is the representative so far; `edges` between classes order contiguous splits, None
    stands for splits in any order.
    """
    merging = _Merging(instance, list(first), edges)
    changed = True
    while changed:
        changed = False
        for v in sorted(merging.idle):
            w = next((w for w in merging.candidates(v) if merging.may_join(v, w)), None)
            if w is not None:
                merging.join(v, w)
                changed = True
    return merging.first


def _without_work(instance: SplitInstance) -> Bools:
    """Whether a class takes no time wherever it may be, (C,)."""
    acc, cpu = instance.class_sums(instance.acc_s), instance.class_sums(instance.cpu_s)
    return np.isin(acc, (0.0, np.inf)) & np.isin(cpu, (0.0, np.inf))


def without_room_at_ends(instance: SplitInstance) -> Floats:
    """Sizes (N,) with those of classes without work and without predecessors or successors zero.

    A relaxation for bounds: such classes then join others and leave fewer ideals.
    """
    has_input = np.zeros(instance.num_classes, dtype=np.bool_)
    has_output = np.zeros(instance.num_classes, dtype=np.bool_)
    for net in range(len(instance.net_cost_s)):
        start, end = instance.net_ptr[net], instance.net_ptr[net + 1]
        classes = instance.class_of[instance.net_nodes[start:end]]
        if (classes != classes[0]).any():
            has_output[classes[0]] = True
            has_input[classes[classes != classes[0]]] = True
    dropped = _without_work(instance) & ~(has_input & has_output)
    return np.where(dropped[instance.class_of], 0.0, instance.size_bytes)


def _closure(near: dict[int, set[int]], back: dict[int, set[int]]) -> dict[int, int]:
    """All units reached from each one along `near`, as bits of their numbers."""
    waiting = {f: len(others) for f, others in near.items()}
    ready = [f for f, count in waiting.items() if count == 0]
    reached = dict.fromkeys(near, 0)
    for f in ready:
        for other in sorted(back[f]):
            reached[other] |= reached[f] | 1 << f
            waiting[other] -= 1
            if waiting[other] == 0:
                ready.append(other)
    return reached


def _nearest(near: set[int], closure: dict[int, int]) -> list[int]:
    """The neighbour behind which all other neighbours lie, if there is one."""
    for w in sorted(near, key=lambda f: (-closure[f].bit_count(), f))[:1]:
        if all(o == w or closure[w] >> o & 1 for o in near):
            return [w]
    return []
