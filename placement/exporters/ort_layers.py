"""Layer assignment for ONNX Runtime: one session that puts nodes on its execution providers.

The model's nodes carry the metadata `layer_ann`, one word per device, and the session option
`session.layer_assignment_settings` says which provider takes which word: "cuda(=device1);
cpu(=device0)". The option is described in onnxruntime's docs/annotated_partitioning and was tried
with 1.27 and 1.31. A provider that has no kernel for a node leaves it to the next, and a session
has one device of each provider, so lanes of the CPU come together.
"""

from pathlib import Path
from typing import Any

from placement.core.machine import Device, Machine
from placement.exporters._files import add_script, bundle
from placement.exporters.base import Export, Exporter, not_told_apart

OPTION, KEY = "session.layer_assignment_settings", "layer_ann"
MODEL, SETTINGS, SCRIPT = "model.onnx", "layers.json", "load.py"
CPU = "CPUExecutionProvider"
# Words of the option for providers; any other provider is meant by its own name.
_WORDS = {CPU: "cpu", "CUDAExecutionProvider": "cuda", "DmlExecutionProvider": "dml"}
# Providers that a device of an emulated machine would have.
_BY_KIND = {"cpu": CPU, "gpu": "CUDAExecutionProvider", "npu": "QNNExecutionProvider"}


class OrtLayers(Exporter):
    """Writes the annotated model, the options to open it with, and a script that does."""

    name = "ort-layers"
    title = "ONNX Runtime layer assignment"
    summary = "the model with its devices noted, and the options to open it with"
    suffix = ".zip"

    def missing(self, export: Export) -> str:
        from placement.exporters._onnx.save import not_onnx

        return not_onnx(export.model) or _crowded(_used(export))

    def note(self, export: Export) -> str:
        provider_of = {device.name: _provider(device) for device in _used(export)}
        return not_told_apart(provider_of, "a session of ONNX Runtime")

    def export(self, export: Export, path: Path) -> None:
        from placement.exporters._onnx.save import proto_of, save

        devices = _used(export)
        word_of = {device.name: f"device{i}" for i, device in enumerate(devices)}
        proto = proto_of(export.model)
        for node in proto.graph.node:
            device = export.placement.device_of.get(node.name)
            if device is not None:
                _annotate(node, word_of[device])
        with bundle(path) as folder:
            save(proto, folder, "model")
            add_script(folder, SCRIPT, SETTINGS, settings(devices, word_of))


def settings(devices: list[Device], word_of: dict[str, str]) -> dict[str, Any]:
    """What a session must be opened with, accelerators first, the CPU behind them."""
    providers = dict.fromkeys(map(_provider, devices))
    ordered = [p for p in providers if p != CPU] + [CPU]
    rules = [f"{_word(device)}(={word_of[device.name]})" for device in devices]
    return {
        "model": MODEL,
        "providers": ordered,
        "session_options": {
            OPTION: "; ".join(rules),
            "session.record_ep_graph_assignment_info": "1",
        },
        "devices": {word_of[device.name]: device.name for device in devices},
    }


def _used(export: Export) -> list[Device]:
    """Devices that have ops, in the machine's order; ValueError for one it does not have."""
    machine: Machine = export.problem.machine
    used = {machine.device(name).name for name in export.placement.device_of.values()}
    return [device for device in machine.devices if device.name in used]


def _crowded(devices: list[Device]) -> str:
    """Why one session cannot serve these devices, empty if it can."""
    seen: dict[str, str] = {}
    for device in devices:
        provider = _provider(device)
        if provider != CPU and provider in seen:
            return (
                f"A session of ONNX Runtime has one device of {provider}, and this placement uses"
                f" {seen[provider]!r} and {device.name!r}; export split ONNX models instead."
            )
        seen[provider] = device.name
    return ""


def _provider(device: Device) -> str:
    known = device.provider if device.runtime == "onnxruntime" else ""
    return known or _BY_KIND.get(device.kind, CPU)


def _word(device: Device) -> str:
    provider = _provider(device)
    return _WORDS.get(provider, provider)


def _annotate(node: Any, word: str) -> None:
    """Set the note that the runtime looks for; one that the file had already gives way."""
    kept = [(entry.key, entry.value) for entry in node.metadata_props if entry.key != KEY]
    del node.metadata_props[:]
    for key, value in (*kept, (KEY, word)):
        node.metadata_props.add(key=key, value=value)


EXPORTER = OrtLayers()
