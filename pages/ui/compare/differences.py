"""Where two placements differ: the graph coloured by the moves from one to the other."""

from collections import Counter
from collections.abc import Mapping

import streamlit as st

from pages.ui import canvas
from pages.ui.canvas import colour_switch, gestures
from pages.ui.panels.side_by_side import Side
from pages.ui.session import choices
from pages.ui.session.current import studio
from pages.ui.shell import glossary
from pages.ui.shell.messages import plain_errors
from placement.core.placement import Placement
from placement.drawing import op_values
from placement.schedule.order import order_of_ops
from placement.schedule.symmetry import renaming, with_names
from studio.snapshot import Studio

MOST_MOVES, HEIGHT = 8, 480


def show(now: Studio, here: Side, there: Side) -> None:
    """Draw the picture of the first placement, coloured by what the second has elsewhere."""
    new = renaming(now.pinned_problem, here.placement, there.placement)
    moves = moves_of(here.placement, with_names(there.placement, new))
    st.subheader("Where they differ", help=f"Select and open blocks as elsewhere. {glossary.EQUAL}")
    if not moves:
        st.info(sameness(now, here, there, new))
        return
    names = [glossary.plain(side.name, 40) for side in (here, there)]
    moved, total = sum(moves.values()), len(now.model.graph.ops)
    st.markdown(
        f"From **{names[0]}** to **{names[1]}**, {moved} of {total} ops change their device:"
        f" {glossary.plain(in_words(moves))}.{exchange(names[1], new)}"
    )
    gestures.mount_view()
    _draw(here, there)


def sameness(now: Studio, here: Side, there: Side, new: Mapping[str, str]) -> str:
    """What to say of two placements that differ in no op, at most in the names of devices."""
    names = [glossary.plain(side.name, 40) for side in (here, there)]
    same = "put every op on the same device"
    if new:
        same = "are the same up to the names of equal devices"
    orders = [order_of_ops(now.problem, side.placement) for side in (here, there)]
    other = ", but run the ops in another order" if orders[0] != orders[1] else ""
    return f"{names[0]} and {names[1]} {same}{other}.{exchange(names[1], new)}"


def exchange(name: str, new: Mapping[str, str]) -> str:
    """A sentence on equal devices of a placement that count under other names; empty for none."""
    if not new:
        return ""
    (first, counts_as), *others = sorted(new.items())
    said = [f"{a} as {b}" for a, b in others[: MOST_MOVES - 1]]
    said += ["and so on"] if len(others) >= MOST_MOVES else []
    pairs = glossary.plain(", ".join([f"counts as {counts_as}", *said]))
    return f" Equal devices are matched first: {glossary.plain(first)} of {name} {pairs}."


def moves_of(here: Placement, there: Placement) -> Counter[tuple[str, str]]:
    """Number of ops by the devices that they are on here and there, where these differ."""
    after = there.device_of
    return Counter(
        (device, after[op]) for op, device in here.device_of.items() if after[op] != device
    )


def in_words(moves: Counter[tuple[str, str]]) -> str:
    """The moves, the commonest first."""
    ranked = sorted(moves.items(), key=lambda move: (-move[1], move[0]))
    said = [f"{number} from {a} to {b}" for (a, b), number in ranked[:MOST_MOVES]]
    return ", ".join(said) + (", and others" if len(ranked) > MOST_MOVES else "")


@st.fragment(key="canvas")
@plain_errors()
def _draw(here: Side, there: Side) -> None:
    if gestures.apply(looks_only=True):
        st.rerun()
    now = studio()
    view, placed = gestures.view_of(now), op_values.device_indices(now.problem, here.placement)
    devices = canvas.device_keys([d.name for d in now.machine.devices])
    drawing = canvas.Drawing(
        view=view,
        paint=canvas.paint(view, placed, len(devices)),
        devices=devices,
        selection=choices.selection(),
        focus=choices.focus(),
        search=choices.search_answer(),
        tones=colour_switch.difference(now, view, here.placement, there.placement, there.name),
        crossings=canvas.crossings(view, now.model.graph, placed),
    )
    canvas.draw_canvas(drawing, canvas.Editing(read_only=True), height=HEIGHT, on_ops=_on_ops)


def _on_ops() -> None:
    gestures.redraw(gestures.apply(looks_only=True), "canvas", "compared")
