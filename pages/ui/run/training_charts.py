"""Curves of a training run as plotly figures: step times with what moved, and the loss. Pure."""

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

from pages.ui.panels.charts import BEST_COLOUR, FONT_SIZE, LINK_COLOUR, MOST_STEPS
from placement.api.results.training import Move

MOVE_COLOUR = "#d9822b"


def step_curve(
    step_s: Sequence[float], predicted_s: Sequence[float | None], moves: Sequence[Move]
) -> go.Figure:
    """Milliseconds of each step beside what was predicted of it, a line where ops moved.

    Of a long run only the last steps are drawn. Moves are numbered as in the list below the curve.
    """
    first = max(0, len(step_s) - MOST_STEPS)
    numbers = list(range(first + 1, len(step_s) + 1))
    figure = go.Figure()
    figure.add_scatter(
        x=numbers,
        y=[s * 1e3 for s in step_s[first:]],
        mode="lines",
        name="took",
        line={"color": BEST_COLOUR},
        hovertemplate="step %{x}: %{y:.2f} ms<extra></extra>",
    )
    figure.add_scatter(
        x=numbers,
        y=[None if s is None else s * 1e3 for s in predicted_s[first:]],
        mode="lines",
        name="predicted",
        line={"color": LINK_COLOUR, "dash": "dash", "shape": "hv"},
        hovertemplate="predicted %{y:.2f} ms<extra></extra>",
    )
    for number, move in enumerate(moves, 1):
        if move.step >= first:
            figure.add_vline(
                x=move.step + 0.5,
                line={"color": MOVE_COLOUR, "width": 2},
                annotation={
                    "text": f"move {number}",
                    "font": {"size": FONT_SIZE, "color": MOVE_COLOUR},
                },
            )
    return _curve(figure, {"title": "ms per step", "rangemode": "tozero"}, legend=True)


def loss_curve(losses: Sequence[float | None]) -> go.Figure:
    """The loss of each step; the line has a gap at steps without one."""
    first = max(0, len(losses) - MOST_STEPS)
    figure = go.Figure()
    figure.add_scatter(
        x=list(range(first + 1, len(losses) + 1)),
        y=list(losses[first:]),
        mode="lines",
        name="loss",
        line={"color": BEST_COLOUR},
        hovertemplate="step %{x}: loss %{y:.4g}<extra></extra>",
    )
    return _curve(figure, {"title": "loss"}, legend=False)


def _curve(figure: go.Figure, yaxis: Mapping[str, object], *, legend: bool) -> go.Figure:
    figure.update_layout(
        height=260,
        showlegend=legend,
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        margin={"l": 8, "r": 8, "t": 32, "b": 8},
        font={"size": FONT_SIZE},
        xaxis={"title": "step", "tickformat": "d"},
        yaxis=dict(yaxis),
    )
    return figure
