"""What decides the step: the critical path of prediction and run, and what would shorten it."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import streamlit as st

from pages.ui.session import cache, choices, fragments
from pages.ui.shell import glossary
from pages.ui.timeline import timelines
from pages.ui.timeline.timelines import Measured
from placement.advice.speedups import Lever
from placement.core import formatting
from placement.core.graph import Graph
from placement.core.problem import Objective, Problem
from placement.core.timeline import Span
from placement.drawing import gantt, spans
from placement.simulator.critical_path import critical_path, shares
from placement.simulator.path_steps import waits
from placement.simulator.throughput import loads_s
from studio.snapshot import Studio

MOST_ROWS = 200
SHORTER = (
    "Each is simulated again with that one thing changed; who runs what in which order stays as it"
    " is. Moves of ops that would help stand in the list of moves beside the picture."
)
NO_LEVER = (
    "No single thing helps: several chains of work are equally long, so one that gets faster leaves"
    " the others."
)


def show(now: Studio, run: Measured | None) -> None:
    if now.settings.objective is Objective.THROUGHPUT:
        _pace(now)
    else:
        _paths(now, run)
    left, right = st.columns(2)
    with left:
        _levers(now)
    if run is not None:
        with right:
            _accuracy(run)


def _paths(now: Studio, run: Measured | None) -> None:
    st.subheader("Critical path", help=glossary.CRITICAL)
    measured = () if run is None else critical_path(run.result.timeline)
    cells = st.columns(2 if run is not None else 1)
    with cells[0]:
        schedule = now.simulated.schedule
        path, of = now.simulated.critical_path, spans.ops_of(now.problem, schedule)
        _path(now, "Predicted", path, of, waits(now.problem, schedule, path))
    if run is not None:
        with cells[1]:
            _path(now, run.verb, measured, timelines.ops_of(now, run))


def _path(
    now: Studio, title: str, path: Sequence[Span], of: spans.OpsOf, queued: Sequence[str] = ()
) -> None:
    """The shares of one path, and its links in order, which are drawn where somebody wants them."""
    st.markdown(f"**{title}:** {in_words(path, now.problem.unit)}")
    box = st.expander("Step by step", key=f"path-open-{title}", on_change="rerun")
    if box.open:
        with box:
            _links(now, title, path, of, queued)


def _links(
    now: Studio, title: str, path: Sequence[Span], of: spans.OpsOf, queued: Sequence[str]
) -> None:
    """A row selects its ops in the picture."""
    shown = path[:MOST_ROWS]
    waited = queued or [""] * len(path)
    # The rows go into the key: a choice made in another table must not be taken for one of this.
    key = f"path-{title}-{hash(tuple((s.name, s.device, s.start_s) for s in shown))}"
    st.dataframe(
        [
            {
                "What": gantt.KIND_WORDS[s.kind],
                "Where": gantt.shown(s.device),
                "Name": spans.name_of(s, of(s), now.problem.graph),
                "Ops": str(len(of(s))) if s.kind == "compute" else "",
                "Takes": formatting.seconds(s.duration_s, now.problem.unit),
                **({"Waited for": gantt.shown(place)} if queued else {}),
            }
            for s, place in zip(shown, waited, strict=False)
        ],
        hide_index=True,
        height=min(240, 40 + 35 * max(1, len(shown))),
        key=key,
        on_select=partial(_select, key, [of(s) for s in shown]),
        selection_mode="single-row",
    )
    if len(path) > MOST_ROWS:
        st.caption(f"and {len(path) - MOST_ROWS} more")


def in_words(path: Sequence[Span], unit: str = "s") -> str:
    """What a step consists of along its critical path."""
    took = shares(tuple(path))
    total = sum(took.values())
    if not total:
        return "nothing takes any time."
    told = [
        f"{formatting.percent(took[kind] / total)} {word} ({formatting.seconds(took[kind], unit)})"
        for kind, word in gantt.KIND_WORDS.items()
        if took[kind]
    ]
    return f"{formatting.seconds(total, unit)}, of which {', '.join(told)}."


def _select(key: str, ops: Sequence[Sequence[str]]) -> None:
    state: Any = choices.typed(key, None)
    rows = state["selection"]["rows"] if state else []
    if rows and 0 <= rows[0] < len(ops):
        choices.select(ops[rows[0]])
        choices.look_at_selection()
    fragments.only(*fragments.SELECTED)


def _pace(now: Studio) -> None:
    """For throughput no path decides but the largest load."""
    st.subheader("Who sets the pace", help=glossary.PACE)
    loads = loads_s(now.problem, now.simulated.schedule, now.placement.replicas)
    ranked = sorted(loads, key=lambda name: -loads[name])[:6]
    names = [glossary.plain(gantt.shown(name)) for name in ranked]
    times = [formatting.seconds(loads[name], now.problem.unit) for name in ranked]
    busy = [" ".join(pair) for pair in zip(names, times, strict=True)]
    st.markdown(
        f"**{names[0]} has most to do for each sample, so it sets the pace.**"
        f" Work per sample, predicted: {', '.join(busy)}."
    )


def _levers(now: Studio) -> None:
    what = glossary.SAVED[now.settings.objective]
    st.subheader(f"What would shorten the {what}", help=SHORTER)
    found = cache.levers(now.problem, now.placement)
    of = spans.ops_of(now.problem, now.simulated.schedule)
    lines = [f"- {sentence(lever, of, what, now.simulated.value, now.problem)}" for lever in found]
    st.markdown("\n".join(lines) or NO_LEVER)
    st.caption("Predicted, each as if it were the only change.")


def sentence(lever: Lever, of: spans.OpsOf, what: str, value_s: float, problem: Problem) -> str:
    """One lever in plain words with its number."""
    name, where = glossary.plain(lever.name, 60), glossary.plain(lever.where.replace("->", " to "))
    link = glossary.plain(lever.name.replace("->", " to "))
    match lever.kind:
        case "segment":
            condition = f"If {_work(lever, of, problem)} on {where} computed in half the time"
        case "tensor":
            condition = f"If {_tensor(lever, of, problem.graph)} from {where} were half as large"
        case "device":
            condition = f"If {name} were twice as fast"
        case _:
            condition = f"If the link {link} were twice as fast"
    share = f" ({formatting.percent(lever.saves_s / value_s)})" if value_s else ""
    saved = formatting.seconds(lever.saves_s, problem.unit)
    return f"{condition}, the {what} would be **{saved} shorter**{share}."


def _work(lever: Lever, of: spans.OpsOf, problem: Problem) -> str:
    ops = of(Span("compute", lever.name, lever.where, 0.0, 0.0))
    block = glossary.plain(spans.block_of(problem.graph, ops), 60)
    if block and len(ops) > 1:
        return f"the segment of {len(ops)} ops in {block}"
    # A segment has the name of the kernel that it runs first.
    sources = problem.sources[problem.kernels.index[lever.name]]
    first = problem.graph.ops[sources[0]].name if sources else lever.name
    named = block or glossary.plain(first, 60)
    return f"the segment of {len(ops)} ops that begins with {named}" if len(ops) > 1 else named


def _tensor(lever: Lever, of: spans.OpsOf, graph: Graph) -> str:
    span = Span("transfer", lever.name, lever.where, 0.0, 0.0)
    named = spans.name_of(span, of(span), graph)
    return glossary.plain(f"the {named}" if named != lever.name else f"the tensor {named}", 80)


def _accuracy(run: Measured) -> None:
    st.subheader(
        "Predicted against measured" if run.verb == "Measured" else "Predicted against emulated",
        help="How long each device and link was busy: as predicted for the placement that ran, and"
        " in the run.",
    )
    st.dataframe(timelines.accuracy(run), hide_index=True)
