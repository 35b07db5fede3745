"""From a model to its kernels: optimise, look at the values, name the kernels, map them back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from placement.core.graph import Graph, Tensor
from placement.core.machine import Device, Machine
from placement.core.model import Model
from placement.core.schedule import Schedule
from placement.formats.onnx.checks.walk import bodies
from placement.formats.onnx.constants import RANDOM
from placement.formats.onnx.prepare import reads
from placement.formats.onnx.saving import INSIDE_BYTES
from profiling.backends._ort import sessions
from profiling.backends._ort.errors import sentence, told
from profiling.backends._ort.feeds import all_feeds, row_limits
from profiling.backends._ort.kernels import kernel_graph, value_names
from profiling.backends._ort.layout import Layout
from profiling.backends._ort.loops import check_loops
from profiling.backends._ort.memory import check_whole
from profiling.backends._ort.native.fits import all_fit, why_not
from profiling.backends._ort.native.program import NativeProgram
from profiling.backends._ort.optimise import (
    AS_IT_IS,
    LEVELS,
    Optimised,
    optimise,
    write_source,
)
from profiling.backends._ort.parts import cut, only_borders
from profiling.backends._ort.program import OrtProgram
from profiling.backends._ort.sources import equal_values, map_sources
from profiling.backends._ort.types import numpy_dtype, type_text
from profiling.backends._ort.unplaced import Unplaced
from profiling.backends._ort.values import Value, probe
from profiling.backends.base import Compiled, Feeds, Program
from profiling.devices.memory import free_bytes


@dataclass(frozen=True, eq=False)
class OrtCompiled(Compiled):
    """See `profiling.backends.base.Compiled`; `members[k]` are the nodes of kernel k.

    `value_names` has what onnxruntime calls tensors of the kernels, where that is another name.
    """

    kernels: Graph
    sources: tuple[tuple[str, ...], ...]
    random_ops: tuple[str, ...]
    runtime: str
    machine: Machine
    optimised: Optimised
    values: Mapping[str, Value]
    inputs: Mapping[str, Value]
    limits: Mapping[str, int]
    members: tuple[tuple[int, ...], ...]
    level: str = field(default="ORT_DISABLE_ALL")
    value_names: Mapping[str, str] = field(default_factory=dict)
    asked_for_python: bool = False

    @cached_property
    def _is_repeatable(self) -> bool:
        """Whether each placement runs natively. Steps of one that does not are not repeated, and so
        none are that are held against them, the unplaced model's neither."""
        made = [t.name for t in self.kernels.tensors if t.producer is not None]
        between = [self.values.get(self.value_names.get(name, name)) for name in made]
        return not self.asked_for_python and all_fit(self.machine.devices, between)

    def feeds(self, seed: int, given: Feeds) -> dict[str, Any]:
        return all_feeds(self.inputs, self.limits, seed, given)

    def open(self, schedule: Schedule, feeds: Feeds) -> Program:
        return self._open(schedule, (feeds,), 1)

    def open_ring(
        self, schedule: Schedule, feeds: Sequence[Feeds], depth: int
    ) -> tuple[Program, ...]:
        first = self._open(schedule, feeds, depth)
        return (first, *(first.beside() for _ in range(depth - 1)))

    def in_python(self) -> "OrtCompiled":
        return replace(self, asked_for_python=True)

    def _open(
        self, schedule: Schedule, feeds: Sequence[Feeds], depth: int
    ) -> OrtProgram | NativeProgram:
        index = self.kernels.index
        groups = [
            [node for kernel in segment.kernels for node in self.members[index[kernel]]]
            for segment in schedule.segments
        ]
        devices = [self.machine.device(segment.device) for segment in schedule.segments]
        own = [device.runtime == self.runtime for device in devices]
        parts = only_borders(self.optimised, cut(self.optimised, groups), own)
        with told("open the parts of this placement"):
            layout = Layout.of(
                self.optimised, self.values, schedule, parts, self.machine, feeds, depth
            )
            made_of = layout, self.optimised, self.values, self.level
            if self.asked_for_python:
                return OrtProgram(*made_of, self.value_names)
            reason = why_not(*made_of[:3])
            try:
                if not reason:
                    return NativeProgram(*made_of, self._is_repeatable)
            except Exception as error:  # of onnxruntime's many kinds; what is wrong for both recurs
                reason = (
                    f"onnxruntime's library cannot open the segments: {sentence(error).rstrip('.')}"
                )
            program = OrtProgram(*made_of, self.value_names)
            program.lanes_note = f"Lanes ran in Python, because {reason}."
            return program

    def unplaced(self, device: Device | None, feeds: Feeds) -> Program:
        with told("open the model"):
            return Unplaced(self.optimised.source, device, feeds, self._is_repeatable)

    def among(self, machine: Machine) -> "OrtCompiled":
        return replace(self, machine=machine)

    def exchanges(self, tensor: Tensor) -> bool:
        value = self.values.get(self.value_names.get(tensor.name, tensor.name))
        return value is not None and (
            value.dtype is not None or value.type == "tensor(string)" or _is_list(value.type)
        )


