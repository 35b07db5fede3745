"""What exporters have in common, and what they are given: a placed model, its prediction, a run."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from placement.constraints.fusion import mended
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
        return self.problem.costs.origin_in_words


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


def without_content(model: Model, format: str, lacking: str) -> str:
    """Why a model has nothing to write in a format that is made of its content, empty if it has."""
    if model.executable is None:
        return (
            f"{model.graph.name!r} has no executable side (it is a graph with given costs), so"
            " there is no model to export; open a model file."
        )
    return "" if model.executable.format == format else f"{model.graph.name!r} is {lacking}."


def not_told_apart(name_of: Mapping[str, str], runtime: str) -> str:
    """Which devices are one device for another runtime, in a sentence; empty where each is its own.

    `name_of` leads from devices that the placement uses to what the runtime calls them.
    """
    groups: dict[str, list[str]] = {}
    for device, name in name_of.items():
        groups.setdefault(name, []).append(device)
    joined = [(name, devices) for name, devices in groups.items() if len(devices) > 1]
    said = [f"{' and '.join(devices)} are one device, {name}" for name, devices in joined]
    if not said:
        return ""
    return f"For {runtime} {'; '.join(said)}: the file does not tell apart what runs on which."
