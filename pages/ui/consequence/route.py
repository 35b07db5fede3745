"""Where a browser asks what an edit would do: one address of the studio's own server.

`SameOrigin` stands before it as before everything else, so that only the studio's pages can ask.
"""

from typing import TYPE_CHECKING

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response
from starlette.routing import Route
from streamlit import config

if TYPE_CHECKING:
    from starlette.requests import Request

NAME = "placement/consequence"
# A selection of all nodes that are drawn at once has some 20 kB.
MOST_BYTES = 200_000


def address() -> str:
    """The path of the route, below the path that the studio is served at."""
    base = str(config.get_option("server.baseUrlPath")).strip("/")
    return f"/{base}/{NAME}" if base else f"/{NAME}"


def route() -> Route:
    return Route(address(), _answer, methods=["POST"])


async def _answer(request: "Request") -> Response:
    # Not before somebody asks: the server starts without the studio's own modules.
    from pages.ui.consequence import questions

    content = bytearray()
    async for chunk in request.stream():
        content += chunk
        if len(content) > MOST_BYTES:
            return Response(status_code=413)
    try:
        question = msgspec.json.decode(content, type=questions.Question)
    except msgspec.MsgspecError:
        return Response(status_code=400)
    found = await run_in_threadpool(questions.answer, question)
    if found is None:
        return Response(status_code=204)
    return Response(msgspec.json.encode(found), media_type="application/json")
