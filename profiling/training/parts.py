"""Single segments and links that have become slower or faster than the rest of a placement.

A device's factor is the same for all that it computes. But one op may become slow alone: a unit for
wide vectors that is throttled, a page that has to be fetched back. Its segment then stands out from
the others on its device, while the probes of the device find nothing. The kernels of that segment
get a factor on that device, which stays when they have moved away, for nobody measures them there
any more. Hand-overs are told apart by the two devices between which they go.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from placement.core.costs import Floats
from placement.core.problem import Problem
from placement.core.schedule import Schedule
from profiling.training.readings import Reader, Reading

Bools = NDArray[np.bool_]

# A device needs so many segments for one of them to stand out from the others.
MIN_SEGMENTS = 3
# What a change costs or gives back, as a share of the step, for it to matter.
MIN_SHARE = 0.05
# A part is noisier than a device: so much longer (0.5: half), or as much shorter, is a change.
BAND = 0.5
NEARLY_ALL = (1 / 6, 0.5, 5 / 6)
# Up to so much of what settled is put down to the placement; small segments are far off at times.
USUAL = (0.25, 4.0)


@dataclass(frozen=True)
class SegmentChange:
    """The kernels (indices) of a segment on a device that take `factor` times as long as before."""

    kernels: tuple[int, ...]
    device: int
    factor: float


@dataclass(frozen=True)
class LinkChange:
    """Hand-overs from one device to another that take `factor` times as long as before."""

    src: int
    dst: int
    factor: float


Change = SegmentChange | LinkChange


class Parts:
    """Running estimates by kernel and device, and by link, as `kernels` (K, D), `links` (D, D)."""

    def __init__(self, problem: Problem) -> None:
        num = problem.num_devices
        self._problem = problem
        self.kernels, self.links = np.ones((len(problem.kernels.ops), num)), np.ones((num, num))

    def begin(self, schedule: Schedule, reader: Reader) -> None:
        """A placement takes over, whose steps the reader compares with the estimates in use."""
        index = self._problem.kernels.index
        self._segments = [tuple(index[k] for k in segment.kernels) for segment in schedule.segments]
        self._reader = reader
        self._usual: tuple[Floats, Floats] | None = None
        self._off = np.zeros(len(self._segments), dtype=np.int64), np.zeros(self.links.shape)

    def settle(self, readings: Sequence[Reading], device: Floats) -> None:
        """Take what devices (D,) do not explain in these steps as usual for the placement."""
        segments = median([r.segments for r in readings]) / device[self._reader.device]
        links = median([r.links for r in readings])
        self._usual = (
            np.clip(np.nan_to_num(segments, nan=1.0), *USUAL),
            np.maximum(np.nan_to_num(links, nan=1.0), 1.0),
        )

    def hear(self, readings: Sequence[Reading], device: Floats, steady: Bools) -> None:
        """Look at the last steps; `steady` (D,) are devices that nothing else disturbs."""
        segments, links = self._now(readings, device, steady)
        for off, now in zip(self._off, (segments, links), strict=True):
            off[...] = np.where(now != 1.0, off + 1, 0)

    def suspects(self, patience: int) -> bool:
        """Whether something has stood out for so many steps in a row."""
        return any(bool((off >= patience).any()) for off in self._off)

    def changes(
        self, readings: Sequence[Reading], device: Floats, steady: Bools, patience: int
    ) -> tuple[Change, ...]:
        """What stands out now and has done so for a while."""
        segments, links = self._now(readings, device, steady)
        found: list[Change] = [
            SegmentChange(self._segments[s], int(self._reader.device[s]), float(segments[s]))
            for s in np.flatnonzero((segments != 1.0) & (self._off[0] >= patience))
        ]
        for src, dst in np.argwhere((links != 1.0) & (self._off[1] >= patience)).tolist():
            found.append(LinkChange(src, dst, float(links[src, dst])))
        return tuple(found)

    def rest(
        self, readings: Sequence[Reading], device: Floats, changes: Sequence[Change]
    ) -> Floats:
        """How much longer than usual (D,) devices take for all but the segments that changed."""
        assert self._usual is not None
        of = self._reader.device
        changed = {c.kernels for c in changes if isinstance(c, SegmentChange)}
        other = np.array([segment not in changed for segment in self._segments])
        ratios = median([r.segments for r in readings])
        other &= ~np.isnan(ratios)
        usual_s = (self._reader.segments_s * device[of] * self._usual[0])[other]
        measured_s = (self._reader.segments_s * ratios)[other]
        found = np.ones(len(device))
        for d in np.unique(of[other]).tolist():
            found[d] = measured_s[of[other] == d].sum() / usual_s[of[other] == d].sum()
        return found

    def accept(self, changes: Sequence[Change]) -> None:
        """Bring the estimates up to date; nothing becomes faster than the profile says."""
        self.kernels, self.links = self.kernels.copy(), self.links.copy()
        for change in changes:
            if isinstance(change, SegmentChange):
                cells = np.ix_(change.kernels, (change.device,))
                self.kernels[cells] = np.maximum(self.kernels[cells] * change.factor, 1.0)
            else:
                cell = change.src, change.dst
                self.links[cell] = max(self.links[cell] * change.factor, 1.0)

    def _now(
        self, readings: Sequence[Reading], device: Floats, steady: Bools
    ) -> tuple[Floats, Floats]:
        """Factors on segments (S,) and links (D, D) against what is usual, 1 for what is not told
        from noise, from its device, or would not be felt in the step."""
        assert self._usual is not None
        usual, usual_links = self._usual
        reader = self._reader
        usual_s = reader.segments_s * device[reader.device] * usual
        segments = np.array([r.segments for r in readings]) / (device[reader.device] * usual)
        for d, is_steady in enumerate(steady.tolist()):
            own = np.flatnonzero((reader.device == d) & ~np.isnan(segments[0]))
            if is_steady and len(own) >= MIN_SEGMENTS:
                segments[:, own] /= np.median(segments[:, own], axis=1, keepdims=True)
            else:
                segments[:, own] = 1.0
        links = np.array([r.links for r in readings]) / usual_links
        # What is found to be quicker must be something that was slow.
        was_slow = np.array([self.kernels[list(ks), d].max() > 1.0 for ks, d in self._places()])
        by_segment, by_link = _steady(segments, was_slow), _steady(links, self.links > 1.0)
        felt_s = MIN_SHARE * float(np.median([r.step_s for r in readings]))
        segments_felt = np.abs(by_segment - 1.0) * usual_s > felt_s
        links_felt = np.abs(by_link - 1.0) * reader.links_s * usual_links > felt_s
        return (
            np.where(segments_felt, by_segment, 1.0),
            np.where(links_felt & np.outer(steady, steady), by_link, 1.0),
        )

    def _places(self) -> list[tuple[tuple[int, ...], int]]:
        return list(zip(self._segments, self._reader.device.tolist(), strict=True))


def _steady(ratios: Floats, was_slow: Bools) -> Floats:
    """Medians over the first axis where nearly all ratios are outside the dead band, on one side;
    elsewhere 1. A median alone is off at times where there are many parts."""
    low, middle, high = np.quantile(np.nan_to_num(ratios, nan=1.0), NEARLY_ALL, axis=0)
    changed = (low > 1.0 + BAND) | ((high < 1.0 / (1.0 + BAND)) & was_slow)
    return np.where(changed, middle, 1.0)


def median(rows: Sequence[Floats]) -> Floats:
    """Median over rows, nan where something is unknown in most of them."""
    found = np.array(rows)
    filled = np.where(np.isnan(found), np.inf, found)
    medians = np.median(filled, axis=0)
    return np.where(np.isinf(medians), np.nan, medians)
