"""What a finished run measured, beside what was predicted."""

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from pages.ui import charts, gantt, gantt_component, jobs, keeping, runs, spans, units, words
from pages.ui.canvas import device_colour
from pages.ui.studio import Studio
from placement.core.graph import Graph
from placement.core.timeline import Span, timeline_from_json
from placement.critical import critical_path
from placement.mend import mended

MOST_ROWS = 200
# Steps further apart than this come from work of others on the computer, not from the placement.
SCATTERED = 1.5
IMPORTED = "This run came with the project's file; its times are of the computer that made it."
DIFFER = "The outputs differ from those of the unplaced model; do not trust this run."


def show(now: Studio, job: jobs.Job) -> None:
    """Everything a run said, the most asked first."""
    result = job.result
    assert result is not None
    about = job.about
    steps = f"{len(result.get('steps_s', ()))} steps after {about.get('warmup')} to warm up"
    badges(now, job, result, steps)
    _numbers(result)
    _baselines(result)
    graph, of = runs.sources(now, job)
    _timelines(result, job.id, graph, of)
    path, checks = st.columns(2)
    with path:
        _critical(result, graph, of)
    with checks:
        devices(result)


def badges(now: Studio, job: jobs.Job, result: Mapping[str, Any], how_long: str) -> None:
    """What was run, and what to know before believing the numbers."""
    about = job.about
    st.caption(
        words.plain(
            f"{about.get('model')} on {about.get('machine')}, placement {about.get('placement')},"
            f" {how_long}"
        )
    )
    if result.get("emulated"):
        st.info(
            "Emulated: this run followed a virtual clock, nothing was measured on hardware.",
            icon=":material/theater_comedy:",
        )
    if runs.is_imported(job):
        st.info(IMPORTED, icon=":material/input:")
    changed = not_of_screen(now, job)
    if changed:
        st.warning(words.plain(changed))


def what_changed(now: Studio, job: jobs.Job) -> str:
    """What is no longer as it was when the run was made, as a sentence; empty for nothing."""
    if not runs.is_of_this(now, job):
        return "This run was of another model or machine than the one now open."
    current = {i.name: i for i in now.shelf.items}
    name = str(job.about.get("placement"))
    if name not in current:
        return "The placement of this run has been deleted or renamed since."
    if keeping.devices_key(mended(now.problem, now.shelf.read(name))) != runs.key_of(job):
        changed = "edited" if current[name].by_hand else "made anew by its method"
        return f"The placement was {changed} after this run; run again to measure the new one."
    return ""


def not_of_screen(now: Studio, job: jobs.Job) -> str:
    """Why a run does not belong to the placement on the screen; empty where it does."""
    name = str(job.about.get("placement"))
    changed = what_changed(now, job)
    if not changed and name != now.named.name:
        return f"This run is of the placement {name}; on the screen is {now.named.name}."
    return changed


def verb(result: Mapping[str, Any]) -> str:
    """How the figures of a run came about: nothing is measured on a virtual clock."""
    return "Emulated" if result.get("emulated") else "Measured"


def step_time(cell: Any, result: Mapping[str, Any]) -> None:
    """How long the steps of a run took, as one metric."""
    step = result["step_s"]
    cell.metric(
        f"{verb(result)} step time",
        units.seconds(step["median"]),
        f"p5 {units.seconds(step['p5'])}, p95 {units.seconds(step['p95'])}",
        delta_color="off",
        delta_arrow="off",
        help="The median of the steps, and the 5th and 95th percentile: nine in ten steps took"
        f" between these. {words.STEP}",
    )


def _numbers(result: Mapping[str, Any]) -> None:
    step = result["step_s"]
    cells = st.columns(4)
    step_time(cells[0], result)
    cells[1].metric(
        "Predicted",
        units.seconds(result["predicted_s"]),
        f"{units.percent(result['error'] or 0.0, signed=True)} against {verb(result).lower()}",
        delta_color="off",
        delta_arrow="off",
    )
    outputs(cells[2], result, difference(result))
    cells[3].metric("Segments", result["num_segments"], help=words.SEGMENT)
    if result["outputs_match"] is False:
        st.error(DIFFER)
    scattered = scatter(step)
    if scattered:
        st.warning(scattered)


def scatter(step_s: Mapping[str, float]) -> str:
    """A warning where steps differ so much that their median says little; else empty."""
    if not 0.0 < SCATTERED * step_s["p5"] < step_s["p95"]:
        return ""
    return (
        f"The steps took between {units.seconds(step_s['p5'])} and {units.seconds(step_s['p95'])}:"
        " something else kept this computer busy meanwhile. Trust none of these times, nor what"
        " they say of the prediction and of single devices; run again when it is quiet."
    )


def outputs(cell: Any, result: Mapping[str, Any], more: str) -> None:
    """Whether the outputs are those of the unplaced model, as one metric."""
    same = result["outputs_match"]
    cell.metric(
        "Outputs",
        "not checked" if same is None else "match" if same else "differ",
        more,
        delta_color="off",
        delta_arrow="off",
        help="Compared with the same model run whole, without any placement.",
    )


def difference(result: Mapping[str, Any]) -> str:
    """How far the outputs are off, or why nobody compared them."""
    if result.get("skipped_outputs_reason"):
        return words.plain(str(result["skipped_outputs_reason"]))
    largest = result.get("max_abs_diff")
    return "" if largest is None else f"largest difference {largest:.2g}"


