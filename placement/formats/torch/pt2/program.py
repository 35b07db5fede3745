"""The graph of a .pt2 archive, built anew value by value.

`torch.export.load` imports what a file names: classes of nested inputs, functions, verifiers; it
evaluates size expressions and unpickles sample inputs. So no part of a file reaches it. The
graph's JSON is read here: operators are looked up in our own list, every name is an identifier,
every argument a number, a short plain string or an entry of a table, and the shape of each value
is worked out from the operators. How inputs and outputs are nested is not read at all: programs
take and give them flat.
"""

import keyword
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from operator import getitem
from typing import Any

import torch
from torch import fx, nn
from torch._export.verifier import TrainingIRVerifier
from torch.export import ExportedProgram, ModuleCallEntry, ModuleCallSignature
from torch.export import graph_signature as ep
from torch.utils import _pytree as pytree

from placement.formats.torch.program import Node
from placement.formats.torch.pt2.allowed import operator
from placement.formats.torch.pt2.archive import IDENTIFIER, LABEL, MODEL, Archive, bad
from placement.formats.torch.pt2.inferred import Inference
from placement.formats.torch.weights import DTYPES, Layout, tensors

MAX_NODES = 1_000_000
MAX_NESTED_GRAPHS = 20
# Constants of a call: equations, modes of rounding, reduction and padding.
_TEXT = re.compile(r"[A-Za-z0-9_,.\-> ]{0,200}")
# How an export marks later calls of a module.
_AGAIN = re.compile(r"@[0-9]{1,9}$")
_MODULES = re.compile(r"[A-Za-z0-9_.\-/]{0,500}")
_FLOATS = {"Infinity": math.inf, "-Infinity": -math.inf, "NaN": math.nan}
_MEMORY_FORMATS = {
    1: torch.contiguous_format,
    2: torch.channels_last,
    3: torch.channels_last_3d,
    4: torch.preserve_format,
}
_STRIDED = 7
_KEYWORD = 2
_VARYING = "fixed sizes (no dynamic_shapes)"
_WRAPPERS = {
    "torch.ops.higher_order.wrap_with_set_grad_enabled": 1,
    "torch.ops.higher_order.wrap_with_autocast": 4,
}
_STATE = {
    "parameter": (ep.InputKind.PARAMETER, "parameter_name"),
    "buffer": (ep.InputKind.BUFFER, "buffer_name"),
    "tensor_constant": (ep.InputKind.CONSTANT_TENSOR, "tensor_constant_name"),
}
_RESULTS = {
    "loss_output": (ep.OutputKind.LOSS_OUTPUT, ""),
    "buffer_mutation": (ep.OutputKind.BUFFER_MUTATION, "buffer_name"),
    "parameter_mutation": (ep.OutputKind.PARAMETER_MUTATION, "parameter_name"),
    "user_input_mutation": (ep.OutputKind.USER_INPUT_MUTATION, "user_input_name"),
}


def exported_program(archive: Archive) -> ExportedProgram:
    """The program in an archive; `Refused` says what of it is not accepted."""
    model = archive.json(MODEL)
    module = model["graph_module"]
    if model.get("range_constraints"):
        raise bad("its sizes vary", _VARYING)
    state = tensors(archive)
    inputs = [_input(spec) for spec in module["signature"]["input_specs"]]
    reader = _Reader(inputs, state)
    reader.read(module["graph"])
    outputs = [_output(spec) for spec in module["signature"]["output_specs"]]
    known = {spec.target for spec in inputs}
    if any(spec.target and spec.target not in known | reader.values.keys() for spec in outputs):
        raise bad("it updates a weight that it does not have")
    return ExportedProgram(
        nn.Module(),
        reader.graph,
        ep.ExportGraphSignature(inputs, outputs),
        {s.target: _kept(s, state[s.target]) for s in inputs if s.target and _is_kept(s)},
        {},
        [_flat_call(inputs, outputs)],
        example_inputs=((), {}),
        constants={s.target: state[s.target] for s in inputs if s.target and not _is_kept(s)},
        verifiers=[TrainingIRVerifier],
    )


def _is_kept(spec: ep.InputSpec) -> bool:
    """Whether a state dict has it; what is not persistent counts as a constant."""
    return spec.kind is not ep.InputKind.CONSTANT_TENSOR and spec.persistent is not False


def _kept(spec: ep.InputSpec, value: torch.Tensor) -> torch.Tensor:
    is_parameter = spec.kind is ep.InputKind.PARAMETER
    return nn.Parameter(value, requires_grad=False) if is_parameter else value


