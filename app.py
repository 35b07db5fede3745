"""Placement Studio: the frame around the pages, and the server that shows it.

`streamlit run app.py` finds `app` in here and serves it; every session runs this same file as its
script.
"""

import asyncio
import webbrowser
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st
from starlette.middleware import Middleware
from streamlit import config
from streamlit.starlette import App

from pages.ui.consequence import route
from pages.ui.desk import ahead
from pages.ui.session import unsent
from pages.ui.shell import job_watch
from pages.ui.shell.page_scripts import PageScripts
from pages.ui.shell.same_origin import SameOrigin
from pages.ui.shell.send_at_once import SendAtOnce

if TYPE_CHECKING:
    from starlette.types import ASGIApp

ASSETS, PAGES = (Path(__file__).parent / name for name in ("assets", "pages"))
FIRST = "studio"
# In the order of work; a page that is not named here comes after them.
ICONS = {
    "studio": ":material/alt_route:",
    "model": ":material/hub:",
    "devices": ":material/memory:",
    "lessons": ":material/school:",
    "projects": ":material/folder_open:",
}
# Addresses of what is on the Studio page now; they lead there.
LEADING_ON = ("place", "run", "timeline", "compare", "what_if")
# Projects are reached from the strip, and from the sidebar of every page.
NOT_IN_MENU = ("projects", *LEADING_ON)


def place_in_menu(page: Path) -> tuple[int, str]:
    order = list(ICONS)
    return order.index(page.stem) if page.stem in ICONS else len(order), page.stem


def draw() -> None:
    # The server needs none of it, and its caches want a session.
    from pages.ui import canvas
    from pages.ui.canvas import gestures
    from pages.ui.shell import first_kinds, frame
    from pages.ui.shell.messages import plain_errors

    # Before the menu: its icons would be fetched from elsewhere to stand in the browser's tab.
    st.set_page_config(page_title="Placement Studio", page_icon=ASSETS / "icon.svg", layout="wide")
    page = st.navigation(
        [
            st.Page(
                file,
                title=file.stem.replace("_", " ").capitalize(),
                icon=ICONS.get(file.stem),
                default=file.stem == FIRST,
                visibility="hidden" if file.stem in NOT_IN_MENU else "visible",
            )
            for file in sorted(PAGES.glob("*.py"), key=place_in_menu)
        ],
        position="top",
    )
    # The Studio page says in its strip what other pages say in the sidebar.
    st.set_page_config(initial_sidebar_state="collapsed" if page.url_path == "" else 260)
    st.html(ASSETS / "studio.css")
    canvas.mount_library(gestures.cancel_layout, served=True)
    with first_kinds.learned(), plain_errors():
        if page.url_path not in LEADING_ON:
            frame.show(page.url_path or FIRST)
        page.run()


@asynccontextmanager
async def begin(_: App) -> AsyncIterator[None]:
    """Get ready, and show the studio to whoever starts it at a desk, as Streamlit does for scripts
    alone."""
    unsent.go_whole()
    ahead.get_ready()
    if not config.get_option("server.headless"):
        name, port = config.get_option("server.address"), config.get_option("browser.serverPort")
        shown = "localhost" if name in (None, "", "0.0.0.0", "::") else name
        url = f"http://{shown}:{port}"
        asyncio.get_running_loop().run_in_executor(None, webbrowser.open, url)
    yield


if __name__ == "__main__":
    draw()
else:
    # Streamlit looks for exactly this: a variable that is given an App.
    app: "ASGIApp" = App(
        __file__,
        lifespan=begin,
        routes=[route.route(), ahead.route(), job_watch.route()],
        middleware=[Middleware(SameOrigin), Middleware(PageScripts), Middleware(ahead.Ahead)],
    )
    app = SendAtOnce(app)
