"""Take a placed model along: every export format behind one button, and the picture as an image."""

import tempfile
from functools import cache, partial
from pathlib import Path
from typing import Any

import streamlit as st

import placement as pl
from pages.ui import canvas
from pages.ui.canvas import gestures
from pages.ui.session import choices
from pages.ui.session.current import snapshot, studio
from pages.ui.shell import glossary
from pages.ui.shell.messages import plain_errors
from placement.core.model import Model
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.core.timeline import Timeline
from placement.core.verb_options import ExportOptions, option_of
from placement.exporters import Exporter, exporter, exporters
from studio import standings
from studio.jobs import command_line, runs
from studio.project.file_cache import by_identity
from studio.project.store import Project
from studio.snapshot import Studio

ASSETS = Path(__file__).resolve().parents[3] / "assets" / "export"
# What is asked for most comes first; formats that are not named here follow by name.
FIRST = (
    "json",
    "split-onnx",
    "ort-layers",
    "openvino-hetero",
    "torch-step",
    "device-map",
    "html",
    "graph-svg",
    "timeline-svg",
    "csv",
    "timeline-csv",
    "chrome-trace",
    "perfetto-trace",
)
POLL_S = 2.0
SEVERAL = "Several files in one archive."
PNG_HELP = "The picture as it is on the screen now, with the colours' meaning below it."
MEASURED = "Formats with times also hold the newest run of exactly this placement, if there is one."

# By project and format; downloads are made in threads that have no session.
_refused: dict[tuple[str, str], str] = {}


@st.fragment(key="export")
@plain_errors()
def show() -> None:
    """The list of formats with its buttons, drawn where somebody has opened it."""
    box = st.expander("Export", key="export-open", on_change="rerun")
    if box.open:
        with box:
            _formats(studio())


def _formats(now: Studio) -> None:
    offered = {found.name: found for found in sorted(exporters(), key=_rank)}
    kept = choices.remembered("export-format", "")
    menu, save, image = st.columns([0.56, 0.22, 0.22], vertical_alignment="bottom")
    name = menu.selectbox(
        option_of(ExportOptions, "format").label,
        list(offered),
        index=list(offered).index(kept) if kept in offered else 0,
        key="export-format",
        format_func=lambda name: f"{offered[name].title} ({offered[name].suffix})",
        on_change=choices.remember("export-format", "export-format"),
        help=MEASURED,
    )
    found = offered[str(name)]
    expanded = gestures.opened_blocks(now.model.graph)
    reason, left_out = _said(found.name, now.model, now.problem, now.placement)
    save.download_button(
        "Download",
        data=partial(content, now.project, found.name, expanded),
        file_name=file_name(now, found),
        on_click="ignore",
        disabled=bool(reason),
        key=f"export-{found.name}",
        width="stretch",
        type="primary",
    )
    with image:
        _image_button(now)
    summary = f"{found.summary[:1].upper()}{found.summary[1:]}."
    st.caption(glossary.plain(summary) + (f" {SEVERAL}" if found.suffix == ".zip" else ""))
    if reason or left_out:
        st.info(glossary.plain(reason or left_out))
    _refusal(now.project.id, found.name)
    if reason:
        return
    st.caption("The same on the command line:")
    path = now.shelf.path(now.named.name)
    asked = ExportOptions(format=found.name, out=file_name(now, found))
    line = command_line.export(now, path, asked)
    st.code(command_line.text(line), language="bash", wrap_lines=True)


@by_identity(16)
def _said(format: str, model: Model, problem: Problem, placement: Placement) -> tuple[str, str]:
    """What a format says of a placement: what is missing, else what the file would leave out.

    That takes a look at every op, and is the same whichever blocks of the picture are open.
    """
    view = partial(canvas.build_view, model.graph, frozenset[str]())
    return pl.export_notes(model, problem, placement, format, view)


def _rank(found: Exporter) -> tuple[int, str]:
    return (FIRST.index(found.name) if found.name in FIRST else len(FIRST), found.name)


def file_name(now: Studio, found: Exporter) -> str:
    """Model, placement and format, in letters that every file system takes."""
    named = f"{now.model.graph.name}-{now.named.name}-{found.name}"
    safe = "".join(c if c.isalnum() or c in "-_." else "_" for c in named)
    return safe.encode("ascii", "ignore").decode()[-120:].lstrip("._-") + found.suffix


@st.fragment(run_every=POLL_S)
def _refusal(project_id: str, format: str) -> None:
    """Why the last download of this format came to nothing; the browser tells only that it did."""
    reason = _refused.get((project_id, format))
    if reason:
        st.error(glossary.plain(reason))


def content(project: Project, format: str, expanded: frozenset[str]) -> bytes:
    """The file's bytes, made when somebody asks for them; a refusal is kept to be shown."""
    _refused.pop((project.id, format), None)
    try:
        return _content(project, format, expanded)
    except (ValueError, MemoryError) as error:
        _refused[project.id, format] = str(error) or "There is not enough memory for this file."
        raise
    except OSError as error:
        _refused[project.id, format] = f"The file was not made: {error.strerror or error}."
        raise


def _content(project: Project, format: str, expanded: frozenset[str]) -> bytes:
    """Made outside of a session, so from what is on disk."""
    now = snapshot(project)
    current = now.shelf.current
    if current is None:
        raise ValueError("There is no placement to export; place the model first.")
    placement = standings.placement_of(now, current.name)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"export{exporter(format).suffix}"
        pl.export(
            now.model,
            now.problem,
            placement,
            format,
            path,
            label=current.name,
            measured=measured(now, placement),
            view=partial(canvas.build_view, now.model.graph, expanded, aspect=choices.ASPECT),
        )
        return path.read_bytes()


def measured(now: Studio, placement: Placement) -> Timeline | None:
    """The timeline of the newest run of this very placement."""
    job = runs.of_placement(runs.made_here(now), placement)
    return None if job is None or job.ran is None else job.ran.timeline


def _image_button(now: Studio) -> None:
    """A button that lets the browser save what the canvas shows."""
    title = f"{now.model.graph.name} on {now.machine.name}, placement {now.named.name}"
    name = file_name(now, exporter("graph-svg")).removesuffix("-graph-svg.svg")
    _image()(key="export-image", data={"title": title, "file": f"{name}.png", "help": PNG_HELP})


@cache
def _image() -> Any:
    return st.components.v2.component(
        "placement_export_image",
        html='<button type="button">Picture as PNG</button><p role="status"></p>',
        css=(ASSETS / "image.css").read_text(encoding="utf-8"),
        js=(ASSETS / "image.js").read_text(encoding="utf-8"),
    )
