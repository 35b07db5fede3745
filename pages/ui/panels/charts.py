"""Step times and shares as plotly figures; pure, no Streamlit."""

from collections import Counter
from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

from placement.core import formatting

# A mid grey, a blue and an orange that read on a light and on a dark page.
LINK_COLOUR = "#8a8f98"
BEST_COLOUR = "#3b82c4"
MEAN_COLOUR = "#d98324"
FONT_SIZE = 12
MOST_STEPS = 2000
# No toolbar: it would cover the first bar; drag zooms, double-click goes back.
CONFIG = {"displayModeBar": False}


def step_times(
    step_s: Sequence[float], predicted_s: float | None = None, per: str = "step"
) -> go.Figure:
    """Seconds of each step of a run in their order, in ms, with the prediction as a line.

    Of a long run only the last steps are drawn. Of a pipeline they are those between two outputs,
    `per` "output".
    """
    first = max(0, len(step_s) - MOST_STEPS)
    figure = go.Figure()
    figure.add_scatter(
        x=list(range(first + 1, len(step_s) + 1)),
        y=[s * 1e3 for s in step_s[first:]],
        mode="lines+markers",
        name=per,
        line={"color": BEST_COLOUR},
        hovertemplate=f"{per} %{{x}}: %{{y:.2f}} ms<extra></extra>",
    )
    if predicted_s is not None:
        figure.add_hline(
            y=predicted_s * 1e3,
            line={"dash": "dash", "color": LINK_COLOUR},
            annotation={"text": "predicted", "font": {"size": FONT_SIZE}},
        )
    figure.update_layout(
        height=240,
        showlegend=False,
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        font={"size": FONT_SIZE},
        xaxis={"title": per, "tickformat": "d"},
        yaxis={"title": "ms", "rangemode": "tozero"},
    )
    return figure


def bars_s(labels: Sequence[str], values_s: Sequence[float], highlight: int = 0) -> go.Figure:
    """Step times side by side in ms; one of them stands out."""
    values = [v * 1e3 for v in values_s]
    return _bars(labels, values, highlight, "ms", "milliseconds per step")


def bars_per_s(labels: Sequence[str], rates: Sequence[float], highlight: int = 0) -> go.Figure:
    """Samples per second side by side; one of them stands out."""
    return _bars(labels, rates, highlight, "samples/s", "samples per second")


def busy_shares(
    labels: Sequence[str],
    measured: Sequence[float | None],
    predicted: Sequence[float | None],
    highlight: int = 0,
    *,
    verb: str = "Measured",
) -> go.Figure:
    """Shares of the time (0 to 1) that devices and links are busy, in percent; None: not known.

    `verb` says how the first shares came about, "Emulated" on a virtual clock.
    """
    colours = [BEST_COLOUR if i == highlight else LINK_COLOUR for i in range(len(labels))]
    figure = go.Figure()
    for name, shares, opacity in ((verb.lower(), measured, 1.0), ("predicted", predicted, 0.4)):
        percents = [None if s is None else 100.0 * s for s in shares]
        figure.add_bar(
            orientation="h",
            y=list(labels),
            x=percents,
            name=name,
            opacity=opacity,
            marker={"color": colours},
            text=["" if p is None else f"{formatting.percent(p / 100)} {name}" for p in percents],
            textposition="auto",
            hovertemplate="%{y}: %{text}<extra></extra>",
        )
    figure.update_layout(barmode="group", showlegend=False)
    return _lying(figure, 52 * len(labels), {"title": "% of the time", "range": [0, 105]})


def histogram(
    values: Sequence[float], references: Mapping[str, float], unit: str, title: str
) -> go.Figure:
    """How often each value came, with a line for each that they are held against."""
    figure = go.Figure()
    counts = sorted(Counter(float(f"{value:.6g}") for value in values).items())
    figure.add_bar(
        x=[value for value, _ in counts],
        y=[number for _, number in counts],
        marker={"color": BEST_COLOUR},
        hovertemplate=f"%{{x:.6g}} {unit}: %{{y}}<extra></extra>",
    )
    for place, (name, value) in enumerate(references.items()):
        figure.add_vline(
            x=value,
            line={"dash": "dash", "color": LINK_COLOUR},
            annotation={"text": f"{name} {value:.4g}", "yanchor": "bottom", "yshift": 14 * place},
        )
    figure.update_layout(
        height=280,
        showlegend=False,
        margin={"l": 8, "r": 40, "t": 20 + 14 * len(references), "b": 8},
        font={"size": FONT_SIZE},
        xaxis={"title": title},
        yaxis={"title": "handed in", "rangemode": "tozero", "dtick": _whole_steps(counts)},
    )
    return figure


