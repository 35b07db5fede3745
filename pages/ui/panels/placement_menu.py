"""Choose, open, rename, copy and delete named placements."""

from collections.abc import Callable
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.runtime.uploaded_file_manager import UploadedFile

from pages.ui.session import choices, fragments, saving
from pages.ui.session.current import edit, studio
from pages.ui.shell import glossary
from placement.files import named
from studio import lesson
from studio.editing import all_on
from studio.project.facts import HAND, Facts, Named
from studio.project.placements import Shelf
from studio.snapshot import Studio
from studio.transfer import placement_file

OPEN = "Open a placement"
OPEN_HELP = (
    "A placement of this model in a file: what Export writes as JSON, and the command line with"
    " --out; of a workload file also a split, with the nodes of each device. Drop it here. It"
    " stands beside all others, under the file's name."
)
# The field for a file is a new one, and closed, once it was taken.
ROUND = "placement-file-round"
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
        help="Made by a method, by hand, or opened from a file. Editing one that was not made by"
        " hand starts a copy.",
    )
    # In a lesson that leaves the work to a person, what others made is no part of it.
    if not lesson.hides(now, "methods"):
        _open(row, locked=locked)
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


def _open(row: DeltaGenerator, *, locked: bool) -> None:
    """The field that takes a placement from a file."""
    number = choices.kept(ROUND, 0)
    # A sign alone is drawn of it (assets/studio.css), for the strip has no room for more words.
    box = row.popover(
        OPEN,
        icon=":material/file_open:",
        key=f"open-placement-{number}",
        help=OPEN,
        disabled=locked,
    )
    with box:
        given = st.file_uploader(
            OPEN,
            type=[placement_file.SUFFIX.removeprefix(".")],
            key=choices.own(f"placement-file-{number}"),
            max_upload_size=placement_file.MOST_BYTES // 2**20,
            disabled=locked,
            help=OPEN_HELP,
        )
    saving.upload(given, "placement", _take)


def _take(upload: UploadedFile) -> None:
    now = studio()
    if choices.renew_claim(now.project):
        _open_file(now, upload.name, upload.getvalue)


def open_named(now: Studio, text: str) -> None:
    """Open a placement by its path, as it was typed where the studio was started."""
    path = named.path_of(text)
    _open_file(now, path.name, partial(placement_file.content_of, path))


def _open_file(now: Studio, name: str, read: Callable[[], bytes]) -> None:
    """Put a placement on the shelf and the screen, or say why it cannot be used."""
    lost = f"{name} was not opened."
    if lesson.hides(now, "methods"):
        choices.say("warning", f"{lost} This lesson leaves the work to you; leave it first.")
        return
    try:
        with saving.change(lost):
            choices.say("success", placement_file.open_file(now, name, read()))
            choices.keep(ROUND, choices.kept(ROUND, 0) + 1)
            choices.show_run("")
    except ValueError as error:
        choices.say("error", f"{lost.removesuffix('.')}: {error}")


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
