"""`python -m placement.api.worker`, in a confined process: one verb about one file, for `remote`.

The request comes on standard input, frames go to standard output: events while the verb is at work,
then its result or what it refuses.
"""

from __future__ import annotations

import importlib
import os
import pickle
import signal
import sys
from contextlib import nullcontext
from typing import Any, BinaryIO

from placement.api import lessons, models
from placement.core.model import Model
from placement.remote.signals import Stop
from placement.remote.wire import CANCELLED, EVENT, HEAD, REFUSAL, RESULT, Opened, Request, encoded
from profiling.measuring.lock import held_already


class _Cancelled(Exception):
    """SIGTERM came to a verb that cannot be stopped in between."""


def main() -> None:
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # What a library prints must not get between the frames.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    request: Request = pickle.load(sys.stdin.buffer)
    try:
        _send(out, RESULT, _performed(request, out))
    except _Cancelled:
        _send(out, REFUSAL, ("RuntimeError", CANCELLED))
    except (ValueError, OSError, RuntimeError, MemoryError) as error:
        text = str(error) or f"{type(error).__name__}: the computer could not do this."
        _send(out, REFUSAL, (type(error).__name__, " ".join(text.split())))


def _performed(request: Request, out: BinaryIO) -> Any:
    stop = Stop()

    def terminated(number: int, frame: object) -> None:
        if not request.stops:
            raise _Cancelled
        stop.asked = True

    signal.signal(signal.SIGTERM, terminated)
    if request.verb == "pose":
        return lessons.pose(*request.args)
    model = models.load(request.source, dict(request.dims))
    if request.verb == "load":
        return _opened(model)
    executable = model.executable
    assert executable is not None
    if request.content != (model.graph.fingerprint, executable.content_hash):
        raise ValueError(f"{request.source!r} has changed since it was opened; open it again.")
    listens: dict[str, Any] = {"stop": stop} if request.stops else {}
    if request.hears:
        listens["emit"] = lambda event: _send(out, EVENT, event)
    module, _, function = request.verb.partition(":")
    perform = getattr(importlib.import_module(module), function)
    with held_already() if request.measuring else nullcontext():
        return perform(model, *request.args, **request.kwargs, **listens)


def _opened(model: Model) -> Opened:
    executable = model.executable
    return Opened(
        model.graph,
        "" if executable is None else executable.format,
        "" if executable is None else executable.content_hash,
        getattr(executable, "symbolic_dims", ()),
        model.problem,
        model.notes,
        model.has_weights,
    )


def _send(out: BinaryIO, what: bytes, value: object) -> None:
    content = encoded(value)
    out.write(HEAD.pack(what, len(content)) + content)
    out.flush()


if __name__ == "__main__":
    main()
