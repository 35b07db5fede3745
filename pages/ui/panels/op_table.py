"""The table of ops below the picture: the same content, the same selection, to read and to tick."""

from collections.abc import Callable, Sequence

import streamlit as st

from pages.ui import canvas
from pages.ui.canvas import colour_switch, gestures, table_component
from pages.ui.canvas.table_component import Event, Heading, Pick, Sort, Turn
from pages.ui.session import choices, fragments, outbox
from pages.ui.session.current import studio
from pages.ui.shell import glossary
from pages.ui.shell.messages import plain_errors
from placement.core import formatting
from placement.core.costs import Floats
from placement.costs.op_times import op_seconds, placed_seconds
from placement.drawing import op_rows, op_values
from placement.drawing.op_reasons import critical_ops
from placement.drawing.op_rows import Columns, Page
from placement.drawing.wording import shortened
from studio.snapshot import Studio

KEY = "op-table"
MOST_NAME = 120
# With more devices, what an op takes on each of them stands beside it in the inspector alone.
MOST_DEVICES = 4


@st.fragment(key="table")
@plain_errors()
def folded(view_of: Callable[[Studio], canvas.View]) -> None:
    """Draw the table in a box, once that is open; `view_of` gives what the picture shows."""
    opened = st.expander("Table of ops", key="table-open", on_change="rerun")
    if opened.open:
        with opened:
            _table(view_of)


@st.fragment(key="table")
@plain_errors()
def show(view_of: Callable[[Studio], canvas.View]) -> None:
    """Draw the table as it is."""
    _table(view_of)


def _table(view_of: Callable[[Studio], canvas.View]) -> None:
    _apply()
    now = studio()
    left, right, show = st.columns([0.5, 0.28, 0.22])
    text = left.text_input(
        "Filter",
        key="table-filter",
        placeholder="Filter by name, type or block",
        label_visibility="collapsed",
    )
    shown = right.selectbox(
        "Which ops",
        list(op_rows.SHOWN),
        format_func=op_rows.SHOWN.__getitem__,
        key="table-shown",
        label_visibility="collapsed",
    )
    show.button(
        "Show in the picture",
        key="table-look",
        on_click=_look,
        disabled=not choices.selection(),
        help="Opens the blocks around the selected ops and moves the picture to them.",
        width="stretch",
    )
    _draw(now, str(text), str(shown), _lone(view_of(now)))


def _look() -> None:
    gestures.look_at(studio(), choices.selection())
    fragments.only("store", *fragments.SELECTED)


def _lone(view: canvas.View) -> list[int]:
    """Ops that the picture shows one by one, not inside a closed block."""
    return [int(node.id[1:]) for node in view.nodes if node.group < 0]


def _draw(now: Studio, text: str, shown: str, visible: Sequence[int]) -> None:
    device = op_values.device_indices(now.problem, now.placement)
    seconds = placed_seconds(now.problem, now.placement)
    path = critical_ops(now.problem, now.simulated)
    table = op_rows.columns(now.problem, device, seconds, now.pins, path)
    chosen = set(choices.selection())
    by, descending = choices.kept("table-sort", ("", False))
    each_s = _each_s(now)
    matching = op_rows.matching(table, text, shown, chosen, visible)
    found = op_rows.ordered(table, matching, by if _is_column(now, by) else "", descending, each_s)
    page = op_rows.page(found, _page_to_show(table, found, chosen))
    drawn = table_component.Table(
        _headings(now, table),
        [_row(now, table, each_s, i) for i in page.ops],
        chosen=[table.name[i] in chosen for i in page.ops],
        devices=colour_switch.devices(now),
        about={
            "caption": _caption(now, table, page, chosen),
            "sort": {"by": by, "descending": descending},
            "page": page.number,
            "pages": page.num_pages,
            "hatched": bool(choices.remembered("hatch", False)),
            "graph": now.model.graph.fingerprint,
        },
    )
    table_component.draw_table(drawn, key=KEY, on_ops=_on_events)


def _page_to_show(table: Columns, found: Sequence[int], chosen: set[str]) -> int:
    """The page turned to; after a selection made elsewhere the one that shows some of it."""
    number = int(choices.kept("table-page", 0))
    selected = list(choices.selection())
    if selected != choices.kept("table-seen", []):
        choices.keep("table-seen", selected)
        wanted = {i for i in found if table.name[i] in chosen}
        number = op_rows.page_with(found, wanted, number)
        choices.keep("table-page", number)
    return number


def _each_s(now: Studio) -> Floats | None:
    """Seconds of every op on every device (ops, devices), where there is room for as many."""
    return op_seconds(now.problem) if 1 < len(now.machine.devices) <= MOST_DEVICES else None


