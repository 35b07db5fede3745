"""Layer ranges for vLLM: how many layers of a language model each rank of a pipeline has.

vLLM divides a model by layers: with `--pipeline-parallel-size`, the environment variable
VLLM_PP_LAYER_PARTITION says how many the ranks have, from the first to the last
(`get_pp_indices` in vllm/distributed/utils.py). The file holds both, and per rank its device and
its layers. What comes before the layers is on the first rank, what follows on the last.
"""

import json
from pathlib import Path

from placement.core.decoding import listed
from placement.core.formatting import counted
from placement.exporters._layers import Layers, layers_of, refused
from placement.exporters.base import Export, Exporter
from placement.files.output import write_text

PARTITION = "VLLM_PP_LAYER_PARTITION"


class VllmLayers(Exporter):
    """Writes one JSON object; a placement that gives a device two runs of layers is refused."""

    name = "vllm-layers"
    title = "vLLM layer ranges"
    summary = "the layers of every pipeline rank, for vLLM"
    suffix = ".json"

    def missing(self, export: Export) -> str:
        graph, machine = export.model.graph, export.problem.machine
        reason = refused(graph, export.placement, machine)
        if reason:
            return reason
        layers = _layers(export)
        for run in layers.runs:
            again = next((r for r in layers.runs if r.device == run.device and r != run), None)
            if again is not None:
                return (
                    f"A rank of vLLM has one run of layers, and this placement puts {run} and"
                    f" {again} on {run.device!r}; place its layers next to each other."
                )
        kinds = {machine.device(run.device).kind: run.device for run in layers.runs}
        if len(kinds) > 1:
            return (
                "All ranks of vLLM run on devices of one kind, and this placement puts layers on"
                f" {' and '.join(map(repr, kinds.values()))}; place them on one kind."
            )
        return ""

    def note(self, export: Export) -> str:
        layers, machine = _layers(export), export.problem.machine
        devices = [run.device for run in layers.runs]
        said = [layers.divided_note, layers.others_note]
        if devices != sorted(devices, key=machine.index.__getitem__):
            said.append(f"Ranks take devices in order, so let vLLM see them as {listed(devices)}.")
        elsewhere = layers.num_elsewhere(devices[0], devices[-1])
        if elsewhere:
            said.append(
                f"What comes before the layers is on the first rank and what follows on the last;"
                f" {counted(elsewhere, 'op')} of it {'is' if elsewhere == 1 else 'are'} placed"
                " elsewhere."
            )
        return " ".join(filter(None, said))

    def export(self, export: Export, path: Path) -> None:
        layers = _layers(export)
        content = {
            "model": export.model.graph.name,
            "layers": layers.path,
            "num_hidden_layers": len(layers.device_of),
            "pipeline_parallel_size": len(layers.runs),
            PARTITION: ",".join(str(run.end - run.start) for run in layers.runs),
            "ranks": [
                {"rank": i, "device": run.device, "start_layer": run.start, "end_layer": run.end}
                for i, run in enumerate(layers.runs)
            ],
        }
        write_text(path, json.dumps(content, indent=1) + "\n")


def _layers(export: Export) -> Layers:
    found = layers_of(export.model.graph, export.placement)
    assert found is not None, "see `missing`"
    return found


EXPORTER = VllmLayers()
