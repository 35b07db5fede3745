"""What the studio's own server answers, and to whom: asked by raw requests, as no browser would."""

import asyncio
import http.client
import json
import socket
import urllib.request
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress

import pytest
from starlette.websockets import WebSocket, WebSocketDisconnect

from pages.ui.shell.same_origin import SameOrigin
from tests.browser.serving import Server

FOREIGN_HOSTS = ("evil.example", "127.0.0.1:9999", "127.0.0.1", "localhost.evil.example:{port}")
FOREIGN_ORIGINS = (
    "http://127.0.0.1:9999",
    "http://localhost",
    "https://127.0.0.1:{port}",
    "http://evil.example",
    "http://127.0.0.1:{port}.evil.example",
    "https://x.streamlit.app",
    "null",
)
PATHS = (
    "/",
    "/place",
    "/favicon.png",
    "/_stcore/health",
    "/_stcore/host-config",
    "/_stcore/bidi-components/none/index.js",
    "/component/none/index.html",
    "/media/none.png",
    "/_stcore/upload_file/none/none",
    "/none/of/ours.js",
    "/placement/consequence",
)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("studio")
    with running(folder) as port:
        yield port


@contextmanager
def running(folder, *options: str) -> Iterator[int]:
    """A studio with a home of its own, started in a folder that is not its own; its port."""
    server = Server(folder / "home", folder / "log", options=options, folder=folder)
    try:
        server.start()
        yield server.port
    finally:
        server.stop()


def asked(port: int, path: str = "/", method: str = "GET", body=None, **headers: str):
    """The response to a request whose headers are these; a Host of its own only where none is."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    named = {k.replace("_", "-"): v.format(port=port) for k, v in headers.items()}
    named.setdefault("Host", f"127.0.0.1:{port}")
    try:
        connection.putrequest(method, path, skip_host=True)
        data = body or b""
        for key, value in {**named, "Content-Length": str(len(data))}.items():
            connection.putheader(key, value)
        connection.endheaders(data)
        response = connection.getresponse()
        response.content = response.read()
        return response
    finally:
        connection.close()


def run_apart(coroutine: Coroutine) -> None:
    """In a thread of its own: in this one, Playwright may have left its loop running."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, coroutine).result()


def shaken(port: int, **headers: str) -> int:
    """The status of a websocket's handshake: 101 where it is taken."""
    named = {"Host": f"127.0.0.1:{port}"} | {k: v.format(port=port) for k, v in headers.items()}
    lines = [
        "GET /_stcore/stream HTTP/1.1",
        *(f"{key}: {value}" for key, value in named.items()),
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Protocol: streamlit",
    ]
    with socket.create_connection(("127.0.0.1", port), timeout=30) as line:
        line.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        return int(line.recv(4096).split()[1])


@pytest.mark.parametrize("path", PATHS)
def test_no_page_of_others_may_frame_anything(server, path):
    for response in (asked(server, path), asked(server, path, Host="evil.example")):
        assert response.headers["Content-Security-Policy"] == "frame-ancestors 'none'"
        assert response.headers["X-Frame-Options"] == "DENY"


def test_files_of_the_frontend_come_with_the_same_headers(server):
    page = asked(server).content.decode()
    script = page.split('src="./static/js/')[1].split('"')[0]
    response = asked(server, f"/static/js/{script}")
    assert response.status == 200 and len(response.content) > 1000
    assert response.headers["X-Frame-Options"] == "DENY"


def test_no_host_may_send_messages_into_the_page(server):
    response = asked(server, "/_stcore/host-config")
    assert response.status == 200 and json.loads(response.content)["allowedOrigins"] == []


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "[::1]"])
def test_the_studio_answers_at_its_own_addresses(server, name):
    host, origin = f"{name}:{server}", f"http://{name}:{server}"
    assert asked(server, Host=host).status == 200
    assert asked(server, "/_stcore/health", Host=host).status == 200
    assert shaken(server, Host=host, Origin=origin) == 101


@pytest.mark.parametrize("host", FOREIGN_HOSTS)
def test_another_host_is_refused_and_the_remedy_named(server, host):
    for path in PATHS:
        response = asked(server, path, Host=host)
        assert response.status == 403 and b"--server.allowedHosts" in response.content, path
    assert shaken(server, Host=host, Origin="http://127.0.0.1:{port}") == 403
    assert shaken(server, Host=host, Origin=f"http://{host}") == 403


