"""The picture with its side panel: select, move, undo; shared by the Model and the Place page.

Each part is a fragment of its own, so that an edit redraws the colours and the panel and nothing
else. Everything is read anew from the project, which the edit has changed by then.
"""

from functools import partial

import streamlit as st

from pages.ui import canvas
from pages.ui.canvas import colour_switch, gestures
from pages.ui.forms import place_form
from pages.ui.panels import (
    best_moves,
    device_loads,
    export,
    inspector,
    op_table,
    pin_buttons,
    placement_menu,
    rules,
    search_account,
    yardstick,
)
from pages.ui.panels import history as changing
from pages.ui.session import cache, choices
from pages.ui.session.current import edit, studio
from pages.ui.shell import glossary, messages
from placement.api.wording import bound_in_words, range_in_words, tokens_in_words
from placement.core import formatting
from placement.costs import roofline
from placement.drawing.op_reasons import critical_ops
from studio import snapshot
from studio.snapshot import Studio

MOST_COUNTS = 4
SENT = (
    "Between devices. Most is sent while the devices compute; what is added to the step is the"
    " sending and waiting on its critical path."
)


def show(*, numbers: bool = True, height: int = 600) -> None:
    """Draw picture and panel, with the predicted numbers above where they are wanted."""
    _numbers(numbers)
    left, right = st.columns([0.66, 0.34], gap="small")
    with left:
        gestures.mount_view()
        _draw(height)
    with right:
        _side(not numbers)
        _hints()
        rules.show()
    op_table.show(gestures.view_of)
    export.show()


@st.fragment(key="numbers")
@messages.plain_errors()
def _numbers(wanted: bool) -> None:
    if wanted:
        numbers_of(studio())


@st.fragment(key="canvas")
@messages.plain_errors()
def _draw(height: int) -> None:
    # A callback that was cut short leaves its edits behind.
    if gestures.apply():
        st.rerun()
    now = studio()
    view, devices = gestures.view_of(now), colour_switch.devices(now)
    chosen = colour_switch.switch(now, view)
    index = now.machine.index
    placed = [index[now.placement.device_of[op.name]] for op in now.model.graph.ops]
    undo, redo = gestures.steps(now.history)
    drawing = canvas.Drawing(
        view=view,
        paint=canvas.paint(view, placed, len(devices)),
        devices=devices,
        selection=choices.selection(),
        marks=critical_ops(now.problem, now.simulated),
        pins=now.pins,
        focus=choices.focus(),
        search=choices.search_answer(),
        empty="" if now.model.graph.ops else "This model has no ops.",
        tones=chosen.tones,
        hatched=chosen.hatched,
        crossings=canvas.crossings(view, now.model.graph, placed),
        path=canvas.path_lines(view, cache.path_steps(now.problem, now.placement)),
        sums=colour_switch.sums(now, view),
    )
    editing = canvas.Editing(read_only=not choices.may_write(), undo=undo, redo=redo)
    canvas.draw_canvas(drawing, editing, height=height, on_ops=gestures.on_ops)


@st.fragment(key="side")
@messages.plain_errors()
def _side(with_prediction: bool) -> None:
    now = studio()
    messages.show()
    placement_menu.chooser(now)
    search_account.show(now)
    if with_prediction:
        yardstick.remember(now, now.named.name, now.placement, now.simulated.value)
        predicted = formatting.seconds(now.simulated.value, now.problem.unit)
        told = ", ".join(filter(None, (_range(now), now.costs)))
        st.caption(f"Predicted step time: {predicted} ({told}).", help=glossary.STEP)
    _move_buttons(now, with_placing=not with_prediction)
    pin_buttons.show(now)
    device_loads.show(now)
    inspector.show(now, choices.selection())
    changing.show(now)


@st.fragment(key="hints")
@messages.plain_errors()
def _hints() -> None:
    best_moves.show(studio())


