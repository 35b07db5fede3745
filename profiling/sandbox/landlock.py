"""Landlock: a Linux process gives up the files and network that it will not need, for good.

By three system calls of the kernel (5.13 and later; with the same numbers on every processor), and
without privileges; children inherit it and nobody can take it back. Only the calling thread and
what it starts are bound, so it comes before any library that starts threads. See the kernel's
Documentation/userspace-api/landlock.rst.
"""

import ctypes
import os
import stat
import sys
from collections.abc import Iterable

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_ASK_VERSION = 1
_PATH_BENEATH = 1
_NO_NEW_PRIVILEGES = 38

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE = 1 << 14
_ANY_FILE = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
_READ = _EXECUTE | _READ_FILE | _READ_DIR
# All file accesses that each version of the interface knows, but ioctl, which accelerators need.
_FILES_OF = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1}
_BIND_AND_CONNECT_TCP = 0b11
_ABSTRACT_SOCKETS_AND_SIGNALS = 0b11


class _Ruleset(ctypes.Structure):
    _fields_ = (
        ("files", ctypes.c_uint64),
        ("network", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    )


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32))


def version() -> int:
    """The version of the kernel's interface, 0 where there is none."""
    if sys.platform != "linux":
        return 0
    return max(0, _call(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_ASK_VERSION)))


def restrict(readable: Iterable[str], writable: Iterable[str]) -> bool:
    """Let this process read and execute below some paths, write below others, and nothing else.

    From version 4 on it opens no TCP connection, from 6 on it signals no process outside. Paths
    that do not exist are passed over. False where the kernel knows no Landlock, or this process may
    not use it: nothing is restricted then.
    """
    known = version()
    if not known:
        return False
    files = _FILES_OF[min(known, 3)]
    network = _BIND_AND_CONNECT_TCP if known >= 4 else 0
    scoped = _ABSTRACT_SOCKETS_AND_SIGNALS if known >= 6 else 0
    asked = _Ruleset(files, network, scoped)
    size = 8 if known < 4 else 16 if known < 6 else 24
    ruleset = _call(_CREATE_RULESET, ctypes.byref(asked), ctypes.c_size_t(size), 0)
    if ruleset < 0:
        return False
    try:
        for path in readable:
            _allow(ruleset, path, _READ)
        for path in writable:
            _allow(ruleset, path, files)
        ctypes.CDLL(None).prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        return _call(_RESTRICT_SELF, ruleset, 0) == 0
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, accesses: int) -> None:
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(opened).st_mode):
            accesses &= _ANY_FILE
        rule = _PathBeneath(accesses & _FILES_OF[min(version(), 3)], opened)
        _call(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(rule), 0)
    finally:
        os.close(opened)


def _call(number: int, *arguments: object) -> int:
    return int(ctypes.CDLL(None, use_errno=True).syscall(number, *arguments))
