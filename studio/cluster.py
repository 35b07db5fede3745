"""The hosts of a Ray cluster as a machine file, asked for by a process of its own.

Whoever connects to a cluster is ended with it, so no server of pages ever does.
"""

import subprocess
import sys
from pathlib import Path

from placement.files.program import program_folder

LIMIT_S = 90.0


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
