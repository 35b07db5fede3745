"""PyTorch: CPU lanes and every accelerator that the installed build can use here."""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import ClassVar

from placement.core.machine import Device, Machine
from placement.core.model import Model
from placement.formats.torch import large_pages
from profiling.backends._torch.accelerators import CAPTURED, accelerators, torch_version, why_none
from profiling.backends.base import Backend, Compiled
from profiling.devices import heap
from profiling.devices.cores import cpu_model, host_memory_bytes, usable_cores


class Torch(Backend):
    """See `profiling.backends.base.Backend`; what was compiled last is kept."""

    name: ClassVar[str] = "torch"
    format: ClassVar[str] = "torch"
    cpu_provider: ClassVar[str] = "cpu"
    leads: ClassVar[bool] = True

    def __init__(self) -> None:
        self._kept: dict[str, Compiled] = {}

    def missing(self) -> str:
        return "" if find_spec("torch") else "needs: pip install torch"

    def devices(self) -> tuple[Device, ...]:
        cores, memory_bytes = usable_cores(), host_memory_bytes()
        cpu = Device("cpu:0", "cpu", self.name, "cpu", memory_bytes, len(cores), label=cpu_model())
        return (cpu, *accelerators())

    def why_missing(self, device: Device, here: Mapping[str, Device]) -> str:
        return super().why_missing(device, here) if device.name in here else why_none()

    def libraries(self) -> tuple[tuple[str, str], ...]:
        installed = torch_version()
        if installed is None:
            return ()
        pages = (("pages of PyTorch's memory", "large"),) if large_pages.are_given() else ()
        freed = (("what PyTorch's steps free", "kept"),) if heap.is_ours() else ()
        # Profiles from before were of steps whose ops were begun one by one.
        captures = any(device.provider in CAPTURED for device in accelerators())
        launches = (("launches of PyTorch's ops", "captured"),) if captures else ()
        # Those before of contention by whole models, of crossings by single kernels between lanes
        # that slept, or held against one lane, and of kernels that woke their threads.
        together = (("contention of PyTorch's lanes", "by parts"),)
        crossings = (("crossings of PyTorch's lanes", "awake, by segments, each on its lane"),)
        teams = (("teams of PyTorch's threads", "one at a time"),)
        return (("torch", installed), *pages, *freed, *launches, *together, *crossings, *teams)

    def copy_seconds(
        self, src: Device, dst: Device, sizes: Sequence[int]
    ) -> Sequence[float] | None:
        from profiling.backends._torch.streams import copy_seconds

        return copy_seconds(src, dst, sizes)

    def send_overhead(self, src: Device, dst: Device, size: int) -> float:
        from profiling.backends._torch.streams import send_overhead

        return send_overhead(src, dst, size)

    def compile(self, model: Model, machine: Machine) -> Compiled:
        from profiling.backends._torch.compile import TorchCompiled

        executable = model.executable
        if executable is None or not self.runs(executable.format):
            raise ValueError(f"{model.graph.name!r} cannot be run by torch; open a PyTorch model.")
        key = f"{executable.content_hash} {model.graph.fingerprint} {machine.fingerprint}"
        if key not in self._kept:
            self._kept.clear()
            heap.keep()
            self._kept[key] = TorchCompiled.of(model, machine, self.name)
        return self._kept[key]


BACKEND = Torch()
