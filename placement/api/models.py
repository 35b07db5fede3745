"""The verbs `samples`, `load` and `inspect`: models, and what they hold."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from placement.core.model import Dims, Model


def samples() -> list[dict[str, Any]]:
    """The bundled models: name, number of ops and where they come from."""
    from placement import loaders

    return [dataclasses.asdict(sample) for sample in loaders.samples()]


def load(source: str, dims: Dims | None = None) -> Model:
    """The model in a file, or the bundled sample of that name.

    `dims` sets symbolic dimensions ("batch": 4), and what else a format lets one choose ("dtype").
    A ValueError says in one sentence what is wrong.
    A file is read by a confined process; all that comes back is what can be checked here.
    """
    from placement import loaders
    from profiling.sandbox import confinement

    sizes = dict(dims or {})
    if loaders.is_sample(source):
        return loaders.load(source, sizes)
    if not confinement.is_confined():
        from placement.remote import calls

        loaders.require_file(source)
        return calls.open_model(source, sizes)
    model = loaders.load(source, sizes)
    graph = model.graph
    confinement.file_is_read(graph.param_bytes + sum(t.num_bytes for t in graph.tensors))
    return model


def inspect(model: Model) -> dict[str, Any]:
    """A model's counts, sizes, inputs and outputs."""
    from placement.costs.roofline import bytes_moved

    graph = model.graph
    moved = float(bytes_moved(graph).sum())

    def ends(tensors: Sequence[Any]) -> list[dict[str, Any]]:
        return [
            {"name": t.name, "shape": None if t.shape is None else list(t.shape), "dtype": t.dtype}
            for t in tensors
        ]

    return {
        "name": graph.name,
        "num_ops": len(graph.ops),
        "num_tensors": len(graph.tensors),
        "param_bytes": graph.param_bytes,
        "cache_bytes": graph.state_bytes,
        "flops": graph.flops,
        "moved_bytes": moved,
        "flops_per_byte": graph.flops / moved if moved else None,
        "inputs": ends(graph.inputs),
        "outputs": ends(graph.outputs),
        "fingerprint": graph.fingerprint,
        "weights": model.has_weights,
        "notes": list(model.notes),
    }
