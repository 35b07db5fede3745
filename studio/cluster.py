"""The hosts of a Ray cluster as a machine file, asked for by a process of its own.

Whoever connects to a cluster is ended with it, so no server of pages ever does.
"""

import os
import socket
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from placement.files.program import program_folder

LIMIT_S, LOOK_S = 90.0, 0.5
# Where Ray notes the cluster that was started last on a computer, in its folder for such things.
NOTE = "ray/ray_current_cluster"


def save_hosts(path: Path, machine: str = "ray") -> None:
    """Write the devices of all hosts to a machine file; ValueError says why there are none."""
    command = [sys.executable, "-m", "placement", "machine", "--machine", machine]
    try:
        done = subprocess.run(
            [*command, "--out", str(path)],
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT_S,
            cwd=program_folder(),
        )
    except subprocess.TimeoutExpired:
        raise ValueError(f"The Ray cluster gave no answer within {LIMIT_S:g} s.") from None
    if done.returncode:
        told = done.stderr.strip().splitlines()
        raise ValueError(told[-1] if told else "The Ray cluster gave no answer.")


def silent_head() -> str:
    """The address at which the head of the cluster should answer and does not; empty where it does.

    Nobody connects to the cluster: a port that is open is an answer.
    """
    address = os.environ.get("RAY_ADDRESS", "").removeprefix("ray://")
    if address in ("", "auto"):
        address = _noted()
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal():
        return address or "any address that is known here"
    try:
        with socket.create_connection((host.strip("[]"), int(port)), LOOK_S):
            return ""
    except (OSError, OverflowError):
        return address


def _noted() -> str:
    folder = Path(os.environ.get("RAY_TMPDIR") or tempfile.gettempdir())
    with suppress(OSError, UnicodeDecodeError):
        return (folder / NOTE).read_text("utf-8").strip()
    return ""
