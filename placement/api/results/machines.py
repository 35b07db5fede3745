"""Machines and devices as they are listed, the result of a profile, and files written."""

from collections.abc import Mapping
from typing import Annotated

from placement.api.results.value import Amount, ByDevice, Count, Number, Text, Texts, Value
from placement.core.load import Load


class ProfileResult(Value, frozen=True, kw_only=True):
    """What was measured of a model on a machine, by device in declared order.

    `refined_by` names the live runs that have refined it since, by placement and time.
    """

    UNLESS_TOLD = frozenset({"load", "refined_by"})

    fingerprint: Text
    machine: Text
    devices: Texts
    num_kernels: Count
    seconds: Amount
    coverage: Number
    step_s: Mapping[str, Amount | None] = {}
    sum_of_kernels_s: Mapping[str, Amount | None] = {}
    all_cores_s: Amount | None = None
    contention: Amount = 0.0
    measured_at: Text = ""
    load: Load | None = None
    refined_by: Texts | None = None


class ExportResult(Value, frozen=True, kw_only=True):
    """A file that was written, and what to know of it."""

    format: Text
    path: Text
    note: Text = ""


class RateResult(Value, frozen=True, kw_only=True):
    """Arithmetic per second in numbers of one type."""

    dtype: Text
    flops_per_s: Amount


class DeviceResult(Value, frozen=True, kw_only=True):
    """A device as the command line lists it."""

    name: Text
    kind: Text
    runtime: Text
    provider: Text
    memory_bytes: Count | None
    cores: Count | None
    label: Text
    rates: tuple[RateResult, ...] = ()
    memory: Text = ""


class LinkResult(Value, frozen=True, kw_only=True):
    """What carries tensors from one device to another, how fast, by which network card, and for
    what shares of that time sender and receiver are held up."""

    UNLESS_TOLD = frozenset({"card", "send_overhead", "receive_overhead"})

    src: Text
    dst: Text
    latency_s: Amount
    bytes_per_s: Amount
    card: Text | None = None
    send_overhead: Amount | None = None
    receive_overhead: Amount | None = None


class MachineResult(Value, frozen=True, kw_only=True):
    """A machine with what is found out about it, in declared order."""

    name: Text
    devices: Annotated[tuple[DeviceResult, ...], ByDevice]
    links: tuple[LinkResult, ...]
    fingerprint: Text
    emulated: bool
    note: Text
    sources: tuple[Text, ...] = ()
