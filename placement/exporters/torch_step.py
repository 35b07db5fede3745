"""A placed PyTorch program that runs by itself: a module of functions, the weights, and a runner.

One step computes the outputs; a training step also makes the next parameters, buffers and
optimiser state, from which the following step starts.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from placement.exporters._files import add_script, bundle
from placement.exporters.base import Export, Exporter

if TYPE_CHECKING:
    from placement.exporters._torch.layout import Layout

SEGMENTS, ABOUT, WEIGHTS, SCRIPT = "segments.py", "step.json", "weights.npz", "step.py"


class TorchStep(Exporter):
    """Writes `segments.py`, `step.json` that describes its values, `weights.npz` and `step.py`."""

    name = "torch-step"
    title = "PyTorch module"
    summary = "the placed model or training step as Python code that needs torch and numpy"
    suffix = ".zip"

    def missing(self, export: Export) -> str:
        from placement.exporters._torch.model import (
            not_torch,
            program_of,
            refused_device,
            without_weights,
        )

        reason = not_torch(export.model) or without_weights(export.model)
        if reason:
            return reason
        from placement.exporters._torch.text import held_by_cpu, unwritable

        machine, device_of = export.problem.machine, export.whole.device_of
        program = program_of(export.model)
        reason = refused_device(machine, export.whole.device_of.values()) or unwritable(program)
        if reason:
            return reason
        return held_by_cpu(
            program, {op: machine.device(name).on_host for op, name in device_of.items()}
        )

    def export(self, export: Export, path: Path) -> None:
        import numpy as np

        from placement.exporters._sources import schedule_of_ops
        from placement.exporters._torch.layout import Layout
        from placement.exporters._torch.model import program_of
        from placement.exporters._torch.text import module_text

        program, machine = program_of(export.model), export.problem.machine
        schedule = schedule_of_ops(export.problem, export.simulated.schedule)
        layout = Layout(program, schedule, machine)
        text = module_text(program, layout.schedule, layout)
        about = {"model": export.model.graph.name, "placement": export.label, **_about(layout)}
        with bundle(path) as folder:
            (folder / SEGMENTS).write_text(text, encoding="ascii")
            keys = _keys(layout)
            arrays = {keys[name]: _array(value) for name, value in program.state.items()}
            np.savez(folder / WEIGHTS, **arrays)
            add_script(folder, SCRIPT, ABOUT, about)


def _keys(layout: "Layout") -> dict[str, str]:
    """Names of the state in the file of weights; those of the model are no names for a file."""
    return {name: f"s{number}" for number, name in enumerate(layout.program.state)}


def _about(layout: "Layout") -> dict[str, Any]:
    """What the runner has to know of values and devices."""
    import torch

    program, shared, keys = layout.program, layout.shared, _keys(layout)
    return {
        "torch": torch.__version__.partition("+")[0],
        "num_values": len(shared) + len(layout.copies),
        "inputs": _inputs(layout),
        "outputs": [{"name": label, "place": shared[name]} for label, name in program.outputs],
        "state": [
            {
                "name": program.labels.get(name, name),
                "key": keys[name],
                "dtype": str(value.dtype).removeprefix("torch."),
                "shape": list(value.shape),
                "place": shared[name],
                "device": layout.home(name),
                "new": shared.get(layout.new_of.get(name, "")),
            }
            for name, value in program.state.items()
        ],
        "copies": [
            {"of": shared[name], "place": place, "device": device}
            for name, device, place in layout.kept_copies
        ],
        "lanes": _lanes(layout),
    }


def _inputs(layout: "Layout") -> list[dict[str, Any]]:
    """Inputs by the names that people know; `below` limits the numbers of those that number rows.

    One that is no tensor always has the value that the model was exported with.
    """
    import torch

    from placement.formats.torch.rows import row_limits

    program, limits = layout.program, row_limits(layout.program)
    found = []
    for name in program.inputs:
        value = program.nodes[name].meta.get("val")
        row: dict[str, Any] = {
            "name": program.labels.get(name, name),
            "place": layout.shared[name],
        }
        if isinstance(value, torch.Tensor):
            row["dtype"] = str(value.dtype).removeprefix("torch.")
            row["shape"] = [int(size) for size in value.shape]
            row["below"] = limits.get(name)
        else:
            row["value"] = value if isinstance(value, bool | int | float | str) else None
        found.append(row)
    return found


def _lanes(layout: "Layout") -> list[dict[str, Any]]:
    found = []
    for name, segments, awaits in layout.lanes():
        device = layout.machine.device(name)
        found.append(
            {
                "name": name,
                "device": layout.device_of[segments[0]],
                "cores": device.cores if device.on_host else 1,
                "core_ids": list(device.core_ids) if device.on_host else [],
                "segments": segments,
                "awaits": awaits,
            }
        )
    return found


def _array(value: Any) -> Any:
    """A tensor as numpy holds it; of types that numpy lacks, the bytes."""
    import torch

    value = value.detach().cpu().contiguous()
    try:
        return value.numpy()
    except TypeError:
        return value.reshape(-1).view(torch.uint8).numpy()


EXPORTER = TorchStep()
