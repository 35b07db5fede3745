"""A stop that lets what has begun come to its end: SIGTERM with a result instead of without."""

import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from placement.core.events import Emit

# The exit status of a process that was ended by SIGTERM, also where it still had something to say.
TERMINATED = 143

# Who waits for the result longer than this gets none: the process ends as it would have at once.
# Together with the time that takes it stays below what the pages wait before they use force.
PATIENCE_S = 2.0
Handler = Callable[[int, Any], Any] | int


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

    What counts as such is for `first` to say. Before it there is nothing to give. Asking again
    changes nothing, but when patience runs out the process is ended by the handler that was there
    before. Signals reach the main thread alone: elsewhere `emit` is handed on as it is.
    """
    if threading.current_thread() is not threading.main_thread():
        yield emit
        return
    before: Handler = signal.getsignal(signal.SIGTERM) or signal.SIG_DFL
    reader, writer = os.pipe()
    until_s = [0.0]

    def asked(number: int, frame: object) -> None:
        # Takes no lock, for whoever holds one may be what it interrupts.
        if not stop.asked:
            stop.asked, until_s[0] = True, time.monotonic() + patience_s
            os.write(writer, b"a")
        elif time.monotonic() >= until_s[0]:
            _hand_on(before, number, frame)

    def listen(event: dict[str, Any]) -> object:
        # A signal's handler can be set by the main thread alone.
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGTERM) is not asked and first(event):
            signal.signal(signal.SIGTERM, asked)
        return emit(event)

    watcher = threading.Thread(target=_watch, args=(reader, patience_s), daemon=True)
    watcher.start()
    try:
        yield listen
    finally:
        signal.signal(signal.SIGTERM, before)
        os.close(writer)
        watcher.join()


def _watch(reader: int, patience_s: float) -> None:
    """Once asked, signal again when patience has run out; the pipe is closed when work is over."""
    if os.read(reader, 1):
        over, _, _ = select.select([reader], [], [], patience_s)
        if not over:
            time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGTERM)
            os.read(reader, 1)
    os.close(reader)


def _hand_on(handler: Handler, number: int, frame: object) -> None:
    if callable(handler):
        handler(number, frame)
    else:
        signal.signal(number, handler)
        os.kill(os.getpid(), number)
