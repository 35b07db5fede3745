"""PyTorch: CPU lanes and every accelerator that the installed build can use here."""

from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import ClassVar

from placement.core.machine import Device, Machine
from placement.core.model import Model
from profiling.backends.base import Backend, Compiled
from profiling.devices.accelerators import accelerators
from profiling.devices.cores import cpu_model, host_memory_bytes, usable_cores

CPU = "cpu"


class Torch(Backend):
    """See `profiling.backends.base.Backend`; what was compiled last is kept."""

    name: ClassVar[str] = "torch"
    cpu_provider: ClassVar[str] = CPU

    def __init__(self) -> None:
        self._kept: dict[str, Compiled] = {}

    def missing(self) -> str:
        return "" if find_spec("torch") else "needs: pip install torch"

    def devices(self) -> tuple[Device, ...]:
        cores = usable_cores()
        memory_bytes = host_memory_bytes()
        label = cpu_model()
        cpu = Device("cpu:0", "cpu", self.name, CPU, memory_bytes, len(cores), label=label)
        return (cpu, *accelerators())

    def libraries(self) -> tuple[tuple[str, str], ...]:
        try:
            return (("torch", version("torch")),)
        except PackageNotFoundError:
            return ()

    def copy_seconds(
        self, src: Device, dst: Device, sizes: Sequence[int]
    ) -> Sequence[float] | None:
        from profiling.backends._torch.links import copy_seconds

        return copy_seconds(src, dst, sizes)

    def compile(self, model: Model, machine: Machine) -> Compiled:
        from profiling.backends._torch.compile import TorchCompiled

        executable = model.executable
        if executable is None or executable.format != "torch":
            raise ValueError(f"{model.graph.name!r} cannot be run by torch; open a PyTorch model.")
        key = f"{executable.content_hash} {model.graph.fingerprint} {machine.fingerprint}"
        if key not in self._kept:
            self._kept.clear()
            self._kept[key] = TorchCompiled.of(model, machine)
        return self._kept[key]


BACKEND = Torch()
