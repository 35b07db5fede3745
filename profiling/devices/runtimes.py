"""The same machine as another runtime drives it."""

from dataclasses import replace

from placement.core.machine import Device, Machine
from profiling import backends
from profiling.devices.local import CPU_PROVIDERS, is_cpu, nominal_links


def for_runtime(machine: Machine, runtime: str) -> Machine:
    """The machine as another runtime sees it: the same CPU lanes, and that runtime's own others.

    A machine that is emulated, or has nothing of the kind, stays as it is.
    """
    if machine.emulated or all(d.runtime == runtime for d in machine.devices):
        return machine
    backend = backends.usable(runtime)
    lanes = tuple(
        replace(d, runtime=runtime, provider=CPU_PROVIDERS[runtime])
        for d in machine.devices
        if is_cpu(d)
    )
    local = machine.name == "local"
    others = tuple(d for d in backend.devices() if not d.on_host) if local else ()
    known = {d.name: d for d in backend.devices()}
    kept = () if local else tuple(_same(d, known) for d in machine.devices if not is_cpu(d))
    devices = (*lanes, *others, *kept)
    if not lanes:
        return machine
    links = nominal_links(devices) if others or local else machine.links
    return replace(machine, devices=devices, links=links, libraries=backend.libraries())


def _same(device: Device, known: dict[str, Device]) -> Device:
    """A device as the other runtime has it, with the memory that was stated, if it has it."""
    if device.name not in known:
        return device
    other = known[device.name]
    return replace(other, memory_bytes=device.memory_bytes or other.memory_bytes)