def _baselines(result: Mapping[str, Any]) -> None:
    """This run beside each device alone, and the plain word on which is fastest."""
    median = result["step_s"]["median"]
    rows = [("this placement", median)]
    rows += [(f"{d} alone", s) for d, s in result["baseline_s"].items() if s is not None]
    if result.get("all_cores_s") is not None:
        rows.append(("whole CPU, all cores", result["all_cores_s"]))
    st.subheader("Against one device alone")
    st.plotly_chart(
        charts.bars_s([r[0] for r in rows], [r[1] for r in rows]),
        key="baselines",
        config=charts.CONFIG,
    )
    st.markdown(verdict(result))
    name_misfits(result)


def name_misfits(result: Mapping[str, Any]) -> None:
    """Say which devices cannot hold the whole model."""
    missing = [d for d, s in result["baseline_s"].items() if s is None]
    if missing:
        st.caption(words.plain(f"Does not fit alone on: {', '.join(missing)}"))


def verdict(result: Mapping[str, Any]) -> str:
    """Whether the placement paid, in a sentence or two."""
    median = result["step_s"]["median"]
    alone = {d: s for d, s in result["baseline_s"].items() if s is not None}
    said = []
    if alone:
        best = min(alone, key=lambda d: (alone[d], d))
        gain = 1 - median / alone[best]
        how = f"{units.percent(abs(gain))} {'faster' if gain >= 0 else 'slower'} than"
        if abs(gain) < 0.005:
            how = "as fast as"
        said.append(f"This placement is {how} the best device alone ({words.plain(best)}).")
    whole = result.get("all_cores_s")
    if whole is not None and whole < median:
        still = "faster still" if alone and median < min(alone.values()) else "faster"
        said.append(
            f"**One device with all cores is {still}: {units.seconds(whole)}**"
            f" against {units.seconds(median)}."
        )
    elif whole is not None:
        said.append(f"One device with all cores is slower ({units.seconds(whole)}).")
    return " ".join(said)


def _timelines(result: Mapping[str, Any], about: str, graph: Graph | None, of: spans.OpsOf) -> None:
    st.subheader("Timeline", help="One step: bars are segments on a device, or tensors on a link.")
    measured = timeline_from_json(result["timeline"])
    predicted = timeline_from_json(result["predicted_timeline"])
    colours = colours_of(result)
    panels = [
        gantt.panel(
            "predicted",
            "Predicted",
            units.seconds(predicted.step_s),
            predicted,
            colours,
            path=critical_path(predicted),
            of=of,
            graph=graph,
        ),
        gantt.panel(
            "measured",
            f"{verb(result)}, the step of median length",
            units.seconds(measured.step_s),
            measured,
            colours,
            path=critical_path(measured),
            against=predicted,
            verb=verb(result),
            of=of,
            graph=graph,
        ),
    ]
    gantt_component.draw(panels, key="run-gantt", of=about)
    link_to_timeline()
    st.subheader("All steps")
    chart = charts.step_times(result.get("steps_s", ()), result["predicted_s"])
    st.plotly_chart(chart, key="steps-chart", config=charts.CONFIG)


def colours_of(result: Mapping[str, Any]) -> dict[str, str]:
    """The devices of a run in the colours that they have everywhere."""
    names = list(result["predicted_timeline"]["peak_bytes"]) or list(result["busy_s"])
    return {name: device_colour(i) for i, name in enumerate(names)}


def link_to_timeline() -> None:
    st.page_link(
        "pages/timeline.py",
        label="On the Timeline page a click on a bar selects its ops in the picture",
        icon=":material/view_timeline:",
    )


def _spans(rows: Sequence[Mapping[str, Any]]) -> list[Span]:
    return [Span(r["kind"], r["name"], r["device"], r["start_s"], r["end_s"]) for r in rows]


def _critical(result: Mapping[str, Any], graph: Graph | None, of: spans.OpsOf) -> None:
    st.subheader("Critical path", help=words.CRITICAL)
    rows = _spans(result["critical_path"])
    total = sum(s.duration_s for s in rows) or 1.0
    share = {k: sum(s.duration_s for s in rows if s.kind == k) / total for k in gantt.KIND_WORDS}
    st.markdown(
        f"Of the step, {units.percent(share['compute'])} is computing,"
        f" {units.percent(share['transfer'])} sending between devices and"
        f" {units.percent(share['wait'])} waiting."
    )
    st.dataframe(
        [
            {
                "What": gantt.KIND_WORDS[s.kind],
                "Where": s.device,
                "Name": spans.name_of(s, of(s), graph),
                "Takes (ms)": round(s.duration_s * 1e3, 3),
            }
            for s in rows[:MOST_ROWS]
        ],
        hide_index=True,
        height=280,
    )


def devices(result: Mapping[str, Any], per: str = "step") -> None:
    """Which device did the work, against the one asked for, and what it took."""
    st.subheader("Devices")
    requested, actual = result.get("requested_devices", {}), result.get("actual_devices", {})
    busy, peak = result.get("busy_s", {}), result.get("peak_bytes", {})
    st.dataframe(
        [
            {
                "Device": name,
                "Ran on": _ran_on(requested.get(name), actual.get(name)),
                "Busy": units.seconds(busy.get(name)) if name in busy else "idle",
                "Peak memory": units.num_bytes(peak[name]) if name in peak else "unknown",
            }
            for name in dict.fromkeys((*requested, *actual, *result["baseline_s"]))
        ],
        hide_index=True,
    )
    for fallback in result.get("fallbacks", ()):
        st.warning(f"Fell back: {words.plain(str(fallback))}")
    sent = units.num_bytes(result.get("transfer_bytes", 0))
    st.caption(f"Sent between devices: {sent} per {per}")


def _ran_on(requested: object, actual: object) -> str:
    """The device that did the work, against the one that was asked for."""
    if not actual:
        return f"nothing to run (asked for {requested})"
    same = requested is None or requested == actual
    shown = words.provider(str(actual))
    return f"{shown}, as asked" if same else f"{shown} instead of {words.provider(str(requested))}"
