"""What this browser session has chosen: the only file that touches session state and the URL.

The session keeps strings, numbers and booleans (objects would go stale when a module reloads);
everything that must survive it is in the project on disk.
"""

import secrets
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn

import streamlit as st
from streamlit.runtime import Runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

from placement.files import named, output
from studio.project import claim, trash
from studio.project import store as projects
from studio.project.files import NotWritten
from studio.project.store import Project

PER_PROJECT = (
    *("selection", "expanded", "expanded_of", "expanded_before", "search_answer"),
    *("run_shown", "kept", "not_saved", "unsaved"),
)
# In the address: the Studio page as it is shown to an audience.
PRESENT = "present"
# How much larger its words are: here for the picture, in present/page.css for the page.
ENLARGED = 1.5
# Width by height that the picture is folded to: before an audience its place is wide and low.
ASPECT, PRESENTED_ASPECT = 1.7, 4.3
ON_SCREEN = "What you set last holds on this screen, but is not saved."
# Open groups that are kept with a project; more would make every change of it slow.
MOST_OPENED = 500


def project() -> Project:
    """The project of this session: the one that the URL names, the one open, or the last one."""
    wanted = str(st.query_params.get("project", ""))
    # A browser may ask for a new project once more before it knows the address of the first.
    found = projects.find(wanted) or projects.find(st.session_state.get("project", ""))
    if found is None:
        found = _welcome(wanted)
    show_project(found)
    return found


def _welcome(wanted: str) -> Project:
    """What a visitor sees whose address names no project that is here."""
    trash.empty(only_old=True)
    if wanted == projects.NEW:
        return projects.create_or_show()
    thrown = trash.find(wanted)
    if thrown is not None:
        say("warning", f"{thrown.name!r} is in the trash; it can be restored on the Projects page.")
    elif wanted:
        say("warning", f"There is no project {wanted[:20]!r} here; this is a new one.")
        return projects.create_or_show()
    return last_worked_on() or projects.create_or_show()


def last_worked_on() -> Project | None:
    """The project worked on last that no other living session has open; None where there is none.

    One that nobody ever worked on does as well: it is as good as a new one.
    """
    found = projects.recent(limit=None, untouched=True)
    return next((p for p in found if is_free(p)), None)


def is_free(opened: Project) -> bool:
    """Whether this session may change a project, because no other living one has it open."""
    return claim.is_free(opened.folder, session(), _is_connected)


def deleted() -> str:
    """Id of the project that this session deleted last and may want back; empty for none."""
    return str(st.session_state.get("deleted", ""))


def note_deleted(project_id: str) -> None:
    st.session_state["deleted"] = project_id


def show_project(opened: Project) -> None:
    """Make a project the one of this session and of the URL."""
    if st.session_state.get("project") != opened.id:
        for key in PER_PROJECT:
            st.session_state.pop(key, None)
        st.session_state["project"] = opened.id
    if st.query_params.get("project") != opened.id:
        st.query_params["project"] = opened.id


def take_named_model() -> str | None:
    """The model that this session's address asks for, from among those of the start, once."""
    word = st.query_params.get(named.QUERY)
    if word is None:
        return None
    del st.query_params[named.QUERY]
    return named.model_of(str(word))


def lead_to(page: str) -> NoReturn:
    """Go to a page, a file of the studio, with the project that is open."""
    presents = {PRESENT: ""} if presenting() else {}
    st.switch_page(page, query_params={"project": project().id, **presents})


def presenting() -> bool:
    """Whether the address asks for the presenter's view."""
    return PRESENT in st.query_params


def picture_aspect() -> float:
    """How many times wider than high the picture's place is, about."""
    return PRESENTED_ASPECT if presenting() else ASPECT


def present(*, on: bool) -> None:
    """Begin or end the presenter's view; from a callback."""
    if on:
        st.query_params[PRESENT] = ""
    else:
        st.query_params.pop(PRESENT, None)


def nonce() -> str:
    """A name of this session that no other session, and no earlier server, ever had."""
    return str(st.session_state.setdefault("nonce", secrets.token_hex(8)))


