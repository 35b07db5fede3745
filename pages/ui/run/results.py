"""What a finished run measured, beside what was predicted."""

from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.ui.canvas import device_colour
from pages.ui.panels import charts, run_warnings, timeline_component
from pages.ui.run import baselines, refinement
from pages.ui.shell import glossary
from placement.api.results.running import RunResult
from placement.api.results.training import TrainResult
from placement.api.wording import drift_in_words, middle_step, range_in_words, tokens_in_words
from placement.core import formatting
from placement.drawing import gantt, spans
from placement.simulator.critical_path import critical_path
from studio.jobs import caveats, jobs, runs
from studio.snapshot import Studio

MOST_ROWS = 200
OTHER_TIMES = "By the times of now. By those of when it ran it was {}."
DIFFER = "The outputs differ from those of the unplaced model; do not trust this run."
COMPARED = "Compared with the same model run whole, without any placement."


def show(now: Studio, job: jobs.Job) -> None:
    """Everything a run said, the most asked first."""
    result = job.ran
    assert result is not None
    about = job.about
    number = formatting.counted(len(result.steps_s), "step")
    steps = f"{number} after {about.warmup} to warm up"
    run_warnings.badges(now, job, result, steps)
    # Whoever reads a figure has read before what it is worth.
    run_warnings.disproved(now)
    scattered = caveats.scatter(result)
    if scattered:
        st.warning(scattered)
    by_now_s = runs.predicted_s(now, job)
    predicted_s = result.predicted_s if by_now_s is None else by_now_s
    _numbers(result, predicted_s)
    baselines.show(result)
    sources = runs.sources(now, job)
    st.subheader("Timeline", help="One step: bars are segments on a device, or tensors on a link.")
    timelines(
        result,
        job.id,
        sources,
        ("Predicted when it ran", f"{result.verb}, {middle_step(result.steps_s)}"),
        path=gantt.CriticalPath(critical_path(result.timeline)),
        against=result.predicted_timeline,
    )
    refinement.show(now, job, result, sources)
    st.subheader("All steps")
    chart = charts.step_times(result.steps_s, predicted_s)
    st.plotly_chart(chart, key="steps-chart", config=charts.CONFIG)
    path, checks = st.columns(2)
    with path:
        _critical(result, sources)
    with checks:
        devices(result)


def step_time(cell: DeltaGenerator, result: RunResult | TrainResult) -> None:
    """How long the steps of a run took, as one metric."""
    step = result.step_s
    cell.metric(
        f"{result.verb} step time",
        formatting.seconds(step.median),
        f"p5 {formatting.seconds(step.p5)}, p95 {formatting.seconds(step.p95)}",
        delta_color="off",
        delta_arrow="off",
        help="The median of the steps, and the 5th and 95th percentile: nine in ten steps took"
        f" between these. {glossary.STEP}",
    )


def _numbers(result: RunResult, predicted_s: float) -> None:
    step = result.step_s
    cells = st.columns(4)
    step_time(cells[0], result)
    off = predicted_s / step.median - 1 if step.median else 0.0
    error = formatting.percent(off, signed=True)
    then = formatting.seconds(result.predicted_s)
    cells[1].metric(
        "Predicted",
        formatting.seconds(predicted_s),
        f"{error} against {result.verb.lower()}{_within(result)}",
        delta_color="off",
        delta_arrow="off",
        help=OTHER_TIMES.format(then)
        if then != formatting.seconds(predicted_s)
        else _range(result),
    )
    outputs(cells[2], result, difference(result))
    cells[3].metric("Segments", result.num_segments, help=glossary.SEGMENT)
    said = tokens_in_words(result.tokens_per_s, result.first_token_s)
    if said:
        expected = tokens_in_words(result.predicted_tokens_per_s, result.predicted_first_token_s)
        st.caption(f"{result.verb}: {said}. Predicted: {expected}.", help=glossary.TOKENS)
    drifted(result)
    if result.outputs_match is False:
        st.error(DIFFER)


def drifted(result: RunResult) -> None:
    """Whether the computer is another than the one that was measured, where that is known."""
    if said := drift_in_words(result):
        st.caption(said, help=glossary.DRIFT)


def _within(result: RunResult) -> str:
    """Whether the run took what its prediction had allowed for, where that was told."""
    limits = result.predicted_range_s
    if limits is None:
        return ""
    within = limits[0] <= result.step_s.median <= limits[1]
    return ", within its range" if within else ", outside its range"


