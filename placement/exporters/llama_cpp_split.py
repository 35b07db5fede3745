"""A split for llama.cpp: which layers of a language model go to the CPU and to which accelerator.

llama.cpp (`load_tensors` in src/llama-model.cpp, docs/multi-gpu.md) counts the output as one layer
more, behind the others. The last `--n-gpu-layers` of them go to accelerators, the first ones stay
on the CPU. Of A layers on accelerators the one at place p goes to the first accelerator whose
share, with all shares before it, is more than p / A; so `--tensor-split` with the numbers of layers
gives each exactly these. The token embedding is always the CPU's. Before December 2025 (pull
request 18148) the output was the last to leave the CPU and not the first.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from placement.core.decoding import listed
from placement.core.formatting import counted
from placement.core.machine import Machine
from placement.exporters._layers import Layers, Run, layers_of, refused, runs_of
from placement.exporters.base import Export, Exporter
from placement.files.output import write_text

# All lanes of the CPU, which no device is called.
CPU = ""
# Words of `--list-devices` for kinds of devices that name themselves by number.
_WORDS = {"cuda": "CUDA", "xpu": "SYCL"}


@dataclass(frozen=True)
class Split:
    """Layers by number: how many stay on the CPU, and the runs of the accelerators behind them."""

    layers: Layers
    num_on_cpu: int
    runs: tuple[Run, ...]

    @property
    def shares(self) -> tuple[int, ...]:
        """Layers per accelerator; the last one's output counts too."""
        last = len(self.runs) - 1
        return tuple(run.end - run.start + (i == last) for i, run in enumerate(self.runs))


class LlamaCppSplit(Exporter):
    """Writes one JSON object with the arguments of the command line and what they mean."""

    name = "llama-cpp-split"
    title = "llama.cpp tensor split"
    summary = "the layers on CPU and accelerators, as arguments of llama.cpp"
    suffix = ".json"

    def missing(self, export: Export) -> str:
        machine = export.problem.machine
        reason = refused(export.model.graph, export.placement, machine)
        if reason:
            return reason
        runs = runs_of(_with_one_cpu(_layers(export).device_of, machine))
        for i, run in enumerate(runs):
            if run.device == CPU and i:
                return (
                    f"llama.cpp keeps the first layers on the CPU, and this placement puts {run}"
                    f" there behind {runs[i - 1]} on {runs[i - 1].device!r}; move the CPU's layers"
                    " to the front."
                )
            again = next((r for r in runs[i + 1 :] if r.device == run.device), None)
            if again is not None:
                return (
                    f"llama.cpp gives an accelerator one run of layers, and this placement puts"
                    f" {run} and {again} on {run.device!r}; place its layers next to each other."
                )
        return ""

    def note(self, export: Export) -> str:
        split, machine = split_of(export), export.problem.machine
        layers, last = split.layers, split.runs[-1].device if split.runs else CPU
        said = [layers.divided_note, layers.others_note]
        lanes = {d for d in layers.device_of if machine.device(d).on_host}
        if len(lanes) > 1:
            said.append("llama.cpp knows one CPU, so all lanes of it are one device.")
        before = _with_one_cpu(layers.before, machine)
        after = _with_one_cpu(layers.after, machine)
        elsewhere = sum(device != CPU for device in before) + sum(d != last for d in after)
        if elsewhere:
            said.append(
                "llama.cpp reads the words on the CPU and computes the output where the last layer"
                f" is; {counted(elsewhere, 'op')} outside of the layers"
                f" {'is' if elsewhere == 1 else 'are'} placed elsewhere."
            )
        if split.runs and not device_words(split):
            named = listed(run.device for run in split.runs)
            said.append(f"Give llama.cpp the devices {named} in this order (--device).")
        return " ".join(filter(None, said))

    def export(self, export: Export, path: Path) -> None:
        split = split_of(export)
        content: dict[str, Any] = {
            "model": export.model.graph.name,
            "layers": split.layers.path,
            "num_layers": len(split.layers.device_of),
            "num_layers_on_cpu": split.num_on_cpu,
            "accelerators": [
                {"device": run.device, "start_layer": run.start, "end_layer": run.end, "share": n}
                for run, n in zip(split.runs, split.shares, strict=True)
            ],
            "arguments": arguments(split),
        }
        write_text(path, json.dumps(content, indent=1) + "\n")


def split_of(export: Export) -> Split:
    """The split of an export that lacks nothing."""
    layers, machine = _layers(export), export.problem.machine
    runs = runs_of(_with_one_cpu(layers.device_of, machine))
    on_cpu = runs[0].end if runs[0].device == CPU else 0
    return Split(layers, on_cpu, tuple(run for run in runs if run.device != CPU))


def arguments(split: Split) -> list[str]:
    """What is added to the command line of llama-cli or llama-server."""
    if not split.runs:
        return ["--device", "none", "--n-gpu-layers", "0"]
    words = device_words(split)
    found = ["--device", ",".join(words)] if words else []
    found += ["--split-mode", "layer", "--n-gpu-layers", str(sum(split.shares))]
    return [*found, "--tensor-split", ",".join(map(str, split.shares))]


def device_words(split: Split) -> list[str]:
    """llama.cpp's words for the accelerators, in order; empty where the names do not say them."""
    found = []
    for run in split.runs:
        kind, _, number = run.device.partition(":")
        if kind not in _WORDS or not number.isdecimal():
            return []
        found.append(f"{_WORDS[kind]}{number}")
    return found


def _with_one_cpu(devices: tuple[str, ...], machine: Machine) -> list[str]:
    return [CPU if machine.device(name).on_host else name for name in devices]


def _layers(export: Export) -> Layers:
    found = layers_of(export.model.graph, export.placement)
    assert found is not None, "see `missing`"
    return found


EXPORTER = LlamaCppSplit()
