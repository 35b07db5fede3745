"""Buttons that pin the selected ops or let them go, and the list of what is pinned."""

from collections.abc import Sequence
from functools import partial

import streamlit as st

from pages.ui.session import choices, fragments
from pages.ui.session.current import edit
from pages.ui.shell import glossary
from placement.core.problem import Execution
from studio import editing
from studio.project import pins
from studio.project.edits import counted
from studio.snapshot import Studio

HELP = (
    "A pinned op stays on its device: it cannot be moved by hand, and every method works around it."
    " Pins belong to the model, so all its placements share them."
)

ORDER_HELP = (
    "Ops that stay on the device run in the order of now, whatever a method or a drag wants; which"
    " ops are there stays open."
)


def buttons(now: Studio) -> None:
    """Pin and Unpin for the selection; drawn into a row of buttons."""
    ops, locked = choices.selection(), not choices.may_write()
    held = [op for op in ops if op in now.pins]
    st.button(
        "Pin",
        key="pin",
        help=f"Keep the selected ops where they are (key P). {HELP}",
        disabled=locked or not ops or _is_held(now, ops),
        on_click=edit,
        args=(partial(pins.pin, ops=ops),),
    )
    st.button(
        "Unpin",
        key="unpin",
        help="Let the selected ops go (key Del).",
        disabled=locked or not held,
        on_click=edit,
        args=(partial(pins.unpin, ops=ops),),
    )


def show(now: Studio) -> None:
    """What is pinned, and what to do about pinned ops that this placement has elsewhere."""
    _orders(now)
    if not now.pins:
        return
    locked = not choices.may_write()
    held = tuple(now.pins)
    per_device = [
        f"{number} on {device.name}"
        for device in now.machine.devices
        if (number := sum(d == device.name for d in now.pins.values()))
    ]
    st.caption(glossary.plain(f"Pinned: {', '.join(per_device)}"), help=HELP)
    row = st.container(horizontal=True, gap="xsmall")
    row.button("Select pinned", key="pins-select", on_click=_select, args=(held,), type="tertiary")
    row.button(
        "Unpin all",
        key="pins-clear",
        on_click=edit,
        args=(partial(pins.unpin, ops=held),),
        disabled=locked,
        type="tertiary",
    )
    strays = pins.strays(now)
    if strays:
        what = f"{counted(strays)} {'is' if len(strays) == 1 else 'are'}"
        st.warning(glossary.plain(f"{what} elsewhere in this placement than where pinned."))
        st.button(
            "Move to where pinned",
            key="pins-return",
            on_click=edit,
            args=(pins.return_strays,),
            disabled=locked,
        )


def _orders(now: Studio) -> None:
    """Devices whose order is pinned, and the button for the selection's."""
    ops, locked = choices.selection(), not choices.may_write()
    device_of = now.placement.device_of
    free = [op for op in ops if op in device_of and device_of[op] not in now.sequences]
    if not (free or now.sequences) or now.problem.execution is Execution.CALL:
        return
    row = st.container(horizontal=True, gap="xsmall", vertical_alignment="center")
    if free:
        row.button(
            "Pin order",
            key="pin-order",
            on_click=edit,
            args=(partial(pins.pin_order, ops=free),),
            help=f"Keep the order on {_devices_of(now, free)} as it is (key O). {ORDER_HELP}",
            disabled=locked,
            type="tertiary",
        )
    if now.sequences:
        named = ", ".join(now.sequences)
        row.button(
            "Free order",
            key="free-order",
            on_click=edit,
            args=(partial(pins.free_order, devices=tuple(now.sequences)),),
            help=f"Let the order on {glossary.plain(named)} go.",
            disabled=locked,
            type="tertiary",
        )
        row.caption(glossary.plain(f"Order pinned on {named}"), help=ORDER_HELP)
    broken = editing.broken_orders(now)
    if broken:
        what = f"On {', '.join(broken)} this placement has another order than the pinned one."
        st.warning(glossary.plain(what))
        st.button(
            "Run as pinned",
            key="orders-return",
            on_click=edit,
            args=(pins.return_orders,),
            disabled=locked,
        )


def _devices_of(now: Studio, ops: Sequence[str]) -> str:
    return glossary.plain(", ".join(dict.fromkeys(now.placement.device_of[op] for op in ops)))


def _is_held(now: Studio, ops: Sequence[str]) -> bool:
    """Whether all of them are pinned where they are already."""
    device_of = now.placement.device_of
    return all(op not in device_of or now.pins.get(op) == device_of[op] for op in ops)


def _select(ops: Sequence[str]) -> None:
    choices.select(ops)
    fragments.only(*fragments.EDITED)
