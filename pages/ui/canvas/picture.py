"""The picture of the placement on the screen: select, move, undo; as a fragment of its own.

An edit redraws the colours and nothing else of it. Everything is read anew from the project, which
the edit has changed by then.
"""

import streamlit as st

from pages.ui import canvas
from pages.ui.canvas import colour_switch, gestures
from pages.ui.consequence import asking
from pages.ui.session import cache, choices
from pages.ui.session.current import studio
from pages.ui.shell import messages
from placement.drawing.op_reasons import critical_ops


def show(height_px: int | None = None) -> None:
    """Draw the switch of colours and the picture; without a height it fills its place."""
    gestures.mount_view()
    _draw(height_px)


@st.fragment(key="canvas")
@messages.plain_errors()
def _draw(height_px: int | None) -> None:
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
        enlarged=choices.ENLARGED if choices.presenting() else 1.0,
    )
    editing = canvas.Editing(
        read_only=not choices.may_write(), undo=undo, redo=redo, asks=asking.about(now)
    )
    canvas.draw_canvas(drawing, editing, height_px=height_px, on_ops=gestures.on_ops)
