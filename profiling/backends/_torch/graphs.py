"""Segments as TorchScript graphs, which the library runs in a call without the interpreter's lock.

A segment's ops from Python take 2 to 4 us each to begin, all of it under the lock that the other
lanes want, too. The library's own interpreter begins them in a third of that and needs no lock. The
graph is built op by op through the library's graphs, so nothing is compiled from text and every op
is the overload that the program names: kernels, and so all bits of what they make, are the same. A
graph is run as it was built (`use_interpreter`), since what an optimiser fuses has other bits.
"""

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx
from torch.fx.experimental.proxy_tensor import make_fx

from placement.core.decoding import shown
from placement.formats.torch.program import Node, TorchProgram, has_nodes, is_update, kind_of
from placement.formats.torch.source import Function, parts_of, results_of, written_caches

# A value of a graph; its type is one of those of `torch._C`.
Value = Any
_TENSOR: Any = torch._C.TensorType.get()
_MEMORY_FORMATS = (
    torch.contiguous_format,
    torch.preserve_format,
    torch.channels_last,
    torch.channels_last_3d,
)


class NotCaptured(Exception):
    """Why a segment cannot be such a graph, as the rest of a sentence."""


def use_interpreter() -> None:
    """Let the calling thread run graphs as they are, in place of optimising them in first calls."""
    torch._C._set_graph_executor_optimize(False)


def captured(
    program: TorchProgram, names: Sequence[str], shared: Mapping[str, int], number: int
) -> Function:
    """The function of the shared values that runs these kernels in one call, in their order.

    Updates, and what writes into a cache, write over what the values hold in the places of their
    results. Raises `NotCaptured`.
    """
    made = _Segment(shared, written_caches(program))
    for name in names:
        made.add(program.nodes[name])
    reads, writes = tuple(made.reads), tuple(made.writes)
    if len(writes) != 1:
        made.graph.makeMultiOutputIntoTuple()
    function = torch._C._create_function_from_graph(f"segment_{number}", made.graph)
    if len(writes) == 1:
        (write,) = writes

        def run_one(values: list[Any]) -> None:
            values[write] = function(*[values[read] for read in reads])

        return run_one

    def run(values: list[Any]) -> None:
        results = function(*[values[read] for read in reads])
        for write, result in zip(writes, results, strict=True):
            values[write] = result

    return run


@dataclass(eq=False)
class _Segment:
    """A graph in the making: its values by name, places of the shared values that it reads, makes.

    A value of a kernel with several results is a tuple of values. `written` has the kernels that
    write into caches.
    """

    shared: Mapping[str, int]
    written: Mapping[str, str]
    graph: Any = field(default_factory=torch._C.Graph)
    values: dict[str, Value] = field(default_factory=dict)
    reads: list[int] = field(default_factory=list)
    writes: list[int] = field(default_factory=list)
    constants: dict[str, Value] = field(default_factory=dict)

    def add(self, kernel: Node) -> None:
        for node in kernel.all_input_nodes:
            if node.name not in self.values:
                self.values[node.name] = self._given(self.shared[node.name], node.meta.get("val"))
        if is_update(kernel):
            self.values[kernel.name] = self._updated(kernel)
        elif kernel.name in self.written:
            into = self._given(self.shared[kernel.name], kernel.meta["val"])
            self.values[kernel.name] = self._call(kernel, self.values, into)
        else:
            self.values[kernel.name] = self._call(kernel, self.values)
        self._take_parts(kernel)
        for name in sorted({kernel.name, *(part.name for part in parts_of(kernel))}):
            if name in self.shared:
                if isinstance(self.values[name], tuple):
                    raise NotCaptured(f"the results of {shown(kernel.name)} go on together")
                self.graph.registerOutput(self.values[name])
                self.writes.append(self.shared[name])

    def _given(self, place: int, like: Any) -> Value:
        """A value that another segment makes, or that is there from the start."""
        value = self.graph.addInput()
        value.setType(_type_like(like))
        self.reads.append(place)
        return value

    def _call(self, node: Node, values: Mapping[str, Value], into: Value | None = None) -> Value:
        """A node's call of an operator on these values, or of that which writes `into` another."""
        target = node.target if into is None else node.target.overloadpacket.out
        schema = getattr(target, "_schema", None)
        if schema is None:
            raise NotCaptured(f"{shown(kind_of(node))} is no operator of the library")
        given = dict(zip((a.name for a in schema.arguments), node.args, strict=False))
        given |= node.kwargs
        arguments, numbers = [], set[str]()
        for argument in schema.arguments:
            if into is not None and argument.name == "out":
                arguments.append(into)
                continue
            value = given.get(argument.name, argument.default_value)
            if argument.type == _TENSOR and isinstance(value, int | float | complex):
                numbers.add(argument.name)
            arguments.append(self._argument(value, argument.type, argument.N, values))
        made = self._node(schema.name, arguments, len(schema.returns))
        _require(made, schema, numbers)
        outputs = list(made.outputs())
        for output, result in zip(outputs, schema.returns, strict=True):
            output.setType(result.type)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _updated(self, update: Node) -> tuple[Value, ...]:
        """An optimiser's update as its own operators, with results written to shared places."""
        places = results_of(update, self.shared)
        tensors = [a for a in update.args if isinstance(a, fx.Node)]
        metas = [node.meta["val"] for node in tensors]
        settings = tuple(None if isinstance(a, fx.Node) else a for a in update.args)
        like = tuple((meta.dtype, meta.dim()) for meta in metas)
        inner = _traced(update.target, settings, like, len(places))
        spare = [self._given(place, metas[0]) for place in places]
        given = [*(self.values[node.name] for node in tensors), *spare]
        values: dict[str, Value] = {}
        for node in inner.nodes:
            if node.op == "placeholder":
                values[node.name] = given[len(values)]
            elif node.op == "call_function":
                values[node.name] = self._call(node, values)
        results = next(node for node in inner.nodes if node.op == "output").args[0]
        return tuple(values[node.name] for node in results)

    def _take_parts(self, kernel: Node) -> None:
        unpacked: dict[str, tuple[Value, ...]] = {}
        for part in parts_of(kernel):
            source, index = part.args
            whole = self.values[source.name]
            if not isinstance(whole, tuple):
                if source.name not in unpacked:
                    unpacked[source.name] = self._unpacked(whole, source)
                whole = unpacked[source.name]
            self.values[part.name] = whole[index]

    def _unpacked(self, several: Value, source: Node) -> tuple[Value, ...]:
        found = list(self._node("prim::ListUnpack", [several], len(source.meta["val"])).outputs())
        for each in found:
            each.setType(several.type().getElementType())
        return tuple(found)

    def _argument(self, value: Any, kind: Any, times: int | None, values: Any) -> Value:
        """An argument of a type, where one number may stand for a list of `times`."""
        if isinstance(value, fx.Node):
            found = values[value.name]
            if isinstance(found, tuple):
                raise NotCaptured(f"the results of {shown(value.name)} go on together")
            return found
        if kind.kind() == "OptionalType":
            if value is None:
                return self._constant(None)
            kind = kind.getElementType()
        if kind.kind() == "ListType":
            within = kind.getElementType()
            value = value if isinstance(value, list | tuple) else [value] * (times or 1)
            if has_nodes(value) or not value or any(each is None for each in value):
                elements = [self._argument(each, within, None, values) for each in value]
                joined = self._node("prim::ListConstruct", elements, 1).output()
                joined.setType(torch._C.ListType(within))
                return joined
            return self._constant([_as(each, within.kind()) for each in value])
        return self._constant(_as(value, kind.kind()))

    def _constant(self, value: Any) -> Value:
        if isinstance(value, torch.Tensor):
            return self.graph.insertConstant(value)
        key = f"{type(value)} {value!r}"
        if key not in self.constants:
            try:
                self.constants[key] = self.graph.insertConstant(value)
            except (TypeError, RuntimeError):
                raise NotCaptured(f"a {type(value).__name__} is no constant of a graph") from None
        return self.constants[key]

    def _node(self, kind: str, arguments: Sequence[Value], results: int) -> Any:
        node = self.graph.create(kind, list(arguments), results)
        return self.graph.insertNode(node)


