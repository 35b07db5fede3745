"""Machines: devices that compute and directed links that carry tensors between them."""

import json
import re
from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placement.core.amounts import MOST, Bytes, is_amount
from placement.core.decoding import decode, listed, shown
from placement.core.fingerprint import fingerprint_of

# Every pair of devices has costs of its own, and may have two links: the work for a step grows with
# the square. Larger machines than this one exist, but nobody places single ops on them.
MAX_DEVICES = 1024
# A page where figures come from: nothing that could be more than a link where it is shown.
_LINK = re.compile(r"https?://[A-Za-z0-9._~/?=&%#+,:@-]{1,480}")


@dataclass(frozen=True)
class Rate:
    """Arithmetic per second in numbers of one type ("bfloat16"), as tensors name their types."""

    dtype: str
    flops_per_s: float

    def __post_init__(self) -> None:
        if not self.dtype or not 0 < self.flops_per_s <= MOST:
            raise ValueError(
                f"A rate of {self.flops_per_s!s:.20} for type {shown(self.dtype)} is no rate; name"
                f" a type, and use more than zero, at most {MOST:g}."
            )


@dataclass(frozen=True)
class Device:
    """Something that runs one call at a time.

    `runtime` names the backend ("onnxruntime"; "null" for a virtual clock; "given" for a device
    that only a problem file knows), `provider` the backend's own word for the device
    ("CPUExecutionProvider"). `core_ids` are the CPU cores a lane is pinned to, empty for no
    pinning. `memory_bytes` is None where there is no limit to respect. The two roofline figures
    serve analytic costs and are zero where nobody stated them; `rates` hold the arithmetic in types
    that differ from `flops_per_s`. A device of kind "cpu" computes in host memory, where model
    inputs start and outputs end. `memory` names another device whose memory this one computes in,
    and whose limit then counts for both. `engine` and `streams_from` are of a device that stands
    for another one with weights that stay in the memory of a third (`costs/offload.py`): it
    computes on that other one, one call at a time for both, and in its memory.
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
    rates: tuple[Rate, ...] = ()
    memory: str = ""
    engine: str = ""
    streams_from: str = ""

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
        twice = [t for t, count in Counter(r.dtype for r in self.rates).items() if count > 1]
        if twice:
            raise ValueError(
                f"Device {shown(self.name)} has two rates for {shown(twice[0])}; keep one of them."
            )
        if self.memory and self.memory_bytes is not None:
            raise ValueError(
                f"Device {shown(self.name)} computes in the memory of {shown(self.memory)}, so it"
                " has no memory_bytes of its own; leave them out, or the name."
            )

    @property
    def on_host(self) -> bool:
        return self.kind == "cpu"

    @property
    def own_name(self) -> str:
        """What the computer that has it calls it: "cuda:0" of "alpha/cuda:0"."""
        return self.name.rpartition("/")[2]

    @property
    def host(self) -> str:
        """The host of a cluster that it belongs to; nothing for a device of this computer."""
        return self.name.rpartition("/")[0]

    def flops_per_s_in(self, dtype: str) -> float:
        """Arithmetic per second in numbers of a type; `flops_per_s` where nobody stated it."""
        return next((r.flops_per_s for r in self.rates if r.dtype == dtype), self.flops_per_s)


def streamed_name(device: str) -> str:
    """What the device is called that stands for this one with weights that stream."""
    return f"{device}-streamed"


def is_streamed(name: str) -> bool:
    """Whether a name is that of a device whose weights stream."""
    return name.endswith(streamed_name(""))


class Places(NamedTuple):
    """Of each device (D,) the one it computes on, and those whose memories hold what it reads and
    writes, and its weights; mostly the device itself."""

    engine: NDArray[np.int64]
    values: NDArray[np.int64]
    weights: NDArray[np.int64]

    @property
    def streams(self) -> NDArray[np.bool_]:
        """Which devices (D,) get their weights anew in every step."""
        return np.not_equal(self.weights, self.values)


@dataclass(frozen=True)
class Link:
    """A directed first-in first-out channel: a tensor takes latency_s + bytes / bytes_per_s.

    Links that name one `card`, as of a computer's network, are one channel together. For
    shares of that time, together 0 to 1, the lanes of sender and receiver do nothing else (the o of
    LogP, Culler et al., 1993): segments that send or first read a tensor take longer by so much.
    """

    src: str
    dst: str
    latency_s: float
    bytes_per_s: float
    card: str = ""
    send_overhead: float = 0.0
    receive_overhead: float = 0.0

    def __post_init__(self) -> None:
        both = (self.send_overhead, self.receive_overhead)
        if not (min(both) >= 0 and sum(both) <= 1):
            raise ValueError(
                f"Link {shown(self.src)} to {shown(self.dst)} has overheads"
                f" {self.send_overhead!s:.20} and {self.receive_overhead!s:.20}; use shares of the"
                " time that a tensor takes, together 0 to 1."
            )
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
    """Devices and links; `libraries` are (name, version) pairs of the runtimes that drive them.

    `sources` are addresses of the pages that its figures come from.
    """

    name: str
    devices: tuple[Device, ...]
    links: tuple[Link, ...] = ()
    libraries: tuple[tuple[str, str], ...] = ()
    note: str = ""
    sources: tuple[str, ...] = ()

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
        for device in (d for d in self.devices if d.memory):
            self._require_memory(device)
        for source in self.sources:
            if not _LINK.fullmatch(source):
                raise ValueError(
                    f"Machine {shown(self.name)} has a source {shown(source)} that is no address of"
                    " a page; use one that begins with https://."
                )
        self._require_ends(names)

    @property
    def spans_hosts(self) -> bool:
        """Whether its devices are on several hosts of a cluster, any of which may leave."""
        return len({device.host for device in self.devices}) > 1

    def _require_ends(self, names: Collection[str]) -> None:
        """ValueError where a link ends nowhere, or two have the same ends."""
        with suppress(KeyError):
            if len(set(self._link_numbers)) == len(self.links):
                return
        pairs = [(link.src, link.dst) for link in self.links]
        seen = set()
        for pair in pairs:
            for end in pair:
                if end not in names:
                    raise ValueError(
                        f"A link of machine {shown(self.name)} ends at {shown(end)}, which is not"
                        f" one of its devices: {listed(names)}."
                    )
            if pair in seen:
                raise ValueError(
                    f"Machine {shown(self.name)} lists the link {shown(pair[0])} to"
                    f" {shown(pair[1])} twice; keep one of them."
                )
            seen.add(pair)

    def _require_memory(self, device: Device) -> None:
        owner = next((d for d in self.devices if d.name == device.memory), None)
        if owner is None or owner.memory:
            raise ValueError(
                f"Device {shown(device.name)} of machine {shown(self.name)} computes in the memory"
                f" of {shown(device.memory)}, which is no device with memory of its own; name one."
            )

    @cached_property
    def index(self) -> dict[str, int]:
        return {d.name: i for i, d in enumerate(self.devices)}

    @cached_property
    def places(self) -> Places:
        engine = [self.index[d.engine or d.name] for d in self.devices]
        own = [self.index[d.memory or d.name] for d in self.devices]
        values = [own[e] for e in engine]
        weights = [
            own[self.index[d.streams_from]] if d.streams_from else values[i]
            for i, d in enumerate(self.devices)
        ]
        return Places(*(np.array(each, dtype=np.int64) for each in (engine, values, weights)))

    @cached_property
    def channels(self) -> NDArray[np.int64]:
        """The channel that each pair of devices sends by (D * D,): the number of the first pair
        that sends by it, mostly the pair's own.
        """
        num = len(self.devices)
        found, first = np.arange(num * num, dtype=np.int64), dict[str, int]()
        cards = (link.card for link in self.links)
        for pair, card in sorted(zip(self._link_numbers, cards, strict=True)):
            if card:
                found[pair] = first.setdefault(card, pair)
        return found

    @property
    def shares_channels(self) -> bool:
        """Whether pairs of devices send by one channel."""
        return bool((self.channels != np.arange(self.channels.size)).any())

    @cached_property
    def limit_bytes(self) -> NDArray[np.float64]:
        """The limit of the memory that each device's weights are in (D,), infinite without one.

        Devices that share a memory have its limit each, and it holds for them together.
        """
        own = [np.inf if d.memory_bytes is None else d.memory_bytes for d in self.devices]
        return np.array(own, dtype=np.float64)[self.places.weights]

    @cached_property
    def link_ends(self) -> NDArray[np.int64]:
        """Sender and receiver of each link (L, 2), by number."""
        numbers = np.array(self._link_numbers, dtype=np.int64)
        return np.stack(np.divmod(numbers, len(self.devices)), axis=1)

    @cached_property
    def _link_numbers(self) -> list[int]:
        """A number for the two ends of each link (L,)."""
        index, num = self.index, len(self.devices)
        return [index[link.src] * num + index[link.dst] for link in self.links]

    @cached_property
    def link_figures(self) -> NDArray[np.float64]:
        """Latency in seconds and bytes per second of each link (L, 2)."""
        figures = [(link.latency_s, link.bytes_per_s) for link in self.links]
        return np.array(figures, dtype=np.float64).reshape(-1, 2)

    @cached_property
    def overheads(self) -> NDArray[np.float64]:
        """The shares of a transfer's time that hold up its sender and its receiver (2, D, D), row
        the sender."""
        found = np.zeros((2, len(self.devices), len(self.devices)))
        shares = [(link.send_overhead, link.receive_overhead) for link in self.links]
        if shares:
            a, b = self.link_ends.T
            found[:, a, b] = np.array(shares).T
        return found

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

    @cached_property
    def content(self) -> str:
        """Hash of all that is stated, figures too; kept, for there may be thousands of links."""
        return fingerprint_of(self.to_json())

    def to_json(self) -> dict[str, Any]:
        """The machine as files hold it; what few machines state is left out where it is empty."""
        # Links first become plain: they are flat, and too many for what looks into each value.
        content = {
            **asdict(replace(self, links=())),
            "devices": [_told(asdict(d)) for d in self.devices],
            "links": tuple(_told(vars(link)) for link in self.links),
        }
        return content if self.sources else {k: v for k, v in content.items() if k != "sources"}


_RARE_OF_LINKS = ("card", "send_overhead", "receive_overhead")


def _told(stated: Mapping[str, Any]) -> dict[str, Any]:
    rare = ("rates", "memory", "engine", "streams_from", *_RARE_OF_LINKS)
    return {key: value for key, value in stated.items() if value or key not in rare}


_WORKED_OUT = ("fingerprint", "emulated")


def machine_from_json(content: Any) -> Machine:
    """A machine from its JSON object; a ValueError names the field that is wrong."""
    remedy = "correct it, or see `python -m placement machine --json`"
    if not isinstance(content, Mapping):
        raise ValueError(f"A machine is an object with devices, not {shown(content)}; {remedy}.")
    # What is worked out of a machine stands where one is listed (`machine --json`).
    stated = {key: value for key, value in content.items() if key not in _WORKED_OUT}
    machine = decode({"name": "machine", **stated}, Machine, remedy=remedy, only_known=True)
    streamed = next((d for d in machine.devices if d.engine or d.streams_from), None)
    if streamed is not None:
        raise ValueError(
            f"Device {shown(streamed.name)} states an engine or where its weights stream from;"
            " leave both out, for the option --offload adds such devices."
        )
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
    a, b = machine.link_ends.T
    latency_s[a, b] = machine.link_figures[:, 0]
    s_per_byte[a, b] = 1.0 / machine.link_figures[:, 1]
    linked[a, b] = True
    if complete and not linked.all():
        a, b = np.argwhere(~linked)[0]
        raise ValueError(
            f"Machine {machine.name!r} has no link from {machine.devices[a].name!r} to"
            f" {machine.devices[b].name!r}; add one to its links."
        )
    return latency_s, s_per_byte
