"""What this computer computes with, as a `Machine`; machine presets and files; who is not here.

The CPU is one device or is split into lanes with cores of their own. Every other execution provider
of the installed onnxruntime is a device too, or for PyTorch models every accelerator that PyTorch
can use (`profiling.devices.runtimes`). Arithmetic and memory speeds are nominal (they serve
estimates only), and so are the links until `profiling.measuring.links` has measured them.
"""

from dataclasses import replace
from pathlib import Path

from placement.core.machine import Device, Link, Machine, machine_from_json
from placement.files.input import read_value
from profiling.devices.accelerators import why_none
from profiling.devices.cores import can_pin, cpu_model, host_memory_bytes, split, usable_cores
from profiling.devices.providers import NOMINAL, providers

# What each runtime calls the CPU.
CPU_PROVIDERS = {"onnxruntime": "CPUExecutionProvider", "torch": "cpu"}
CPU_PROVIDER = CPU_PROVIDERS["onnxruntime"]
NOMINAL_NOTE = "Link figures are nominal until this machine is profiled."
_PRESETS = Path(__file__).parents[2] / "assets" / "machines"
# A hand-over between threads that share memory, and a copy to a device with its own.
_SHARED = (30e-6, 20e9)
_COPIED = (20e-6, 10e9)


def local_machine(lanes: int | None = None) -> Machine:
    """This computer: its CPU as that many lanes, then every other provider's devices.

    Without a number a computer with only a CPU of two or more cores has two lanes, so that there is
    something to place on; any other has its CPU whole.
    """
    others = providers()
    cores = usable_cores()
    if lanes is None:
        lanes = 2 if len(cores) >= 2 and not others else 1
    if lanes < 1:
        raise ValueError(f"Cannot split the CPU into {lanes} lanes; use 1 or more.")
    if lanes > len(cores):
        raise ValueError(
            f"Cannot split the CPU into {lanes} lanes: {_cores(len(cores))} can be used here; use"
            f" {len(cores)} or fewer."
        )
    devices = (*_lanes(cores, lanes), *others)
    return Machine("local", devices, nominal_links(devices), libraries(), NOMINAL_NOTE)


def load_machine(spec: str) -> Machine:
    """The machine that a person names: "local", "local:LANES", a preset, or a JSON file.

    A CPU device of onnxruntime that states neither cores to pin nor a label stands for this
    computer's CPU, and gets its cores.
    """
    if spec == "local":
        return local_machine()
    if spec.startswith("local:"):
        if not spec[6:].isdecimal():
            raise ValueError(f"Machine {spec!r} has no number of lanes; use local:2, for example.")
        return local_machine(int(spec[6:]))
    path = _preset_files().get(spec, Path(spec))
    if not path.is_file():
        raise ValueError(
            f"There is no machine {spec!r}; use local, {', '.join(_preset_files())},"
            " or a JSON file."
        )
    return _resolved(read_value(path, "machine file", machine_from_json))


def presets() -> dict[str, str]:
    """The machines in assets/machines by name, each with what it is in a sentence or two."""
    return {
        name: read_value(path, "machine file", machine_from_json).note
        for name, path in _preset_files().items()
    }


def missing_devices(machine: Machine) -> tuple[tuple[str, str], ...]:
    """Devices of a machine that this computer does not have, each with the reason."""
    here = {d.name: d for d in providers()} if _wants_providers(machine) else {}
    cores = usable_cores()
    reasons = ((d.name, _why_missing(d, here, cores)) for d in machine.devices)
    return tuple((name, reason) for name, reason in reasons if reason)


def require_one_runtime(machine: Machine) -> str:
    """The runtime of all devices; a ValueError where there are several, for a run uses one."""
    runtimes = dict.fromkeys(d.runtime for d in machine.devices)
    if len(runtimes) != 1:
        raise ValueError(
            f"One live run uses one runtime, this machine has {', '.join(runtimes)}; choose devices"
            " of one."
        )
    return next(iter(runtimes))


def nominal_links(devices: tuple[Device, ...]) -> tuple[Link, ...]:
    """A link between every two devices: a hand-over within host memory, else a copy."""
    return tuple(
        Link(a.name, b.name, *(_SHARED if a.on_host and b.on_host else _COPIED))
        for a in devices
        for b in devices
        if a.name != b.name
    )


def libraries() -> tuple[tuple[str, str], ...]:
    """The runtimes whose version decides what is measured here, with their versions."""
    try:
        import onnxruntime
    except ImportError:
        return ()
    return (("onnxruntime", str(onnxruntime.__version__)),)


def _lanes(cores: tuple[int, ...], lanes: int) -> tuple[Device, ...]:
    memory_bytes = host_memory_bytes() // lanes
    return tuple(
        _lane(f"cpu:{i}", own, memory_bytes, pinned=lanes > 1)
        for i, own in enumerate(split(cores, lanes))
    )


def _lane(name: str, cores: tuple[int, ...], memory_bytes: int, *, pinned: bool) -> Device:
    flops_per_s, memory_bytes_per_s = NOMINAL["cpu"]
    return Device(
        name=name,
        kind="cpu",
        runtime="onnxruntime",
        provider=CPU_PROVIDER,
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
    open_ones = [d for d in machine.devices if is_cpu(d) and not d.core_ids and not d.label]
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
        lane = _lane(device.name, own, share_bytes, pinned=pinned)
        filled[device.name] = replace(lane, memory_bytes=device.memory_bytes or share_bytes)
    devices = tuple(filled.get(d.name, d) for d in machine.devices)
    return replace(
        machine,
        devices=devices,
        links=machine.links or nominal_links(devices),
        libraries=machine.libraries or libraries(),
    )


def _why_missing(device: Device, here: dict[str, Device], cores: tuple[int, ...]) -> str:
    from profiling import backends

    if device.runtime == "null":
        return ""
    if device.runtime not in backends.names():
        return f"its runtime {device.runtime!r} is not known here"
    missing = backends.get(device.runtime).missing()
    if missing:
        return missing
    if is_cpu(device):
        return _why_other_cpu(device, cores)
    if device.runtime != "onnxruntime":
        here = {d.name: d for d in backends.get(device.runtime).devices()}
    found = here.get(device.name)
    if device.runtime == "torch" and found is None:
        return why_none()
    if found is None or found.provider != device.provider:
        return f"this computer has no {device.provider or device.name} that works"
    if device.label and device.label != found.label:
        return f"this computer has {found.label}, not {device.label}"
    return ""


def _why_other_cpu(device: Device, cores: tuple[int, ...]) -> str:
    if device.label and device.label != cpu_model():
        return f"this computer has {cpu_model()}, not {device.label}"
    if device.cores > len(cores):
        return f"it has {_cores(device.cores)}, but {len(cores)} can be used here"
    foreign = [core for core in device.core_ids if core not in cores]
    return f"core {foreign[0]} cannot be used here" if foreign else ""


def _wants_providers(machine: Machine) -> bool:
    return any(d.runtime == "onnxruntime" and not is_cpu(d) for d in machine.devices)


def is_cpu(device: Device) -> bool:
    """Whether a device is the CPU itself, or a lane of it, in its runtime's own words."""
    return device.provider == CPU_PROVIDERS.get(device.runtime, "no CPU")


def _cores(number: int) -> str:
    return f"{number} core" if number == 1 else f"{number} cores"