def _type_like(value: Any) -> Any:
    """The type of a graph's value by what the program knows of it."""
    if isinstance(value, torch.Tensor):
        return _TENSOR
    for kinds, found in (
        ((bool, torch.SymBool), torch._C.BoolType),
        ((int, torch.SymInt), torch._C.IntType),
        ((float, torch.SymFloat), torch._C.FloatType),
    ):
        if isinstance(value, kinds):
            return found.get()
    if isinstance(value, list | tuple) and all(isinstance(each, torch.Tensor) for each in value):
        return torch._C.ListType(_TENSOR)
    raise NotCaptured(f"a {type(value).__name__} is handed over")


def _as(value: Any, kind: str) -> Any:
    """A constant as a graph holds it."""
    if isinstance(value, torch.memory_format):
        return _MEMORY_FORMATS.index(value)
    return float(value) if kind == "FloatType" and isinstance(value, int) else value


def _require(node: Any, schema: Any, numbers: Iterable[str]) -> None:
    """NotCaptured unless the library has found the overload that was meant.

    It looks by types. Where the program gives a number for a tensor that is the overload for
    numbers, which makes the same tensor of it as a call from Python does.
    """
    try:
        found = node.schema()
    except RuntimeError:
        found = ""
    meant = str(schema)
    if found != meant:
        for name in numbers:
            meant = re.sub(rf"\bTensor {name}\b", f"Scalar {name}", meant)
        if not numbers or _without_overload(found) != _without_overload(meant):
            raise NotCaptured(f"graphs have no {shown(schema.name)} for these arguments")


def _without_overload(schema: str) -> str:
    return re.sub(r"^([\w:]+)(\.\w+)?", r"\1", schema).replace("*, ", "")


@functools.lru_cache(64)
def _traced(
    function: Any, settings: tuple[Any, ...], like: tuple[tuple[Any, int], ...], num_results: int
) -> fx.Graph:
    """An update's operators as a graph of its tensors, then those that its results go to.

    `settings` are all its arguments, with None in the places of tensors; their arithmetic does not
    depend on how large they are.
    """

    def update(*given: torch.Tensor) -> Any:
        tensors, out = iter(given[: len(like)]), given[len(like) :]
        arguments = [next(tensors) if setting is None else setting for setting in settings]
        return function(*arguments, out=tuple(out))

    tensors = [torch.zeros((1,) * rank, dtype=dtype) for dtype, rank in like]
    state = [tensors[0], *tensors[2:]]
    spare = [torch.zeros_like(each) for each in state[:num_results]]
    graph: fx.Graph = make_fx(update)(*tensors, *spare).graph
    return graph
