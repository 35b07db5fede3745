"""Machines: devices that compute and directed links that carry tensors between them."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placement.core.amounts import MOST, Bytes, is_amount
from placement.core.decoding import decode, listed, shown
from placement.core.fingerprint import fingerprint_of

# Every pair of devices has costs of its own, and may have two links: the work for a step grows with
# the square. Larger machines than this one exist, but nobody places single ops on them.
MAX_DEVICES = 1024


@dataclass(frozen=True)
class Device:
    """Something that runs one call at a time.

    `runtime` names the backend ("onnxruntime"; "null" for a virtual clock; "given" for a device
    that only a problem file knows), `provider` the backend's own word for the device
    ("CPUExecutionProvider"). `core_ids` are the CPU cores a lane is pinned to, empty for no
    pinning. `memory_bytes` is None where there is no limit to respect. The two roofline figures
    serve analytic costs and are zero where nobody stated them. A device of kind "cpu" computes in
    host memory, where model inputs start and outputs end.
    """

    name: str
    kind: str = "cpu"
    runtime: str = "null"
    provider: str = ""
    memory_bytes: Bytes | None = None
    cores: int = 1
    core_ids: tuple[int, ...] = ()
    flops_per_s: float = 0.0
    memory_bytes_per_s: float = 0.0
    label: str = ""

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("A device has an empty name; give every device a name.")
        numbers = {
            "memory_bytes": self.memory_bytes or 0,
            "cores": self.cores,
            "flops_per_s": self.flops_per_s,
            "memory_bytes_per_s": self.memory_bytes_per_s,
        }
        for field, value in numbers.items():
            if not is_amount(value):
                raise ValueError(
                    f"Device {shown(self.name)} has {field} {value!s:.20}; use 0 to {MOST:g}."
                )
        if self.cores < 1 or any(core < 0 for core in self.core_ids):
            raise ValueError(
                f"Device {shown(self.name)} has {self.cores} cores and core_ids"
                f" {listed(self.core_ids) or 'none'}; use 1 core or more, and ids from 0."
            )

    @property
    def on_host(self) -> bool:
        return self.kind == "cpu"


@dataclass(frozen=True)
class Link:
    """A directed first-in first-out channel: a tensor takes latency_s + bytes / bytes_per_s."""

    src: str
    dst: str
    latency_s: float
    bytes_per_s: float

    def __post_init__(self) -> None:
        if not is_amount(self.latency_s):
            raise ValueError(
                f"Link {shown(self.src)} to {shown(self.dst)} has latency_s {self.latency_s!s:.20};"
                f" use 0 to {MOST:g}."
            )
        if not 1 / MOST <= self.bytes_per_s <= MOST:
            raise ValueError(
                f"Link {shown(self.src)} to {shown(self.dst)} has bytes_per_s"
                f" {self.bytes_per_s!s:.20}; use more than zero, at most {MOST:g}."
            )


@dataclass(frozen=True)
class Machine:
    """Devices and links; `libraries` are (name, version) pairs of the runtimes that drive them."""

    name: str
    devices: tuple[Device, ...]
    links: tuple[Link, ...] = ()
    libraries: tuple[tuple[str, str], ...] = ()
    note: str = ""

    def __post_init__(self) -> None:
        if not self.devices:
            raise ValueError(f"Machine {self.name!r} has no devices; list at least one.")
        if len(self.devices) > MAX_DEVICES:
            raise ValueError(
                f"Machine {shown(self.name)} has {len(self.devices)} devices; use at most"
                f" {MAX_DEVICES}, for every two of them may have a link."
            )
        names = Counter(d.name for d in self.devices)
        twice = next((name for name, count in names.items() if count > 1), None)
        if twice is not None:
            raise ValueError(
                f"Machine {shown(self.name)} lists the device {shown(twice)} twice; give each its"
                " own name."
            )
        seen = set()
        for link in self.links:
            for end in (link.src, link.dst):
                if end not in names:
                    raise ValueError(
                        f"A link of machine {shown(self.name)} ends at {shown(end)}, which is not"
                        f" one of its devices: {listed(names)}."
                    )
            if (link.src, link.dst) in seen:
                raise ValueError(
                    f"Machine {shown(self.name)} lists the link {shown(link.src)} to"
                    f" {shown(link.dst)} twice; keep one of them."
                )
            seen.add((link.src, link.dst))

    @cached_property
    def index(self) -> dict[str, int]:
        return {d.name: i for i, d in enumerate(self.devices)}

    def device(self, name: str) -> Device:
        if name not in self.index:
            raise ValueError(
                f"Machine {shown(self.name)} has no device {shown(name)}; it has"
                f" {listed(self.index)}."
            )
        return self.devices[self.index[name]]

    @cached_property
    def fingerprint(self) -> str:
        """Hash of devices, runtimes and library versions; never of measured numbers."""
        devices = [
            [d.name, d.kind, d.runtime, d.provider, d.cores, d.core_ids, d.label]
            for d in self.devices
        ]
        return fingerprint_of([devices, self.libraries])

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def machine_from_json(content: Any) -> Machine:
    """A machine from its JSON object; a ValueError names the field that is wrong."""
    remedy = "correct it, or see `python -m placement machine --json`"
    if not isinstance(content, Mapping):
        raise ValueError(f"A machine is an object with devices, not {shown(content)}; {remedy}.")
    machine = decode({"name": "machine", **content}, Machine, remedy=remedy)
    for key, kind in (("devices", Device), ("links", Link)):
        known = {field.name for field in fields(kind)}
        for i, row in enumerate(content.get(key, ())):
            if not known.issuperset(row):
                unknown = shown(min(set(row) - known))
                raise ValueError(f"{key}[{i}] has a field {unknown}, which is not known; {remedy}.")
    return machine


def as_preset(machine: Machine, name: str) -> Machine:
    """The machine for any computer like the one it is of: without its cores, labels, libraries."""
    devices = tuple(replace(device, core_ids=(), label="") for device in machine.devices)
    note = "Devices as a computer has them; rates and links are nominal, not measured."
    note = note if "nominal" in machine.note else machine.note
    return replace(machine, name=name, devices=devices, libraries=(), note=note)


def machine_to_text(machine: Machine) -> str:
    return json.dumps(machine.to_json(), indent=2) + "\n"


def link_arrays(
    machine: Machine, *, complete: bool = True
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Latency (D, D) in seconds and seconds per byte (D, D).

    A pair without a link is an error where they are to be `complete`, else it costs nothing.
    """
    num = len(machine.devices)
    latency_s = np.zeros((num, num))
    s_per_byte = np.zeros((num, num))
    linked = np.eye(num, dtype=bool)
    for link in machine.links:
        a, b = machine.index[link.src], machine.index[link.dst]
        latency_s[a, b] = link.latency_s
        s_per_byte[a, b] = 1.0 / link.bytes_per_s
        linked[a, b] = True
    if complete and not linked.all():
        a, b = np.argwhere(~linked)[0]
        raise ValueError(
            f"Machine {machine.name!r} has no link from {machine.devices[a].name!r} to"
            f" {machine.devices[b].name!r}; add one to its links."
        )
    return latency_s, s_per_byte
