"""A stop that lets what has begun come to its end: SIGTERM with a result instead of without."""

import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from placement.events import Emit

# Who waits for the result longer than this gets none: the process ends as it would have at once.
# Together with the time that takes it stays below what the pages wait before they use force.
PATIENCE_S = 2.0


class Stop:
    """Whether somebody asked to stop; asked by the work itself, between its pieces."""

    def __init__(self) -> None:
        self.asked = False

    def __call__(self) -> bool:
        return self.asked


def is_step(event: Mapping[str, Any]) -> bool:
    return bool(event["event"] == "step")


def has_value(event: Mapping[str, Any]) -> bool:
    """Whether a method tells of a placement that it could give as its answer."""
    return event["event"] == "progress" and event.get("best") is not None


@contextmanager
def partly(
    stop: Stop,
    emit: Emit,
    patience_s: float = PATIENCE_S,
    first: Callable[[Mapping[str, Any]], bool] = is_step,
) -> Iterator[Emit]:
    """A listener to hand to the work in place of `emit`; from its first step on SIGTERM only asks.

    What counts as such is for `first` to say. Before it there is nothing to give, and a second
    signal, or the first one's patience running out, ends the process by the handler that was there
    before. Signals reach the main thread alone: elsewhere `emit` is handed on as it is.
    """
    if threading.current_thread() is not threading.main_thread():
        yield emit
        return
    before = signal.getsignal(signal.SIGTERM) or signal.SIG_DFL
    hasten: list[threading.Timer] = []

    def asked(number: int, frame: object) -> None:
        stop.asked = True
        signal.signal(signal.SIGTERM, before)
        hasten.append(threading.Timer(patience_s, os.kill, (os.getpid(), signal.SIGTERM)))
        hasten[0].daemon = True
        hasten[0].start()

    def listen(event: dict[str, Any]) -> object:
        # A signal's handler can be set by the main thread alone.
        main = threading.current_thread() is threading.main_thread()
        if main and not stop.asked and first(event):
            signal.signal(signal.SIGTERM, asked)
        return emit(event)

    try:
        yield listen
    finally:
        for timer in hasten:
            timer.cancel()
        signal.signal(signal.SIGTERM, before)
