"""Is there memory for what will run? Asked before anything is allocated."""

from collections.abc import Collection, Mapping

from placement.core import formatting
from placement.core.machine import Machine
from profiling.devices import heap


def check_memory(
    peak: Mapping[str, int],
    machine: Machine,
    beside_bytes: int = 0,
    elsewhere: Collection[str] = (),
) -> None:
    """ValueError where a device, or the host for all devices on it, has less memory than needed.

    `peak` is by device; `beside_bytes` is what the host holds besides. Devices `elsewhere` are not
    in its memory.
    """
    check_devices(peak, machine)
    in_host = [n for n in peak if machine.device(n).on_host and n not in elsewhere]
    on_host, free = beside_bytes + sum(peak[n] for n in in_host), free_bytes()
    if on_host > free:
        needs, has = formatting.apart(on_host, free)
        raise ValueError(
            f"Weights and values in host memory need {needs}, {has} are free; close other"
            " programs or place less on the CPU."
        )


def check_devices(peak: Mapping[str, int], machine: Machine) -> None:
    """ValueError where a device has less memory than its peak, whatever is free just now."""
    for name, num_bytes in peak.items():
        limit_bytes = machine.device(name).memory_bytes
        if limit_bytes is not None and num_bytes > limit_bytes:
            needs, has = formatting.apart(num_bytes, limit_bytes)
            raise ValueError(
                f"Weights and values on {name!r} need {needs}, it has {has}; move some ops to"
                " another device."
            )


def free_bytes() -> int:
    """Bytes of host memory that this process may still take."""
    import psutil

    heap.give_back()
    free = int(psutil.virtual_memory().available)
    try:
        import resource
    except ModuleNotFoundError:  # Windows has no such limits
        return free
    memory = psutil.Process().memory_info()
    # What the kernel counts; pages of mapped files, which are resident too, are none of it.
    data = getattr(memory, "data", memory.rss)
    for kind, used in ((resource.RLIMIT_AS, memory.vms), (resource.RLIMIT_DATA, data)):
        limit = resource.getrlimit(kind)[0]
        if limit != resource.RLIM_INFINITY:
            free = min(free, max(0, limit - used))
    return free
