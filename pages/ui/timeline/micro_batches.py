"""Training over micro-batches: the schedules GPipe and 1F1B of a split, one above the other."""

from collections.abc import Sequence

import streamlit as st

from pages.ui.panels import timeline_component
from pages.ui.session import choices
from placement.core import formatting
from placement.core.timeline import Timeline, idle_s
from placement.drawing import gantt
from placement.schedule.microbatches import (
    BACKWARD,
    FORWARD,
    SCHEDULES,
    UPDATE,
    Microbatched,
    Stage,
    microbatched,
    stages_of,
)
from studio.snapshot import Studio

NAMES = {"gpipe": "GPipe", "1f1b": "1F1B"}
COLOURS = {FORWARD: "#3b82c4", BACKWARD: "#e0913a", UPDATE: "#6f9e3c"}
MOST = 64
ABOUT = (
    "A batch is cut into micro-batches that go through the devices one behind the other: forward,"
    " then backward, and at the end each device updates its weights. GPipe runs all forward passes"
    " first; 1F1B (one forward, one backward) turns round as soon as it can, so that each device"
    " keeps the intermediate results of fewer micro-batches in memory."
)
BUBBLE = "The part of all devices' time in which they have nothing to do, because they wait."


def show(now: Studio) -> None:
    """Drawn for training graphs only: those with backward ops."""
    if not any(op.phase == BACKWARD for op in now.problem.kernels.ops):
        return
    st.subheader("Training over micro-batches", help=ABOUT)
    st.caption(
        "Simulated: the file's times are taken for those of one micro-batch, sending and receiving"
        " included. Each device is one stage."
    )
    number = st.number_input(
        "Micro-batches per step",
        min_value=1,
        max_value=MOST,
        value=choices.remembered("microbatches", 8),
        key="microbatches",
        on_change=choices.remember("microbatches", "microbatches"),
        width=220,
    )
    stages = stages_of(now.problem, now.simulated.schedule)
    found = {kind: microbatched(stages, int(number), kind) for kind in SCHEDULES}
    _numbers(now, found)
    timeline_component.draw(
        [panel(kind, each, now.problem.unit) for kind, each in found.items()],
        key="microbatches-gantt",
        of=f"{now.named.name} {number}",
        legend=_legend(stages),
    )
    _in_flight(now, stages, found)


def _legend(stages: Sequence[Stage]) -> list[dict[str, str]]:
    kinds = [FORWARD, BACKWARD, *([UPDATE] if any(s.update_s for s in stages) else [])]
    named = [{"mark": "", "colour": COLOURS[kind], "text": kind} for kind in kinds]
    return [*named, {"mark": "idle", "text": "idle"}]


def _numbers(now: Studio, found: dict[str, Microbatched]) -> None:
    cells = st.columns(4)
    for i, (kind, each) in enumerate(found.items()):
        cells[2 * i].metric(
            f"{NAMES[kind]} step", formatting.seconds(each.step_s, now.problem.unit)
        )
        cells[2 * i + 1].metric(
            f"{NAMES[kind]} bubble", formatting.percent(each.bubble_share), help=BUBBLE
        )


def panel(kind: str, found: Microbatched, unit: str = "s") -> gantt.Panel:
    """A schedule as rows of stages; bars in the colours of their direction, numbered from 1."""
    timeline = found.timeline
    names = list(dict.fromkeys(s.device for s in timeline.spans))
    row = {name: i for i, name in enumerate(names)}
    bars = []
    for span in timeline.spans:
        direction, _, number = span.name.partition(" ")
        text = str(int(number) + 1) if number else ""
        named = f"{direction} pass of micro-batch {text}" if text else "update of the weights"
        tip = (f"{named} on {span.device}",)
        times = (span.start_s, span.end_s)
        bars.append(gantt.Bar(row[span.device], *times, COLOURS[direction], text, tip))
    return gantt.Panel(
        kind,
        NAMES[kind],
        f"{formatting.seconds(found.step_s, unit)},"
        f" {formatting.percent(found.bubble_share)} idle (bubble)",
        tuple(gantt.Row(name, gantt.LINK_COLOUR, _about(timeline, name)) for name in names),
        tuple(bars),
        found.step_s,
        tuple((row[name], *stretch) for name in names for stretch in idle_s(timeline, name)),
    )


def _about(timeline: Timeline, name: str) -> str:
    idle = sum(end - start for start, end in idle_s(timeline, name))
    return (
        f"idle {formatting.percent(idle / timeline.step_s)} of the step"
        if timeline.step_s
        else "idle"
    )


def _in_flight(now: Studio, stages: Sequence[Stage], found: dict[str, Microbatched]) -> None:
    unit = now.problem.unit
    st.markdown("Per stage; the last two columns count micro-batches kept in memory at once:")
    st.dataframe(
        [
            {
                "Stage": stage.device,
                "Forward": formatting.seconds(stage.forward_s, unit),
                "Backward": formatting.seconds(stage.backward_s, unit),
                "Update": formatting.seconds(stage.update_s, unit),
                **{f"In flight, {NAMES[k]}": each.in_flight[i] for k, each in found.items()},
            }
            for i, stage in enumerate(stages)
        ],
        hide_index=True,
    )
