"""Programs of one schedule, one for each sample in flight, with the lanes of this process."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from profiling.devices.lanes import Lane
from profiling.devices.stream_lanes import Ran, StreamLanes

if TYPE_CHECKING:
    from profiling.backends.base import Program


class RingLanes:
    """See `profiling.backends.base.Streamed`; sample n has program n modulo their number."""

    def __init__(
        self,
        programs: Sequence["Program"],
        lanes: Sequence[Lane],
        stage_of: Sequence[int],
        watched: range,
    ) -> None:
        self._programs = tuple(programs)
        self._lanes = StreamLanes(
            programs[0].pinned(lanes),
            stage_of,
            len(programs),
            lambda segment, slot: programs[slot].run(segment),
            native=[p.native for p in programs if p.native is not None],
            watched=watched,
        )

    @property
    def ran(self) -> list[Ran]:
        return self._lanes.ran

    @property
    def busy_s(self) -> dict[str, list[float]]:
        return self._lanes.busy_s

    def begin(self, sample: int, feed: int) -> None:
        self._of(sample).feed(feed)
        self._lanes.begin(sample)

    def end(self, limit: int) -> None:
        self._lanes.end(limit)

    def completed_s(self, sample: int, timeout_s: float) -> float:
        try:
            return self._lanes.completed_s(sample, timeout_s)
        except TimeoutError:
            self._of(sample).stop()
            raise

    def outputs(self, sample: int) -> dict[str, Any]:
        return self._of(sample).views()

    def close(self) -> bool:
        return self._lanes.close()

    def _of(self, sample: int) -> "Program":
        return self._programs[sample % len(self._programs)]
