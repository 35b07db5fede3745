"""The picture of the placement on the screen: select, move, undo; as a fragment of its own.

While somebody follows a method the picture is of its step instead. An edit redraws the colours and
nothing else of it. Everything is read anew from the project, which the edit has changed by then.
"""

import numpy as np
import streamlit as st

from pages.ui import canvas
from pages.ui.canvas import colour_switch, gestures
from pages.ui.consequence import asking
from pages.ui.session import cache, choices
from pages.ui.session.current import studio
from pages.ui.shell import messages
from pages.ui.steps import walk
from placement.drawing.crossing import PathLines
from placement.drawing.op_reasons import critical_ops
from studio.snapshot import Studio


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
    followed = walk.on_screen(now)
    view = gestures.view_of(now)
    devices = colour_switch.devices(now, loads=followed is None)
    chosen = colour_switch.switch(now, view)
    if followed is not None:
        placed = np.array(followed.devices)[now.problem.unit_of_op].tolist()
    else:
        index = now.machine.index
        placed = [index[now.placement.device_of[op.name]] for op in now.model.graph.ops]
    # Hidden as long as the answer is.
    step = None if followed is None or followed.is_hidden else followed.step
    opacity = canvas.opacity_marks(
        view, np.array(step.opacity)[now.problem.unit_of_op] if step and step.opacity else ()
    )
    undo, redo = gestures.steps(now.history)
    drawing = canvas.Drawing(
        view=view,
        paint=canvas.paint(view, placed, len(devices)),
        devices=devices,
        selection=choices.selection() if followed is None else followed.focus,
        marks=critical_ops(now.problem, now.simulated) if followed is None else (),
        pins=now.pins,
        focus=choices.focus(),
        search=choices.search_answer(),
        empty="" if now.model.graph.ops else "This model has no ops.",
        tones=chosen.tones if followed is None else None,
        hatched=chosen.hatched,
        crossings=canvas.crossings(view, now.model.graph, placed),
        path=None if followed is not None else _path(now, view),
        sums=colour_switch.sums(now, view) if followed is None else None,
        opacity=opacity,
        guessed=step.guessed if step else (),
        enlarged=choices.ENLARGED if choices.presenting() else 1.0,
    )
    editing = canvas.Editing(
        read_only=followed is not None or not choices.may_write(),
        shows=followed.called if followed is not None else "",
        undo=undo,
        redo=redo,
        asks=asking.about(now),
    )
    canvas.draw_canvas(drawing, editing, height_px=height_px, on_ops=gestures.on_ops)


def _path(now: Studio, view: canvas.View) -> PathLines:
    return canvas.path_lines(view, cache.path_steps(now.problem, now.placement))
