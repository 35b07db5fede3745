"""Predicted against measured as a picture: one point a placement, on axes of milliseconds."""

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks._fidelity.placements import KINDS

WIDTH, HEIGHT = 900, 620
# What is asked of the 90th percentile, drawn as a band.
BAND = 0.10


def picture(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """A PNG of rows with "kind", "model", "predicted_ms" and "measured_ms"."""
    import plotly.graph_objects as go
    from playwright.sync_api import sync_playwright

    from tests.browser.conftest import FLAGS, find_browser

    times_ms = [r[key] for r in rows for key in ("predicted_ms", "measured_ms")]
    ends = [min(times_ms) / 1.3, max(times_ms) * 1.3]
    figure = go.Figure()
    band = [*(x * (1 + BAND) for x in ends), *(x / (1 + BAND) for x in reversed(ends))]
    figure.add_scatter(
        x=[*ends, *reversed(ends)],
        y=band,
        fill="toself",
        fillcolor="rgba(120,120,120,0.15)",
        mode="lines",
        line={"width": 0},
        name=f"within {BAND:.0%}",
    )
    figure.add_scatter(
        x=ends, y=ends, mode="lines", line={"color": "#888", "width": 1}, name="equal"
    )
    for kind in KINDS:
        own = [r for r in rows if r["kind"] == kind]
        figure.add_scatter(
            x=[r["measured_ms"] for r in own],
            y=[r["predicted_ms"] for r in own],
            mode="markers",
            marker={"size": 6, "opacity": 0.8},
            name=kind,
        )
    figure.update_xaxes(type="log", title="measured step, ms")
    figure.update_yaxes(type="log", title="predicted step, ms")
    num_models = len({r["model"] for r in rows})
    figure.update_layout(
        template="plotly_white",
        width=WIDTH,
        height=HEIGHT,
        title=f"{len(rows)} placements of {num_models} networks on two lanes of one CPU",
    )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=list(FLAGS))
        try:
            page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
            page.set_content(figure.to_html(include_plotlyjs=True, config={"staticPlot": True}))
            page.wait_for_selector(".main-svg")
            return page.screenshot()
        finally:
            browser.close()
