"""The picture of the placement on the screen: select, move, undo; as a fragment of its own.

While somebody follows a method the picture is of its step instead. An edit redraws the colours and
nothing else of it. Everything is read anew from the project, which the edit has changed by then.
"""

from dataclasses import replace

import numpy as np
import streamlit as st

from pages.ui import canvas
from pages.ui.canvas import colour_switch, gestures
from pages.ui.canvas.colour_switch import PLAIN, Colouring
from pages.ui.consequence import asking
from pages.ui.session import cache, choices
from pages.ui.session.current import studio
from pages.ui.shell import messages
from pages.ui.steps import walk
from placement.drawing.op_reasons import critical_ops
from studio.snapshot import Studio


def show(height_px: int | None = None) -> None:
    """Draw the switch of colours and the picture; without a height it fills its place."""
    gestures.mount_view()
    colour_switch.show()
    _draw(height_px)


@st.fragment(key="canvas")
@messages.plain_errors()
def _draw(height_px: int | None) -> None:
    # A callback that was cut short leaves its edits behind.
    if gestures.apply():
        st.rerun()
    now = studio()
    view = gestures.view_of(now)
    followed = walk.on_screen(now)
    colouring = colour_switch.chosen(now, view)
    if followed is None:
        drawing = of_placement(now, view, colouring)
        drawing = replace(
            drawing,
            selection=choices.selection(),
            focus=choices.focus(),
            search=choices.search_answer(),
        )
    else:
        drawing = _of_step(now, view, followed, hatched=colouring.hatched)
    undo, redo = gestures.steps(now)
    editing = canvas.Editing(
        read_only=followed is not None or not choices.may_write(),
        shows=followed.called if followed is not None else "",
        undo=undo,
        redo=redo,
        asks=asking.about(now),
    )
    enlarged = choices.ENLARGED if choices.presenting() else 1.0
    canvas.draw_canvas(
        replace(drawing, enlarged=enlarged), editing, height_px=height_px, on_ops=gestures.on_ops
    )


def of_placement(now: Studio, view: canvas.View, colouring: Colouring = PLAIN) -> canvas.Drawing:
    """The placement on the screen, with nothing selected."""
    devices = colour_switch.devices(now)
    index = now.machine.index
    placed = [index[now.placement.device_of[op.name]] for op in now.model.graph.ops]
    return canvas.Drawing(
        view=view,
        paint=canvas.paint(view, placed, len(devices)),
        devices=devices,
        marks=critical_ops(now.problem, now.simulated),
        pins=now.pins,
        empty="" if now.model.graph.ops else "This model has no ops.",
        tones=colouring.tones,
        hatched=colouring.hatched,
        crossings=canvas.crossings(view, now.model.graph, placed),
        path=canvas.path_lines(view, cache.path_steps(now.problem, now.placement)),
        sums=colour_switch.sums(now, view),
    )


def _of_step(
    now: Studio, view: canvas.View, followed: walk.Walk, *, hatched: bool
) -> canvas.Drawing:
    """What a method had decided by a step; what is asked of who follows it stays hidden."""
    unit_of_op = now.problem.unit_of_op
    devices = colour_switch.devices(now, loads=False)
    placed = np.array(followed.devices)[unit_of_op].tolist()
    step = None if followed.is_hidden else followed.step
    opacity = np.array(step.opacity)[unit_of_op] if step and step.opacity else ()
    return canvas.Drawing(
        view=view,
        paint=canvas.paint(view, placed, len(devices)),
        devices=devices,
        selection=walk.ringed(followed),
        pins=now.pins,
        focus=choices.focus(),
        search=choices.search_answer(),
        empty="" if now.model.graph.ops else "This model has no ops.",
        hatched=hatched,
        crossings=canvas.crossings(view, now.model.graph, placed),
        opacity=canvas.opacity_marks(view, opacity),
        guessed=step.guessed if step else (),
    )
