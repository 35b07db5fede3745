"""Whether processes of a cluster answer: Ray lists a node for some time after it has ended."""

import socket
import threading
from collections.abc import Callable

# What a client of HTTP/2, and so of gRPC, says first: its preface and settings, of which none.
_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
# How often somebody who is watched is looked after, and how many looks in a row without an answer
# are an end.
WATCH_S, LOOKS = 0.5, 3
Address = tuple[str, int]


class NoAnswer(TimeoutError):
    """Hosts that are alive took longer than somebody wanted to wait."""


def answers(address: Address, limit_s: float) -> bool:
    """Whether whoever listens there says something within `limit_s`.

    A port that takes connections is no sign of life: the system takes them for a process that
    hangs, too.
    """
    try:
        with socket.create_connection(address, limit_s) as connection:
            connection.settimeout(limit_s)
            connection.sendall(_GREETING)
            # A server that closes in an orderly way, as one that wants TLS may, is alive, too.
            connection.recv(1)
    except OSError:
        return False
    return True


def watch(is_up: Callable[[], bool], ended: Callable[[], object]) -> threading.Event:
    """Have a thread that calls `ended` once somebody is up no more.

    It looks no more once the event is set that is returned.
    """
    over = threading.Event()

    def go() -> None:
        silences = 0
        while silences < LOOKS:
            if over.wait(WATCH_S):
                return
            silences = 0 if is_up() else silences + 1
        if not over.is_set():
            ended()

    threading.Thread(target=go, name="watch", daemon=True).start()
    return over
