"""What this computer computes with, as a `Machine`; machine presets and files; who is not here.

The CPU is one device or is split into lanes with cores of their own. Beside it stands whatever the
runtimes of the model's format offer here (`profiling.backends`): of ONNX while no model is known.
Arithmetic and memory speeds are nominal (they serve estimates only), and so are the links until
`profiling.measuring.links` has measured them.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from placement.core.machine import Device, Link, Machine, machine_from_json
from placement.files.input import read_value
from placement.files.program import ASSETS
from profiling import backends
from profiling.backends.base import NOMINAL, Backend
from profiling.devices.cores import can_pin, cpu_model, host_memory_bytes, split, usable_cores

# What a machine is for where no model says so.
FORMAT = "onnx"
NOMINAL_NOTE = "Link figures are nominal until a model is measured here."
_PRESETS = ASSETS / "machines"
# A hand-over between threads that share memory, and a copy to a device with its own.
_SHARED = (30e-6, 20e9)
_COPIED = (20e-6, 10e9)


def local_machine(lanes: int | None = None, runtime: str = "") -> Machine:
    """This computer: its CPU as that many lanes, then all other devices of ONNX's runtimes.

    Where a runtime is named they are the devices of that one alone. Without a number a computer
    with only a CPU of two or more cores has two lanes, so that there is something to place on; any
    other has its CPU whole.
    """
    able = (backends.usable(runtime),) if runtime else backends.running(FORMAT)
    others, cores = _others(able), usable_cores()
    if lanes is None:
        lanes = 2 if len(cores) >= 2 and not others else 1
    if lanes < 1:
        raise ValueError(f"Cannot split the CPU into {lanes} lanes; use 1 or more.")
    if lanes > len(cores):
        raise ValueError(
            f"Cannot split the CPU into {lanes} lanes: {_cores(len(cores))} can be used here; use"
            f" {len(cores)} or fewer."
        )
    devices = _distinct((*_lanes(cores, lanes, able[0]), *others))
    links = nominal_links(devices)
    return Machine("local", devices, links, _libraries(devices), NOMINAL_NOTE)


def for_format(machine: Machine, format: str) -> Machine:
    """The machine as the runtimes of a model format drive it: the same CPU lanes, and their others.

    One that fits (`backends.fit`), or has no CPU lanes, stays as it is.
    """
    if backends.fit(machine.devices, format):
        return machine
    able, cpus = backends.running(format), backends.cpu_lanes(machine.devices)
    first = backends.usable(able[0].name)
    if not cpus:
        return machine
    lanes = tuple(
        replace(d, runtime=first.name, provider=first.cpu_provider)
        for d in cpus.values()
        if first.cpu_provider
    )
    if machine.name == "local":
        devices = _distinct((*lanes, *_others(able)))
        links = nominal_links(devices)
    else:
        known = {d.name: d for d in first.devices()}
        kept = (_same(d, known) for d in machine.devices if d.name not in cpus)
        devices, links = (*lanes, *kept), machine.links
    names = {backend.name for backend in able}
    libraries = _libraries([d for d in devices if d.runtime in names])
    return replace(machine, devices=devices, links=links, libraries=libraries)


def accelerators() -> tuple[Device, ...]:
    """What all runtimes together offer here besides the CPU, of any format."""
    return _distinct(_others([backends.get(name) for name in runtimes()]))


def _others(able: Sequence[Backend]) -> tuple[Device, ...]:
    """What runtimes offer here besides the CPU."""
    here = (backend for backend in able if not backend.missing())
    return tuple(d for backend in here for d in backend.devices() if not backend.is_cpu(d))


def _distinct(devices: tuple[Device, ...]) -> tuple[Device, ...]:
    """The first device of each name: what two runtimes offer is the first one's."""
    found: dict[str, Device] = {}
    for device in devices:
        found.setdefault(device.name, device)
    return tuple(found.values())


def _same(device: Device, known: dict[str, Device]) -> Device:
    """A device as another runtime has it, if it has it, with the memory and rates stated for it."""
    if device.name not in known:
        return device
    other = known[device.name]
    memory_bytes = None if device.memory else device.memory_bytes or other.memory_bytes
    return replace(
        other, memory_bytes=memory_bytes, memory=device.memory, rates=device.rates or other.rates
    )


def load_machine(spec: str) -> Machine:
    """The machine that a person names: "local", "local:LANES" or "local:RUNTIME", a preset, a file.

    A CPU device that states neither cores to pin nor a label stands for this computer's CPU, and
    gets its cores.
    """
    if spec == "local":
        return local_machine()
    if spec.startswith("local:"):
        word = spec.removeprefix("local:")
        if is_local(spec):
            return local_machine(runtime=word)
        if not word.isdecimal():
            raise ValueError(
                f"Machine {spec!r} has no number of lanes; use local:2, for example, or one of"
                f" {', '.join(f'local:{name}' for name in runtimes())}."
            )
        return local_machine(int(word))
    if is_cluster(spec):
        return backends.usable(spec.partition(":")[0]).machine(spec)
    path = _preset_files().get(spec, Path(spec))
    if not path.is_file():
        raise ValueError(
            f"There is no machine {spec!r}; use local, {', '.join(_preset_files())},"
            " or a JSON file."
        )
    return _resolved(read_value(path, "machine file", machine_from_json))


def is_local(spec: str) -> bool:
    """Whether a machine is this computer: all of it, or the devices of a runtime known here."""
    return spec == "local" or spec in {f"local:{name}" for name in runtimes()}