def renew_claim(opened: Project, *, force: bool = False) -> bool:
    """Take or keep the project for writing; False where another session has it, or nobody can.

    `unwritable` then tells which of both.
    """
    why = ""
    try:
        projects.settle(opened)
        mine = claim.claim(opened.folder, session(), _is_connected, force=force)
    except NotWritten as error:
        mine, why = False, f"Nothing can be saved here. {error.of_folder}"
    st.session_state["may_write"], st.session_state["unwritable"] = mine, why
    return mine


def unwritable() -> str:
    """Why nobody can write in the project, in plain words; empty where somebody can."""
    return str(st.session_state.get("unwritable", ""))


def not_saved() -> str:
    """What of this project's changes is not saved, and why; empty where everything is."""
    return str(st.session_state.get("not_saved", ""))


def note_not_saved(text: str) -> None:
    st.session_state["not_saved"] = text


def session() -> str:
    """What Streamlit knows this session by, with its own name."""
    context = get_script_run_ctx()
    return f"{context.session_id if context else ''}/{nonce()}"


def is_drawn_alone() -> bool:
    """Whether a part of the page is drawn anew, not all of it."""
    context = get_script_run_ctx()
    return bool(context and context.fragment_ids_this_run)


def is_first_run() -> bool:
    """Whether nothing of this session has been drawn yet; asked once in a run."""
    was, st.session_state["has_run"] = st.session_state.get("has_run", False), True
    return not was


def may_write() -> bool:
    return bool(st.session_state.get("may_write", False))


def _is_connected(session: str) -> bool:
    streamlit_id = session.partition("/")[0]
    return Runtime.exists() and bool(Runtime.instance().is_active_session(streamlit_id))


def is_ended(session: str) -> bool:
    """Whether this server knows that a session is over."""
    return Runtime.exists() and not _is_connected(session)


def say(kind: str, text: str, place: str = "page") -> None:
    """Leave a message for the next drawing of a place.

    It is "info", "success", "warning", "error", or "refused": a change that was not made.
    """
    key = f"messages-{place}"
    st.session_state[key] = [*st.session_state.get(key, []), [kind, text]]


def take_messages(place: str = "page") -> list[tuple[str, str]]:
    return [(kind, text) for kind, text in st.session_state.pop(f"messages-{place}", [])]


def selection() -> tuple[str, ...]:
    """Names of the selected ops."""
    return tuple(st.session_state.get("selection", ()))


def select(ops: Iterable[str]) -> None:
    st.session_state["selection"] = list(ops)
    st.session_state["num_selections"] = num_selections() + 1


def num_selections() -> int:
    """How often this session has selected something."""
    return int(st.session_state.get("num_selections", 0))


def expanded(graph: str) -> frozenset[str] | None:
    """Ids of the open groups of a graph, by its fingerprint; None before anybody chose.

    A session begins with what was drawn last in this project.
    """
    if st.session_state.get("expanded_of") != graph:
        return opened_in(remembered("opened", {}), graph)
    return frozenset(st.session_state["expanded"])


def opened_in(stored: object, graph: str) -> frozenset[str] | None:
    """The open groups of a graph that a project was left with; None where it is of another one."""
    if not isinstance(stored, dict) or stored.get("graph") != graph:
        return None
    return frozenset(map(str, stored["groups"]))


def expand(graph: str, groups: Iterable[str]) -> None:
    wanted = sorted(groups)
    known = st.session_state.get("expanded_of") == graph
    before = st.session_state.get("expanded") if known else None
    if before is not None and before != wanted:
        st.session_state["expanded_before"] = before
    st.session_state["expanded_of"] = graph
    st.session_state["expanded"] = wanted


def laying_out() -> None:
    """Called now and then while a view is laid out; ends the work where a cancel waits.

    Touching the session state is where Streamlit starts over when the browser asks for it.
    """
    st.session_state.get("expanded_of")


