"""The CPU that this process may use: cores, model name and memory, container limits respected."""

import functools
import math
import os
import platform
import subprocess
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")
_TOPOLOGY = Path("/sys/devices/system/cpu")
_UNLIMITED = 1 << 60


def usable_cores() -> tuple[int, ...]:
    """Ids of the cores this process may run on, the hardware threads of one core side by side.

    The process's affinity decides, and a container's share of processor time (its quota, rounded
    down) shortens the list. Where the system cannot tell, ids count from zero.
    """
    if hasattr(os, "sched_getaffinity"):
        cores = sorted(os.sched_getaffinity(0), key=_place)
    else:
        cores = list(range(os.cpu_count() or 1))
    return tuple(cores[: max(1, min(len(cores), cpu_quota()))])


def can_pin() -> bool:
    """Whether this system lets a thread choose its cores (macOS does not)."""
    return hasattr(os, "sched_setaffinity")


def split(cores: tuple[int, ...], lanes: int) -> tuple[tuple[int, ...], ...]:
    """Cores in order, dealt into lanes whose sizes differ by one at most, the larger first."""
    size, rest = divmod(len(cores), lanes)
    starts = [i * size + min(i, rest) for i in range(lanes + 1)]
    return tuple(cores[a:b] for a, b in pairwise(starts))


def cpu_quota(root: Path = _CGROUP) -> int:
    """Cores' worth of processor time that a control group grants, at least 1."""
    for folder in _groups(root, "cpu"):
        with suppress(OSError, ValueError, ZeroDivisionError):
            quota, period = (folder / "cpu.max").read_text().split()
            return max(1, math.floor(int(quota) / int(period)))
        with suppress(OSError, ValueError, ZeroDivisionError):
            granted = int((folder / "cpu.cfs_quota_us").read_text())
            period_us = int((folder / "cpu.cfs_period_us").read_text())
            if granted > 0:
                return max(1, granted // period_us)
    return _UNLIMITED


def host_memory_bytes(root: Path = _CGROUP) -> int:
    """Memory of this computer, or of the container where that is less."""
    import psutil

    limits = [int(psutil.virtual_memory().total)]
    for folder in _groups(root, "memory"):
        for name in ("memory.max", "memory.limit_in_bytes"):
            with suppress(OSError, ValueError):
                limits.append(int((folder / name).read_text()))
    return min(limits)


@functools.cache
def cpu_model() -> str:
    """The processor's name as its maker writes it."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.lower().startswith("model name"):
                return line.partition(":")[2].strip()
    if platform.system() == "Darwin":
        with suppress(OSError, subprocess.SubprocessError):
            asked = ("sysctl", "-n", "machdep.cpu.brand_string")
            answer = subprocess.run(asked, capture_output=True, text=True, timeout=10, check=True)
            return answer.stdout.strip()
    return platform.processor() or platform.machine() or "CPU"


def _groups(root: Path, controller: str) -> tuple[Path, ...]:
    """Folders that may hold this process's limits, its own group first (versions 2 and 1)."""
    own = []
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if not controllers:
                own.append(root / path.lstrip("/"))
            elif controller in controllers.split(","):
                own.append(root / controller / path.lstrip("/"))
    return tuple(dict.fromkeys((*own, root, root / controller)))


def _place(core: int) -> tuple[int, int, int]:
    """Where a hardware thread sits: socket, physical core, its own number."""
    where = [0, core]
    for i, name in enumerate(("physical_package_id", "core_id")):
        with suppress(OSError, ValueError):
            where[i] = int((_TOPOLOGY / f"cpu{core}" / "topology" / name).read_text())
    return where[0], where[1], core
