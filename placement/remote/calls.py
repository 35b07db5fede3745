"""Verbs about a model file, carried out in a confined process: what comes back is checked values.

Whoever opens a file here (a notebook, the pages) never parses it: `open_model` gets its graph from
a confined process, and the model's executable side only names the file. A verb that needs the
content is carried out by such a process too (`in_confinement`). What goes there is pickled, for it
comes from here; what comes back is decoded as the type that is expected and nothing else, because
whoever wrote it may have been taken over by the file.
"""

from __future__ import annotations

import functools
import os
import pickle
import selectors
import signal
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain
from pathlib import Path
from pkgutil import resolve_name
from typing import IO, TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from placement.core.events import Emit, never, silent
from placement.core.machine import Machine
from placement.core.model import Dims, Model, RemoteExecutable
from placement.files.output import drafts
from placement.parallel.encoding import read_whole
from placement.remote import spare
from placement.remote.wire import (
    CANCELLED,
    EVENT,
    HEAD,
    MOST_BYTES,
    REFUSAL,
    RESULT,
    Opened,
    Request,
    decoded,
)

if TYPE_CHECKING:
    from placement.lessons.judging import Posed
    from placement.lessons.lesson import Lesson
    from profiling.sandbox.confinement import Limits

P = ParamSpec("P")
R = TypeVar("R")

POLL_S = 0.1
_ERRORS: Mapping[str, type[Exception]] = {"RuntimeError": RuntimeError, "MemoryError": MemoryError}


def open_model(path: str, dims: Dims) -> Model:
    """The model in a file, read by a confined process; a ValueError says what is wrong with it."""
    request = Request("load", str(Path(path).absolute()), tuple(sorted(dims.items())))
    opened = cast(Opened, _answer(request, Opened))
    executable = None
    if opened.format:
        executable = RemoteExecutable(
            Path(path),
            request.dims,
            opened.format,
            opened.content_hash,
            opened.symbolic_dims,
            opened.has_weights,
        )
    return Model(opened.graph, executable, opened.problem, opened.notes)


def pose(lesson: Lesson, folder: Path) -> Posed:
    """What a lesson poses, worked out by a confined process; a ValueError says what is wrong."""
    from placement.lessons.judging import Posed

    name = lesson.header.problem or "lesson.md"
    request = Request("pose", str((folder / name).absolute()), (), args=(lesson, folder.absolute()))
    return cast(Posed, _answer(request, Posed))