def laid_out() -> None:
    """The open groups have been drawn: from now on a cancel does not take them back."""
    st.session_state.pop("expanded_before", None)
    groups = st.session_state.get("expanded")
    if groups is not None and len(groups) <= MOST_OPENED:
        opened = {"graph": st.session_state["expanded_of"], "groups": list(groups)}
        if remembered("opened", {}) != opened:
            store("opened", opened)


def cancel_layout() -> None:
    """Back to the open groups of before, where the new ones have not been drawn yet."""
    before = st.session_state.pop("expanded_before", None)
    if before is not None:
        st.session_state["expanded"] = before


def focus() -> int:
    """How often somebody asked the picture to move to the selection."""
    return int(st.session_state.get("focus", 0))


def look_at_selection() -> None:
    """Make the picture move to the selection when it is drawn next, on whatever page."""
    st.session_state["focus"] = focus() + 1


def search_answer() -> Mapping[str, str | int] | None:
    """What the last search in the picture found."""
    return st.session_state.get("search_answer")


def answer_search(answer: Mapping[str, str | int]) -> None:
    st.session_state["search_answer"] = answer


def kept(name: str, default: Any) -> Any:
    """How this session looks at something of its project: a page, an order."""
    return st.session_state.get("kept", {}).get(name, default)


def keep(name: str, value: Any) -> None:
    st.session_state["kept"] = {**st.session_state.get("kept", {}), name: value}


def have_changed(name: str, value: Any) -> bool:
    """Whether something of this project is not what it was when this was last asked."""
    key = own(f"last-{name}")
    before = kept(key, value)
    keep(key, value)
    return bool(before != value)


def run_shown() -> str:
    """Id of the run whose results are on the screen; empty for the newest."""
    return str(st.session_state.get("run_shown", ""))


def show_run(job_id: str) -> None:
    st.session_state["run_shown"] = job_id


def upload_seen(uploader: str, file_id: str) -> bool:
    """Whether an uploader's file was taken over already; remembers it from now on."""
    key = f"seen-{uploader}"
    seen = bool(st.session_state.get(key, "") == file_id)
    st.session_state[key] = file_id
    return seen


def typed(key: str, default: Any) -> Any:
    """What the widget with this key holds; widgets must be drawn to hold anything."""
    return st.session_state.get(key, default)


def own(key: str) -> str:
    """A widget's key with the project in it, so that another project's widget starts anew."""
    return f"{key}-{st.session_state.get('project', '')}"


def changed(key: str, drawn: Any) -> Any:
    """What a person changed a widget to; None where it holds what it was drawn with.

    A browser that has not yet heard that a widget is gone sends its value once more, and Streamlit
    takes that for a change: every `on_change` must ask here before it believes it.
    """
    value = st.session_state.get(key, drawn)
    return None if value == drawn else value


def remembered(name: str, default: Any) -> Any:
    """What was last typed into a form of this project, on any page, in any session.

    What could not be written is known to this session alone.
    """
    unsaved = st.session_state.get("unsaved", {})
    return unsaved[name] if name in unsaved else project().settings.form.get(name, default)


def remember(name: str, key: str) -> Callable[[], None]:
    """A widget callback that keeps the widget's value in the project."""

    def keep() -> None:
        if key in st.session_state:
            store(name, st.session_state[key])

    return keep


def preset(key: str, value: Any) -> None:
    """What a widget holds at first; to be called before it is drawn, every time.

    Where its value may be set by a callback too, this takes the place of the widget's own default.
    """
    st.session_state.setdefault(key, value)


def put(key: str, value: Any) -> None:
    """Set a widget; from a callback only."""
    st.session_state[key] = value


def store(name: str, value: Any) -> None:
    """Keep something in the forms of this project; a session that only looks keeps nothing."""
    if may_write():
        st.session_state["unsaved"] = {**st.session_state.get("unsaved", {}), name: value}
        write_unsaved()


def write_unsaved() -> None:
    """Write what was put into forms; where that cannot be it stays on the screen until it can."""
    unsaved = st.session_state.get("unsaved", {})
    if unsaved:
        opened = project()
        with output.losing(ON_SCREEN):
            opened.change(touch=False, form={**opened.settings.form, **unsaved})
        st.session_state.pop("unsaved", None)
