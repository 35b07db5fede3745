"""Answers that leave at once, though they are written in two parts.

A server writes the head of an answer, then its body. Where the operating system holds a small
second part back until the first has been acknowledged (Nagle's algorithm, RFC 896), and the browser
puts that off in the hope of an answer to send it with, each small file takes 40 ms more, and a page
is a hundred of them. asyncio switches this off only for sockets that name their protocol, which
those of Streamlit's server do not.
"""

import socket
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send


class SendAtOnce:
    """ASGI application around another: switches the delay off on whatever connection asks."""

    def __init__(self, app: "ASGIApp") -> None:
        self.app = app

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        # What uvicorn gives to send with knows its connection; of other servers nothing is assumed.
        transport = getattr(getattr(send, "__self__", None), "transport", None)
        if transport is not None:
            # A browser that has left by now has nothing to be sent.
            with suppress(OSError, AttributeError):
                connection = transport.get_extra_info("socket")
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await self.app(scope, receive, send)
