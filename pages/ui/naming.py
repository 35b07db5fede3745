"""Choose, rename, copy and delete named placements."""

import streamlit as st

from pages.ui import choices, redraw
from pages.ui.shelf import Named, Shelf
from pages.ui.studio import Studio, studio


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
        on_change=_choose,
        args=(key, now.named.name),
        disabled=locked,
        help="Made by a method or by hand. Editing a method's placement starts a copy.",
    )
    with row.popover("Edit", disabled=locked):
        st.text_input("New name", value=now.named.name, key=f"rename-{key}", max_chars=60)
        st.button("Rename", on_click=_rename, args=(now.named.name, f"rename-{key}"))
        st.button("Duplicate", on_click=_duplicate, args=(now.named.name,))
        st.button("Delete", on_click=_remove, args=(now.named.name,), disabled=len(names) < 2)


def _label(item: Named) -> str:
    return f"{item.name} (by hand)" if item.by_hand else item.name


def _choose(key: str, drawn: str) -> None:
    name = choices.changed(key, drawn)
    if name is None:
        # A late value of a menu that is gone: the panel's message must stay to be read.
        redraw.only("numbers")
        return
    if choices.may_write():
        _shelf().choose(name)
    redraw.only(*redraw.EDITED)


def _rename(name: str, key: str) -> None:
    try:
        _shelf().rename(name, str(choices.typed(key, name)))
    except ValueError as error:
        choices.say("warning", str(error))
    redraw.only(*redraw.EDITED)


def _duplicate(name: str) -> None:
    _shelf().duplicate(name)
    choices.project().change()
    redraw.only(*redraw.EDITED)


def _remove(name: str) -> None:
    _shelf().remove(name)
    redraw.only(*redraw.EDITED)


def _shelf() -> Shelf:
    return studio().shelf
