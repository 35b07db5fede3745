"""The verb `export`: a placed model in another format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placement.core.model import ContentElsewhereError
from placement.remote.calls import in_confinement

if TYPE_CHECKING:
    from placement.core.model import Model
    from placement.core.placement import Placement
    from placement.core.problem import Problem
    from placement.core.timeline import Timeline
    from placement.drawing.views import View


def list_exporters() -> list[dict[str, Any]]:
    """Every export format with its summary and the ending of its files."""
    from placement.exporters import exporters as known

    keys = ("name", "title", "summary", "suffix")
    return [{key: getattr(found, key) for key in keys} for found in known()]


def export(
    model: Model,
    problem: Problem,
    placement: Placement,
    format: str,
    path: str | Path,
    *,
    label: str = "",
    measured: Timeline | None = None,
    view: Callable[[], View] | None = None,
) -> str:
    """Write a placed model in another format; a ValueError lists the formats or says what lacks.

    What the format cannot tell of this placement is returned as a sentence. `label` is the
    placement's name, `measured` the timeline of a run of it, and `view` makes the picture for
    formats that are one, by default as the studio draws a graph at first sight.
    """
    from placement.exporters import Export, exporter, write

    placement.require_graph(model.graph)
    made = Export(
        model, problem, placement, label, measured=measured, view=view or _at_first_sight(model)
    )
    try:
        write(exporter(format), made, Path(path))
        return exporter(format).note(made)
    except ContentElsewhereError:
        about = (problem, placement, format)
        return _exported(model, *about, path=str(path), label=label, measured=measured)


def _at_first_sight(model: Model) -> Callable[[], View]:
    from placement.drawing.layout.expansion import default_expanded
    from placement.drawing.views import build_view

    return lambda: build_view(model.graph, default_expanded(model.graph))


@in_confinement(lambda: str, writes="path")
def _exported(
    model: Model,
    problem: Problem,
    placement: Placement,
    format: str,
    *,
    path: str,
    label: str,
    measured: Timeline | None,
) -> str:
    """The same for formats that are made of the model's content."""
    return export(model, problem, placement, format, path, label=label, measured=measured)


def export_notes(
    model: Model,
    problem: Problem,
    placement: Placement,
    format: str,
    view: Callable[[], View] | None = None,
) -> tuple[str, str]:
    """What a format says of a placement: what is missing for it, else what it would leave out."""
    from placement.exporters import Export, exporter

    found = exporter(format)
    made = Export(model, problem, placement, view=view)
    try:
        reason = found.missing(made)
        return reason, "" if reason else found.note(made)
    except ContentElsewhereError:
        return _noted(model, problem, placement, format)


@in_confinement(lambda: tuple[str, str])
def _noted(model: Model, problem: Problem, placement: Placement, format: str) -> tuple[str, str]:
    return export_notes(model, problem, placement, format)
