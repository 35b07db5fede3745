"""Seccomp: a Linux process gives up system calls that it will not need, for good.

Landlock knows files, TCP and signals. What else leads out of a process is refused here: sockets of
every kind (a session bus or a container's socket would run commands for whoever connects), letters
put into a terminal's input, and the interface by which the kernel makes such calls by itself. The
filter is a program in the kernel's classic BPF over number and arguments of a call; children have
it, too. See the kernel's Documentation/userspace-api/seccomp_filter.rst.
"""

import ctypes
import errno
import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass

_SET_NO_NEW_PRIVILEGES, _SET_SECCOMP, _MODE_FILTER = 38, 22, 2
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | errno.EACCES
# Where the kernel tells a filter what is called: offsets in `struct seccomp_data`.
_NUMBER, _ARCHITECTURE, _SECOND_ARGUMENT = 0, 4, 24
# Loads 32 bits; goes on where they are equal, or at least, or in any case; ends with a verdict.
_LOAD, _IF_EQUAL, _IF_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
# Put a letter into the input of a terminal, or paste what was selected there.
_TERMINAL_INPUTS = (0x5412, 0x541C)
_IO_URING_SETUP = 425
# From here on x86 takes numbers for another interface with calls of its own.
_OTHER_INTERFACE = 0x40000000


@dataclass(frozen=True)
class _Calls:
    """What a processor calls itself to a filter, and its numbers of calls."""

    architecture: int
    socket: int
    ioctl: int


_CALLS = {
    "x86_64": _Calls(0xC000003E, 41, 16),
    "aarch64": _Calls(0xC00000B7, 198, 29),
    "riscv64": _Calls(0xC00000F3, 198, 29),
}


class _Instruction(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_uint16),
        ("if_true", ctypes.c_uint8),
        ("if_false", ctypes.c_uint8),
        ("value", ctypes.c_uint32),
    )


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("instructions", ctypes.c_void_p))


def is_known() -> bool:
    """Whether there is a filter for this system and processor."""
    return sys.platform == "linux" and sys.maxsize > 2**32 and platform.machine() in _CALLS


def restrict() -> bool:
    """Refuse the calls from here on; False where there is no filter or the kernel takes none."""
    if not is_known():
        return False
    program = _program(_CALLS[platform.machine()])
    instructions = (_Instruction * len(program))(*program)
    filtered = _Program(len(program), ctypes.cast(instructions, ctypes.c_void_p))
    system = ctypes.CDLL(None, use_errno=True)
    given = [ctypes.c_ulong(n) for n in (_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0)]
    if system.prctl(*given):
        return False
    mode = ctypes.c_ulong(_SET_SECCOMP), ctypes.c_ulong(_MODE_FILTER)
    return not system.prctl(*mode, ctypes.byref(filtered))


def _program(calls: _Calls) -> Sequence[_Instruction]:
    """What becomes of a call, whose verdicts come last: each test says how far they are from it."""
    tests: list[tuple[int, int, str, str]] = [
        (_LOAD, _ARCHITECTURE, "", ""),
        (_IF_EQUAL, calls.architecture, "next", "refuse"),
        (_LOAD, _NUMBER, "", ""),
        (_IF_AT_LEAST, _OTHER_INTERFACE, "refuse", "next"),
        (_IF_EQUAL, calls.socket, "refuse", "next"),
        (_IF_EQUAL, _IO_URING_SETUP, "refuse", "next"),
        (_IF_EQUAL, calls.ioctl, "next", "allow"),
        (_LOAD, _SECOND_ARGUMENT, "", ""),
        *((_IF_EQUAL, request, "refuse", "next") for request in _TERMINAL_INPUTS),
    ]
    steps = {"next": 0, "": 0}
    program = []
    for i, (code, value, if_true, if_false) in enumerate(tests):
        left = len(tests) - i - 1
        steps |= {"allow": left, "refuse": left + 1}
        program.append(_Instruction(code, steps[if_true], steps[if_false], value))
    return [*program, _Instruction(_RETURN, 0, 0, _ALLOW), _Instruction(_RETURN, 0, 0, _REFUSE)]
