"""The methods' results on one board, the best first, and the button that fills it."""

from collections.abc import Sequence
from functools import partial
from typing import Literal

import streamlit as st
from streamlit.elements.lib.column_types import ButtonColumnResult, ColumnConfig

from pages.ui.forms import option_fields
from pages.ui.panels import run_warnings, yardstick
from pages.ui.session import choices
from pages.ui.session.current import carry_out, studio
from pages.ui.shell import glossary, job_status
from placement.api.results.placing import CompareRow
from placement.api.wording import tokens_in_words
from placement.core import formatting
from placement.core.amounts import in_unit
from placement.core.objective import Objective
from placement.core.verb_options import CompareOptions, option_of
from studio import standings
from studio.jobs import command_line, jobs, kinds, methods, outcomes
from studio.leaders import SAME, listed
from studio.project.facts import HAND, origin_of
from studio.snapshot import Studio
from studio.standings import Measured, Standing

# What columns are called, with their explanations.
HELP = {
    "Predicted": (
        "Simulated, with the times named below the board and for the goal chosen now. What lies"
        " within the range of another is a tie, as said above."
    ),
    "Fastest ≥": (
        f"{glossary.BOUND} Proven by a method, or by the longest path and the shared work."
    ),
    "Gap": "How far above that bound the placement is; the best possible may be anywhere between.",
    "Proven": "Yes where it is proven that no placement at all is better.",
    "Measured": "From live runs of this placement on this computer, where there are any.",
    "Error": "How far the prediction is from what was measured.",
    "Search": "Seconds that the method itself took, without compiling.",
}
QUICK_HELP = (
    "Tries every method that answers almost at once on a model of this size. Each result becomes a"
    " placement of its own; the one on the screen and those made by hand stay as they are."
)
Column = ColumnConfig | ButtonColumnResult
MS, ROW = 1e-3, 35
# A longer board scrolls inside; half of a row says so.
MAX_HEIGHT = 40 * ROW + ROW // 2
WIDTHS = {
    "Predicted": 110,
    "Fastest ≥": 110,
    "Gap": 70,
    "Proven": 66,
    "Measured": 156,
    "Error": 70,
    "Search": 80,
}
# Those that are times of a placement, in one unit.
IN_UNIT = {"Predicted", "Fastest ≥", "Measured"}
# The key of the menu of who searches, by the option's name.
SEARCH_ON = {"search_on": "compare-search-on"}


def show(now: Studio) -> tuple[Standing, ...]:
    """Draw the board and what fills it; the rows are returned, the best first.

    The dock shows few lines at once, so the figures come before the words about them.
    """
    _controls(now)
    job_status.show(now, "compare", live)
    rows = standings.standings(now)
    for row in rows:
        yardstick.remember(now, row.name, standings.placement_of(now, row.name), row.value_s)
    run_warnings.disproved(now)
    said = verdict(rows, now.problem.unit)
    if said:
        st.markdown(said)
    _board(now, rows)
    goal, unit = now.settings.objective, _unit(rows, now)[1]
    st.caption(
        f"Goal: {goal.heading.lower()}. Times are {unit} per {goal.per}. Predicted ones are"
        f" simulated, from times {now.costs}. The placement on the screen:"
        f" **{glossary.plain(now.named.name)}**.{_rules(now)}"
    )
    tokens = now.problem.graph.tokens
    if tokens is not None and rows:
        first_s = None if goal is Objective.THROUGHPUT else tokens.first_s(rows[0].value_s)
        best = tokens_in_words(tokens.per_s(rows[0].value_s), first_s)
        st.caption(f"The best is predicted to give: {best}.", help=glossary.TOKENS)
    _failures(now)
    return rows


def _rules(now: Studio) -> str:
    """How loads are charged, where that is not as usual; every row is of these rules."""
    said = now.problem.rules.words
    return f" Loads are charged with: {glossary.plain(said)}." if said else ""


def live(job: jobs.Job) -> None:
    """The rows that a running comparison has so far."""
    rows = [row for row in job.all(CompareRow) if row.value is not None]
    if rows:
        names = ", ".join(row.placer for row in rows)
        now = studio()
        so_far = outcomes.best_in_words(rows, kinds.known(now, job))
        st.caption(glossary.plain(f"Done: {names}. So far {so_far}."))


