"""Two or more placements side by side: their figures, and their steps on one axis of time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import streamlit as st

from pages.ui.canvas import device_colour
from pages.ui.panels import timeline_component
from pages.ui.session import cache, choices, fragments
from pages.ui.session.current import studio
from pages.ui.shell import glossary
from placement.core import formatting
from placement.core.placement import Placement
from placement.core.problem import Objective, Problem
from placement.drawing import gantt, spans
from placement.schedule.simulated import Simulated, busy_of
from studio import standings
from studio.jobs import caveats
from studio.leaders import SAME
from studio.project.facts import origin_of
from studio.snapshot import Studio
from studio.standings import Standing

MOST, MOST_DEVICES, MOST_BARS = 6, 16, 3000
KEY = "compared-steps"


@dataclass(frozen=True)
class Side:
    """One of the placements that are held against each other, and what is predicted of it."""

    row: Standing
    placement: Placement
    simulated: Simulated

    @property
    def name(self) -> str:
        return self.row.name


def chosen(now: Studio, rows: Sequence[Standing]) -> list[Side]:
    """Let a person pick placements; those picked, in the order of the board."""
    names = [row.name for row in rows]
    first = list(dict.fromkeys([now.named.name, *names]))[:2]
    picked = st.multiselect(
        "Placements to compare",
        names,
        default=first,
        max_selections=MOST,
        key=f"compared-{now.shelf.folder.name}-{len(names)}",
        help="The first two are the one on the screen and the best other one.",
    )
    return [side_of(now, row) for row in rows if row.name in picked]


def side_of(now: Studio, row: Standing) -> Side:
    placement = standings.placement_of(now, row.name)
    return Side(row, placement, cache.simulated(now.problem, placement))


def table(now: Studio, sides: Sequence[Side]) -> None:
    """The figures of all sides, a column each, as a table that a screen reader can read too."""
    figures = rows_of(now, sides)
    columns = {"": [glossary.plain(label) for label, _ in figures]}
    for i, side in enumerate(sides):
        columns[glossary.plain(side.name, 40)] = [glossary.plain(cells[i]) for _, cells in figures]
    st.table(columns, hide_header=False, alt="Figures of the placements that are compared")
    memory = "" if now.problem.memory_model == "sum" else ", and the most memory in use at one time"
    st.caption(
        "All but what is called measured is simulated. Of each device: its ops, how long it is"
        f" busy, and the share of the time{memory}.",
        help=glossary.SEGMENT,
    )


def rows_of(now: Studio, sides: Sequence[Side]) -> list[tuple[str, list[str]]]:
    """Labels of the table's rows, and a text for each side."""

    def row(label: str, cell: Callable[[Side], str]) -> tuple[str, list[str]]:
        return label, [cell(side) for side in sides]

    unit = now.problem.unit
    is_rate = now.settings.objective is Objective.THROUGHPUT
    best = min((side.row for side in sides), key=lambda row: row.value_s, default=None)
    doubt = ", not to be trusted" * (caveats.disproof(now) is not None)
    rows = [
        row(
            ("Predicted per sample" if is_rate else "Predicted step") + doubt,
            lambda s: _beside(formatting.seconds(s.row.value_s, unit), s.row, best),
        )
    ]
    if is_rate:
        rows.append(
            row(
                "Predicted rate",
                lambda s: formatting.rate(_inverse(s.row.value_s)),
            )
        )
    tokens = now.problem.graph.tokens
    if tokens is not None:
        rows.append(
            row("Tokens", lambda s: formatting.token_rate(s.simulated.tokens_per_s)),
        )
    if tokens is not None and tokens.task == "prefill":
        rows.append(
            row("Time to first token", lambda s: formatting.seconds(s.simulated.first_token_s))
        )
    rows.append(row("Fastest possible", lambda s: _bound(s.row, unit)))
    if not now.model.has_weights:
        rows.append(row("Measured", lambda s: "no weights: predicted only"))
    elif now.model.executable is not None:
        rows.append(row("Measured", lambda s: measured_in_words(s.row)))
    rows.append(row("Segments", lambda s: str(len(s.simulated.schedule.segments))))
    if now.problem.execution.uses_links:
        rows.append(
            row("Sent per step", lambda s: formatting.num_bytes(s.simulated.transfer_bytes))
        )
    rows += [
        row(_device_label(now, device), partial(_load, now, device))
        for device in _devices(now, sides)
    ]
    if any(side.row.broken for side in sides):
        rows.append(row("Not allowed", lambda s: " ".join(s.row.broken) or "all rules are kept"))
    return rows


def _inverse(seconds: float) -> float | None:
    return 1.0 / seconds if seconds else None


