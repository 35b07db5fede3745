"""What a page will ask for, begun as soon as a browser asks for the page.

A browser reads Streamlit's scripts for half a second before it opens a session, and only then does
anything of a page run. Meanwhile the project that the address names is read, placed, simulated and
laid out here, through the caches that the page looks into, and the picture is there for whoever
asks for it before a session can (assets/desk/first_sight.js). Nothing is written, and nothing is
said of what fails: the page meets it again, and says it.
"""

import logging
import sys
import threading
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

import streamlit as st
from anyio import CapacityLimiter, to_thread
from starlette.responses import Response
from starlette.routing import Route
from streamlit import config

from pages.ui.shell.first_page import FIRST_SIGHT
from pages.ui.shell.page_scripts import is_for_page

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp, Receive, Scope, Send

    from studio.project.store import Project

# Whoever asks for more pages at a time than this gets them as they come.
MOST_AT_ONCE = 2
SWITCH_S = 5e-4
# A picture that takes longer than this comes with its session.
PATIENCE_S = 10.0
places = threading.BoundedSemaphore(MOST_AT_ONCE)
waiting = CapacityLimiter(2 * MOST_AT_ONCE)
_log = logging.getLogger(__name__)


class Ahead:
    """ASGI middleware: lets everything through, and begins the work of what is a page."""

    def __init__(self, app: "ASGIApp") -> None:
        self.app = app

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        project = asked_for(scope)
        if project and places.acquire(blocking=False):
            # A daemon, for the server's end waits for no model to be read.
            threading.Thread(target=begin, args=(project,), name="ahead", daemon=True).start()
        await self.app(scope, receive, send)


def get_ready() -> None:
    """While a browser comes, import what pages are made of, and keep a process for its file."""
    threading.Thread(target=_import_all, name="getting ready", daemon=True).start()


def _import_all() -> None:
    # One thread sends what pages ask for while others compute; for every turn it would wait 5 ms.
    sys.setswitchinterval(SWITCH_S)
    from pages.ui.desk import dock, strip  # noqa: F401
    from placement.remote import spare

    spare.keep()


def asked_for(scope: "Scope") -> str:
    """Id of the project whose page a browser goes to; empty for every other request."""
    if not is_for_page(scope):
        return ""
    return project_in(str(scope["query_string"], "latin-1"))


def project_in(query: str) -> str:
    """The project that an address names; empty where it names none."""
    return parse_qs(query).get("project", [""])[0]


def route() -> Route:
    """The address at which a browser has the picture of a project before it has a session."""
    base = str(config.get_option("server.baseUrlPath")).strip("/")
    return Route("/".join(("", *([base] if base else []), FIRST_SIGHT)), _answer)


async def _answer(request: "Request") -> Response:
    # Threads of its own: those of the server send the page's files meanwhile.
    if waiting.available_tokens < 1:
        return Response(status_code=204)
    asked = project_in(request.url.query)
    found = await to_thread.run_sync(first_sight, asked, limiter=waiting)
    if found is None:
        return Response(status_code=204)
    return Response(found, media_type="application/json", headers={"Cache-Control": "no-store"})


def begin(project: str) -> None:
    try:
        first_sight(project)
    finally:
        places.release()


def first_sight(project: str) -> bytes | None:
    """The picture of a project as JSON; None where it has none without a session."""
    try:
        # Not before somebody asks: the server starts without the studio's own modules.
        from studio.project import store

        found = store.find(project)
        if found is not None:
            return prepare(found.id, _stamp(found))
    except Exception:
        _log.debug("A page was not begun ahead", exc_info=True)
    return None


def _stamp(project: "Project") -> str:
    """Changes with whatever a picture of a project is made of."""
    from pages.ui.session import cache

    named = (Path(project.source), Path(project.machine_spec))
    shelves = sorted(project.folder.glob("placements/*/*"))
    files = (project.folder / "project.json", *named, *shelves)
    return " ".join((cache.store_stamp(), *(cache.stamp(file) for file in files)))


# Inside of what it keeps Streamlit shows no spinner; elsewhere it would miss a session to show it.
@st.cache_resource(max_entries=16, show_spinner=False)
def prepare(project_id: str, when: str) -> bytes | None:
    """Work out what the Studio page draws of a project, as far as no session is needed for it.

    `when` stands for all that it is made of. The picture of the graph is returned, unless a session
    would draw another one: of a lesson, of a method's step, or coloured by something else. Raises
    TimeoutError where the model takes long to read, so that nothing is kept then.
    """
    import msgspec

    from pages.ui import canvas
    from pages.ui.canvas import colour_switch, component, gestures, picture
    from pages.ui.session import cache, choices
    from pages.ui.steps import walk
    from studio import lesson, model_reader
    from studio.project.store import Project, folder
    from studio.snapshot import Studio

    project = Project(folder() / project_id)
    settings = project.settings
    key = cache.model_key(project.source, tuple(sorted(settings.dims.items())))
    # By a reader, so that the page can say for how long it has been waiting, and stop waiting.
    if not cache.is_open(key) and not model_reader.start(key).done.wait(PATIENCE_S):
        raise TimeoutError(f"The model of {project_id} is still being read")
    now = Studio(project, settings, cache, Nobody())
    graph = now.model.graph
    opened = choices.opened_in(settings.form.get("opened"), graph.fingerprint)
    groups = gestures.opened_or_first(graph, opened, presented=False)
    view = canvas.build_view(graph, groups, aspect=choices.ASPECT)
    colouring = colour_switch.kept(settings.form)
    seen = picture.of_placement(now, view, colouring or colour_switch.PLAIN)
    shown = msgspec.json.encode(component.first_sight(seen))
    cache.bound(now.problem)
    is_plain = colouring is not None and settings.form.get(walk.DOCK) != walk.TAB
    return shown if is_plain and lesson.readable(project) is None else None


class Nobody:
    """Stands for no session: it writes nothing, and nothing is said to it."""

    def may_write(self) -> bool:
        return False

    def unwritable(self) -> str:
        # The first placement is lent, then, and the session that comes writes it.
        return "Nobody has this project open yet."

    def change(self, lost: str) -> AbstractContextManager[None]:
        return nullcontext()

    def say(self, kind: str, text: str) -> None:
        pass

    def show_run(self, job_id: str) -> None:
        pass
