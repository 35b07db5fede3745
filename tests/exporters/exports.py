"""What the exporter tests share: placed models, hostile names, and how a format is written."""

from itertools import pairwise
from pathlib import Path

import numpy as np

import placement as pl
from pages.ui import canvas
from placement.core.graph import Graph, Op, Tensor
from placement.core.machine import Machine
from placement.core.model import Model
from placement.core.placement import Placement
from placement.core.timeline import Timeline
from placement.exporters import Export, exporter, write
from profiling.devices.local import load_machine

HOSTILE = "</script><img src=x onerror=alert(1)>"
HOSTILE_NAMES = (
    HOSTILE,
    '=HYPERLINK("http://evil.example/")',
    'a"b,\nc & {{ 7 * 7 }} <![CDATA[ ]]>',
    "nul\0 \u202e back \ufeff 模型",
)


def machine() -> Machine:
    return load_machine("two-lanes")


def dealt(graph: Graph, number: int, names: tuple[str, ...] = ("cpu:0", "cpu:1")) -> Placement:
    """One of many placements: all on one device (0), in halves (1), then dealt at random."""
    num = len(graph.ops)
    if number < 2:
        devices = [0 if number == 0 else int(i >= num // 2) for i in range(num)]
    else:
        devices = np.random.default_rng(number).integers(0, len(names), num).tolist()
    device_of = {op.name: names[d] for op, d in zip(graph.ops, devices, strict=True)}
    return Placement(graph.fingerprint, "two-lanes", device_of)


def hostile_model() -> Model:
    """A chain of ops whose names, kinds and scopes try to break out of every format."""
    ops = tuple(Op(name, name, f"{name}/x", param_bytes=4) for name in HOSTILE_NAMES)
    tensors = tuple(
        Tensor(f"t{i} {HOSTILE}", a.name, (b.name,), 4096, (4, 256))
        for i, (a, b) in enumerate(pairwise(ops))
    )
    return Model(Graph(HOSTILE, ops, tensors))


def export_of(model: Model, placement: Placement | None = None, **more: object) -> Export:
    """A placed model with its picture, all blocks open."""
    graph = model.graph
    problem = pl.make_problem(model, machine())
    everything = frozenset(g.id for g in canvas.scope_tree(graph).groups[1:])
    view = canvas.build_view(graph, everything)
    return Export(model, problem, placement or dealt(graph, 1), **{"view": lambda: view, **more})


def measured_like(export: Export) -> Timeline:
    """A run's timeline, as if everything had taken what was predicted."""
    predicted = export.simulated.timeline
    return Timeline(predicted.spans, predicted.step_s, "measured", predicted.peak_bytes)


def written(name: str, export: Export, folder: Path) -> Path:
    """The file (or folder) that a format makes of an export."""
    found = exporter(name)
    path = folder / f"{name}{found.suffix}"
    write(found, export, path)
    return path