def numbers_of(now: Studio) -> None:
    """Predicted step time and what it consists of."""
    predicted, unit = now.simulated, now.problem.unit
    path = predicted.critical_path
    sending = sum(s.duration_s for s in path if s.kind != "compute")
    origin = {"measured": "from measurements", "analytic": "estimate", "given": "from the file"}
    counts = now.placement.ops_per_device()
    # In workloads a call has its sending inside, and nobody says how many bytes that is.
    knows_bytes = now.problem.execution.uses_links
    yardstick.remember(now, now.named.name, now.placement, predicted.value)
    cells = st.columns(5 if knows_bytes else 4)
    cells[0].metric(
        f"Predicted {glossary.VALUE[now.settings.objective]}",
        formatting.seconds(predicted.value, unit),
        _range(now) or origin[now.problem.costs.origin],
        delta_color="off",
        delta_arrow="off",
        help=f"{glossary.STEP} {glossary.ESTIMATE if now.is_estimate else glossary.RANGE}",
    )
    bound_s = snapshot.bound_of(now)
    cells[1].metric(
        "Fastest possible",
        f"≥ {formatting.seconds(bound_s, unit)}",
        _above(predicted.value, bound_s),
        delta_color="off",
        delta_arrow="off",
        help=glossary.BOUND,
    )
    cells[2].metric("Segments", len(predicted.schedule.segments), help=glossary.SEGMENT)
    if knows_bytes:
        cells[3].metric(
            "Sent per step",
            formatting.num_bytes(predicted.transfer_bytes),
            f"adds {formatting.seconds(sending, unit)}",
            delta_color="off",
            delta_arrow="off",
            help=f"{SENT} {glossary.CRITICAL}",
        )
    cells[-1].metric(
        "Ops per device",
        " / ".join(str(counts.get(d.name, 0)) for d in now.machine.devices[:MOST_COUNTS])
        + (" …" if len(now.machine.devices) > MOST_COUNTS else ""),
        help="In the order of the machine's devices: "
        + glossary.plain(", ".join(d.name for d in now.machine.devices[:9])),
    )
    if now.problem.graph.tokens is not None:
        said = tokens_in_words(predicted.tokens_per_s, predicted.first_token_s)
        bound_by = bound_in_words(roofline.waits_s(now.problem, now.placement))
        said = ", ".join(filter(None, (said, bound_by)))
        st.caption(f"{said[:1].upper()}{said[1:]}.", help=glossary.TOKENS)
    for broken in snapshot.violations_of(now):
        st.warning(glossary.plain(broken))


def _range(now: Studio) -> str:
    """What a run is expected to measure; empty where nobody can tell."""
    limits = now.simulated.range_s
    return range_in_words(limits, now.problem.unit) if limits else ""


def _above(value_s: float, bound_s: float) -> str:
    """How far a placement is from what is known to be impossible."""
    if value_s <= bound_s * (1 + 1e-9):
        return "this is the best possible"
    above = formatting.gap(value_s, bound_s)
    return f"this is {formatting.percent(above)} above" if above else ""


def _move_buttons(now: Studio, with_placing: bool) -> None:
    """Device menu, undo and redo, for those who do not use the keys."""
    history = now.shelf.history(now.named.name)
    locked = not choices.may_write()
    row = st.container(horizontal=True, gap="xsmall")
    with row.popover("Move to…", disabled=locked or not choices.selection()):
        for number, device in enumerate(now.machine.devices, 1):
            st.button(
                glossary.plain(f"{number}  {device.name}"),
                key=f"move-{number}",
                on_click=edit,
                args=(partial(snapshot.edit, ops=choices.selection(), device=device.name),),
                width="stretch",
            )
    for name, travel, steps in (
        ("undo", snapshot.undo, history.done),
        ("redo", snapshot.redo, history.undone),
    ):
        row.button(
            name.capitalize(),
            key=name,
            help=f"{formatting.counted(len(steps), 'step')} can be {name.replace('do', 'done')}",
            disabled=locked or not steps,
            on_click=edit,
            args=(travel,),
        )
    with row:
        pin_buttons.buttons(now)
        if with_placing:
            place_form.selection_button(now)