def verdict(rows: Sequence[Standing], unit: str) -> str:
    """Which placement is best, whoever made it, and how the best made by hand compares."""
    allowed = [row for row in rows if not row.broken]
    if len(rows) < 2 or not allowed:
        return ""
    best = allowed[0]
    equal = [r for r in allowed[1:] if r.value_s <= best.value_s * (1 + SAME)]
    said = f"Best of {len(rows)}: **{glossary.plain(best.name, 40)}**"
    origin = origin_of(best.made_by).words
    said += f", {origin}" * bool(origin)
    said += f", predicted {glossary.plain(formatting.seconds(best.value_s, unit))}"
    if equal:
        said += f"; as good: {listed([glossary.plain(row.name, 40) for row in equal])}"
    ties = [row for row in allowed[1:] if row not in equal and row.ties_with(best)]
    if ties:
        named = listed([glossary.plain(row.name, 40) for row in ties])
        said += f"; a tie, within what predictions err by: {named}"
    own = next((row for row in allowed if row.made_by == HAND), None)
    if own is not None and own is not best and own not in (*equal, *ties) and best.value_s > 0:
        longer = formatting.percent(own.value_s / best.value_s - 1)
        said += f"; **{glossary.plain(own.name, 40)}**, made by hand, takes {longer} longer"
    return f"{said}."


def _controls(now: Studio) -> None:
    quick, fitting = methods.quick(now.problem), methods.fitting(now.problem)
    locked = not choices.may_write() or jobs.is_live(now.project.folder, "compare")
    row = st.container(horizontal=True, gap="small", vertical_alignment="center")
    row.button(
        "Run all quick methods",
        type="primary",
        icon=":material/playlist_play:",
        disabled=locked or not quick,
        on_click=_start,
        args=(tuple(quick), None),
        help=f"{QUICK_HELP} Here: {glossary.plain(', '.join(quick))}.",
    )
    with row.popover("Choose methods…", disabled=locked):
        names, limit_s = _choice(now, list(fitting), quick)
        st.button(
            "Run these methods", disabled=not names, on_click=_start_chosen, args=(names, limit_s)
        )
        held = command_line.fixed_ops(now, ())
        if names or quick:
            options = _asked(names or quick, limit_s)
            argv = command_line.compare(now, options, held=held)
            st.caption("The same on the command line:")
            st.code(command_line.text(argv), language="bash", wrap_lines=True)
    if not now.model.has_weights:
        row.caption("No weights: predicted only", help=glossary.WEIGHTLESS)
    elif now.is_estimate and now.can_measure:
        row.caption("Not measured on this machine yet: this measures the model first.")


def _choice(
    now: Studio, fitting: Sequence[str], quick: Sequence[str]
) -> tuple[list[str], float | None]:
    names = st.multiselect(
        "Methods",
        fitting,
        default=quick,
        key=_methods_key(now),
        help="Those that work for this kind of file and for the goal that is chosen.",
    )
    limit_s = option_fields.number(
        st,
        option_of(CompareOptions, "time_limit_s"),
        choices.own("compare-limit"),
        value=methods.SEARCH_S,
        help="Searches stop then and give the best they have found.",
    )
    option_fields.search_on(st, CompareOptions, SEARCH_ON["search_on"])
    return names, limit_s


def _asked(names: Sequence[str], limit_s: float | None) -> CompareOptions:
    """What the fields ask for now."""
    options = CompareOptions(placers=tuple(names), time_limit_s=limit_s)
    return option_fields.typed(options, SEARCH_ON if option_fields.may_search_elsewhere() else {})


def _methods_key(now: Studio) -> str:
    """Another menu for another kind of file, goal or size."""
    return f"compare-methods-{now.shelf.folder.name}-{now.settings.objective}"


def _start(names: Sequence[str], time_limit_s: float | None) -> None:
    options = _asked(names, time_limit_s)
    carry_out(partial(kinds.start_compare, options=options))


def _start_chosen(names: Sequence[str], limit_s: float) -> None:
    """With what the fields hold now: a click may come before the page was drawn with it."""
    now = studio()
    fitting = methods.fitting(now.problem)
    typed = choices.typed(_methods_key(now), list(names))
    wanted = [name for name in typed if name in fitting]
    if wanted:
        _start(wanted, choices.typed(choices.own("compare-limit"), limit_s))


def _board(now: Studio, rows: Sequence[Standing]) -> None:
    scale_s, unit = _unit(rows, now)
    least_s = min((row.value_s for row in rows), default=0.0)
    number = "%.2f" if least_s >= 10 * scale_s else "%.3f"
    # Widths are in pixels, which know nothing of how large the presenter's letters are.
    enlarged = choices.ENLARGED if choices.presenting() else 1.0
    config = _columns(number, unit, enlarged)
    if choices.may_write():
        config["Open"] = st.column_config.ButtonColumn(
            key="board-open",
            on_click=_open,
            args=([row.name for row in rows],),
            width=round(66 * enlarged),
        )
    st.dataframe(
        [_cells(row, scale_s, number, row.name == now.named.name) for row in rows],
        column_config=config,
        column_order=list(config),
        hide_index=True,
        # Another table in each size: Streamlit's own may keep the height that it was drawn with.
        key=f"board-{enlarged:g}",
        placeholder="–",
        width="content",
        height=height_px(len(rows), enlarged),
        alt="Placements of this project with their predicted and measured times, the best first",
    )
    notes = [
        f"**{listed([glossary.plain(name, 40) for name in names])}**: {glossary.plain(note)}."
        for note, names in by_note(rows).items()
    ]
    if notes:
        st.caption(" ".join(notes))


