"""The same-origin policy of the studio's server: who may ask it for anything, and who may frame it.

Streamlit looks at the Host of websockets alone, compares the names of origins but neither port nor
scheme, and takes a websocket without an origin. Here every request must name an address of the
studio: a name in `server.allowedHosts` with the server's port (or `browser.serverPort`, where a
tunnel has another one), or an origin in `server.corsAllowedOrigins`, for a proxy in front.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from starlette.responses import PlainTextResponse
from streamlit import config
from streamlit.logger import get_logger

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = ("127.0.0.1", "localhost", "::1")
DEFAULT_PORTS = {"http": 80, "https": 443}
HEALTH = "/_stcore/health"
READING = ("GET", "HEAD", "OPTIONS")
HEADERS = (
    (b"content-security-policy", b"frame-ancestors 'none'"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
_LOG = get_logger(__name__)


class SameOrigin:
    """ASGI middleware: refuses what comes from elsewhere, and forbids frames around the rest."""

    def __init__(self, app: "ASGIApp") -> None:
        self.app = app

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        begun = left = False

        async def send_guarded(message: "Message") -> None:
            nonlocal begun, left
            if message["type"] == "http.response.start":
                begun = True
                message = {**message, "headers": [*message.get("headers", ()), *HEADERS]}
            try:
                await send(message)
            except OSError:
                left = True
                raise

        why = why_refused(scope)
        if why:
            _LOG.warning("Refused: %s", why)
            await _refuse(scope, receive, send_guarded, why)
            return
        try:
            await self.app(scope, receive, send_guarded)
        except Exception:
            if left and scope["type"] == "websocket":
                # Streamlit closes what its own failed message has closed, which Starlette refuses.
                _LOG.debug("The browser left while a message was on its way", exc_info=True)
                return
            # What Starlette would say of it goes past every middleware.
            if scope["type"] == "http" and not begun:
                said = PlainTextResponse("The studio failed here; its log says why.", 500)
                await said(scope, receive, send_guarded)
            raise


async def _refuse(scope: "Scope", receive: "Receive", send: "Send", why: str) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 1008, "reason": ""})
    else:
        await PlainTextResponse(why, 403)(scope, receive, send)


def why_refused(scope: "Scope") -> str:
    """What is wrong with a request, as a sentence; empty where it comes from the studio itself."""
    origins = own_origins(scope["server"][1], config.get_option("server.allowedHosts") or LOOPBACK)
    hosts, given = _values(scope, b"host"), _values(scope, b"origin")
    host = hosts[0] if len(hosts) == 1 else ""
    if host not in {origin.partition("//")[2] for origin in origins}:
        if scope["path"] == HEALTH and host in _loopback_hosts(scope["server"][1]):
            return ""
        return (
            f"The studio does not answer at {host[:200]!r}; if this is an address of its own, start"
            " it with --server.allowedHosts NAME for each name (see README)."
        )
    changing = scope["type"] == "websocket" or scope["method"] not in READING
    if changing and not given:
        return "This request says no origin; only the studio's own pages may send it."
    if any(origin not in origins for origin in given):
        return (
            f"A page at {given[0][:200]!r} may not ask the studio for anything; only its own pages"
            " may."
        )
    if _is_embedding(scope):
        return "Pages of others may link to the studio, but neither frame it nor load from it."
    return ""


def own_origins(port: int, names: Sequence[str]) -> frozenset[str]:
    """The studio's own addresses as browsers write them: http://localhost:8501."""
    scheme = "https" if config.get_option("server.sslCertFile") else "http"
    ports = {port, int(config.get_option("browser.serverPort"))}
    own = {_origin(scheme, name, each) for name in names for each in ports}
    further = {str(o).strip().lower() for o in config.get_option("server.corsAllowedOrigins")}
    return frozenset(own | further)


def _loopback_hosts(port: int) -> frozenset[str]:
    return frozenset(origin.partition("//")[2] for origin in own_origins(port, LOOPBACK))


def _origin(scheme: str, name: str, port: int) -> str:
    host = name.strip().lower()
    host = f"[{host}]" if ":" in host else host
    return f"{scheme}://{host}" + ("" if port == DEFAULT_PORTS[scheme] else f":{port}")


def _is_embedding(scope: "Scope") -> bool:
    """Whether a browser says that another site's page loads this, other than by going there."""
    if not {"cross-site", "same-site"} & set(_values(scope, b"sec-fetch-site")):
        return False
    goes_there = _values(scope, b"sec-fetch-mode") == ["navigate"]
    return not (goes_there and _values(scope, b"sec-fetch-dest") == ["document"])


def _values(scope: "Scope", name: bytes) -> list[str]:
    found = (value for key, value in scope["headers"] if key.lower() == name)
    return [value.decode("latin-1").strip().lower() for value in found]
