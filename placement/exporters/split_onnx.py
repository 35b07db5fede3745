"""The model in parts, one ONNX file per call, and a script that runs them on their devices.

The calls are those of the prediction as far as they can be told from the model's own ops: cut at
crossings between devices, merged while the step gets no longer.
"""

from pathlib import Path
from typing import Any

from placement.core.machine import Device
from placement.exporters._files import add_script, bundle
from placement.exporters._sources import source_schedule
from placement.exporters.base import Export, Exporter

MANIFEST, SCRIPT = "parts.json", "run.py"
CPU = "CPUExecutionProvider"
# Providers whose devices are told apart by a number.
_NUMBERED = ("CUDAExecutionProvider", "DmlExecutionProvider", "ROCMExecutionProvider",
             "TensorrtExecutionProvider")  # fmt: skip


class SplitOnnx(Exporter):
    """Writes `part000.onnx` and so on, `parts.json` that joins them, and `run.py`."""

    name = "split-onnx"
    title = "Split ONNX models"
    summary = "one model file per call, with a script that runs them on their devices"
    suffix = ".zip"

    def missing(self, export: Export) -> str:
        from placement.exporters._onnx.save import not_onnx

        return not_onnx(export.model)

    def export(self, export: Export, path: Path) -> None:
        from placement.exporters._onnx.cut import border_types, cut, part_model
        from placement.exporters._onnx.save import proto_of, save

        graph, schedule = export.model.graph, source_schedule(export.problem, export.placement)
        whole = proto_of(export.model)
        parts = cut(whole, graph, [segment.kernels for segment in schedule.segments])
        types = border_types(whole, parts, graph.name)
        rows = []
        with bundle(path) as folder:
            for number, (part, segment) in enumerate(zip(parts, schedule.segments, strict=True)):
                made = part_model(whole, part, types)
                file = save(made, folder, f"part{number:03d}")
                rows.append(
                    {
                        "file": file,
                        "device": segment.device,
                        "inputs": list(part.inputs),
                        "outputs": list(part.outputs),
                    }
                )
            add_script(folder, SCRIPT, MANIFEST, _manifest(export, whole, rows))


def _manifest(export: Export, whole: Any, rows: list[dict[str, Any]]) -> dict[str, Any]:
    used = {row["device"] for row in rows}
    return {
        "model": export.model.graph.name,
        "placement": export.label,
        "inputs": [
            {"name": t.name, "dtype": t.dtype, "shape": None if t.shape is None else list(t.shape)}
            for t in export.model.graph.inputs
        ],
        "outputs": [value.name for value in whole.graph.output],
        "devices": [_device(d) for d in export.problem.machine.devices if d.name in used],
        "parts": rows,
    }


def _device(device: Device) -> dict[str, Any]:
    """What the runner must know; devices that no runtime has are run on the CPU."""
    provider = device.provider if device.runtime == "onnxruntime" else CPU
    number = device.name.rpartition(":")[2]
    numbered = provider in _NUMBERED and number.isdecimal()
    return {
        "name": device.name,
        "provider": provider or CPU,
        "options": {"device_id": number} if numbered else {},
        "cores": device.cores,
        "core_ids": list(device.core_ids),
    }


EXPORTER = SplitOnnx()
