"""What a training step consists of: its phases, and the memory that training adds to weights."""

from collections import Counter
from dataclasses import dataclass

import streamlit as st

from placement.core import formatting
from placement.core.graph import PHASES, Graph
from studio.project.file_cache import by_identity

FORWARD, BACKWARD, UPDATE = PHASES
HELP = (
    "One training step: **forward** computes the loss of a batch of examples, **backward** how the"
    " loss changes with every parameter (the gradients), and **update** moves the parameters a"
    " little against them. All of it is one graph, so all of it can be placed. Parameters are what"
    " is learned; the optimiser's state is what the update remembers from step to step, such as"
    " momentum. Each update stays on the device of its parameter."
)


@dataclass(frozen=True)
class Training:
    """Ops of each phase, and bytes of what a training step holds beside its activations."""

    num_ops: dict[str, int]
    parameter_bytes: int
    gradient_bytes: int
    state_bytes: int


@by_identity(16)
def training_of(graph: Graph) -> Training | None:
    """The account of a training step; None for a graph with a single phase.

    A weight counts at the first op that reads it. Parameters are read before they are updated, so
    what an update is the first to read is the optimiser's state. Gradients are what updates read
    of what other phases make.
    """
    counted = Counter(op.phase for op in graph.ops)
    if len(counted) < 2:
        return None
    updates = {op.name for op in graph.ops if op.phase == UPDATE}
    held = sum(op.param_bytes for op in graph.ops)
    state = sum(op.param_bytes for op in graph.ops if op.name in updates)
    gradients = sum(
        tensor.num_bytes
        for tensor in graph.tensors
        if tensor.producer is not None
        and tensor.producer not in updates
        and not updates.isdisjoint(tensor.consumers)
    )
    ops = {phase: counted[phase] for phase in PHASES if counted[phase]}
    return Training(ops, held - state, gradients, state)


def show(graph: Graph) -> None:
    """The account in a row of its own; nothing for a graph with a single phase."""
    found = training_of(graph)
    if found is None:
        return
    cells = st.columns([0.31, 0.23, 0.23, 0.23])
    ops = " + ".join(f"{number:,}" for number in found.num_ops.values())
    cells[0].metric(" + ".join(found.num_ops).capitalize() + " ops", ops, help=HELP)
    cells[1].metric("Parameters", formatting.num_bytes(found.parameter_bytes))
    cells[2].metric("Gradients", formatting.num_bytes(found.gradient_bytes))
    state = formatting.num_bytes(found.state_bytes) if found.state_bytes else "none"
    cells[3].metric("Optimiser state", state)
