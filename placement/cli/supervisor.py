"""Commands about a file run in a confined process; this one waits for it and says how it ended.

What a bundled sample needs was written here, so such commands run in the process that was started.
"""

import os
import re
import signal
import subprocess
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from placement.cli import compiling
from placement.cli.options import fail
from placement.cli.printing import listener
from placement.core.events import silent
from placement.core.verb_options import LOCAL
from placement.files.home import home
from placement.files.output import drafts
from profiling.sandbox import confinement

# Options that name a file to read, and those that name one to write.
_READ = ("placement", "profile", "inputs", "run", "pins", "sequences", "keep", "move", "machine")
_WRITTEN = ("out", "split")
# Settings of placers that name a file to write.
_WRITTEN_SETTINGS = ("save",)
# Where a process that is attended to says that it has ended by itself: the number of a pipe.
_END = "PLACEMENT_END_PIPE"
# How Ray's own log begins a line, with the letter of its level.
_LOGGED = re.compile(rb"\[\d{4}-\d\d-\d\d [^\]]*? ([A-Z]) \d+ \d+\]")


def is_about_a_file(options: Namespace) -> bool:
    """Whether a command opens a model file, in a process that is not confined yet."""
    from placement import loaders

    source = getattr(options, "input", None)
    if source is None or confinement.is_confined():
        return False
    # What is connected to a cluster is not confined; what reads the file here is, by the verbs.
    if _is_elsewhere(options) or getattr(options, "search_on", "") not in ("", LOCAL):
        return False
    return not loaders.is_sample(source)


def is_over_hosts(options: Namespace) -> bool:
    """Whether a command is connected to a cluster, which may end this process with its own end."""
    return _END not in os.environ and _is_elsewhere(options)


def attend(arguments: Sequence[str]) -> int:
    """Run a command over a cluster in a process of its own; the exit status to end with.

    Ray ends whoever is connected to a node that dies, in the middle of anything and without a word
    that people understand. What it logs is not passed on.
    """
    reader, writer = os.pipe()
    with _passing_on_signals() as started:
        child = subprocess.Popen(
            [sys.executable, "-m", "placement", *arguments],
            env={**os.environ, _END: str(writer)},
            pass_fds=[writer],
            stderr=subprocess.PIPE,
        )
        started(child)
        os.close(writer)
        assert child.stderr is not None
        for line in _understandable(child.stderr):
            sys.stderr.buffer.write(line)
            sys.stderr.flush()
        code = child.wait()
    with open(reader) as told:
        # Its own status may be Ray's, which has a way of its own to leave.
        if status := told.read():
            return int(status)
    if code in (-signal.SIGTERM, 128 + signal.SIGTERM):
        return 128 + signal.SIGTERM
    from profiling.backends.base import ClusterEnded

    return fail(str(ClusterEnded()))


def tell_the_end(work: Callable[[], int]) -> int:
    """What some work returns, told to whoever attends to this process, however it ends.

    Where the head of the cluster ends, this process does at once, and the other one says so.
    """
    told = os.environ.pop(_END, "")
    if not told:
        return work()
    from profiling.backends.ray import BACKEND

    confinement.end_with(os.getppid())
    status = 1
    try:
        with BACKEND.ending(lambda: os._exit(1)):
            status = work()
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else status
        raise
    finally:
        os.write(int(told), str(status).encode())
    return status


def _understandable(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Lines but those that Ray logs, with all that comes after a fatal one."""
    for line in lines:
        found = _LOGGED.match(line)
        if found is None:
            yield line
        elif found[1] in (b"C", b"F"):
            break
    for _ in lines:
        pass


def _is_elsewhere(options: Namespace) -> bool:
    """Whether hosts of a cluster run the file; what reads it here is confined by the verbs."""
    named = str(getattr(options, "machine", "") or "")
    if named.partition(":")[0] in ("", "local"):
        return False
    from profiling import backends
    from profiling.devices.local import is_cluster, load_machine

    if not Path(named).is_file():
        return is_cluster(named)
    with suppress(ValueError):
        return bool(backends.elsewhere(load_machine(named).devices))
    return False


def supervise(options: Namespace, arguments: Sequence[str]) -> int:
    """Run a command about a file in a confined process; the exit status to end with."""
    status = _compile_before(options)
    if status:
        return status
    # Where it cannot be made, whoever needs it says so.
    with suppress(OSError):
        home().mkdir(parents=True, exist_ok=True)
    readable = [str(path) for path in (*_named(options, _READ), *_settings(options))]
    outputs = (*_named(options, _WRITTEN), *_saved(options))
    with drafts(outputs) as written, confinement.own_folder() as (_, variables):
        writable = (str(home()), *written.folders)
        limits = confinement.limits_for(options.input, readable, writable)
        command = confinement.command(limits, "placement", arguments)
        with _passing_on_signals() as started:
            child = subprocess.Popen(command, env={**variables, **written.variables})
            started(child)
            code = child.wait()
    if code == -signal.SIGTERM:
        return 128 + signal.SIGTERM
    if code == -signal.SIGINT:
        return fail("Stopped.")
    return code if code >= 0 else fail(confinement.ending(code, Path(options.input).name))


def _compile_before(options: Namespace) -> int:
    """Have compiled what the confined process could not keep; 0 unless this is told to end."""
    words = compiling.missing(options)
    tell = listener(options) if words else silent
    for number, word in enumerate(words):
        what = compiling.COMPILING
        tell({"event": "progress", "what": what, "step": number, "of": len(words)})
        with _passing_on_signals() as started:
            child = subprocess.Popen(
                compiling.command(word),
                cwd=confinement.ROOT,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            started(child)
            code = child.wait()
        if code == -signal.SIGTERM:
            return 128 + signal.SIGTERM
        if code == -signal.SIGINT:
            return fail("Stopped.")
        # Whatever else kept it from being compiled, the confined process compiles for itself.
    return 0


def _named(options: Namespace, names: Sequence[str]) -> Iterator[Path]:
    for name in names:
        value = getattr(options, name, None)
        if isinstance(value, str) and value:
            yield Path(value).absolute()


def _settings(options: Namespace) -> Iterator[Path]:
    """Files that settings of a placer name."""
    for text in getattr(options, "set", ()):
        path = Path(text.partition("=")[2]).absolute()
        if path.is_file():
            yield path


def _saved(options: Namespace) -> Iterator[Path]:
    """Files that settings of a placer name to be written."""
    for text in getattr(options, "set", ()):
        key, _, value = text.partition("=")
        if key in _WRITTEN_SETTINGS and value:
            yield Path(value).absolute()


@contextmanager
def _passing_on_signals() -> Iterator[Callable[[subprocess.Popen[bytes]], None]]:
    """Tells a process what this one is told to do, from the call with it on; a terminal tells both.

    The handlers are functions, because a signal that is ignored here would be ignored there.
    """
    children: list[subprocess.Popen[bytes]] = []
    early: list[int] = []

    def pass_on(number: int, frame: object) -> None:
        for child in children:
            child.send_signal(number)
        if not children:
            early.append(number)

    def started(child: subprocess.Popen[bytes]) -> None:
        children.append(child)
        for number in early:
            child.send_signal(number)

    before = {
        signal.SIGTERM: signal.signal(signal.SIGTERM, pass_on),
        signal.SIGINT: signal.signal(signal.SIGINT, lambda *_: None),
    }
    try:
        yield started
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