@pytest.mark.parametrize("origin", FOREIGN_ORIGINS)
def test_another_origin_is_refused(server, origin):
    assert shaken(server, Origin=origin) == 403
    for path in PATHS:
        assert asked(server, path, Origin=origin).status == 403, path
    assert asked(server, "/_stcore/upload_file/a/b", "PUT", b"x", Origin=origin).status == 403


def test_what_changes_something_must_name_its_origin(server):
    assert shaken(server) == 403
    for method in ("PUT", "POST", "DELETE"):
        response = asked(server, "/_stcore/upload_file/a/b", method, b"x")
        assert response.status == 403 and b"no origin" in response.content


def test_an_upload_without_the_page_s_token_is_refused(server):
    own = f"http://127.0.0.1:{server}"
    response = asked(server, "/_stcore/upload_file/a/b", "PUT", b"x", Origin=own)
    assert response.status == 403 and b"XSRF" in response.content


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_pages_of_others_may_link_but_not_embed(server, site):
    def status(mode: str, dest: str) -> int:
        headers = {"Sec_Fetch_Site": site, "Sec_Fetch_Mode": mode, "Sec_Fetch_Dest": dest}
        return asked(server, "/", **headers).status

    assert status("navigate", "document") == 200
    assert status("navigate", "iframe") == status("no-cors", "image") == 403


def test_a_fault_of_the_server_is_not_framed_either():
    async def faulty(scope, receive, send):
        raise RuntimeError("a fault")

    async def answer() -> None:
        with pytest.raises(RuntimeError, match="a fault"):
            await SameOrigin(faulty)(scope, None, send)

    async def send(message) -> None:
        sent.append(message)

    sent = []
    headers = [(b"host", b"localhost:4711")]
    scope = {"type": "http", "method": "GET", "path": "/", "headers": headers}
    scope["server"] = ("127.0.0.1", 4711)
    run_apart(answer())
    assert sent[0]["status"] == 500 and (b"x-frame-options", b"DENY") in sent[0]["headers"]


@pytest.mark.parametrize("left", [True, False])
def test_a_browser_that_leaves_is_no_fault_of_the_server(left):
    """Streamlit sends, fails, and then closes what Starlette has closed already."""

    async def endpoint(scope, receive, send):
        websocket = WebSocket(scope, receive, send)
        await websocket.accept()
        with suppress(WebSocketDisconnect):
            await websocket.send_bytes(b"a page")
        raise RuntimeError("Cannot close what is closed")

    async def receive():
        return {"type": "websocket.connect"}

    async def send(message) -> None:
        if left and message["type"] == "websocket.send":
            raise OSError("the browser left")

    origin = [(b"host", b"localhost:4711"), (b"origin", b"http://localhost:4711")]
    scope = {"type": "websocket", "path": "/_stcore/stream", "headers": origin}
    scope["server"] = ("127.0.0.1", 4711)
    with nullcontext() if left else pytest.raises(RuntimeError, match="what is closed"):
        run_apart(SameOrigin(endpoint)(scope, receive, send))


def test_a_person_may_name_further_addresses(tmp_path):
    options = (
        "--server.allowedHosts",
        "lab7",
        "--server.corsAllowedOrigins",
        "https://lab.example",
    )
    with running(tmp_path, *options) as port:
        assert asked(port, Host="lab7:{port}").status == 200
        assert shaken(port, Host="lab7:{port}", Origin="http://lab7:{port}") == 101
        assert shaken(port, Host="lab7:{port}", Origin="https://lab.example") == 101
        assert shaken(port, Host="lab7:{port}", Origin="http://evil.example") == 403
        assert asked(port, Host="lab.example").status == 200
        assert asked(port, "/_stcore/health").status == 200
        assert asked(port).status == 403


def test_the_protection_does_not_depend_on_where_one_stands(server):
    """The server of this module stands in a folder of its own, those of tests/browser here."""
    url = f"http://127.0.0.1:{server}"
    with urllib.request.urlopen(url, timeout=30) as page:
        assert page.headers["X-Frame-Options"] == "DENY"
    with urllib.request.urlopen(f"{url}/_stcore/host-config", timeout=30) as told:
        assert json.load(told)["allowedOrigins"] == []
    assert shaken(server, Host="evil.example:{port}", Origin="http://evil.example") == 403
