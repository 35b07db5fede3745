"""Streamlit's scripts, styles and fonts, sent from memory.

A page begins with more than a hundred small files, and Streamlit looks each up, opens it, reads it
and sends it through a pool of threads, one after the other: a fifth of the time to a first picture.
They are named by their content, so what was read once is good for as long as the server runs. The
smallest travel with the page itself (`first_page.py`).
"""

import mimetypes
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st
from starlette.responses import Response
from streamlit import config

from pages.ui.shell import canvas_scripts
from pages.ui.shell.first_page import first_page
from placement.files import program

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

FOLDER = Path(st.__file__).parent / "static"
# As Streamlit says of the same files.
KEPT = "public, immutable, max-age=31536000"
# Whoever asks for a part, or whether something has changed, is answered by Streamlit.
CONDITIONS = frozenset((b"range", b"if-none-match", b"if-modified-since", b"if-range"))
# Programs that a page begins with.
FIRST = ("open_anew.js", "first_sight.js")
# What would make an answer another one than the file.
WAYS = CONDITIONS | {b"accept-encoding"}
# What an answer says about the file, and not about what is sent for it.
OF_FILE = frozenset((b"content-length", b"etag", b"last-modified"))


class PageScripts:
    """ASGI middleware: answers for files that bear a hash in their names, and for nothing else."""

    def __init__(self, app: "ASGIApp") -> None:
        self.app = app

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        path = _asked_for(scope)
        if path:
            await _answer_with(path)(scope, receive, send)
        elif is_for_page(scope):
            # Whole and as it is, so that it can be told from everything else.
            plain = [pair for pair in scope["headers"] if pair[0].lower() not in WAYS]
            await self.app({**scope, "headers": plain}, receive, _Page(send).send)
        else:
            await self.app(scope, receive, send)


def is_for_page(scope: "Scope") -> bool:
    """Whether a browser goes to a page, rather than loading something for one."""
    if scope["type"] != "http" or scope["method"] != "GET":
        return False
    return [v for k, v in scope["headers"] if k.lower() == b"sec-fetch-dest"] == [b"document"]


class _Page:
    """Sends an answer on; where it is Streamlit's page, with the small scripts in it."""

    def __init__(self, send: "Send") -> None:
        self._send = send
        self._start: Message | None = None

    async def send(self, message: "Message") -> None:
        if message["type"] == "http.response.start":
            # Its length is not known before the body is.
            self._start = message
            return
        start, self._start = self._start, None
        if start is not None and message.get("body") == _index() and not message.get("more_body"):
            body = _first_page()
            headers = [(b"content-length", str(len(body)).encode()), *_without(start, OF_FILE)]
            start, message = {**start, "headers": headers}, {**message, "body": body}
        if start is not None:
            await self._send(start)
        await self._send(message)


def _without(start: "Message", names: frozenset[bytes]) -> list[tuple[bytes, bytes]]:
    return [(name, value) for name, value in start["headers"] if name.lower() not in names]


@cache
def _index() -> bytes:
    return (FOLDER / "index.html").read_bytes()


@cache
def _first_page() -> bytes:
    page = _index().decode("utf-8")
    texts = ((program.ASSETS / "desk" / name).read_text(encoding="utf-8") for name in FIRST)
    # Each in a block, so that their names stay apart.
    ours = "".join(f"{{\n{text}}}\n" for text in texts)
    made = first_page(page, FOLDER / "static" / "js", canvas_scripts.library_path(), ours)
    return made.encode("utf-8")


def _asked_for(scope: "Scope") -> str:
    """The file that a plain request is for; empty where it is none of these."""
    if scope["type"] != "http" or scope["method"] != "GET":
        return ""
    if scope["path"] not in _files() and scope["path"] != _library():
        return ""
    conditional = any(name.lower() in CONDITIONS for name, _ in scope["headers"])
    return "" if conditional else str(scope["path"])


@cache
def _files() -> dict[str, Path]:
    """By the path of their address; nothing that an address says is looked up on the disk."""
    found = (path for path in (FOLDER / "static").rglob("*") if path.is_file())
    return {f"/{path.relative_to(FOLDER).as_posix()}": path for path in found}


@cache
def _library() -> str:
    """The address of the canvas's script, below the path that the studio is served at."""
    base = str(config.get_option("server.baseUrlPath")).strip("/")
    return "/".join(("", *([base] if base else []), canvas_scripts.library_path()))


@cache
def _answer_with(path: str) -> Response:
    if path == _library():
        kind, content = "text/javascript", canvas_scripts.library_script().encode("utf-8")
    else:
        kind = mimetypes.guess_type(path)[0] or "application/octet-stream"
        content = _files()[path].read_bytes()
    return Response(content, media_type=kind, headers={"Cache-Control": KEPT})
