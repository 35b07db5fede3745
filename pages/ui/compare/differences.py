"""Where two placements differ: the moves from one to the other, in words and in the graph."""

from collections import Counter
from collections.abc import Mapping

import streamlit as st

from pages.ui.canvas import colour_switch
from pages.ui.panels.side_by_side import Side
from pages.ui.session import choices
from pages.ui.session.current import carry_out
from pages.ui.shell import glossary
from placement.core import formatting
from placement.core.placement import Placement
from placement.schedule.order import order_of_ops
from placement.schedule.symmetry import renaming, with_names
from studio.snapshot import Studio

MOST_MOVES = 8


def show(now: Studio, here: Side, there: Side) -> None:
    """Say what the second placement has elsewhere; a button colours the graph by it."""
    new = renaming(now.pinned_problem, here.placement, there.placement)
    moves = moves_of(here.placement, with_names(there.placement, new))
    st.subheader("Where they differ", help=glossary.EQUAL)
    if not moves:
        st.info(sameness(now, here, there, new))
        return
    names = [glossary.plain(side.name, 40) for side in (here, there)]
    moved, total = sum(moves.values()), len(now.model.graph.ops)
    st.markdown(
        f"From **{names[0]}** to **{names[1]}**, {moved} of {formatting.counted(total, 'op')}"
        f" {'changes its' if moved == 1 else 'change their'} device:"
        f" {glossary.plain(in_words(moves))}.{exchange(names[1], new)}"
    )
    st.button(
        "Show in the graph",
        key="difference-shown",
        icon=":material/palette:",
        disabled=not choices.may_write(),
        on_click=_colour,
        args=(here.name, there.name),
        help=f"Puts {names[0]} on the screen and colours its ops by where {names[1]} has them.",
    )


def _colour(here: str, there: str) -> None:
    """Put a placement on the screen, and colour the graph by what another has elsewhere."""

    def colour(now: Studio) -> None:
        if any(item.name == here for item in now.shelf.items):
            now.shelf.choose(here)
        colour_switch.compare_with(now, there)

    carry_out(colour)


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
