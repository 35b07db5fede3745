"""Functions of an ONNX model: what inlining all calls would make, counted before any is inlined.

A call is replaced by the function's nodes, so functions that call functions multiply: thirty of
them fit into 3 kB and stand for 4^29 nodes. The count goes over the call graph, each function once.
A call may also hand a graph or a tensor to the function as an attribute, which then stands wherever
the function refers to it; so what a function comes to is its own part and a multiple of each of its
attributes.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import onnx

from placement.core.graph import topological_order
from placement.formats.onnx.checks.walk import MAX_NODES, blocks, bodies

MAX_DEPTH = 100  # calls inside calls; the inliner of the onnx package goes no deeper
# What calls may add to the bytes of the file. Functions hold operators; weights come as arguments.
MAX_ADDED_BYTES = 2**28

Key = tuple[str, str, str]


@dataclass
class Size:
    """What some nodes come to once all their calls are inlined.

    `slots` are the places that name a value, for a call writes its arguments' names into them;
    `uses` says how often each attribute of the surrounding function is referred to.
    """

    nodes: int = 0
    slots: int = 0
    num_bytes: int = 0
    uses: dict[str, int] = field(default_factory=dict)

    def add(self, other: "Size", times: int = 1) -> None:
        self.nodes += times * other.nodes
        self.slots += times * other.slots
        self.num_bytes += times * other.num_bytes
        for name, count in other.uses.items():
            self.uses[name] = self.uses.get(name, 0) + times * count


@dataclass(frozen=True)
class _Function:
    size: Size
    defaults: Mapping[str, Size]


def check_calls(model: onnx.ModelProto, name: str) -> None:
    """ValueError where inlining the model's functions would never end or make too much."""
    if not model.functions:
        return
    sizes = _function_sizes(model, name)
    whole = _size(model.graph.node, sizes)
    stored = sum(node.ByteSize() for node in model.graph.node)
    added = whole.num_bytes - stored + whole.slots * _longest_name(model)
    if whole.nodes > MAX_NODES:
        raise ValueError(
            f"{name!r} stands for {_count(whole.nodes)} nodes once its functions are inlined, more"
            f" than {MAX_NODES}; split the model or simplify it first."
        )
    if added > MAX_ADDED_BYTES:
        raise ValueError(
            f"{name!r} would grow by {_count(added)} bytes once its functions are inlined, more"
            f" than {MAX_ADDED_BYTES}; hand weights to functions as inputs."
        )


def give_defaults(model: onnx.ModelProto) -> None:
    """Write into every call, in place, the attributes that it leaves to the function's defaults.

    The inliner of the onnx package forgets these.
    """
    defaults = {_key(f.domain, f.name, f.overload): f.attribute_proto for f in model.functions}
    for block in blocks(model):
        for node in block.nodes:
            given = {attribute.name for attribute in node.attribute}
            for default in defaults.get(_key(node.domain, node.op_type, node.overload), ()):
                if default.name not in given:
                    node.attribute.append(default)


def _function_sizes(model: onnx.ModelProto, name: str) -> dict[Key, _Function]:
    functions: dict[Key, onnx.FunctionProto] = {}
    for function in model.functions:
        key = _key(function.domain, function.name, function.overload)
        if key in functions:
            raise ValueError(
                f"{name!r} defines the function {function.name[:80]!r} twice; export it again."
            )
        functions[key] = function
    number = {key: i for i, key in enumerate(functions)}
    calls = [{number[key] for key in _called(f) if key in number} for f in functions.values()]
    order = topological_order(len(calls), [sorted(called) for called in calls])
    if order is None:
        raise ValueError(
            f"{name!r} has functions that call themselves, by way of others or directly; express"
            " loops with Loop or Scan."
        )
    keys, depth = list(functions), [1] * len(calls)
    sizes: dict[Key, _Function] = {}
    for i in reversed(order):
        depth[i] += max((depth[j] for j in calls[i]), default=0)
        if depth[i] > MAX_DEPTH:
            raise ValueError(
                f"{name!r} has functions that call each other more than {MAX_DEPTH} deep;"
                " inline some of them."
            )
        function = functions[keys[i]]
        defaults = {a.name: _attribute_size(a, sizes) for a in function.attribute_proto}
        sizes[keys[i]] = _Function(_size(function.node, sizes), defaults)
    return sizes


def _size(nodes: Iterable[onnx.NodeProto], functions: Mapping[Key, _Function]) -> Size:
    total = Size()
    for node in nodes:
        given = {a.name: _attribute_size(a, functions) for a in node.attribute}
        function = functions.get(_key(node.domain, node.op_type, node.overload))
        if function is None:
            own = node.ByteSize() - sum(a.ByteSize() for a in node.attribute)
            total.add(Size(1, len(node.input) + len(node.output), own))
            for size in given.values():
                total.add(size)
            continue
        own_size = function.size
        total.add(Size(own_size.nodes, own_size.slots, own_size.num_bytes))
        # A call is given its defaults before it is inlined, used or not.
        for attribute, size in {**function.defaults, **given}.items():
            total.add(size, max(1, own_size.uses.get(attribute, 0)))
    return total


def _attribute_size(attribute: onnx.AttributeProto, functions: Mapping[Key, _Function]) -> Size:
    if attribute.ref_attr_name:
        return Size(uses={attribute.ref_attr_name: 1})
    size = Size(num_bytes=attribute.ByteSize())
    for body in bodies(attribute):
        size.num_bytes -= sum(node.ByteSize() for node in body.node)
        size.add(_size(body.node, functions))
    return size


def _called(function: onnx.FunctionProto) -> Iterator[Key]:
    """The key of every node of a function, those in bodies and in defaults included."""
    graphs = [body for attribute in function.attribute_proto for body in bodies(attribute)]
    lists = [function.node, *(graph.node for graph in graphs)]
    while lists:
        for node in lists.pop():
            yield _key(node.domain, node.op_type, node.overload)
            lists += [body.node for attribute in node.attribute for body in bodies(attribute)]


def _longest_name(model: onnx.ModelProto) -> int:
    """Characters of the longest name of a value, which a call may write into every slot."""
    nodes = (node for block in blocks(model) for node in block.nodes)
    return max((len(value) for node in nodes for value in (*node.input, *node.output)), default=0)


def _key(domain: str, kind: str, overload: str) -> Key:
    return ("" if domain == "ai.onnx" else domain, kind, overload)


def _count(number: int) -> str:
    return str(number) if number < 10**15 else "more than 10^15"
