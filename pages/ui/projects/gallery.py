"""All projects of this computer: open, rename, duplicate, export, import, delete and take back."""

from contextlib import suppress

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from pages.ui.session import cache, choices, saving
from pages.ui.session.current import snapshot
from pages.ui.shell import frame, glossary
from placement.core import formatting
from studio.project import store, trash
from studio.project.files import NotWritten
from studio.project.store import Project
from studio.snapshot import Studio
from studio.transfer import archive, schema

FIRST_ROWS = 20
SAVED = (
    "Everything is saved as you work; there is no button to save. A project holds its model (or the"
    " path of it), its machine, its placements with their history, and its runs."
)


def show(now: Studio) -> None:
    st.subheader("Projects", help=SAVED)
    _offer_back()
    _import_field()
    _list(now)
    _trash()


def _offer_back() -> None:
    """What was deleted last, and the button that takes it back."""
    thrown = trash.find(choices.deleted())
    if thrown is None:
        return
    row = st.container(horizontal=True, vertical_alignment="center", gap="small")
    row.info(
        f"Deleted: {glossary.plain(thrown.name)}."
        f" It stays in the trash for {trash.KEEP_DAYS} days.",
        icon=":material/delete:",
        width="stretch",
    )
    row.button("Undo", key="undo-delete", on_click=_restore, args=(thrown.id,), type="primary")


def _import_field() -> None:
    # For another project it is another one, which is closed: an import opens what came.
    key = f"import-{choices.project().id}"
    with st.popover("Import a project", icon=":material/upload:", key=key):
        st.caption(
            "A file that Export made. It becomes a project of its own; nothing that is here"
            " changes, and nothing in it is executed."
        )
        given = st.file_uploader("Project file", type=["zip"], key="project-upload")
    saving.upload(given, "project", _import)


def _list(now: Studio) -> None:
    found = store.recent(limit=None)
    if not any(p.id == now.project.id for p in found):
        found = (now.project, *found)
    wanted = ""
    if len(found) > FIRST_ROWS:
        wanted = st.text_input(
            "Find a project", key="find-project", placeholder="part of its name or model"
        )
    matching = [p for p in found if _matches(p, wanted)]
    if not matching:
        st.caption("No project has that in its name or model.")
    for project in matching[:FIRST_ROWS]:
        _row(project, project.id == now.project.id)
    if len(matching) > FIRST_ROWS:
        st.caption(
            f"and {len(matching) - FIRST_ROWS} older ones; type a part of a name above to see them"
        )


def _matches(project: Project, wanted: str) -> bool:
    settings = project.settings
    return wanted.strip().lower() in f"{settings.name} {frame.described(settings)}".lower()


def _row(project: Project, is_open: bool) -> None:
    settings, free = project.settings, choices.is_free(project)
    box = st.container(border=True, key=f"project-{project.id}")
    about, buttons = box.columns([0.34, 0.66], vertical_alignment="center")
    where = ":green[open here]" if is_open else "" if free else ":orange[open in another session]"
    about.markdown(
        f"**{glossary.plain(settings.name)}** {where}  \n"
        f":small[{glossary.plain(frame.described(settings), 60)}, {frame.changed(project)}]"
    )
    row = buttons.container(horizontal=True, gap="xsmall", horizontal_alignment="right")
    if row.button("Open", key=f"show-{project.id}", disabled=is_open, type="primary"):
        choices.show_project(project)
        st.switch_page("pages/model.py")
    with row.popover("Rename", disabled=not free):
        _name_field(project)
    row.button("Duplicate", key=f"copy-{project.id}", on_click=_copy, args=(project.id,))
    with row.popover("Export"):
        _export(project)
    row.button(
        "Delete",
        key=f"delete-{project.id}",
        on_click=_delete,
        args=(project.id,),
        disabled=not free,
        help=None if free else "It is open in another session; close that one first.",
    )


def _name_field(project: Project) -> None:
    drawn = project.settings.name
    key = f"rename-{project.id}-{drawn}"
    st.text_input(
        "New name",
        value=drawn,
        key=key,
        on_change=_rename,
        args=(project.id, key, drawn),
        max_chars=store.LONGEST_NAME,
        help="Press Enter to keep it.",
    )


def _export(project: Project) -> None:
    size = archive.model_bytes(project)
    with_model = bool(size) and st.checkbox(
        f"With the model ({formatting.num_bytes(size)})", value=True, key=f"with-model-{project.id}"
    )
    st.caption(glossary.plain(archive.contents(project, with_model=with_model)))
    st.download_button(
        "Download",
        data=lambda: archive.pack(project, with_model=with_model),
        file_name=archive.file_name(project),
        mime="application/zip",
        key=f"export-{project.id}",
        on_click="ignore",
        icon=":material/download:",
    )


def _trash() -> None:
    thrown = trash.listed()
    with st.expander(f"Trash ({len(thrown)})"):
        if not thrown:
            st.caption(f"Empty. Deleted projects stay here for {trash.KEEP_DAYS} days.")
            return
        for one in thrown:
            left = formatting.counted(one.days_left, "day")
            row = st.container(horizontal=True, vertical_alignment="center")
            row.markdown(
                f"**{glossary.plain(one.name)}**  :small[{glossary.plain(one.model, 60)};"
                f" gone for good in {left}]",
                width="stretch",
            )
            row.button("Restore", key=f"restore-{one.id}", on_click=_restore, args=(one.id,))
        with st.popover("Empty the trash"):
            st.caption("What is removed here cannot be taken back.")
            st.button("Remove for good", key="empty-trash", on_click=_empty)


def _copy(project_id: str) -> None:
    project = store.find(project_id)
    if project is not None:
        twin = store.copy(project)
        choices.say("success", f"Made {twin.settings.name!r}.")


def _rename(project_id: str, key: str, drawn: str) -> None:
    project, name = store.find(project_id), str(choices.changed(key, drawn) or "").strip()
    if name and project is not None and choices.is_free(project):
        project.change(name=name)


def _delete(project_id: str) -> None:
    project = store.find(project_id)
    if project is None or not choices.is_free(project):
        return
    is_open = project.id == choices.project().id
    trash.throw_away(project)
    choices.note_deleted(project_id)
    if is_open:
        choices.show_project(choices.last_worked_on() or store.create_or_show())


def _restore(project_id: str) -> None:
    try:
        restored = trash.restore(project_id)
    except ValueError as error:
        choices.say("warning", str(error))
        return
    choices.note_deleted("")
    choices.say("success", f"{restored.settings.name!r} is back.")


def _empty() -> None:
    trash.empty()


def _elsewhere(project: Project) -> str:
    """What to say of placements for another computer; nothing where the model does not open."""
    try:
        return schema.unseen(project, snapshot(project).machine)
    except ValueError:
        return ""


def _tell_apart(project: Project) -> None:
    """Another name for what came, where a project here has that one."""
    name = project.settings.name
    if any(p.settings.name == name for p in store.recent(limit=None) if p.id != project.id):
        project.change(name=f"{name[: store.LONGEST_NAME - 11]} (imported)")


@saving.change()
def _import(upload: UploadedFile) -> None:
    try:
        project = archive.unpack(upload.getvalue(), cache.model)
    except ValueError as error:
        choices.say("error", f"{upload.name} was not imported: {error}")
    else:
        with suppress(NotWritten):
            _tell_apart(project)
        told = archive.contents(project)
        choices.say("success", f"Imported {project.settings.name!r}. {told}")
        elsewhere = _elsewhere(project)
        if elsewhere:
            choices.say("info", elsewhere)
        choices.show_project(project)
