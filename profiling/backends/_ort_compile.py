"""From a model to its kernels: optimise, look at the values, name the kernels, map them back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from placement.core.graph import Graph, Tensor
from placement.core.machine import Device, Machine
from placement.core.model import Model
from placement.core.schedule import Schedule
from profiling.backends import _ort_sessions as sessions
from profiling.backends._ort_feeds import all_feeds, row_limits
from profiling.backends._ort_kernels import kernel_graph
from profiling.backends._ort_optimise import LEVELS, Optimised, optimise, reads, write_source
from profiling.backends._ort_parts import cut
from profiling.backends._ort_program import OrtProgram
from profiling.backends._ort_random import random_ops
from profiling.backends._ort_sources import map_sources
from profiling.backends._ort_unplaced import Unplaced
from profiling.backends._ort_values import Value, probe
from profiling.backends.base import Compiled, Feeds, Program


@dataclass(frozen=True, eq=False)
class OrtCompiled(Compiled):
    """See `profiling.backends.base.Compiled`; `members[k]` are the nodes of kernel k."""

    kernels: Graph
    sources: tuple[tuple[str, ...], ...]
    random_ops: tuple[str, ...]
    machine: Machine
    optimised: Optimised
    values: Mapping[str, Value]
    inputs: Mapping[str, Value]
    limits: Mapping[str, int]
    members: tuple[tuple[int, ...], ...]
    level: str = field(default="ORT_DISABLE_ALL")

    def feeds(self, seed: int, given: Feeds) -> dict[str, Any]:
        return all_feeds(self.inputs, self.limits, seed, given)

    def open(self, schedule: Schedule, feeds: Feeds) -> Program:
        index = self.kernels.index
        groups = [
            [node for kernel in segment.kernels for node in self.members[index[kernel]]]
            for segment in schedule.segments
        ]
        parts = cut(self.optimised, groups)
        return OrtProgram(
            self.optimised, self.values, schedule, parts, self.machine, feeds, self.level
        )

    def unplaced(self, device: Device | None, feeds: Feeds) -> Program:
        return Unplaced(self.optimised.source, device, feeds)


def compile_onnx(model: Model, machine: Machine) -> OrtCompiled:
    """Kernels of a model: optimised as far as onnxruntime manages and all devices accept.

    Where devices have different providers the graph is optimised as far as any of them accepts,
    and each side optimises its parts. Raises RuntimeError where onnxruntime cannot run the model.
    """
    executable: Any = model.executable
    proto = executable.model_proto()
    limits, randoms = row_limits(proto.graph), random_ops(proto.graph)
    folder = write_source(proto, getattr(executable, "base_dir", None))
    del proto
    alike = all(d.provider == sessions.CPU for d in machine.devices if d.runtime == "onnxruntime")
    first_error = None
    for level in LEVELS if alike else LEVELS[1:]:
        try:
            return _compiled(model, machine, optimise(folder, level), limits, randoms, alike)
        except Exception as error:  # onnxruntime raises many kinds, for many reasons
            first_error = first_error or error
    text = " ".join(str(first_error).split())[:300]
    raise RuntimeError(f"onnxruntime cannot run {model.graph.name!r}: {text}") from None


def _compiled(
    model: Model,
    machine: Machine,
    optimised: Optimised,
    limits: Mapping[str, int],
    randoms: tuple[str, ...],
    alike: bool,
) -> OrtCompiled:
    declared = {t.name: t for t in model.graph.inputs}
    weights = {t.name for t in optimised.model.graph.initializer}
    names = [v.name for v in optimised.model.graph.input if v.name not in weights]
    inputs = _input_values(optimised, names, declared)
    values = probe(optimised, all_feeds(inputs, limits, 0, {}))
    members = _members(optimised, values)
    graph = optimised.model.graph
    sources = map_sources(model.graph, [[graph.node[i] for i in m] for m in members])
    kernels = kernel_graph(model.graph, optimised, values, members, sources)
    level = "ORT_DISABLE_ALL" if alike else "ORT_ENABLE_ALL"
    return OrtCompiled(
        kernels, sources, randoms, machine, optimised, values, inputs, limits, members, level
    )


def _input_values(
    optimised: Optimised, names: Sequence[str], declared: Mapping[str, Tensor]
) -> dict[str, Value]:
    """Type and shape of the inputs, with the sizes that the graph was opened with."""
    made = sessions.options(1)
    session = sessions.session(str(optimised.source), made, [sessions.CPU])
    found = {}
    for node in session.get_inputs():
        if node.name in names:
            shape = declared[node.name].shape if node.name in declared else None
            fixed = all(isinstance(d, int) for d in node.shape)
            shape = tuple(node.shape) if shape is None and fixed else shape
            found[node.name] = Value(node.type, shape, 0)
    return found


def _members(optimised: Optimised, values: Mapping[str, Value]) -> tuple[tuple[int, ...], ...]:
    """Nodes of each kernel: one, but where a value between them cannot cross a border."""
    nodes = optimised.model.graph.node
    last = {name: i for i, node in enumerate(nodes) for name in reads(node)}
    members: list[tuple[int, ...]] = []
    open_until, start = -1, 0
    for i, node in enumerate(nodes):
        bound = [last.get(n, i) for n in node.output if n and _stuck(values[n])]
        open_until = max([open_until, i, *bound])
        if open_until == i:
            members.append(tuple(range(start, i + 1)))
            start = i + 1
    return tuple(members)


def _stuck(value: Value) -> bool:
    return value.type.startswith(("optional(", "sparse_tensor("))
