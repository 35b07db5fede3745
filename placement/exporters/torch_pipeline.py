"""Split points for torch.distributed.pipelining: the modules that stages of a pipeline begin with.

`split_points` of the file leads from module paths to names of `SplitPoint`, and becomes the
`split_spec` of `pipeline` so:

    about = json.load(file)
    points = {name: SplitPoint[point] for name, point in about["split_points"].items()}
    pipe = pipeline(module, mb_args=(example,), split_spec=points)

Stage i of it belongs on `devices[i]`, in torch's words. For inference call `pipeline` under
`torch.no_grad()`; what the module does with gradients off is then no branch to it.
"""

import json
from pathlib import Path

from placement.core.decoding import listed
from placement.core.formatting import counted
from placement.exporters._torch.stages import Stages, stages_of
from placement.exporters.base import Export, Exporter
from placement.files.output import write_text

BEGINNING = "BEGINNING"


class TorchPipeline(Exporter):
    """Writes one JSON object; `note` says what stages cannot express of the placement."""

    name = "torch-pipeline"
    title = "PyTorch pipeline stages"
    summary = "the modules that stages begin with, for torch.distributed.pipelining"
    suffix = ".json"

    def missing(self, export: Export) -> str:
        from placement.exporters._torch.model import not_torch, refused_device

        graph = export.model.graph
        reason = not_torch(export.model)
        if reason:
            return reason
        if any(op.phase != "forward" for op in graph.ops):
            return (
                f"{graph.name!r} is a training step, and stages are cut from the model itself,"
                " whatever they are for; open it without training."
            )
        if not graph.ops:
            return f"{graph.name!r} has no ops, so there is nothing to divide into stages."
        return refused_device(export.problem.machine, export.placement.device_of.values())

    def note(self, export: Export) -> str:
        found, said = _stages(export), list[str]()
        if found.elsewhere:
            num_bytes = sum(op.param_bytes for op in found.elsewhere)
            weights = f" with {num_bytes:,} bytes of weights" if num_bytes else ""
            one = len(found.elsewhere) == 1
            said.append(
                "A stage begins where a module is called, so"
                f" {counted(len(found.elsewhere), 'op')}{weights} {'is' if one else 'are'} in"
                " another stage than placed."
            )
        counts = {device: found.devices.count(device) for device in found.devices}
        again = [device for device, count in counts.items() if count > 1]
        if again:
            said.append(
                f"{listed(again)} {'has' if len(again) == 1 else 'have'} several stages, which"
                " takes a schedule for that (ScheduleInterleaved1F1B)."
            )
        return " ".join(said)

    def export(self, export: Export, path: Path) -> None:
        from placement.exporters._torch.model import torch_device

        found, machine = _stages(export), export.problem.machine
        content = {
            "model": export.model.graph.name,
            "split_points": dict.fromkeys(found.modules, BEGINNING),
            "devices": [torch_device(machine, machine.device(name)) for name in found.devices],
        }
        write_text(path, json.dumps(content, indent=1) + "\n")


def _stages(export: Export) -> Stages:
    return stages_of(export.model, export.placement)


EXPORTER = TorchPipeline()