def height_px(num_rows: int, enlarged: float) -> int:
    """How high all rows are below their headings: what has no room scrolls in the dock."""
    return round(enlarged * min(MAX_HEIGHT, ROW * (num_rows + 1) + 3))


def by_note(rows: Sequence[Standing]) -> dict[str, list[str]]:
    """What figures do not say, each once, with the names of those that it is true of."""
    found: dict[str, list[str]] = {}
    for row in rows:
        if said := notes_of(row):
            found.setdefault("; ".join(said), []).append(row.name)
    return found


def _columns(number: str, unit: str, enlarged: float) -> dict[str, Column]:
    """Columns that fit beside each other on a small screen.

    `number` is how times are written, and `unit` what they are in.
    """
    column = st.column_config
    formats = {
        "Predicted": number,
        "Fastest ≥": number,
        "Gap": "percent",
        "Error": "percent",
    }
    config: dict[str, Column] = {"Placement": column.TextColumn(width=round(160 * enlarged))}
    for name, width_px in WIDTHS.items():
        width = round(width_px * enlarged)
        label = f"{name} ({unit})" if name in IN_UNIT else name
        if name in formats:
            config[name] = column.NumberColumn(
                label, help=HELP[name], format=formats[name], width=width
            )
        else:
            # Of a figure with a word behind it the word may be cut off, never the figure.
            side: Literal["left", "right"] = "left" if name == "Measured" else "right"
            config[name] = column.TextColumn(label, help=HELP[name], width=width, alignment=side)
    return config


def _unit(rows: Sequence[Standing], now: Studio) -> tuple[float, str]:
    """Seconds in the unit of the board's times, and its name."""
    if now.problem.unit != "s":
        return 1.0 / in_unit(1.0, now.problem.unit), now.problem.unit
    best = min((row.value_s for row in rows), default=MS)
    return next(((s, u) for s, u in ((1.0, "s"), (MS, "ms")) if best >= s), (1e-6, "µs"))


def _cells(row: Standing, scale_s: float, number: str, is_shown: bool) -> dict[str, object]:
    measured = row.measured
    return {
        "Placement": row.name,
        "Predicted": row.value_s / scale_s,
        "Fastest ≥": row.bound_s / scale_s if row.bound_s else None,
        "Gap": row.gap,
        "Proven": "yes" if row.is_best_possible else "",
        "Measured": _measured(row, measured, scale_s, number) if measured else None,
        "Error": None
        if measured is None or measured.error is None
        else formatting.to_shown(measured.error),
        "Search": None if row.search_s is None else formatting.seconds(row.search_s),
        "Open": "shown" if is_shown else "Open",
    }


def _measured(row: Standing, measured: Measured, scale_s: float, number: str) -> str:
    """The figure, and a word where it is not simply one of this placement on hardware."""
    changed = "edited" if row.made_by == HAND else "earlier"
    doubts = ["emulated"] * measured.emulated + [changed] * measured.edited
    doubts += ["scattered"] * measured.scattered
    return " ".join([number % (measured.seconds / scale_s), *doubts])


def notes_of(row: Standing) -> list[str]:
    """What a row's figures do not say, the gravest first."""
    notes = []
    if row.broken:
        notes.append(f"not allowed: {row.broken[0].rstrip('.')}")
    if row.measured and row.measured.edited:
        notes.append(f"{origin_of(row.made_by).changed} since it was measured")
    if row.measured and not row.measured.edited and row.measured.of not in ("", row.name):
        notes.append(f"its run was one of {row.measured.of}, which is the same placement")
    if row.measured and row.measured.emulated:
        notes.append("its run was emulated, not measured")
    if row.measured and row.measured.scattered:
        notes.append("the steps of its run scattered, so trust neither time nor error; run again")
    return [*notes, *row.notes]


def _failures(now: Studio) -> None:
    """Methods of the last comparison that found nothing, and why."""
    job = jobs.latest(now.project.folder, "compare")
    if job is None or job.about.shelf != now.shelf.folder.name:
        return
    for row in job.all(CompareRow):
        if row.error:
            st.caption(glossary.plain(f"{row.placer} found nothing: {row.error}"))


def _open(names: Sequence[str]) -> None:
    """Make the placement of the clicked row the one on the screen."""
    click = choices.typed("board-open", None)
    if click is None or not 0 <= click["row"] < len(names):
        return
    name, now = names[click["row"]], studio()
    if choices.renew_claim(now.project) and any(i.name == name for i in now.shelf.items):
        now.shelf.choose(name)
        choices.say("success", f"{name} is now the placement on the screen.")
    # All of the page: whatever it says of one placement may not stay beside another.
    st.rerun()
