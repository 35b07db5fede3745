"""What exporters have in common, and what they are given: a placed model, its prediction, a run."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from placement.constraints.fusion import mended
from placement.core.costs import ORIGINS
from placement.core.model import Model
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.core.timeline import Timeline
from placement.drawing.views import View
from placement.schedule.simulated import Simulated, simulate


@dataclass(frozen=True)
class Export:
    """One placement of one model, with all that a file about it may tell.

    `label` is what people call the placement. `measured` is the timeline of a run of it, where
    there is one, and `view` makes the picture of the graph that the formats with a picture draw.
    """

    model: Model
    problem: Problem
    placement: Placement
    label: str = ""
    measured: Timeline | None = field(default=None, kw_only=True)
    view: Callable[[], View] | None = field(default=None, kw_only=True)

    @cached_property
    def whole(self) -> Placement:
        """The placement with ops that run as one kernel on the device that most of them are on."""
        return mended(self.problem, self.placement)

    @cached_property
    def simulated(self) -> Simulated:
        """The prediction for `whole`.

        ValueError where the placement names devices that the machine does not have.
        """
        return simulate(self.problem, self.whole)

    @property
    def timelines(self) -> tuple[tuple[str, Timeline], ...]:
        """The predicted timeline and, where there is one, that of the run, with their titles."""
        origins = {"predicted": "Predicted", "measured": "Measured", "emulated": "Emulated"}
        found = (self.simulated.timeline, self.measured)
        return tuple((origins[t.origin], t) for t in found if t is not None)

    @property
    def costs(self) -> str:
        """Where predicted times come from, in plain words."""
        return ORIGINS[self.problem.costs.origin]


class Exporter(ABC):
    """A format that an `Export` is written in.

    One of several files has the suffix ".zip": it writes an archive where the path ends so, else a
    folder.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    summary: ClassVar[str]
    suffix: ClassVar[str]

    def missing(self, export: Export) -> str:
        """What this export lacks for the format, in one sentence; empty if nothing."""
        return ""

    def note(self, export: Export) -> str:
        """What a file of the format would leave out of this export, in a sentence."""
        return ""

    @abstractmethod
    def export(self, export: Export, path: Path) -> None:
        """Write the file; ValueError where it cannot be."""
