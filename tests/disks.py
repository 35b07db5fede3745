"""Disks that take no more: full, files limited in size, or without the right to write."""

import ctypes
import os
import resource
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

_HEADER, _DATA = ctypes.c_uint32 * 2, ctypes.c_uint32 * 6
# With these (DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER, CHOWN) root passes permission bits.
_PASSING = (1 << 1) | (1 << 2) | (1 << 3) | (1 << 0)
_VERSION_3 = 0x20080522


@contextmanager
def without_rights(folder):
    """Nobody may write below a folder, not even root: for this thread and those that it starts."""
    paths = [path for path in (folder, *folder.rglob("*")) if path.is_dir()]
    before = {path: path.stat().st_mode for path in paths}
    for path in paths:
        path.chmod(0o500)
    data = _capabilities()
    dropped = _DATA(*data)
    dropped[0] &= ~_PASSING
    _set(dropped)
    try:
        try:
            (folder / "probe").touch()
        except PermissionError:
            yield
        else:
            raise AssertionError("a folder without the right to write was written")
    finally:
        _set(data)
        for path, mode in before.items():
            path.chmod(mode)


def _capabilities():
    data = _DATA()
    header = _HEADER(_VERSION_3, 0)
    assert ctypes.CDLL(None).syscall(_number("capget"), header, data) == 0
    return data


def _set(data):
    header = _HEADER(_VERSION_3, 0)
    assert ctypes.CDLL(None).syscall(_number("capset"), header, data) == 0


def _number(call):
    first = {"x86_64": 125, "aarch64": 90}[os.uname().machine]
    return first + (call == "capset")


@contextmanager
def files_up_to(num_bytes):
    """No file of this process may grow beyond some bytes.

    What Python compiles meanwhile is not kept: it would be cut short.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        sys.dont_write_bytecode = before


@contextmanager
def small_disk(folder, num_bytes):
    """A file system of so many bytes on a folder; False where nobody here may mount one."""
    folder.mkdir(exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={num_bytes}", "studio-test", str(folder)]
    try:
        mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        mounted = False
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextmanager
def filled(folder, spare_bytes=0):
    """The file system of a folder full but for some bytes."""
    filler = Path(folder) / "filler"
    try:
        with filler.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError:
                file.truncate(max(0, file.tell() - spare_bytes))
        yield
    finally:
        filler.unlink()
