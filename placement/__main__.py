"""The command line: `python -m placement VERB ...`.

With --json a verb prints one JSON value on standard output and nothing else there. Exit 0 on
success, 1 when a check fails, 2 on bad input with one line on standard error, 143 when terminated,
141 when whoever reads the output wants no more of it (`... | head`).
"""

import atexit
import os
import signal
import sys
import threading
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

from placement.cli.options import fail, make_parser
from placement.cli.printing import output_refusals, silence

_GRACE_S = 2.0
# No signal's number: a Ctrl-C was lost. After the seconds who noticed it is out of the way.
_LOST, _OUT_OF_THE_WAY_S = 0, 0.02
# Its number where there is one; Windows knows no such signal.
_SIGPIPE = 13


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb in this process and return the exit status."""
    options = make_parser().parse_args(arguments)
    return _ended(lambda: _performed(options))


def command_line() -> int:
    """Run the verb that this process was started for, confined if it is about a file."""
    from placement.cli import supervisor

    options = make_parser().parse_args()
    if supervisor.is_about_a_file(options):
        return _ended(lambda: supervisor.supervise(options, sys.argv[1:]))
    if supervisor.is_over_hosts(options):
        return _ended(lambda: supervisor.attend(sys.argv[1:]))
    return supervisor.tell_the_end(lambda: _ended(lambda: _performed(options)))


def _performed(options: Namespace) -> int:
    # Not before: a process that only waits for a confined one needs none of it.
    from placement.cli import verbs

    verb = getattr(verbs, options.verb.replace("-", "_"))
    _require_apart(options)
    with _terminable():
        status = int(verb(options))
    # What is still held back is written here, where a reader that is gone can be seen to.
    with output_refusals():
        sys.stdout.flush()
    return status


def _require_apart(options: Namespace) -> None:
    """ValueError where an output would take the place of the model that it is made of."""
    source = getattr(options, "input", None)
    for path in filter(None, (getattr(options, name, None) for name in ("out", "split"))):
        if source and os.path.isfile(source) and os.path.realpath(path) == os.path.realpath(source):
            raise ValueError(f"{path!r} is the model itself; write to another file.")


def _ended(work: Callable[[], int]) -> int:
    """The exit status of some work, or that of its failure once that was said."""
    try:
        return work()
    except BrokenPipeError:
        return _unread()
    except (ValueError, OSError, RuntimeError, MemoryError) as error:
        # Python 3.11 tells of a signal that comes while a class is made as of that class's error.
        if isinstance(error.__cause__, KeyboardInterrupt):
            return fail("Stopped.")
        if isinstance(error.__cause__, SystemExit):
            raise error.__cause__ from None
        return fail(str(error) or f"{type(error).__name__}: the computer could not do this.")
    except KeyboardInterrupt:
        return fail("Stopped.")


def _unread() -> int:
    """End as a program does that writes to a closed pipe, and as quietly."""
    # The interpreter flushes once more when it ends.
    silence(sys.stdout)
    return 128 + _SIGPIPE


@contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM end this process by the way on which temporary files are removed.

    The handler takes no lock: it raises. A thread that was there before makes sure of the end, for
    another one may be inside a call of a runtime that cannot be ended. That thread is told by the
    interpreter's own handler in C, since the one here waits for the main thread to come back from
    a call, and for good where the signal came just before a call that sleeps.

    A Ctrl-C that comes while an object is taken away would end nothing, for Python only writes what
    is raised then. It is raised again.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    ended = threading.Event()

    def terminated(number: int, frame: object) -> NoReturn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise SystemExit(128 + number)

    def unraisable(lost: "sys.UnraisableHookArgs") -> None:
        if issubclass(lost.exc_type, KeyboardInterrupt):
            # Raised here it would be lost once more, and what was interrupted may hold a lock.
            os.write(writer, bytes([_LOST]))
        else:
            said_before(lost)

    threading.Thread(target=_see_to_the_end, args=(reader, ended), daemon=True).start()
    said_before, sys.unraisablehook = sys.unraisablehook, unraisable
    told_before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    before = signal.signal(signal.SIGTERM, terminated)
    try:
        yield
    finally:
        ended.set()
        if signal.getsignal(signal.SIGTERM) is terminated:
            signal.signal(signal.SIGTERM, before or signal.SIG_DFL)
        signal.set_wakeup_fd(told_before)
        if sys.unraisablehook is unraisable:
            sys.unraisablehook = said_before
        os.close(writer)


def _see_to_the_end(reader: int, ended: threading.Event) -> None:
    """Once SIGTERM's number arrives, leave after a grace period, having run the exit functions.

    A Ctrl-C that was lost is raised again.
    """
    # Each signal that Python handles writes its number, a terminal's Ctrl-C as well.
    while number := os.read(reader, 1):
        if number[0] == signal.SIGTERM:
            break
        if number[0] == _LOST and not ended.wait(_OUT_OF_THE_WAY_S):
            # As a signal, for the main thread may have gone to sleep since.
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        os.close(reader)
        return
    # The pipe stays open: a terminal's signal and the same one passed on may arrive together.
    time.sleep(_GRACE_S)
    last = threading.Thread(target=atexit._run_exitfuncs, daemon=True)
    last.start()
    last.join(1.0)
    os._exit(128 + number[0])


if __name__ == "__main__":
    sys.exit(command_line())
