"""Commands about a file run in a confined process; this one waits for it and says how it ended.

What a bundled sample needs was written here, so such commands run in the process that was started.
"""

import signal
import subprocess
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from placement.cli.options import fail
from placement.files.home import home
from placement.files.output import drafts
from profiling.sandbox import confinement

# Options that name a file to read, and those that name one to write.
_READ = ("placement", "profile", "inputs", "run", "pins", "sequences", "keep", "move", "machine")
_WRITTEN = ("out", "split")
# Settings of placers that name a file to write.
_WRITTEN_SETTINGS = ("save",)


def is_about_a_file(options: Namespace) -> bool:
    """Whether a command opens a model file, in a process that is not confined yet."""
    from placement import loaders

    source = getattr(options, "input", None)
    if source is None or confinement.is_confined():
        return False
    return not loaders.is_sample(source)


def supervise(options: Namespace, arguments: Sequence[str]) -> int:
    """Run a command about a file in a confined process; the exit status to end with."""
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
