"""ONNX Runtime: CPU lanes and every execution provider of the installed build."""

from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import ClassVar

from placement.core.machine import Device, Machine
from placement.core.model import Model
from profiling.backends.base import Backend, Compiled
from profiling.devices.cores import cpu_model, host_memory_bytes, usable_cores
from profiling.devices.providers import providers

_PACKAGES = ("onnxruntime", "onnxruntime-gpu", "onnxruntime-webgpu", "onnxruntime-openvino")


class OnnxRuntime(Backend):
    """See `profiling.backends.base.Backend`; what was compiled last is kept."""

    name: ClassVar[str] = "onnxruntime"

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str, str], Compiled] = {}

    def missing(self) -> str:
        absent = find_spec("onnxruntime") is None or find_spec("onnx") is None
        return "needs: pip install onnxruntime onnx" if absent else ""

    def devices(self) -> tuple[Device, ...]:
        cores = usable_cores()
        cpu = Device(
            "cpu:0",
            "cpu",
            self.name,
            "CPUExecutionProvider",
            host_memory_bytes(),
            len(cores),
            label=cpu_model(),
        )
        return (cpu, *providers())

    def libraries(self) -> tuple[tuple[str, str], ...]:
        found = []
        for package in _PACKAGES:
            with suppress(PackageNotFoundError):
                found.append((package, version(package)))
        return tuple(found)

    def dedicate(self, machine: Machine) -> None:
        from profiling.backends._ort.sessions import dedicate

        dedicate(machine)

    def compile(self, model: Model, machine: Machine) -> Compiled:
        from profiling.backends._ort.compile import compile_onnx

        executable = model.executable
        if executable is None or executable.format != "onnx":
            raise ValueError(
                f"{model.graph.name!r} cannot be run by onnxruntime; open an ONNX model."
            )
        key = (executable.content_hash, model.graph.fingerprint, machine.fingerprint)
        if key not in self._kept:
            self._kept.clear()
            self._kept[key] = compile_onnx(model, machine)
        return self._kept[key]


BACKEND = OnnxRuntime()
