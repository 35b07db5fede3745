"""Choose, rename, copy and delete named placements."""

from collections.abc import Callable
from functools import partial

import streamlit as st

from pages.ui.session import choices, fragments
from pages.ui.session.current import edit, studio
from pages.ui.shell import glossary
from studio.editing import all_on
from studio.project.facts import HAND, Facts, Named
from studio.project.placements import Shelf
from studio.snapshot import Studio

START_HELP = (
    "A new placement to be made by hand. Pinned ops stay where they are, and so do ops that the"
    " device cannot run."
)


def chooser(now: Studio) -> None:
    """The placement on the screen, and what can be done with it as a whole."""
    items = now.shelf.items or (now.named,)
    names = [i.name for i in items]
    locked = not choices.may_write()
    row = st.container(horizontal=True, vertical_alignment="bottom", gap="xsmall")
    # The key follows the current name, so that an edit that starts a new placement shows it.
    key = f"placement-{now.shelf.folder.name}-{now.named.name}-{len(names)}"
    row.selectbox(
        "Placement",
        names,
        index=names.index(now.named.name),
        key=key,
        format_func=lambda name: _label(next(i for i in items if i.name == name)),
        on_change=choose,
        args=(key, now.named.name),
        disabled=locked,
        help="Made by a method or by hand. Editing a method's placement starts a copy.",
    )
    with row.popover("Edit", disabled=locked):
        st.text_input("New name", value=now.named.name, key=f"rename-{key}", max_chars=60)
        whole = st.container(horizontal=True, gap="xsmall")
        whole.button("Rename", on_click=_rename, args=(now.named.name, f"rename-{key}"))
        twin = partial(Shelf.duplicate, name=now.named.name)
        whole.button("Duplicate", on_click=_change, args=(twin,))
        whole.button("Delete", on_click=_remove, args=(now.named.name,), disabled=len(names) < 2)
        for gone in reversed(now.shelf.removed):
            st.button(
                glossary.plain(f"Bring back {gone.name}"),
                key=f"restore-{gone.file}",
                icon=":material/undo:",
                on_click=_change,
                args=(partial(Shelf.restore, file=gone.file),),
            )
        devices = [d.name for d in now.machine.devices]
        st.selectbox(
            "Start anew with all ops on",
            devices,
            key=choices.own("start-on"),
            help=START_HELP,
            disabled=locked,
        )
        st.button("Start", key="start-anew", on_click=_start, args=(devices[0],), disabled=locked)


def _label(item: Named) -> str:
    return f"{item.name} (by hand)" if item.by_hand else item.name


def choose(key: str, drawn: str) -> None:
    name = choices.changed(key, drawn)
    if name is None:
        # A late value of a menu that is gone: the panel's message must stay to be read.
        fragments.only("numbers")
        return
    if choices.may_write():
        studio().shelf.choose(name)
        choices.show_run("")
    # All of the page: whatever it says of one placement may not stay beside another.
    st.rerun()


def _rename(name: str, key: str) -> None:
    _change(lambda shelf: shelf.rename(name, str(choices.typed(key, name))))


def _remove(name: str) -> None:
    told = f"{name!r} is deleted; Edit beside the menu of placements can bring it back."
    _change(lambda shelf: shelf.remove(name), told)


def _start(first_device: str) -> None:
    now = studio()
    device = str(choices.typed(choices.own("start-on"), first_device) or first_device)
    _change(lambda shelf: shelf.add("manual", all_on(now, device), HAND, Facts(start="")))


def _change(change: Callable[[Shelf], object], told: str = "") -> None:
    """Change the shelf, where this session may, and tell of it, or what is wrong with it."""

    def whole(now: Studio) -> str:
        change(now.shelf)
        now.project.change()
        return told

    edit(whole)
