"""Scripts of the pages from memory: the same as Streamlit sends, and nothing that it would not."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from streamlit.web.server.starlette.starlette_static_routes import create_streamlit_static_handler

from pages.ui.shell.page_scripts import FOLDER, PageScripts


def asked(app, path, method="GET", headers=()):
    """Status, headers and content of an answer; an app that nobody should ask says 418."""
    sent = []

    async def receive():
        # Whoever asks again waits for the browser to leave, which this one does not.
        await asyncio.Event().wait()

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in headers],
        "server": ("127.0.0.1", 8501),
        "client": ("127.0.0.1", 1),
        "scheme": "http",
    }
    # A thread of its own, for a browser test before this leaves a loop running in this one.
    with ThreadPoolExecutor(1) as alone:
        alone.submit(asyncio.run, app(scope, receive, send)).result()
    body = b"".join(message.get("body", b"") for message in sent)
    return sent[0]["status"], {k.decode(): v.decode() for k, v in sent[0]["headers"]}, body


async def teapot(scope, receive, send):
    await send({"type": "http.response.start", "status": 418, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def examples():
    """One file of each kind, as an address."""
    files = sorted(path for path in (FOLDER / "static").rglob("*") if path.is_file())
    kinds = {path.suffix: path for path in reversed(files)}
    return [f"/{path.relative_to(FOLDER).as_posix()}" for path in kinds.values()]


def test_each_kind_of_file_is_answered_as_streamlit_answers_it():
    theirs = create_streamlit_static_handler(str(FOLDER), None)
    assert {".js", ".css", ".woff2"} <= {f".{path.rpartition('.')[2]}" for path in examples()}
    for path in examples():
        ours, expected = asked(PageScripts(teapot), path), asked(theirs, path)
        assert ours[0] == expected[0] == 200 and ours[2] == expected[2], path
        for header in ("content-type", "cache-control", "content-length"):
            assert ours[1][header] == expected[1][header], (path, header)


@pytest.mark.parametrize(
    "path",
    ["/", "/index.html", "/static/", "/static/js/none.js", "/static/../index.html", "/etc/passwd"],
)
def test_everything_else_is_left_to_streamlit(path):
    assert asked(PageScripts(teapot), path)[0] == 418


def test_what_is_more_than_a_plain_request_is_left_to_streamlit():
    path = examples()[0]
    assert asked(PageScripts(teapot), path, "POST")[0] == 418
    assert asked(PageScripts(teapot), path, headers=[("Range", "bytes=0-1")])[0] == 418
    assert asked(PageScripts(teapot), path, headers=[("If-None-Match", "x")])[0] == 418
