"""Confined processes: what reads or runs a file of a stranger gets little memory, time and reach.

A file may be made to break what reads it, and libraries that compute are written in languages where
that means any code. So files are read and run in a process of their own: its memory and its
processor time have limits while it reads, it opens the files that it needs and no others, it opens
no socket, and it ends with whoever started it. If it crashes, that is a sentence here.

Time holds on Linux and macOS, memory and sockets on Linux, files on Linux with Landlock.
"""

import json
import os
import resource
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from placement.compiled.cache import SHARED, cache_folder

ROOT = Path(__file__).resolve().parents[2]
# Set in processes that are confined.
MARK = "PLACEMENT_CONFINED"
# While a file is read. PyTorch and what it loads take 0.35 GB, a parsed file some times its size.
READ_BYTES, READ_BYTES_PER_BYTE = 3 * 2**29, 10
READ_S, READ_S_PER_BYTE = 25.0, 2e-6
# While a model is measured and run: four programs at a time, each with weights that its runtime
# packs anew, and buffers of the samples in flight.
RUN_BYTES, RUN_BYTES_PER_BYTE = 3 * 2**30, 11
# In place of limits on the command line: they come later, on standard input, after so many bytes
# that say how long they are. What such a process says once it waits for them.
AWAITED, HEAD, READY = "-", 4, b"+"
# Threads of numerical libraries, which begin with their import.
_ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
_SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/etc", "/opt", "/nix")
_KERNEL = ("/proc", "/sys", "/dev", "/run/nvidia-persistenced", "/run/udev")
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "shm", "dri", "kfd", "accel")
_DIES_WITH_PARENT = 1


@dataclass(frozen=True)
class Limits:
    """What a confined process gets: bytes and seconds of the processor while it reads the file, and
    the files and folders that it may read and write beside those of the interpreter."""

    memory_bytes: int
    cpu_s: float
    readable: tuple[str, ...]
    writable: tuple[str, ...]


def limits_for(source: str, readable: Sequence[str] = (), writable: Sequence[str] = ()) -> Limits:
    """Limits for reading a file, by its size; it may read the folder that the file lies in.

    Of a folder it may read what is in it.
    """
    path = Path(source).absolute()
    try:
        inside = path.is_dir()
        num_bytes = path.stat().st_size
    except (OSError, ValueError):
        inside, num_bytes = False, 0
    folders = (path, path.resolve()) if inside else (path.parent, path.resolve().parent)
    return Limits(
        READ_BYTES + READ_BYTES_PER_BYTE * num_bytes,
        READ_S + READ_S_PER_BYTE * num_bytes,
        (*map(str, folders), *readable),
        tuple(writable),
    )


def is_confined() -> bool:
    """Whether this process is one."""
    return os.environ.get(MARK) == "1"


def command(limits: Limits, module: str, arguments: Sequence[str]) -> list[str]:
    """The command line that runs a module in a confined process, which ends with this one."""
    return _command(_spelled(limits), module, *arguments)


def waiting_command(module: str, further: Sequence[str]) -> list[str]:
    """The command line of a process that imports modules, and then runs the first of them once it
    has got its limits; see `told`."""
    return _command(AWAITED, module, *further)


def waiting_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """The environment of such a process: no import in it starts threads."""
    return {**variables, **_ONE_THREAD}


def told(limits: Limits) -> bytes:
    """What a process that waits for its limits gets, before anything for its module."""
    given = _spelled(limits).encode()
    return len(given).to_bytes(HEAD, "big") + given


def _spelled(limits: Limits) -> str:
    return json.dumps({"parent": os.getpid(), **asdict(limits)})


def _command(*arguments: str) -> list[str]:
    # Without the folder that it is started in, which may be one of downloads.
    return [sys.executable, "-P", "-m", "profiling.sandbox.confined", *arguments]


@contextmanager
def own_folder() -> Iterator[tuple[str, dict[str, str]]]:
    """A folder for a confined process's temporary files, and the environment that names it.

    What it compiles is kept there. What others have compiled it loads but may not change: they
    load it, too.
    """
    with tempfile.TemporaryDirectory(prefix="placement-", ignore_cleanup_errors=True) as folder:
        environment = {**os.environ, "TMPDIR": folder, MARK: "1"}
        paths = (str(ROOT), os.environ.get("PYTHONPATH", ""))
        environment["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
        environment[SHARED] = str(cache_folder())
        environment["NUMBA_CACHE_DIR"] = str(Path(folder) / "compiled")
        yield folder, environment


def confine(limits: Limits, parent: int) -> None:
    """Confine this process, which `parent` started; before what starts threads is imported."""
    end_with(parent)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _limit(resource.RLIMIT_DATA, limits.memory_bytes)
    signal.setitimer(signal.ITIMER_PROF, limits.cpu_s)
    if sys.platform == "linux":
        from profiling.sandbox import landlock, seccomp

        landlock.restrict(_readable(limits), _writable(limits))
        seccomp.restrict()


def file_is_read(num_bytes: float) -> None:
    """From here on the limits are those of a model whose weights and values have so many bytes."""
    if is_confined():
        signal.setitimer(signal.ITIMER_PROF, 0)
        _limit(resource.RLIMIT_DATA, int(RUN_BYTES + RUN_BYTES_PER_BYTE * num_bytes))


@contextmanager
def deadline(seconds: float | None) -> Iterator[None]:
    """End a confined process that is still inside when the time is over, whatever it does."""
    if seconds is None or not is_confined():
        yield
        return
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def ending(code: int, name: str) -> str:
    """Why a confined process was ended by a signal (`code` is negative), in a sentence."""
    number = -code
    if number in (signal.SIGPROF, signal.SIGXCPU):
        return f"Reading {name!r} took too long and was stopped; use a smaller or simpler file."
    if number == signal.SIGALRM:
        return f"{name!r} did not end within its time limit and was stopped; allow more time."
    if number == signal.SIGKILL:
        return (
            f"The process that worked on {name!r} was ended from outside, most likely for want of"
            " memory; use a smaller model or other sizes."
        )
    return (
        f"The process that worked on {name!r} crashed ({signal.Signals(number).name}); the file, or"
        " the runtime on it, is at fault. Nothing else was touched; open another file."
    )


def end_with(parent: int) -> None:
    """Have this process end with the one that started it, on Linux; at once where that is gone."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_DIES_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
    # It may have ended before this process got so far.
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def _limit(kind: int, value: int) -> None:
    """The soft limit, as far as the hard one lets it."""
    _, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))


def _readable(limits: Limits) -> list[str]:
    interpreter = (sys.prefix, sys.base_prefix, sys.exec_prefix, os.path.realpath(sys.executable))
    libraries = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    compiled = os.environ.get(SHARED, "")
    paths = (*interpreter, str(ROOT), *sys.path, *libraries, compiled, *_SYSTEM, *_KERNEL)
    return [path for path in dict.fromkeys((*paths, *limits.readable)) if path]


def _writable(limits: Limits) -> list[str]:
    folder = Path("/dev")
    devices = [str(folder / name) for name in _DEVICES]
    devices += [str(path) for path in folder.glob("nvidia*")]
    # Not `gettempdir`, which turns to folders of everybody's where this one has no room.
    paths = (*devices, os.environ.get("TMPDIR", ""), *limits.writable)
    return [path for path in paths if path]
