"""Affinities for OpenVINO's HETERO device: a device for every operation, and a script to set them.

HETERO runs one model on several devices; which operation runs where is noted on each operation as
its `affinity`, found again by its friendly name, which OpenVINO takes from the ONNX node
("Heterogeneous Execution" in its documentation, manual mode). So the bundle holds the model with
the names used here.
"""

from collections import Counter
from pathlib import Path
from typing import Any

from placement.core.machine import Device
from placement.exporters._files import add_script, bundle
from placement.exporters.base import Export, Exporter, not_told_apart

MODEL, AFFINITIES, SCRIPT = "model.onnx", "affinities.json", "run_openvino.py"
_NAMES = {"cpu": "CPU", "gpu": "GPU", "npu": "NPU"}


class OpenVinoHetero(Exporter):
    """Writes the model, `affinities.json` and a script that compiles the one with the other."""

    name = "openvino-hetero"
    title = "OpenVINO HETERO affinities"
    summary = "a device for every operation, with a script that compiles the model so"
    suffix = ".zip"

    def missing(self, export: Export) -> str:
        from placement.exporters._onnx.save import not_onnx

        return not_onnx(export.model)

    def note(self, export: Export) -> str:
        names = device_names(export.problem.machine.devices)
        used = set(export.placement.device_of.values())
        return not_told_apart({d: name for d, name in names.items() if d in used}, "OpenVINO")

    def export(self, export: Export, path: Path) -> None:
        from placement.exporters._onnx.save import proto_of, save

        proto = proto_of(export.model)
        content = affinities(export)
        with bundle(path) as folder:
            save(proto, folder, "model")
            add_script(folder, SCRIPT, AFFINITIES, content)


def affinities(export: Export) -> dict[str, Any]:
    """OpenVINO's device for every op, and which op writes each value (for outputs of the model)."""
    graph, machine = export.model.graph, export.problem.machine
    names = device_names(machine.devices)
    placed = {op.name: machine.device(export.placement.device_of[op.name]) for op in graph.ops}
    found = {op: names[device.name] for op, device in placed.items()}
    # Devices with most operations last: HETERO falls back from left to right, the CPU can do most.
    counts = Counter(found.values())
    order = sorted(counts, key=lambda name: (name == "CPU", -counts[name], name))
    return {
        "model": MODEL,
        "devices": order,
        "affinities": found,
        "value_of": {t.name: t.producer for t in graph.tensors if t.producer is not None},
        "placed_on": {op: device.name for op, device in placed.items()},
    }


def device_names(devices: tuple[Device, ...]) -> dict[str, str]:
    """OpenVINO's names: CPU for all lanes, GPU or GPU.0, GPU.1 and so on by order, NPU alike."""
    counts = Counter(device.kind for device in devices)
    seen: Counter[str] = Counter()
    found = {}
    for device in devices:
        name = _NAMES.get(device.kind, device.kind.upper())
        several = counts[device.kind] > 1 and device.kind != "cpu"
        found[device.name] = f"{name}.{seen[device.kind]}" if several else name
        seen[device.kind] += 1
    return found


EXPORTER = OpenVinoHetero()