def _whole_steps(counts: Sequence[tuple[float, int]]) -> int:
    """How far apart ticks are, so that there are few and none is at a fraction."""
    return max(1, max((number for _, number in counts), default=1) // 5)


def _bars(
    labels: Sequence[str], values: Sequence[float], highlight: int, unit: str, title: str
) -> go.Figure:
    colours = [BEST_COLOUR if i == highlight else LINK_COLOUR for i in range(len(labels))]
    figure = go.Figure(
        go.Bar(
            orientation="h",
            y=list(labels),
            x=list(values),
            marker={"color": colours},
            text=[f"{v:.3g} {unit}" for v in values],
            textposition="auto",
            hovertemplate=f"%{{y}}: %{{x:.3f}} {unit}<extra></extra>",
        )
    )
    return _lying(figure, 34 * len(labels), {"title": title, "rangemode": "tozero"})


def _lying(figure: go.Figure, bars_height: int, xaxis: Mapping[str, object]) -> go.Figure:
    """Lying bars, the first at the top."""
    figure.update_layout(
        height=60 + bars_height,
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        font={"size": FONT_SIZE},
        xaxis=xaxis,
        yaxis={"autorange": "reversed", "automargin": True, "type": "category"},
    )
    return figure


def best_so_far(
    seconds: Sequence[float],
    best: Sequence[float],
    bound: Sequence[float],
    unit: str,
    per: str = "step",
    *,
    mean: Sequence[float | None] = (),
    entropy: Sequence[float | None] = (),
) -> go.Figure:
    """A search's best value over its time as steps, and what is proven to be out of reach, dashed.

    `best` and `bound` are in `unit`; a bound of 0 says nothing and is not drawn. A method that
    learns also has the `mean` of what it tries, in `unit`, and the `entropy` of its decisions.
    """
    scale, shown = (1.0, unit) if unit != "s" else _scale_of(best[-1])
    figure = go.Figure()
    figure.add_scatter(
        x=list(seconds),
        y=[value / scale for value in best],
        mode="lines+markers",
        line={"shape": "hv", "color": BEST_COLOUR},
        marker={"size": 5},
        hovertemplate=f"%{{y:.4g}} {shown} after %{{x:.2f}} s<extra></extra>",
    )
    if any(bound):
        figure.add_scatter(
            x=list(seconds),
            y=[value / scale if value else None for value in bound],
            mode="lines",
            line={"shape": "hv", "dash": "dash", "color": LINK_COLOUR},
            hovertemplate=f"no placement is below %{{y:.4g}} {shown}<extra></extra>",
        )
        figure.add_annotation(
            x=1,
            xref="paper",
            xanchor="right",
            y=bound[-1] / scale,
            yanchor="top",
            text="proven bound",
            showarrow=False,
            font={"size": FONT_SIZE - 1, "color": LINK_COLOUR},
        )
    figure.update_layout(
        title={"text": "Best so far (predicted)", "font": {"size": FONT_SIZE + 1}},
        height=210,
        showlegend=False,
        margin={"l": 8, "r": 8, "t": 32, "b": 8},
        font={"size": FONT_SIZE},
        xaxis={
            "title": {"text": "seconds of search", "standoff": 4},
            "rangemode": "tozero",
        },
        yaxis={
            "title": f"{shown} per {per}",
            "range": _room([*best, *filter(None, bound), *filter(None, mean)], scale),
        },
    )
    if mean:
        means = [None if value is None else value / scale for value in mean]
        _add_learning(figure, seconds, means, entropy, shown)
    return figure


def _add_learning(
    figure: go.Figure,
    seconds: Sequence[float],
    mean: Sequence[float | None],
    entropy: Sequence[float | None],
    shown: str,
) -> None:
    """Draw the mean of what is tried, in the unit that is shown, and the entropy of decisions at an
    axis of its own; both only until the last point, which is the answer."""
    figure.update_traces(showlegend=False)
    figure.data[0].update(name="best so far", mode="lines", showlegend=True)
    figure.add_scatter(
        x=list(seconds),
        y=list(mean),
        mode="lines",
        name="mean of what it tries",
        line={"color": MEAN_COLOUR},
        hovertemplate=f"%{{y:.4g}} {shown} on average after %{{x:.2f}} s<extra></extra>",
    )
    figure.add_scatter(
        x=list(seconds),
        y=list(entropy),
        yaxis="y2",
        mode="lines",
        name="entropy",
        line={"color": LINK_COLOUR, "dash": "dot"},
        hovertemplate="entropy %{y:.3g} after %{x:.2f} s<extra></extra>",
    )
    figure.update_layout(
        height=320,
        showlegend=True,
        legend={"orientation": "h", "x": 0, "y": -0.3, "yanchor": "top"},
        title={"text": "While it learns (predicted)"},
        yaxis2={
            "title": "entropy",
            "overlaying": "y",
            "side": "right",
            "range": [0, 1.1 * max(value or 0.0 for value in entropy)],
            "tickformat": ".2f",
            "nticks": 4,
            "showgrid": False,
        },
    )


def _scale_of(value_s: float) -> tuple[float, str]:
    """The unit in which people read a time, and its size in seconds."""
    sizes = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
    return next((found for found in sizes if value_s >= found[0]), sizes[-1])


def _room(values: Sequence[float], scale: float) -> list[float]:
    """A range around values with room below for a word."""
    low, high = min(values) / scale, max(values) / scale
    span = max(high - low, 0.02 * high)
    return [low - 0.25 * span, high + 0.1 * span]