def _is_list(text: str) -> bool:
    """Whether values of this type are lists of arrays that numpy knows."""
    return text.startswith("seq(") and numpy_dtype(text[4:-1]) is not None


def compile_onnx(model: Model, machine: Machine, runtime: str) -> OrtCompiled:
    """Kernels of a model: optimised as far as onnxruntime manages and all devices accept.

    Where devices have different providers the graph is optimised as far as any of them accepts, and
    where some are another runtime's not at all, for both must make the same kernels; each side
    optimises its parts. Where the values between the kernels cannot be had the whole model is one
    kernel. `runtime` is what the machine calls onnxruntime. Raises RuntimeError where it cannot run
    the model, ValueError where no memory could hold it or no step could end.
    """
    check_whole(model.graph)
    executable: Any = model.executable
    proto = executable.model_proto(INSIDE_BYTES)
    check_loops(proto, model.graph.name, free_bytes())
    limits, randoms = row_limits(proto.graph), _random_ops(proto.graph)
    same = equal_values(proto.graph.node)
    folder = write_source(proto)
    del proto
    shared = any(d.runtime != runtime for d in machine.devices)
    alike = not shared and all(d.provider == sessions.CPU for d in machine.devices)
    first_error = None
    levels = LEVELS if alike else LEVELS[2:] if shared else LEVELS[1:]
    attempts = [(level, True) for level in levels]
    attempts.append((AS_IT_IS, False))
    for level, inner in attempts:
        try:
            optimised = optimise(folder, level)
            inputs = _input_values(model, optimised)
            values = probe(optimised, all_feeds(inputs, limits, 0, {}), inner)
        except Exception as error:  # onnxruntime raises many kinds, for many reasons
            first_error = first_error or error
            continue
        nodes = optimised.model.graph.node
        members = _members(optimised, values) if inner else (tuple(range(len(nodes))),)
        sources = map_sources(model.graph, [[nodes[i] for i in m] for m in members], same)
        kernels = kernel_graph(model.graph, optimised, values, members, sources)
        return OrtCompiled(
            kernels=kernels,
            sources=sources,
            random_ops=randoms,
            runtime=runtime,
            machine=machine,
            optimised=optimised,
            values=values,
            inputs=inputs,
            limits=limits,
            members=members,
            level="ORT_DISABLE_ALL" if alike else "ORT_ENABLE_ALL",
            value_names=value_names(model.graph, kernels, optimised, members),
        )
    assert first_error is not None
    text = sentence(first_error)
    raise RuntimeError(f"onnxruntime cannot run {model.graph.name!r}: {text}") from None


def _input_values(model: Model, optimised: Optimised) -> dict[str, Value]:
    """Type of the inputs, and shape where the graph was opened with one."""
    shapes = {t.name: t.shape for t in model.graph.inputs}
    inputs = (v for v in optimised.model.graph.input if v.name in shapes)
    return {v.name: Value(type_text(v.type), shapes[v.name], 0) for v in inputs}


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


def _random_ops(graph: Any) -> tuple[str, ...]:
    """Names of ops of a model graph that are random, in bodies of other ops too.

    Outputs behind them cannot be compared.
    """
    return tuple(node.name or node.op_type for node in graph.node if _is_random(node, graph))


def _is_random(node: Any, graph: Any) -> bool:
    if node.op_type in RANDOM:
        return True
    if node.op_type == "Dropout" and len(node.input) > 2 and node.input[2]:
        return _may_be_true(node.input[2], graph)
    return any(_random_ops(body) for a in node.attribute for body in bodies(a))


def _may_be_true(name: str, graph: Any) -> bool:
    """Whether a training flag is anything but a constant false."""
    from onnx import numpy_helper

    for tensor in graph.initializer:
        if tensor.name == name:
            return bool(numpy_helper.to_array(tensor).any())
    for node in graph.node:
        if node.op_type == "Constant" and name in node.output:
            return any(
                numpy_helper.to_array(a.t).any() for a in node.attribute if a.name == "value"
            )
    return True