def _flat_call(inputs: Sequence[ep.InputSpec], outputs: Sequence[ep.OutputSpec]) -> ModuleCallEntry:
    """How the program is called: with a tuple of what a person gives, for a tuple."""
    names = [spec.arg.name for spec in inputs if spec.kind is ep.InputKind.USER_INPUT]
    made = sum(spec.kind is ep.OutputKind.USER_OUTPUT for spec in outputs)
    return ModuleCallEntry(
        "",
        ModuleCallSignature(
            inputs=[],
            outputs=[],
            in_spec=pytree.tree_structure((tuple(0 for _ in names), {})),
            out_spec=pytree.tree_structure(tuple(0 for _ in range(made))),
            forward_arg_names=names,
        ),
    )


class _Reader:
    """Builds the graph in the file's order; `values` are the nodes of the scope by their names."""

    def __init__(self, inputs: Sequence[ep.InputSpec], state: Mapping[str, torch.Tensor]) -> None:
        self.graph = fx.Graph()
        self.values: dict[str, Node] = {}
        self._inputs, self._state = inputs, state
        self._inference = Inference()
        self._claims: Mapping[str, Any] = {}
        self._num_nodes, self._depth = 0, 0

    def read(self, graph: Mapping[str, Any]) -> None:
        self._claims = graph["tensor_values"]
        if graph.get("sym_int_values") or graph.get("sym_bool_values"):
            raise bad("its sizes vary", _VARYING)
        if len(graph["inputs"]) != len(self._inputs):
            raise bad("its inputs are not those of its signature")
        for spec, argument in zip(self._inputs, graph["inputs"], strict=True):
            self._placeholder(spec, argument)
        for node in graph["nodes"]:
            self._node(node)
        results = tuple(self._result(argument) for argument in graph["outputs"])
        self.graph.output(results).meta["val"] = tuple(
            r.meta["val"] if isinstance(r, fx.Node) else r for r in results
        )

    def _placeholder(self, spec: ep.InputSpec, argument: Mapping[str, Any]) -> None:
        kind, value = _only(argument)
        is_tensor = isinstance(spec.arg, ep.TensorArgument)
        if is_tensor != (kind == "as_tensor") or (is_tensor and value["name"] != spec.arg.name):
            raise bad("its inputs are not those of its signature")
        name = spec.arg.name
        node = self.graph.placeholder(name)
        # Arguments of people have names like "input", which the library would number.
        node.name = name
        if not is_tensor:
            made = _constant(kind, value)
        elif spec.target is None:
            made = self._inference.tensor(Layout.of(self._claims[name], name))
        else:
            made = self._inference.like(self._state[spec.target])
        self._add(name, node, made)

    def _add(self, name: str, node: Node, made: Any) -> None:
        """A node under the name that later ones know it by, if the file claims of it what is so."""
        if _name(name) in self.values:
            raise bad(f"it has two values called {name[:80]!r}")
        self.values[name] = node
        node.meta["val"] = made
        claim = self._claims.get(name)
        if claim is None or not isinstance(made, torch.Tensor):
            return
        layout = Layout.of(claim, name)
        if (layout.sizes, layout.dtype) != (tuple(made.shape), made.dtype):
            raise bad(
                f"it says that {name[:80]!r} is {layout}, but its operators make"
                f" {Layout(tuple(made.shape), (), made.dtype)}"
            )

    def _node(self, node: Mapping[str, Any]) -> None:
        self._num_nodes += 1
        if self._num_nodes > MAX_NODES:
            raise bad(f"it has more than {MAX_NODES} nodes")
        if node["target"] in _WRAPPERS:
            self._inline(node)
            return
        if node["target"] == "_operator.getitem":
            raise bad("it calls '_operator.getitem' of an input", "plain tensors as inputs")
        target = operator(node["target"])
        args, kwargs = self._arguments(target, node["inputs"])
        made = self._inference.call(target, *_values((args, kwargs)))
        outputs = [_only(output) for output in node["outputs"]]
        single = outputs[0][1]["name"] if _is_single(outputs) else None
        name = node.get("name") or single
        made_node = self.graph.create_node(
            "call_function", target, args, kwargs, None if name is None else _name(name)
        )
        made_node.meta.update(_scopes(node["metadata"]))
        if single is not None:
            made_node.name = single
            self._add(single, made_node, made)
        else:
            made_node.meta["val"] = tuple(made) if isinstance(made, list) else made
            self._parts(made_node, outputs)

    def _parts(self, node: Node, outputs: Sequence[tuple[str, Any]]) -> None:
        """Takes each result of a node that makes several."""
        made = node.meta["val"]
        if len(outputs) == 1 and outputs[0][0] == "as_tensors":
            outputs = [("as_tensor", part) for part in outputs[0][1]]
        if made is None and all(kind == "as_none" for kind, _ in outputs):
            return
        if not isinstance(made, tuple) or len(made) != len(outputs):
            raise bad(f"{node.target} does not make {len(outputs)} values")
        for i, (kind, value) in enumerate(outputs):
            if kind == "as_none":
                continue
            if kind != "as_tensor":
                raise bad(f"{node.target} makes what is no tensor", "tensors only")
            part = self.graph.create_node("call_function", getitem, (node, i), name=value["name"])
            part.name = _name(value["name"])
            part.meta.update({k: v for k, v in node.meta.items() if k != "val"})
            self._add(value["name"], part, made[i])

    def _inline(self, node: Mapping[str, Any]) -> None:
        """A block in which gradients are off or on, as its own nodes: nothing here takes any."""
        graph_at = _WRAPPERS[node["target"]]
        inputs = [_only(entry["arg"]) for entry in node["inputs"]]
        if "autocast" in node["target"] and inputs[2] != ("as_bool", False):
            raise bad("it computes under autocast", "a module that names its types itself")
        graph = dict(inputs[graph_at : graph_at + 1])["as_graph"]["graph"]
        given = [self._argument(kind, value) for kind, value in inputs[graph_at + 1 :]]
        self._depth += 1
        if len(given) != len(graph["inputs"]) or self._depth > MAX_NESTED_GRAPHS:
            raise bad("it has a block of other inputs than it gives it")
        outer, outer_claims = self.values, self._claims
        names = [_name(_only(argument)[1]["name"]) for argument in graph["inputs"]]
        self.values, self._claims = dict(zip(names, given, strict=True)), graph["tensor_values"]
        for inner in graph["nodes"]:
            self._node(inner)
        results = [self._result(argument) for argument in graph["outputs"]]
        self.values, self._claims = outer, outer_claims
        self._depth -= 1
        for output, result in zip(node["outputs"], results, strict=True):
            name = _name(_only(output)[1]["name"])
            if name in self.values:
                raise bad(f"it has two values called {name!r}")
            self.values[name] = result

    def _arguments(self, target: Any, inputs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments in the order of the operator's schema."""
        given = {e["name"]: (e.get("kind"), self._argument(*_only(e["arg"]))) for e in inputs}
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for i, known in enumerate(target._schema.arguments):
            if known.name not in given:
                continue
            kind, found = given.pop(known.name)
            by_name = known.has_default_value() if kind is None else kind == _KEYWORD
            if known.kwarg_only or by_name or len(args) != i:
                kwargs[known.name] = found
            else:
                args.append(found)
        if given:
            raise bad(f"{target} has no argument {next(iter(given))[:80]!r}")
        return tuple(args), kwargs

    def _argument(self, kind: str, value: Any) -> Any:
        if kind == "as_tensor":
            return self._value(value["name"])
        if kind == "as_tensors":
            return [self._value(each["name"]) for each in value]
        if kind == "as_optional_tensor":
            return self._argument(*_only(value))
        if kind == "as_optional_tensors":
            return [self._argument(*_only(each)) for each in value]
        return _constant(kind, value)

    def _result(self, argument: Mapping[str, Any]) -> Any:
        return self._argument(*_only(argument))

    def _value(self, name: Any) -> Node:
        if _name(name) not in self.values:
            raise bad(f"it reads {name[:80]!r}, which nothing made before")
        return self.values[name]


def _input(spec: Mapping[str, Any]) -> ep.InputSpec:
    kind, about = _only(spec)
    if kind in _STATE:
        made, label = _STATE[kind]
        argument = ep.TensorArgument(_name(about["arg"]["name"]))
        persistent = bool(about["persistent"]) if kind == "buffer" else None
        return ep.InputSpec(made, argument, _label(about[label]), persistent)
    if kind == "constant_input":
        value = _constant(*_only(about["value"]))
        constant = ep.ConstantArgument(_name(about["name"]), value)
        return ep.InputSpec(ep.InputKind.USER_INPUT, constant, None)
    inner, value = _only(about["arg"])
    if kind != "user_input" or inner != "as_tensor":
        raise bad(f"it takes a {kind[:40]} of kind {inner[:40]}", "tensors only")
    return ep.InputSpec(ep.InputKind.USER_INPUT, ep.TensorArgument(_name(value["name"])), None)


def _output(spec: Mapping[str, Any]) -> ep.OutputSpec:
    kind, about = _only(spec)
    if kind in _RESULTS:
        made, label = _RESULTS[kind]
        target = _label(about[label]) if label else None
        return ep.OutputSpec(made, ep.TensorArgument(_name(about["arg"]["name"])), target)
    if kind != "user_output":
        raise bad(f"it gives a {kind[:40]}", "tensors only")
    inner, value = _only(about["arg"])
    if inner == "as_tensor":
        argument: Any = ep.TensorArgument(_name(value["name"]))
    else:
        argument = ep.ConstantArgument("", _constant(inner, value))
    return ep.OutputSpec(ep.OutputKind.USER_OUTPUT, argument, None)


def _constant(kind: str, value: Any) -> Any:
    """A number, a short text or an entry of a table; nothing else is a constant."""
    if kind.startswith("as_sym") or kind == "as_expr":
        raise bad("its sizes vary", _VARYING)
    if kind in _LISTS and isinstance(value, list):
        return [_constant(_LISTS[kind], each) for each in value]
    if kind == "as_none":
        return None
    if kind == "as_bool" and isinstance(value, bool):
        return value
    if kind == "as_int" and isinstance(value, int) and not isinstance(value, bool):
        if not -(2**63) <= value < 2**63:
            raise bad(f"it has a number of more than 64 bits ({str(value)[:40]})")
        return value
    if kind == "as_float" and (type(value) in (int, float) or value in _FLOATS):
        return _FLOATS[value] if isinstance(value, str) else float(value)
    if kind == "as_complex":
        return complex(_constant("as_float", value["real"]), _constant("as_float", value["imag"]))
    if kind == "as_string" and isinstance(value, str) and _TEXT.fullmatch(value):
        return value
    if kind == "as_scalar_type" and value in DTYPES:
        return DTYPES[value]
    if kind == "as_memory_format" and value in _MEMORY_FORMATS:
        return _MEMORY_FORMATS[value]
    if kind == "as_layout" and value == _STRIDED:
        return torch.strided
    if kind == "as_device" and value.get("type") == "cpu":
        return torch.device("cpu")
    if kind == "as_device":
        raise bad(f"it was exported on {str(value.get('type'))[:20]}", "cpu tensors")
    if kind in ("as_graph", "as_operator", "as_custom_obj"):
        raise bad("it has objects of Python or branches of its own", "tensors only")
    raise bad(f"it has an argument that is not understood ({kind[:40]} {str(value)[:40]!r})")


_LISTS = {
    "as_ints": "as_int",
    "as_floats": "as_float",
    "as_bools": "as_bool",
    "as_strings": "as_string",
}


def _only(union: Mapping[str, Any]) -> tuple[str, Any]:
    """The one kind of a union, and its value."""
    [(kind, value)] = union.items()
    return str(kind), value


def _is_single(outputs: Sequence[tuple[str, Any]]) -> bool:
    return len(outputs) == 1 and outputs[0][0] == "as_tensor"


def _values(arguments: Any) -> Any:
    return fx.map_arg(arguments, lambda node: node.meta["val"])


def _name(name: Any) -> str:
    good = isinstance(name, str) and IDENTIFIER.fullmatch(name)
    if not good or keyword.iskeyword(name) or name == "self":
        raise bad(f"it has a value called {str(name)[:80]!r}")
    return str(name)


def _label(label: Any) -> str:
    if not isinstance(label, str) or not LABEL.fullmatch(label):
        raise bad(f"it has a weight called {str(label)[:80]!r}")
    return label


def _scopes(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The modules around a node, outermost first: "key,path,type" for each."""
    stack = metadata.get("nn_module_stack")
    if not isinstance(stack, str) or len(stack) > 100_000:
        return {}
    return {"nn_module_stack": dict(_modules(stack))}


def _modules(stack: str) -> Iterator[tuple[str, tuple[str, str]]]:
    for i, item in enumerate(stack.split(";")):
        key, _, rest = item.partition(",")
        path, again = rest.partition(",")[0], _AGAIN.search(key)
        if _MODULES.fullmatch(path):
            yield f"{i}{again[0] if again else ''}", (path, "torch.nn.Module")