def _range(result: RunResult) -> str | None:
    limits = result.predicted_range_s
    return None if limits is None else f"{range_in_words(limits)}. {glossary.RANGE}"


def outputs(cell: DeltaGenerator, result: RunResult, more: str) -> None:
    """Whether the outputs are those of the unplaced model, as one metric."""
    same = result.outputs_match
    cell.metric(
        "Outputs",
        "not checked" if same is None else "match" if same else "differ",
        more,
        delta_color="off",
        delta_arrow="off",
        help=f"{COMPARED} {result.outputs_note or ''}".strip(),
    )


def difference(result: RunResult) -> str:
    """How far the outputs are off, or why nobody compared them."""
    if result.skipped_outputs_reason:
        return glossary.plain(result.skipped_outputs_reason)
    largest = result.max_abs_diff
    said = "" if largest is None else f"largest difference {largest:.2g}"
    return f"{said}, by rounding alone" if result.outputs_note else said


def timelines(
    result: RunResult,
    about: str,
    sources: spans.Sources,
    titles: tuple[str, str],
    began: str = "the step",
    **measured: Any,
) -> None:
    """A run as predicted and as measured, on one axis; `measured` marks the bars of the latter."""
    names = list(result.predicted_timeline.peak_bytes) or list(result.busy_s)
    colours = {name: device_colour(i) for i, name in enumerate(names)}
    predicted = {"path": gantt.CriticalPath(critical_path(result.predicted_timeline))}
    panels = [
        gantt.panel(
            key, title, formatting.seconds(drawn.step_s), drawn, colours, sources=sources, **marks
        )
        for key, title, drawn, marks in (
            ("predicted", titles[0], result.predicted_timeline, predicted),
            ("measured", titles[1], result.timeline, measured),
        )
    ]
    timeline_component.draw(panels, key="run-gantt", of=about, began=began)
    st.caption("In the tab Timeline a click on a bar selects its ops in the graph.")


def _critical(result: RunResult, sources: spans.Sources) -> None:
    st.subheader("Critical path", help=glossary.CRITICAL)
    rows = result.critical_path
    total = sum(s.duration_s for s in rows) or 1.0
    share = {k: sum(s.duration_s for s in rows if s.kind == k) / total for k in gantt.KIND_WORDS}
    st.markdown(
        f"Of the step, {formatting.percent(share['compute'])} is computing,"
        f" {formatting.percent(share['transfer'])} sending between devices and"
        f" {formatting.percent(share['wait'])} waiting."
    )
    st.dataframe(
        [
            {
                "What": gantt.KIND_WORDS[s.kind],
                "Where": s.device,
                "Name": spans.name_of(s, sources.of(s), sources.graph),
                "Takes": formatting.seconds(s.duration_s),
            }
            for s in rows[:MOST_ROWS]
        ],
        hide_index=True,
        height=280,
    )


def devices(result: RunResult, per: str = "step") -> None:
    """Which device did the work, against the one asked for, and what it took."""
    st.subheader("Devices")
    requested, actual = result.requested_devices, result.actual_devices
    busy, peak = result.busy_s, result.peak_bytes
    st.dataframe(
        [
            {
                "Device": name,
                "Ran on": _ran_on(requested.get(name), actual.get(name)),
                "Busy": formatting.seconds(busy[name]) if name in busy else "idle",
                "Peak memory": formatting.num_bytes(peak[name]) if name in peak else "unknown",
            }
            for name in dict.fromkeys((*requested, *actual, *result.baseline_s))
        ],
        hide_index=True,
    )
    for fallback in result.fallbacks:
        st.warning(f"Fell back: {glossary.plain(fallback)}")
    if result.lanes_note:
        st.caption(glossary.plain(result.lanes_note))
    sent = formatting.num_bytes(result.transfer_bytes)
    st.caption(f"Sent between devices: {sent} per {per}")


def _ran_on(requested: object, actual: object) -> str:
    """The device that did the work, against the one that was asked for."""
    if not actual:
        return f"nothing to run (asked for {requested})"
    same = requested is None or requested == actual
    shown = glossary.provider(str(actual))
    return (
        f"{shown}, as asked" if same else f"{shown} instead of {glossary.provider(str(requested))}"
    )
