"""Streamlit's scripts, styles and fonts, sent from memory.

A page begins with more than a hundred small files, and Streamlit looks each up, opens it, reads it
and sends it through a pool of threads, one after the other: a fifth of the time to a first picture.
They are named by their content, so what was read once is good for as long as the server runs.
"""

import mimetypes
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st
from starlette.responses import Response

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

FOLDER = Path(st.__file__).parent / "static"
# As Streamlit says of the same files.
KEPT = "public, immutable, max-age=31536000"
# Whoever asks for a part, or whether something has changed, is answered by Streamlit.
CONDITIONS = {b"range", b"if-none-match", b"if-modified-since", b"if-range"}


class PageScripts:
    """ASGI middleware: answers for files that bear a hash in their names, and for nothing else."""

    def __init__(self, app: "ASGIApp") -> None:
        self.app = app

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        path = _asked_for(scope)
        answer = _answer_with(path) if path else self.app
        await answer(scope, receive, send)


def _asked_for(scope: "Scope") -> str:
    """The file that a plain request is for; empty where it is none of these."""
    if scope["type"] != "http" or scope["method"] != "GET" or scope["path"] not in _files():
        return ""
    conditional = any(name.lower() in CONDITIONS for name, _ in scope["headers"])
    return "" if conditional else str(scope["path"])


@cache
def _files() -> dict[str, Path]:
    """By the path of their address; nothing that an address says is looked up on the disk."""
    found = (path for path in (FOLDER / "static").rglob("*") if path.is_file())
    return {f"/{path.relative_to(FOLDER).as_posix()}": path for path in found}


@cache
def _answer_with(path: str) -> Response:
    kind = mimetypes.guess_type(path)[0] or "application/octet-stream"
    return Response(_files()[path].read_bytes(), media_type=kind, headers={"Cache-Control": KEPT})
