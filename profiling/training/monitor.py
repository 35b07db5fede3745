"""Watching a machine while it trains: has a device, an op or a link become slower for good?

Two signals, because neither is enough alone. The times of segments against what the profile says
come free with every step; but they know nothing of idle devices, and a thread that mostly waits is
served at once even on a core that another process keeps busy, so they miss half of what goes on.
Probes, a fixed piece of work on every core now and then, are true but cost time. So segments raise
the suspicion, fresh probes say which device it is, and what a probe has found only a probe ends.
Segments and links that have become slow alone stand apart (`parts.py`).

Medians over a window, a dead band, a number of steps in a row and a pause after every decision keep
noise from deciding anything.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from placement.advice.replacing import Slowdown, unslowed, updated
from placement.core.costs import Floats
from placement.core.decoding import shown
from placement.core.formatting import counted
from placement.core.problem import Problem
from placement.core.schedule import Schedule
from profiling.devices.lanes import Step
from profiling.training.parts import Bools, Change, LinkChange, Parts, median
from profiling.training.readings import Reader, Reading


@dataclass(frozen=True, kw_only=True)
class Watch:
    """How patient the monitor is, in steps unless it says otherwise.

    The first `skip` steps of a placement are not looked at, the next `settle` say what is usual for
    it. A change is a median over `window` that is off by more than `band` (0.25: a quarter slower,
    or as much faster) for `patience` steps in a row. After a decision there is none for `pause`
    steps, but for a larger change. The last `glance` probes of a device may raise a suspicion,
    `probes` fresh ones decide.
    """

    skip: int = 3
    settle: int = 15
    window: int = 7
    band: float = 0.25
    patience: int = 3
    pause: int = 40
    glance: int = 3
    probes: int = 5


@dataclass(frozen=True, eq=False)
class Drift:
    """Devices whose speed has changed: `factor` (D,) on their seconds since the last drift; or
    `parts` of the placement that have changed alone."""

    factor: Floats
    by_probe: tuple[bool, ...]
    parts: tuple[Change, ...] = ()

    @property
    def size(self) -> float:
        """The largest change, up or down: 0.7 for twice or half as long."""
        factors = np.append(self.factor, [part.factor for part in self.parts])
        return float(np.abs(np.log(factors)).max())


def in_words(problem: Problem, drift: Drift) -> str:
    """A drift in a sentence for people."""
    devices = [device.name for device in problem.machine.devices]
    changed = [
        (name, factor)
        for name, factor in zip(devices, drift.factor.tolist(), strict=True)
        if factor != 1.0
    ]
    largest = sorted(drift.parts, key=lambda part: -abs(np.log(part.factor)))
    changed += [(_part_in_words(problem, part), part.factor) for part in largest[:MOST_TOLD]]
    said = [
        f"{name} takes {factor:.1f} times as long as before"
        if factor > 1.0
        else f"{name} is {1 / factor:.1f} times as fast as before"
        for name, factor in changed
    ]
    if len(largest) > MOST_TOLD:
        said.append(f"{counted(len(largest) - MOST_TOLD, 'other part')} changed too")
    return " and ".join(said)


def _part_in_words(problem: Problem, part: Change) -> str:
    devices = [device.name for device in problem.machine.devices]
    if isinstance(part, LinkChange):
        return f"handing over from {devices[part.src]} to {devices[part.dst]}"
    first, last = (shown(problem.kernels.ops[part.kernels[end]].name) for end in (0, -1))
    named = first if len(part.kernels) == 1 else f"what runs from {first} to {last}"
    return f"{named} on {devices[part.device]}"


# Of single segments and links that have changed, so many are named.
MOST_TOLD = 3
# Up to so much of a settled placement's time, against the profile, is put down to the placement.
USUAL = (0.5, 2.0)
# What of a device's time must overlap with others' for their slowing each other to be seen.
MIN_OVERLAP = 0.2
MOST_CONTENTION = 2.0
# A factor this near to one is one.
SNAP = 0.15
# Probes of undisturbed devices of a kind that say what is usual for it.
MANY_PROBES = 60


class Monitor:
    """Running estimates of one training run; knows no clock, only what it hears."""

    def __init__(self, problem: Problem, watch: Watch | None = None) -> None:
        self._problem, self.watch = problem, watch or Watch()
        num = problem.num_devices
        self._by_segments, self._by_probes = np.ones(num), np.ones(num)
        self._parts = Parts(problem)
        self.link, self.contention = 1.0, problem.costs.contention
        self._calm_contention = problem.costs.contention
        self._probed_s: list[deque[float]] = [deque(maxlen=self.watch.probes) for _ in range(num)]
        self._calm_s: dict[object, deque[float]] = {}
        self._number, self._decided_at, self._decided_size = 0, -self.watch.pause, 0.0
        self._asked_at = -self.watch.pause

    def begin(self, schedule: Schedule) -> None:
        """A placement takes over; what is usual for it is not known yet."""
        known = replace(
            unslowed(self._problem), kernels=self._parts.kernels, links=self._parts.links
        )
        self._reader = Reader(updated(self._problem, known), schedule)
        self._parts.begin(schedule, self._reader)
        self._settling: list[Reading] = []
        self._recent: deque[Reading] = deque(maxlen=self.watch.window)
        self._usual: Floats | None = None
        self._in_a_row = np.zeros(self._problem.num_devices, dtype=np.int64)
        self._heard = 0

    @property
    def device(self) -> Floats:
        """Factors in use (D,) on what devices take, against the profile."""
        return self._by_segments * self._by_probes

    @property
    def slowdown(self) -> Slowdown:
        """The factors in use, by which the profile is brought up to date."""
        return Slowdown(
            self.device, self.link, self.contention, self._parts.kernels, self._parts.links
        )

    def hear(self, step: Step) -> None:
        """Take note of a step."""
        self._number += 1
        self._heard += 1
        if self._heard <= self.watch.skip:
            return
        reading = self._reader.read(step)
        if self._usual is None:
            self._settling.append(reading)
            if len(self._settling) == self.watch.settle:
                self._settle()
            return
        self._recent.append(reading)
        outside = self._outside(self._against_usual())
        self._in_a_row = np.where(outside, self._in_a_row + 1, 0)
        if len(self._recent) == self.watch.window:
            self._parts.hear(self._recent, self.device, self._steady)

    def hear_probe(self, seconds: Mapping[str, float]) -> None:
        """Take note of the seconds of the fixed piece of work, by device."""
        for i, device in enumerate(self._problem.machine.devices):
            if device.name in seconds:
                self._probed_s[i].append(seconds[device.name])
                if self._by_probes[i] == 1.0 and self._kind(i) in self._calm_s:
                    self._calm_s[self._kind(i)].append(seconds[device.name])
        for i, probed_s in enumerate(self._probed_s):
            # At first the fastest of a kind says what is usual: the others may be disturbed.
            known = self._calm_s.get(self._kind(i))
            if len(probed_s) == self.watch.probes and (
                known is None
                or (len(known) == self.watch.probes and np.median(probed_s) < np.median(known))
            ):
                self._calm_s[self._kind(i)] = deque(probed_s, MANY_PROBES)

    @property
    def suspects(self) -> bool:
        """Whether something looks changed, and it is time to ask the probes again."""
        if self._usual is None or self._number - self._asked_at < self.watch.window:
            return False
        off = self._outside(self._probed(self.watch.glance) / self._by_probes)
        return bool(
            (self._in_a_row >= self.watch.patience).any()
            or off.any()
            or self._parts.suspects(self.watch.patience)
        )

    def drift(self) -> Drift | None:
        """What has changed for good, after fresh probes; none for noise, or during the pause."""
        self._asked_at = self._number
        change = self._probed(self.watch.probes) / self._by_probes
        by_probe = self._outside(change)
        parts = self._changed_parts()
        if by_probe.any():
            found = Drift(np.where(by_probe, change, 1.0), tuple(by_probe.tolist()), parts)
        else:
            # What single segments take too long is theirs, and not their device's.
            rest = self._parts.rest(self._recent, self.device, parts) if parts else None
            ratio = self._against_usual() if rest is None else rest
            # Where probes say otherwise, segments must be off by more to be believed.
            probed = np.array([len(p) == self.watch.probes for p in self._probed_s])
            by_segments = (
                (self._in_a_row >= self.watch.patience)
                & self._outside(ratio)
                & ((ratio > 1.0) | (self._by_probes <= 1.0))
                & (~probed | self._outside(ratio, 2 * self.watch.band))
            )
            if not by_segments.any() and not parts:
                return None
            found = Drift(np.where(by_segments, ratio, 1.0), (False,) * len(ratio), parts)
        paused = self._number - self._decided_at < self.watch.pause
        return None if paused and found.size <= self._decided_size * 1.1 else found

    def accept(self, drift: Drift) -> None:
        """Bring the factors in use up to date with a drift, to decide something about it now.

        Whatever is decided, `begin` follows, for what is usual is then something else.
        """
        by_probe = np.array(drift.by_probe)
        self._by_probes *= np.where(by_probe, drift.factor, 1.0)
        self._by_segments *= np.where(by_probe, 1.0, drift.factor)
        self._parts.accept(drift.parts)
        for factors in (self._by_probes, self._by_segments):
            factors[np.abs(np.log(factors)) < np.log1p(SNAP)] = 1.0
        calm = bool((self.device == 1.0).all())
        self.contention = self._calm_contention if calm else self._contention(self._recent)
        if not drift.parts:
            self.link = 1.0 if calm else self._link(self._recent)
        self._decided_at, self._decided_size = self._number, drift.size

    def _settle(self) -> None:
        """What is usual for the placement: what its devices take, against the factors in use."""
        ratio = median([r.ratio for r in self._settling])
        probed = self._probed(self.watch.probes)
        # What probes show counts here already, though it is no drift yet; but not their noise.
        in_use = np.where(self._outside(probed / self._by_probes), probed, self._by_probes)
        expected = self._by_segments * in_use
        usual = np.clip(ratio / expected, *USUAL)
        self._usual = np.where(np.isnan(usual), 1.0, usual)
        self._parts.settle(self._settling, expected)
        self.contention = self._contention(self._settling, expected)
        self.link = self._link(self._settling)
        if (np.abs(np.log(expected)) < np.log1p(self.watch.band)).all():
            self._calm_contention = self.contention

    def _against_usual(self) -> Floats:
        """Median seconds (D,) by what is usual at the factors in use; 1 where too little is known.

        A drift that nobody has decided about shows here for as long as it lasts.
        """
        if self._usual is None or len(self._recent) < self.watch.window:
            return np.ones(self._problem.num_devices)
        ratio = median([r.ratio for r in self._recent]) / (self.device * self._usual)
        return np.where(np.isnan(ratio), 1.0, ratio)

    @property
    def _steady(self) -> Bools:
        """Devices (D,) that probes find undisturbed, or that cannot be probed."""
        undisturbed: Bools = self._by_probes == 1.0
        return undisturbed & ~self._outside(self._probed(self.watch.glance))

    def _changed_parts(self) -> tuple[Change, ...]:
        if self._usual is None or len(self._recent) < self.watch.window:
            return ()
        return self._parts.changes(self._recent, self.device, self._steady, self.watch.patience)

    def _probed(self, last: int) -> Floats:
        """Median seconds of the last probes (D,) by what is usual; 1 where too few are known."""
        found = np.ones(self._problem.num_devices)
        for i, probed_s in enumerate(self._probed_s):
            calm_s = self._calm_s.get(self._kind(i))
            if len(probed_s) == self.watch.probes and calm_s:
                found[i] = np.median(list(probed_s)[-last:]) / np.median(calm_s)
        return found

    def _outside(self, factor: Floats, band: float = 0.0) -> Bools:
        """Where a factor (D,) is outside the dead band around 1, or another band."""
        outside: Bools = np.abs(np.log(factor)) > np.log1p(band or self.watch.band)
        return outside

    def _contention(self, readings: Sequence[Reading], expected: Floats | None = None) -> float:
        """How much devices slow each other: what all of them take too long, by their overlap."""
        if not readings:
            return self.contention
        ratio = median([r.ratio for r in readings])
        overlap = median([r.overlap for r in readings])
        device = self.device if expected is None else expected
        busy = overlap > MIN_OVERLAP
        if busy.sum() < 2:
            return self.contention
        slower = (ratio[busy] / device[busy] - 1.0) / overlap[busy]
        return float(np.clip(slower.min(), 0.0, MOST_CONTENTION))

    def _link(self, readings: Sequence[Reading]) -> float:
        """Hand-overs against the profile; below one the profile stands."""
        waited = [r.hand_over for r in readings if r.hand_over is not None]
        return max(1.0, float(np.median(waited))) if waited else self.link

    def _kind(self, device: int) -> object:
        """Devices of one kind are as fast as each other when nothing disturbs them."""
        found = self._problem.machine.devices[device]
        return (found.provider, found.runtime) if found.on_host else found.name
