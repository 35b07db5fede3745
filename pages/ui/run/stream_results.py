"""What a pipeline of samples measured, beside what was predicted: its rate and its bottleneck."""

import streamlit as st

from pages.ui.panels import charts, run_warnings
from pages.ui.run import baselines, results
from pages.ui.shell import glossary
from placement.api.results.running import StreamResult
from placement.core import formatting
from studio.jobs import jobs, runs
from studio.snapshot import Studio

# Below this share of its time even the busiest device waits noticeably.
NEARLY_ALWAYS = 0.9


def show(now: Studio, job: jobs.Job) -> None:
    """Everything a throughput run said, the most asked first."""
    result = job.result
    assert isinstance(result, StreamResult)
    run_warnings.badges(now, job, result, _how_long(result))
    if result.cancelled:
        st.warning("Stopped before all samples were through; the numbers are of those that were.")
    _numbers(result)
    _pace(result)
    _between(result)
    if result.baseline_s:
        rate = result.samples_per_s
        baselines.compare(result, rate, lambda s: 1.0 / s, charts.bars_per_s, verdict(result))
    st.subheader(
        "Timeline",
        help=f"Bars are segments on a device, or tensors on a link. {glossary.STAGES}",
    )
    measured = "Measured, the first samples of the full pipeline"
    if result.emulated:
        measured = "Emulated, one sample alone"
    titles = "Predicted, one sample alone", measured
    sources, began = runs.sources(now, job), "the first of these samples"
    results.timelines(result, job.id, sources, titles, began)
    results.devices(result, "sample")


def _how_long(result: StreamResult) -> str:
    stages = result.stages
    return (
        f"{formatting.counted(result.samples, 'sample')} through"
        f" {formatting.counted(stages, 'stage')},"
        f" at most {result.depth} in flight, {formatting.counted(result.num_segments, 'segment')}"
    )


def _numbers(result: StreamResult) -> None:
    cells = st.columns(4)
    cells[0].metric(
        f"{result.verb} throughput",
        formatting.rate(result.samples_per_s),
        help=f"{glossary.THROUGHPUT} {glossary.SAMPLE}",
    )
    cells[1].metric(
        "Predicted throughput",
        formatting.rate(result.predicted_samples_per_s),
        _against(result),
        delta_color="off",
        delta_arrow="off",
    )
    latency = result.latency_s
    cells[2].metric(
        "Latency of one sample",
        formatting.seconds(latency.median),
        f"{formatting.seconds(latency.p5)} to {formatting.seconds(latency.p95)}",
        delta_color="off",
        delta_arrow="off",
        help=(
            f"{glossary.LATENCY} The median, and the range from the 5th to the 95th percentile."
            f" Alone in the pipeline it is predicted to take"
            f" {formatting.seconds(result.predicted_latency_s)}."
        ),
    )
    results.outputs(cells[3], result, _compared(result))
    results.drifted(result)
    if result.outputs_match is False:
        st.error(results.DIFFER)


def _against(result: StreamResult) -> str:
    """How far the predicted rate is from the measured one; as rates, like the numbers beside it."""
    predicted, measured = result.predicted_samples_per_s, result.samples_per_s
    if not predicted or not measured:
        return ""
    off = formatting.percent(predicted / measured - 1.0, signed=True)
    return f"{off} against {result.verb.lower()}"


def _compared(result: StreamResult) -> str:
    if result.outputs_match is None:
        return results.difference(result)
    how = "no bit differs" if result.bit_equal else results.difference(result)
    number = result.outputs_compared
    return f"{formatting.counted(number, 'output')} compared" + (f", {how}" * bool(how))


def _pace(result: StreamResult) -> None:
    st.subheader("Who sets the pace", help=glossary.PACE)
    st.markdown(pace(result))
    names = list(result.busy_s)
    if result.predicted_bottleneck not in names:
        names.append(result.predicted_bottleneck)
    measured = [busy_share(result, name) for name in names]
    predicted = [_predicted_share(result, name) for name in names]
    st.plotly_chart(
        charts.busy_shares(
            names,
            measured,
            predicted,
            names.index(result.bottleneck),
            verb=result.verb,
        ),
        key="busy-shares",
        config=charts.CONFIG,
    )


def pace(result: StreamResult) -> str:
    """Which device is the bottleneck, how busy it is, and whether that was predicted."""
    name, predicted = result.bottleneck, result.predicted_bottleneck
    share = busy_share(result, name)
    how = "" if share is None else f": it is busy {formatting.percent(share)} of the time"
    said = [f"**{glossary.plain(name)} sets the pace{how}.**"]
    if share is not None and share < NEARLY_ALWAYS:
        said.append("In the rest even this device waits, for other devices or for what they send.")
    if predicted == name:
        said.append("That is the one that was predicted.")
    else:
        kind = "the link " if predicted not in result.busy_s else ""
        said.append(f"Predicted was {kind}{glossary.plain(predicted)}.")
    return " ".join(said)


def busy_share(result: StreamResult, name: str) -> float | None:
    """Work per sample over the time between samples, 1 at most; None for what was not watched."""
    busy_s = result.busy_s.get(name)
    return None if busy_s is None else min(1.0, busy_s * result.samples_per_s)


def _predicted_share(result: StreamResult, name: str) -> float | None:
    load_s, rate = result.loads_s.get(name), result.predicted_samples_per_s
    return None if load_s is None or rate is None else min(1.0, load_s * rate)


def _between(result: StreamResult) -> None:
    st.subheader("Time between outputs", help=glossary.BETWEEN)
    step, error = result.step_s, result.error
    verb = result.verb
    off = (
        ""
        if error is None
        else f" ({formatting.percent(error, signed=True)} against {verb.lower()})"
    )
    st.markdown(
        f"{verb}: {formatting.seconds(step.median)} (median), mostly"
        f" {formatting.seconds(step.p5)} to {formatting.seconds(step.p95)}."
        f" Predicted: {formatting.seconds(result.predicted_s)}{off}."
    )
    chart = charts.step_times(result.steps_s, result.predicted_s, "output")
    st.plotly_chart(chart, key="steps-chart", config=charts.CONFIG)


def verdict(result: StreamResult) -> str:
    """Whether the pipeline paid, in a sentence or two."""
    rate, said = result.samples_per_s, []
    alone = {d: 1.0 / s for d, s in result.baseline_s.items() if s}
    if alone:
        best = max(alone, key=lambda name: alone[name])
        gain = rate / alone[best] - 1.0
        how = f"{formatting.percent(abs(gain))} {'more' if gain >= 0 else 'fewer'} samples than"
        if abs(gain) < 0.005:
            how = "as many samples as"
        said.append(
            f"This placement delivers {how} the best device alone ({glossary.plain(best)}),"
            " which takes one sample after the other."
        )
    if result.all_cores_s:
        whole = 1.0 / result.all_cores_s
        if whole > rate:
            said.append(
                f"**One device with all cores delivers more: {formatting.rate(whole)}**"
                f" against {formatting.rate(rate)}."
            )
        else:
            said.append(f"One device with all cores delivers less ({formatting.rate(whole)}).")
    return " ".join(said)
