"""A run beside each device alone, and whether the placement paid."""

from collections.abc import Callable, Sequence

import plotly.graph_objects as go
import streamlit as st

from pages.ui.panels import charts
from pages.ui.shell import glossary
from placement.api.results.running import RunResult
from placement.core import formatting
from studio.jobs import caveats

UNCERTAIN = "Times that are not to be trusted say nothing about which is faster."


def show(result: RunResult) -> None:
    """This run beside each device alone, and the plain word on which is fastest."""
    said = UNCERTAIN if caveats.is_doubtful(result) else verdict(result)
    compare(result, result.step_s.median, lambda seconds: seconds, charts.bars_s, said)


def compare(
    result: RunResult,
    value: float,
    of: Callable[[float], float],
    bars: Callable[[Sequence[str], Sequence[float]], go.Figure],
    said: str,
) -> None:
    """A run's value beside those of each device alone, which are `of` their seconds."""
    rows = [("this placement", value)]
    rows += [(f"{d} alone", of(s)) for d, s in result.baseline_s.items() if s is not None]
    if result.all_cores_s is not None:
        rows.append(("whole CPU, all cores", of(result.all_cores_s)))
    st.subheader("Against one device alone")
    figure = bars([label for label, _ in rows], [value for _, value in rows])
    st.plotly_chart(figure, key="baselines", config=charts.CONFIG)
    st.markdown(said)
    missing = [d for d, s in result.baseline_s.items() if s is None]
    if missing:
        st.caption(glossary.plain(f"Does not fit alone on: {', '.join(missing)}"))


def verdict(result: RunResult) -> str:
    """Whether the placement paid, in a sentence or two."""
    median = result.step_s.median
    alone = {d: s for d, s in result.baseline_s.items() if s is not None}
    said = []
    if alone:
        best = min(alone, key=lambda d: (alone[d], d))
        gain = 1 - median / alone[best]
        how = f"{formatting.percent(abs(gain))} {'faster' if gain >= 0 else 'slower'} than"
        if abs(gain) < 0.005:
            how = "as fast as"
        said.append(f"This placement is {how} the best device alone ({glossary.plain(best)}).")
    whole = result.all_cores_s
    if whole is not None and whole < median:
        still = "faster still" if alone and median < min(alone.values()) else "faster"
        said.append(
            f"**One device with all cores is {still}: {formatting.seconds(whole)}**"
            f" against {formatting.seconds(median)}."
        )
    elif whole is not None:
        said.append(f"One device with all cores is slower ({formatting.seconds(whole)}).")
    return " ".join(said)
