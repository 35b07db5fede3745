"""Answers in two parts leave at once, on the server that the studio has."""

import asyncio
import socket
import threading
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import uvicorn

from pages.ui.shell.send_at_once import SendAtOnce


async def told_of_delay(scope, receive, send):
    """Answers whether its connection holds small parts back: 0 where it does."""
    if scope["type"] != "http":
        return
    connection = send.__self__.transport.get_extra_info("socket")
    switched = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(int(bool(switched))).encode()})


def answered(app):
    """What an app answers over a connection, with a socket made as Streamlit makes its own."""
    with socket.socket(socket.AF_INET) as listening:
        listening.bind(("127.0.0.1", 0))
        config = uvicorn.Config(app, lifespan="off", log_level="error")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            url = f"http://127.0.0.1:{listening.getsockname()[1]}/"
            listening.listen()
            with urllib.request.urlopen(url, timeout=20) as answer:
                return answer.read()
        finally:
            server.should_exit = True
            thread.join()


def test_the_second_part_of_an_answer_is_not_held_back():
    assert answered(SendAtOnce(told_of_delay)) == b"1"


def test_other_servers_are_asked_as_they_are():
    sent = []

    async def send(message):
        sent.append(message)

    async def app(scope, receive, send):
        await send(scope)

    with ThreadPoolExecutor(1) as alone:
        alone.submit(asyncio.run, SendAtOnce(app)({"type": "http"}, None, send)).result()
    assert sent == [{"type": "http"}]
