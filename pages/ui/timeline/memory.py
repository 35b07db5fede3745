"""Memory over time: what each device holds while a step runs, with its limit."""

import html
from collections.abc import Iterable, Mapping, Sequence

import plotly.graph_objects as go
import streamlit as st
from plotly.subplots import make_subplots

from pages.ui.panels import charts
from pages.ui.session import cache
from pages.ui.shell import glossary
from pages.ui.timeline import timelines
from pages.ui.timeline.timelines import Measured
from placement.core import formatting
from placement.core.objective import Objective
from placement.simulator.simulate import MemoryCurve
from studio.snapshot import Studio

LIMIT_COLOUR = "#e5484d"
ROW_HEIGHTS_PX = {1: 150, 2: 130, 3: 110}
ROW_HEIGHT_PX = 84
# A limit further above the peak than this would press the curve flat.
FAR = 3.0
# One of these fits the largest number on an axis.
SIZES = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B"))
LEGEND = (
    "Weights, scratch space and every value from when it is made or received until its last reader"
    " and its last transfer are done. What a device needs is counted call after call, in the"
    " schedule's order, and held against its limit, here and everywhere. The curve is the same over"
    " predicted time: where devices compute side by side it may rise a little more or less."
)


def show(now: Studio, run: Measured | None) -> None:
    """What each device needs, in words and over time; the fullest first, for few are in sight."""
    every = cache.memory(now.problem, now.placement)
    curves = fullest_first([curve for curve in every if curve.needed_bytes] or every[:1])
    lines = [told(curve) for curve in curves]
    empty = [glossary.plain(curve.device) for curve in every if curve not in curves]
    lines += [f"{', '.join(empty)}: nothing."] if empty else []
    used = {} if run is None else run.result.peak_bytes
    text, chart = st.columns([0.28, 0.72])
    text.markdown("  \n".join(lines), help=LEGEND)
    far = any(_is_far(curve) for curve in curves)
    whole = far and text.toggle(
        "Show up to the limit",
        key="memory-whole",
        help="The limits are so far above what is held that the curves would look flat.",
    )
    if now.problem.memory_model == "sum":
        text.caption("This file states one size for each op, which counts from start to end.")
    elif now.settings.objective is Objective.THROUGHPUT:
        text.caption("Of one sample alone; each sample in flight adds its values.")
    if run is not None and used:
        text.caption(f"Dotted: what the {run.verb.lower()} run set aside.")
    chart.plotly_chart(
        figure(curves, timelines.colours_of(now), used, whole=bool(whole)),
        key="memory",
        config=charts.CONFIG,
    )


def told(curve: MemoryCurve) -> str:
    """What a device needs against its limit, in words."""
    name, needed = glossary.plain(curve.device), formatting.num_bytes(curve.needed_bytes)
    if curve.limit_bytes is None:
        return f"**{name}** needs {needed}; it has no limit."
    share = _share(curve)
    verdict = "**too much**" if share > 1 else formatting.percent(share)
    limit = formatting.num_bytes(curve.limit_bytes)
    return f"**{name}** needs {needed}, {verdict} of its {limit}."


def fullest_first(curves: Iterable[MemoryCurve]) -> list[MemoryCurve]:
    """By how much of its limit each device needs, those without one last, else as declared."""
    return sorted(curves, key=lambda curve: -_share(curve))


def _share(curve: MemoryCurve) -> float:
    """How much of its limit a device needs; of none at all nothing."""
    if curve.limit_bytes is None:
        return 0.0
    return curve.needed_bytes / curve.limit_bytes if curve.limit_bytes else float("inf")


def _is_far(curve: MemoryCurve) -> bool:
    return curve.limit_bytes is not None and curve.limit_bytes > FAR * max(1, curve.needed_bytes)


def figure(
    curves: Sequence[MemoryCurve],
    colours: Mapping[str, str],
    used_bytes: Mapping[str, float],
    *,
    whole: bool = False,
) -> go.Figure:
    """A row per device on one time axis in ms; the limit dashed, what a run used dotted.

    Limits far above the curves are drawn only with `whole`; else a note says where they are.
    """
    num = len(curves)
    found = make_subplots(rows=num, cols=1, shared_xaxes=True, vertical_spacing=0.16 / max(1, num))
    for row, curve in enumerate(curves, 1):
        shows_limit = curve.limit_bytes is not None and (whole or not _is_far(curve))
        highest = max(curve.held_bytes)
        largest = max(highest, (curve.limit_bytes or 0) * shows_limit)
        scale, unit = next(s for s in SIZES if largest >= s[0] or s[0] == 1)
        found.add_scatter(
            x=[at_s * 1e3 for at_s in curve.at_s],
            y=[held / scale for held in curve.held_bytes],
            mode="lines",
            line={"shape": "hv", "color": colours[curve.device], "width": 1.5},
            fill="tozeroy",
            name=curve.device,
            hovertemplate=f"%{{y:.3f}} {unit} from %{{x:.3f}} ms on<extra></extra>",
            row=row,
            col=1,
        )
        top = (1.5 if _is_far(curve) else 1.15) * highest / scale
        if curve.limit_bytes is not None and shows_limit:
            top = max(top, 1.15 * curve.limit_bytes / scale)
            found.add_hline(
                curve.limit_bytes / scale,
                row=row,
                col=1,
                line={"dash": "dash", "color": LIMIT_COLOUR},
                annotation={"text": "limit", "font": {"size": charts.FONT_SIZE}},
            )
        elif curve.limit_bytes is not None:
            _note(found, row, f"limit {formatting.num_bytes(curve.limit_bytes)}, far above")
        if curve.device in used_bytes:
            top = max(top, (1.5 if _is_far(curve) else 1.15) * used_bytes[curve.device] / scale)
            found.add_hline(
                used_bytes[curve.device] / scale,
                row=row,
                col=1,
                line={"dash": "dot", "color": charts.LINK_COLOUR},
            )
        found.update_yaxes(
            title={"text": f"{html.escape(curve.device)}<br>{unit}"},
            range=[0, top or 1],
            row=row,
            col=1,
        )
    found.update_xaxes(title="milliseconds since the step began", row=num, col=1)
    found.update_xaxes(rangemode="tozero")
    found.update_layout(
        height=60 + num * ROW_HEIGHTS_PX.get(num, ROW_HEIGHT_PX),
        showlegend=False,
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        font={"size": charts.FONT_SIZE},
    )
    return found


def _note(found: go.Figure, row: int, text: str) -> None:
    found.add_annotation(
        text=text,
        x=1,
        y=1,
        xref="x domain" if row == 1 else f"x{row} domain",
        yref="y domain" if row == 1 else f"y{row} domain",
        xanchor="right",
        yanchor="top",
        showarrow=False,
        font={"size": charts.FONT_SIZE, "color": LIMIT_COLOUR},
    )