def _beside(text: str, row: Standing, best: Standing | None) -> str:
    """A value, and how much more it is than the best one."""
    if best is None or best.value_s <= 0 or row.value_s <= best.value_s * (1 + SAME):
        return f"{text}, the best of these"
    more = formatting.percent(row.value_s / best.value_s - 1.0, signed=True)
    return f"{text}, {more}{', a tie' if row.ties_with(best) else ''}"


def _bound(row: Standing, unit: str) -> str:
    if row.bound_s <= 0:
        return "unknown"
    if row.is_best_possible:
        return f"≥ {formatting.seconds(row.bound_s, unit)}, so this is the best possible"
    above = formatting.percent(row.gap or 0.0)
    return f"≥ {formatting.seconds(row.bound_s, unit)}, this is {above} above"


def measured_in_words(row: Standing) -> str:
    """What was measured, how the prediction erred, and what to know before believing it."""
    measured = row.measured
    if measured is None:
        return "not yet"
    said = [formatting.seconds(measured.seconds)]
    if measured.error is not None:
        said.append(f"predicted {formatting.percent(measured.error, signed=True)}")
    if measured.emulated:
        said.append("emulated")
    if measured.edited:
        said.append(f"{origin_of(row.made_by).changed} since")
    return ", ".join(said)


def _devices(now: Studio, sides: Sequence[Side]) -> list[str]:
    """Devices that any side uses, in declared order."""
    used = {d for side in sides for d in side.placement.device_of.values()}
    return [d.name for d in now.machine.devices if d.name in used][:MOST_DEVICES]


def _device_label(now: Studio, name: str) -> str:
    limit = now.problem.machine.device(name).memory_bytes
    return name if limit is None else f"{name} (memory {formatting.num_bytes(limit)})"


def _load(now: Studio, device: str, side: Side) -> str:
    """Ops of a device, how long it is busy, and its memory."""
    number = side.placement.ops_per_device().get(device, 0)
    busy_s = busy_of(now.problem, side.simulated, side.placement).get(device, 0.0)
    share = busy_s / side.row.value_s if side.row.value_s else 0.0
    memory = formatting.num_bytes(side.simulated.peak_bytes.get(device, 0))
    ops = formatting.counted(number, "op")
    busy = formatting.seconds(busy_s, now.problem.unit)
    return f"{ops}, busy {busy} ({formatting.percent(share)}), {memory}"


def panels(now: Studio, parts: Sequence[tuple[str, Problem, Simulated]]) -> list[gantt.Panel]:
    """Named predictions as timelines that share an axis."""
    colours = {d.name: device_colour(i) for i, d in enumerate(now.machine.devices)}
    alone = glossary.ALONE[now.settings.objective]
    return [
        gantt.panel(
            f"{number} {name}",
            name,
            f"{alone} {formatting.seconds(simulated.timeline.step_s, posed.unit)},"
            " simulated".lstrip(),
            simulated.timeline,
            colours,
            sources=spans.Sources(posed.graph, spans.ops_of(posed, simulated.schedule)),
            path=gantt.CriticalPath(simulated.critical_path),
            most=MOST_BARS // len(parts),
        )
        for number, (name, posed, simulated) in enumerate(parts)
    ]


@st.fragment(key="compared")
def timelines(sides: Sequence[Side]) -> None:
    """The predicted steps of all sides, one below the other; zooming one zooms all."""
    now = studio()
    per, alone = now.settings.objective.per, glossary.ALONE[now.settings.objective]
    each = f"Each is {alone}. " if alone else ""
    st.subheader(f"{per.capitalize()}s on one axis of time", help=f"{each}{glossary.CRITICAL}")
    drawn = panels(now, [(side.name, now.problem, side.simulated) for side in sides])
    timeline_component.draw(
        drawn,
        key=KEY,
        of=" ".join((now.shelf.folder.name, *(side.name for side in sides))),
        began=f"the {per}",
        selection=choices.selection(),
        on_pick=lambda: _on_pick(drawn),
    )


def _on_pick(drawn: Sequence[gantt.Panel]) -> None:
    timeline_component.select_picked(KEY, drawn)
    fragments.only("compared", "canvas")


def pair(now: Studio, sides: Sequence[Side]) -> tuple[Side, Side] | None:
    """The two sides whose ops are compared: the two there are, or two picked from more."""
    if len(sides) < 2:
        return None
    if len(sides) == 2:
        return sides[0], sides[1]
    names = [side.name for side in sides]
    left, right = st.columns(2)
    key = "-".join(map(str, (now.shelf.folder.name, *names)))
    first = left.selectbox("From", names, index=0, key=f"from-{key}")
    second = right.selectbox("To", names, index=1, key=f"to-{key}")
    return sides[names.index(str(first))], sides[names.index(str(second))]
