"""Random models of common ops: what a loader, a cut and a runtime must survive together."""

from collections.abc import Callable

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SHAPE = (2, 8, 6, 6)


class _Draft:
    """A model under construction; every value in `values` has shape SHAPE."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.values = ["x"]

    def pick(self) -> str:
        """A value, the newer the likelier."""
        n = len(self.values)
        return self.values[n - 1 - int(n * self.rng.random() ** 2)]

    def weight(self, array: np.ndarray) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def normal(self, *shape: int) -> str:
        return self.weight((self.rng.standard_normal(shape) * 0.3).astype(np.float32))

    def ints(self, *values: int) -> str:
        return self.weight(np.array(values, dtype=np.int64))

    def op(self, kind: str, *inputs: str, num_outputs: int = 1, **attributes: object) -> list[str]:
        number = len(self.nodes)
        outputs = [f"v{number}_{i}" for i in range(num_outputs)]
        name = f"n{number}" if self.rng.random() < 0.8 else ""
        self.nodes.append(helper.make_node(kind, inputs, outputs, name=name, **attributes))
        return outputs

    def one(self, kind: str, *inputs: str, **attributes: object) -> str:
        return self.op(kind, *inputs, **attributes)[0]


def _unary(d: _Draft) -> str:
    kinds = ("Relu", "Sigmoid", "Tanh", "Abs", "LeakyRelu", "Identity", "Softplus", "Elu", "Erf")
    return d.one(kinds[int(d.rng.integers(len(kinds)))], d.pick())


def _binary(d: _Draft) -> str:
    kinds = ("Add", "Mul", "Sub", "Max")
    return d.one(kinds[int(d.rng.integers(len(kinds)))], d.pick(), d.pick())


def _conv(d: _Draft) -> str:
    k = int(d.rng.choice([1, 3]))
    group = int(d.rng.choice([1, 1, 8]))
    weights = (d.normal(8, 8 // group, k, k), d.normal(8))
    return d.one("Conv", d.pick(), *weights, pads=[k // 2] * 4, group=group)


def _norm(d: _Draft) -> str:
    scale, bias, mean = d.normal(8), d.normal(8), d.normal(8)
    var = d.weight(d.rng.random(8).astype(np.float32) + 0.5)
    return d.one(
        "BatchNormalization", d.one("Conv", d.pick(), d.normal(8, 8, 1, 1)), scale, bias, mean, var
    )


def _pool(d: _Draft) -> str:
    kind = str(d.rng.choice(["MaxPool", "AveragePool"]))
    return d.one(kind, d.pick(), kernel_shape=[3, 3], pads=[1, 1, 1, 1])


def _concat(d: _Draft) -> str:
    both = d.one("Concat", d.pick(), d.pick(), axis=1)
    return d.one("Conv", both, d.normal(8, 16, 1, 1))


def _split(d: _Draft) -> str:
    a, b = d.op("Split", d.pick(), d.ints(4, 4), num_outputs=2, axis=1)
    return d.one("Concat", b, d.one("Relu", a), axis=1)


def _shuffle(d: _Draft) -> str:
    grouped = d.one("Reshape", d.pick(), d.ints(2, 2, 4, 6, 6))
    turned = d.one("Transpose", grouped, perm=[0, 2, 1, 3, 4])
    return d.one("Reshape", turned, d.ints(*SHAPE))


def _matmul(d: _Draft) -> str:
    return d.one("Add", d.one("MatMul", d.pick(), d.normal(6, 6)), d.normal(6))


def _attention(d: _Draft) -> str:
    a, b = d.pick(), d.pick()
    weights = d.one(
        "Softmax", d.one("MatMul", a, d.one("Transpose", b, perm=[0, 1, 3, 2])), axis=-1
    )
    return d.one("MatMul", weights, b)


def _mean(d: _Draft) -> str:
    value = d.pick()
    return d.one("Sub", value, d.one("ReduceMean", value, d.ints(2, 3), keepdims=1))


def _dynamic(d: _Draft) -> str:
    value = d.pick()
    kept = d.one("Compress", value, d.weight(np.array([True, True])), axis=0)
    return d.one("Reshape", kept, d.one("Shape", value))


def _where(d: _Draft) -> str:
    a, b = d.pick(), d.pick()
    return d.one("Where", d.one("Greater", a, b), a, b)


def _double(d: _Draft) -> str:
    wide = d.one("Cast", d.pick(), to=TensorProto.DOUBLE)
    return d.one("Cast", d.one("Sqrt", d.one("Abs", wide)), to=TensorProto.FLOAT)


def _branch(d: _Draft) -> str:
    """An If whose bodies read values from outside."""
    a, b = d.pick(), d.pick()
    total = d.one("ReduceSum", a, keepdims=0)
    condition = d.one("Greater", total, d.weight(np.array(0, dtype=np.float32)))
    bodies = []
    for kind in ("Add", "Mul"):
        node = helper.make_node(kind, [a, b], ["inner"])
        output = helper.make_tensor_value_info("inner", TensorProto.FLOAT, SHAPE)
        bodies.append(helper.make_graph([node], kind, [], [output]))
    return d.one("If", condition, then_branch=bodies[0], else_branch=bodies[1])


def _sequence(d: _Draft) -> str:
    made = d.one("SequenceConstruct", d.pick(), d.pick())
    return d.one("SequenceAt", made, d.weight(np.array(1, dtype=np.int64)))


_STEPS: tuple[Callable[[_Draft], str], ...] = (
    *(_unary, _binary, _conv, _conv, _norm, _pool, _concat, _split, _shuffle, _matmul),
    *(_attention, _mean, _dynamic, _where, _double, _branch, _sequence, _binary, _unary),
)


def composition(seed: int) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """A model of 10 to 50 ops and its input, the same for the same seed."""
    draft = _Draft(seed)
    size = int(draft.rng.integers(10, 46))
    while len(draft.nodes) < size:
        step = _STEPS[int(draft.rng.integers(len(_STEPS)))]
        draft.values.append(step(draft))
    read = {name for node in draft.nodes for name in node.input}
    outputs = [v for v in draft.values[1:] if v not in read or draft.rng.random() < 0.05]
    graph = helper.make_graph(
        draft.nodes,
        f"composition{seed}",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, SHAPE)],
        [helper.make_tensor_value_info(v, TensorProto.FLOAT, SHAPE) for v in outputs],
        draft.weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    return model, {"x": draft.rng.standard_normal(SHAPE).astype(np.float32)}