def is_cluster(spec: str) -> bool:
    """Whether a machine is one whose devices are those of other computers."""
    runtime = spec.partition(":")[0]
    return runtime in backends.names() and backends.get(runtime).elsewhere


def runtimes() -> list[str]:
    """The runtimes whose devices are a computer's own."""
    found = ((name, backends.get(name)) for name in backends.names())
    return [name for name, backend in found if not (backend.emulated or backend.elsewhere)]


def presets() -> dict[str, str]:
    """The machines in assets/machines by name, each with what it is in a sentence or two."""
    return {
        name: read_value(path, "machine file", machine_from_json).note
        for name, path in _preset_files().items()
    }


def missing_devices(machine: Machine) -> tuple[tuple[str, str], ...]:
    """Devices of a machine that this computer does not have, each with the reason."""
    used, cores = backends.of(machine.devices), usable_cores()
    cpus = backends.cpu_lanes(machine.devices)
    asked = {d.runtime for d in machine.devices if d.name not in cpus}
    here = {
        name: {d.name: d for d in backend.devices()}
        for name, backend in used.items()
        if name in asked and not backend.missing()
    }
    reasons = (
        (d.name, _why_missing(d, used.get(d.runtime), here.get(d.runtime, {}), cores))
        for d in machine.devices
    )
    return tuple((name, reason) for name, reason in reasons if reason)


def nominal_links(devices: tuple[Device, ...]) -> tuple[Link, ...]:
    """A link between every two devices: a hand-over within host memory, else a copy."""
    return tuple(
        Link(a.name, b.name, *(_SHARED if a.on_host and b.on_host else _COPIED))
        for a in devices
        for b in devices
        if a.name != b.name
    )


def _libraries(devices: Sequence[Device]) -> tuple[tuple[str, str], ...]:
    """The libraries whose version decides what is measured on devices, with their versions."""
    rows = (row for backend in backends.of(devices).values() for row in backend.libraries())
    return tuple(dict.fromkeys(rows))


def _lanes(cores: tuple[int, ...], lanes: int, backend: Backend) -> tuple[Device, ...]:
    """The CPU in lanes, where the runtime drives it."""
    memory_bytes = host_memory_bytes() // lanes
    return tuple(
        _lane(f"cpu:{i}", own, memory_bytes, backend, pinned=lanes > 1)
        for i, own in enumerate(split(cores, lanes))
        if backend.cpu_provider
    )


def _lane(
    name: str, cores: tuple[int, ...], memory_bytes: int, backend: Backend, *, pinned: bool
) -> Device:
    flops_per_s, memory_bytes_per_s = NOMINAL["cpu"]
    return Device(
        name=name,
        kind="cpu",
        runtime=backend.name,
        provider=backend.cpu_provider,
        memory_bytes=memory_bytes,
        cores=len(cores),
        core_ids=cores if pinned and can_pin() else (),
        flops_per_s=flops_per_s * len(cores),
        memory_bytes_per_s=memory_bytes_per_s * len(cores),
        label=cpu_model(),
    )


def _preset_files() -> dict[str, Path]:
    return {path.stem: path for path in sorted(_PRESETS.glob("*.json"))}


def _resolved(machine: Machine) -> Machine:
    """The machine with this computer's cores for the CPU devices that name none."""
    used, cpus = backends.of(machine.devices), backends.cpu_lanes(machine.devices)
    open_ones = [d for d in cpus.values() if not d.core_ids and not d.label]
    if not open_ones:
        return machine
    taken = {core for d in machine.devices for core in d.core_ids}
    cores = tuple(core for core in usable_cores() if core not in taken)
    wanted = sum(d.cores for d in open_ones)
    if wanted > len(cores):
        raise ValueError(
            f"Machine {machine.name!r} needs {_cores(wanted)}, but {_cores(len(cores))} can be"
            " used here; use local:1 for the whole CPU as one device."
        )
    share_bytes = host_memory_bytes() // len(open_ones)
    pinned = len(machine.devices) > 1
    filled: dict[str, Device] = {}
    for device in open_ones:
        own, cores = cores[: device.cores], cores[device.cores :]
        backend = used[device.runtime]
        lane = _lane(device.name, own, share_bytes, backend, pinned=pinned)
        filled[device.name] = replace(lane, memory_bytes=device.memory_bytes or share_bytes)
    devices = tuple(filled.get(d.name, d) for d in machine.devices)
    return replace(
        machine,
        devices=devices,
        links=machine.links or nominal_links(devices),
        libraries=machine.libraries or _libraries(devices),
    )


def _why_missing(
    device: Device, backend: Backend | None, here: dict[str, Device], cores: tuple[int, ...]
) -> str:
    if device.streams_from:
        return f"weights that stream from {device.streams_from} are predicted and not run"
    if backend is None:
        return f"its runtime {device.runtime!r} is not known here"
    if backend.missing():
        return backend.missing()
    if backend.is_cpu(device):
        return _why_other_cpu(device, cores)
    return backend.why_missing(device, here)


def _why_other_cpu(device: Device, cores: tuple[int, ...]) -> str:
    if device.label and device.label != cpu_model():
        return f"this computer has {cpu_model()}, not {device.label}"
    if device.cores > len(cores):
        return f"it has {_cores(device.cores)}, but {len(cores)} can be used here"
    foreign = [core for core in device.core_ids if core not in cores]
    return f"core {foreign[0]} cannot be used here" if foreign else ""


def _cores(number: int) -> str:
    return f"{number} core" if number == 1 else f"{number} cores"