def in_confinement(
    result: Callable[[], Any] | str, writes: str = "", *, on_hosts: bool = False
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Carry a function out elsewhere where its model, the first argument, is a file's.

    `result` returns or names ("module:name") the type of what the function returns. Its keyword
    argument `emit` hears the events and `stop` is asked, as if it were carried out here. `writes`
    names the keyword argument that is the path of a file to write. What can be done `on_hosts` is
    done by these where the devices are theirs: they open the file, and it is only sent from here.
    """

    def decorate(verb: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(verb)
        def carried_out(*args: P.args, **kwargs: P.kwargs) -> R:
            model = cast(Model, args[0])
            executable = model.executable
            if not isinstance(executable, RemoteExecutable):
                return verb(*args, **kwargs)
            if on_hosts and _is_elsewhere(args[1:]):
                return verb(*args, **kwargs)
            from profiling.measuring.lock import held

            listens: dict[str, Any] = dict(kwargs)
            emit, stop = listens.pop("emit", None), listens.pop("stop", None)
            request = Request(
                f"{verb.__module__}:{verb.__name__}",
                str(executable.path.absolute()),
                executable.dims,
                (model.graph.fingerprint, executable.content_hash),
                args[1:],
                listens,
                str(Path(str(listens[writes])).absolute()) if writes else "",
                hears=emit is not None,
                stops=stop is not None,
                measuring=held(),
            )
            kind = resolve_name(result) if isinstance(result, str) else result()
            return cast(R, _answer(request, kind, emit or silent, stop or never))

        return carried_out

    return decorate


def _is_elsewhere(values: Iterable[object]) -> bool:
    """Whether what is asked for is about a machine of other computers, which open the file."""
    from profiling import backends

    # Those who race come as several.
    each = chain.from_iterable(v if isinstance(v, list | tuple) else (v,) for v in values)
    machines = (getattr(value, "machine", value) for value in each)
    return any(
        isinstance(machine, Machine) and bool(backends.elsewhere(machine.devices))
        for machine in machines
    )


def _answer(
    request: Request, kind: Any, emit: Emit = silent, stop: Callable[[], bool] = never
) -> Any:
    """What a confined process answers to a request, decoded as `kind`; its refusals are raised."""
    name = Path(request.source).name
    unwanted = threading.Event()
    with _process(request) as child:
        for what, content in _frames(child, lambda: unwanted.is_set() or stop()):
            if what == EVENT:
                if emit(decoded(content, dict[str, Any])) is False:
                    unwanted.set()
            elif what == RESULT:
                return decoded(content, kind)
            elif what == REFUSAL:
                error, text = decoded(content, tuple[str, str])
                raise _ERRORS.get(error, ValueError)(text)
        code = child.wait()
    from profiling.sandbox.confinement import ending

    if code == -signal.SIGTERM:
        # It was stopped before it could answer that.
        raise RuntimeError(CANCELLED)
    if code >= 0:
        raise RuntimeError(f"The process that worked on {name!r} ended without an answer.")
    raise Ended(ending(code, name))


class Ended(ValueError):
    """A confined process was ended before it could answer, most likely for what it took."""


@contextmanager
def _process(request: Request) -> Iterator[subprocess.Popen[bytes]]:
    """A confined process that has got a request; it does not outlive the context."""
    from placement.files.home import home
    from profiling.sandbox import confinement

    # Where it cannot be made, whoever needs it says so.
    with suppress(OSError):
        home().mkdir(parents=True, exist_ok=True)
    outputs = [Path(request.writes)] if request.writes else []
    with drafts(outputs) as written, ExitStack() as stack:
        writable = (str(home()), *written.folders)
        limits = confinement.limits_for(request.source, writable=writable)
        # One that waits only reads: it has not the threads that a run may have.
        child = spare.take(stack) if request.verb == "load" else None
        first = confinement.told(limits)
        if child is None:
            _, variables = stack.enter_context(confinement.own_folder())
            child, first = _started(limits, {**variables, **written.variables}), b""
        try:
            _send(child, first + pickle.dumps(request))
            yield child
        finally:
            child.kill()
            child.wait()
            _stream(child.stdout).close()


def _started(limits: Limits, variables: Mapping[str, str]) -> subprocess.Popen[bytes]:
    from profiling.sandbox import confinement

    return subprocess.Popen(
        confinement.command(limits, "placement.api.worker", ()),
        env=variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
    )


def _send(child: subprocess.Popen[bytes], content: bytes) -> None:
    # Where it ends before it has read all, how it ended says more.
    with suppress(BrokenPipeError), os.fdopen(os.dup(_stream(child.stdin).fileno()), "wb") as out:
        out.write(content)
    _stream(child.stdin).close()


def _stream(found: IO[bytes] | None) -> IO[bytes]:
    assert found is not None
    return found


def _frames(
    child: subprocess.Popen[bytes], stop: Callable[[], bool]
) -> Iterator[tuple[bytes, bytes]]:
    """What a process says, piece by piece, until it ends; it is told when `stop` says so."""
    stream = _stream(child.stdout)
    told = False
    with selectors.DefaultSelector() as waiting:
        waiting.register(stream, selectors.EVENT_READ)
        while True:
            if not told and stop():
                child.send_signal(signal.SIGTERM)
                told = True
            if not waiting.select(POLL_S):
                continue
            head = read_whole(stream, HEAD.size)
            if len(head) < HEAD.size:
                return
            what, num_bytes = HEAD.unpack(head)
            if num_bytes > MOST_BYTES:
                raise RuntimeError(
                    f"A confined process gave an answer that is none ({num_bytes} bytes)."
                )
            yield what, read_whole(stream, num_bytes)
