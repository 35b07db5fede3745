"""ONNX Runtime: CPU lanes and every execution provider of the installed build."""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import ClassVar

from placement.core.machine import Device, Machine
from placement.core.model import Model
from profiling.backends._ort.providers import providers
from profiling.backends._ort.sessions import CPU
from profiling.backends.base import Backend, Compiled
from profiling.devices.cores import cpu_model, host_memory_bytes, usable_cores


class OnnxRuntime(Backend):
    """See `profiling.backends.base.Backend`; what was compiled last is kept."""

    name: ClassVar[str] = "onnxruntime"
    format: ClassVar[str] = "onnx"
    cpu_provider: ClassVar[str] = CPU
    leads: ClassVar[bool] = True
    # Its copies are timed by calls of an op, whose own cost belongs to the profile.
    tells_latency: ClassVar[bool] = False

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str, str], Compiled] = {}

    def missing(self) -> str:
        absent = find_spec("onnxruntime") is None or find_spec("onnx") is None
        return "needs: pip install onnxruntime onnx" if absent else ""

    def devices(self) -> tuple[Device, ...]:
        cores, memory_bytes = usable_cores(), host_memory_bytes()
        cpu = Device("cpu:0", "cpu", self.name, CPU, memory_bytes, len(cores), label=cpu_model())
        return (cpu, *providers())

    def libraries(self) -> tuple[tuple[str, str], ...]:
        try:
            import onnxruntime
        except ImportError:
            return ()
        # Profiles from before were of crossings by single kernels.
        crossings = ("crossings of ONNX Runtime's lanes", "by segments, each on its lane")
        return (("onnxruntime", str(onnxruntime.__version__)), crossings)

    def copy_seconds(
        self, src: Device, dst: Device, sizes: Sequence[int]
    ) -> Sequence[float] | None:
        from profiling.backends._ort.links import copy_seconds

        return copy_seconds(src, dst, sizes)

    def dedicate(self, machine: Machine) -> None:
        from profiling.backends._ort.sessions import dedicate

        dedicate(machine)

    def compile(self, model: Model, machine: Machine) -> Compiled:
        from profiling.backends._ort.compile import compile_onnx

        executable = model.executable
        if executable is None or not self.runs(executable.format):
            raise ValueError(
                f"{model.graph.name!r} cannot be run by onnxruntime; open an ONNX model."
            )
        key = (executable.content_hash, model.graph.fingerprint, machine.fingerprint)
        if key not in self._kept:
            self._kept.clear()
            self._kept[key] = compile_onnx(model, machine, self.name)
        return self._kept[key]


BACKEND = OnnxRuntime()