def _is_column(now: Studio, by: str) -> bool:
    """Whether the table has that column; a sorting may be older than the machine."""
    shown = range(len(now.machine.devices)) if _each_s(now) is not None else ()
    return by in Columns.__annotations__ or by in [f"{op_rows.ON}{d}" for d in shown]


def _headings(now: Studio, table: Columns) -> list[Heading]:
    origin = colour_switch.ORIGIN[now.problem.costs.origin]
    devices = () if _each_s(now) is None else now.machine.devices
    memory = Heading(
        "num_bytes",
        "Memory",
        f"{colour_switch.MEMORY[now.problem.memory_model]}.",
        is_number=True,
    )
    return [
        Heading("name", "Name"),
        Heading("kind", "Type"),
        Heading("scope", "Block", "The part of the model that the op belongs to."),
        Heading("device", "Device"),
        Heading(
            "seconds",
            f"Time ({origin})",
            "What the op takes on its device. Ops that the runtime runs as one kernel share its"
            " time by their arithmetic.",
            is_number=True,
        ),
        *(
            Heading(
                f"{op_rows.ON}{d}",
                f"on {shortened(device.name, 20)}",
                f"What the op takes on {shortened(device.name, 60)} ({origin}).",
                is_number=True,
            )
            for d, device in enumerate(devices)
        ),
        *([memory] if table.num_bytes.any() else []),
        Heading("pinned", "Pinned", "Stays on its device, whoever moves the others."),
        Heading("on_path", "Critical", glossary.CRITICAL),
    ]


def _row(now: Studio, table: Columns, each_s: Floats | None, i: int) -> list[object]:
    on_each = () if each_s is None else each_s[i].tolist()
    return [
        i,
        shortened(table.shown[i], MOST_NAME),
        shortened(table.kind[i], 60),
        shortened(table.scope[i], MOST_NAME),
        int(table.device[i]),
        _seconds(now, float(table.seconds[i])),
        *(_seconds(now, seconds) for seconds in on_each),
        # Many problems say nothing of memory.
        *([formatting.num_bytes(float(table.num_bytes[i]))] if table.num_bytes.any() else []),
        table.pinned[i],
        table.on_path[i],
    ]


def _seconds(now: Studio, seconds: float) -> str:
    can_run = seconds < float("inf")
    return formatting.seconds(seconds, now.problem.unit) if can_run else "cannot run it"


def _caption(now: Studio, table: Columns, page: Page, chosen: set[str]) -> str:
    """How many rows there are, and what the selected ops come to."""
    said = f"{page.num_rows} of {formatting.counted(len(table.name), 'op')}"
    ops = [i for i, name in enumerate(table.name) if name in chosen]
    if not ops:
        return f"{said}. Tick ops, or click a row, to select them in the picture too."
    time_s = formatting.seconds(op_rows.total(table.seconds, ops), now.problem.unit)
    memory = f" and {formatting.num_bytes(op_rows.total(table.num_bytes, ops))}"
    together = f"{time_s}{memory if table.num_bytes.any() else ''}"
    return f"{said}. Selected: {len(ops)}, together {together}."


def _on_events() -> None:
    picked = any(isinstance(event, Pick) for event in _apply())
    fragments.only(*(fragments.SELECTED if picked else ("table",)))


def _apply() -> list[Event]:
    """Apply what was done in the table, oldest first, and return it."""
    events = outbox.unread(KEY, table_component.EVENTS)
    for event in events:
        match event:
            case Pick():
                _pick(studio(), event)
            case Sort(by=by):
                _sort(by)
            case Turn(page=number):
                choices.keep("table-page", number)
        outbox.applied(KEY, event)
    return events


def _pick(now: Studio, event: Pick) -> None:
    """Select and deselect rows; nothing where the table was of another model."""
    if event.graph != now.model.graph.fingerprint:
        return
    names = [op.name for op in now.model.graph.ops]
    chosen, left = ([i for i in rows if i < len(names)] for rows in (event.chosen, event.left))
    before = () if event.only else choices.selection()
    selected = op_rows.picked(names, before, chosen, left)
    choices.select(selected)
    if event.only:
        choices.look_at_selection()
    choices.keep("table-seen", list(selected))


def _sort(by: str) -> None:
    """First click: upwards, numbers from the top; second: the other way; third: as in the model."""
    if not _is_column(studio(), by):
        return
    first = by in ("seconds", "num_bytes") or by.startswith(op_rows.ON)
    before = choices.kept("table-sort", ("", False))
    if before[0] != by:
        choices.keep("table-sort", (by, first))
    else:
        choices.keep("table-sort", ("", False) if before[1] != first else (by, not first))
    choices.keep("table-page", 0)
