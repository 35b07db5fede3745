"""A confined process that waits for the next file, so that no file waits for one.

A process takes a third of a second until it can read a file, most of it for importing the libraries
that read. One that is kept in advance has done that; it is confined as every other when it gets its
file, before it sees anything of it, reads that one file, and ends. Only who serves pages keeps one.
"""

import subprocess
import threading
from contextlib import ExitStack

MODULE = "placement.api.worker"
# What reads the commonest files.
FURTHER = ("placement.loaders", "placement.formats.onnx.read")
# After one has been taken somebody waits for its answer, and needs the processor.
REST_S = 2.0
_guard = threading.Lock()
_waiting: list[tuple[subprocess.Popen[bytes], ExitStack]] = []
_keepers: list[threading.Thread] = []
_is_wanted = threading.Semaphore(0)
_is_over = threading.Event()


def keep() -> None:
    """Keep a process that waits, from now on, and another one after each that is taken."""
    with _guard:
        if _keepers:
            return
        _is_over.clear()
        # One thread starts them all: a process ends with the thread that has started it.
        _keepers.append(threading.Thread(target=_keep, name="spare process", daemon=True))
        _keepers[0].start()
    _is_wanted.release()


def stop() -> None:
    """Keep none any more."""
    with _guard:
        ended = list(_keepers)
        _keepers.clear()
    _is_over.set()
    _is_wanted.release()
    for keeper in ended:
        keeper.join()
    with ExitStack() as stack:
        child = take(stack)
        if child is not None:
            _close(child)
    while _is_wanted.acquire(blocking=False):
        pass


def is_ready() -> bool:
    """Whether there is one that waits."""
    with _guard:
        return bool(_waiting)


def take(stack: ExitStack) -> "subprocess.Popen[bytes] | None":
    """The process that waits, with its folder in `stack`; None where there is none."""
    with _guard:
        if not _waiting:
            return None
        child, kept = _waiting.pop()
    _is_wanted.release()
    stack.push(kept)
    if child.poll() is None:
        return child
    _close(child)
    return None


def _keep() -> None:
    while _is_wanted.acquire() and not _is_over.wait(REST_S):
        _start()


def _start() -> None:
    from profiling.sandbox import confinement

    with ExitStack() as stack:
        _, variables = stack.enter_context(confinement.own_folder())
        child = subprocess.Popen(
            confinement.waiting_command(MODULE, FURTHER),
            env=confinement.waiting_variables(variables),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        assert child.stdout is not None
        if child.stdout.read(1) == confinement.READY:
            with _guard:
                _waiting.append((child, stack.pop_all()))
        else:
            _close(child)


def _close(child: subprocess.Popen[bytes]) -> None:
    child.kill()
    child.wait()
    for stream in (child.stdin, child.stdout):
        if stream is not None:
            stream.close()
