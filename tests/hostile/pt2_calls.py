"""Calls of listed operators for the fuzz test: valid ones from the schema, then spoilt ones."""

import random
from dataclasses import replace

import torch

from tests.hostile.pt2_hints import HINTS, USUAL, X
from tests.hostile.pt2_tensors import BOOL, FLOAT, INT, Spec

DTYPES = (FLOAT, INT, BOOL, torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.uint8)
INTS = (0, -1, 1, 2, -2, 3, 7, 100, 2**20, 2**31 - 1, 2**31, -(2**31), 2**39, 2**62, -(2**63))
FLOATS = (0.0, -1.0, 1e-30, 1e30, float("inf"), float("-inf"), float("nan"), 2.5)
TEXTS = ("mean", "sum", "none", "floor", "trunc", "tanh", "ij", "same", "reflect", "", "ij,jk->ik")
_INTEGER = ("bitwise", "gcd", "lcm", "__and__", "__or__", "__xor__", "__lshift__", "__rshift__",
            "__ilshift__", "__irshift__", "__iand__", "__ior__", "__ixor__")  # fmt: skip


def valid_call(target, seed):
    """Arguments by name as the schema asks; the first seed takes the usual ones."""
    rng = random.Random(seed)
    packet = target.overloadpacket.__name__
    pure = packet if packet.startswith("__") else packet.removesuffix("_")
    hints = HINTS.get(pure, {}) | HINTS.get(f"{pure}.{target._overloadname}", {})
    return {
        argument.name: _argument(argument, hints, packet, rng, seed)
        for argument in target._schema.arguments
        if not argument.kwarg_only or argument.name in hints or not argument.has_default_value()
    }


def _argument(argument, hints, packet, rng, seed):
    kind = str(argument.real_type)
    usual = hints.get(argument.name, USUAL.get(argument.name))
    if usual is None and argument.name in hints:
        return None
    if "Tensor" in kind:
        tensor = usual if isinstance(usual, Spec | list) else X
        if isinstance(usual, list) and not isinstance(usual[0], Spec):
            tensor = X
        if packet.startswith(_INTEGER) and isinstance(tensor, Spec):
            tensor = replace(tensor, dtype=INT, content="index")
        if seed and isinstance(tensor, Spec):
            shape = rng.choice([tensor.shape, tensor.shape, (2, 3, 4), (4,), (2, 3, 4, 4), ()])
            tensor = replace(tensor, shape=shape, dtype=rng.choice([tensor.dtype, FLOAT, INT]))
        if kind.startswith(("List", "Optional[List")):
            return tensor if isinstance(tensor, list) else [tensor, tensor]
        return tensor
    if argument.has_default_value() and argument.name not in hints and (not seed or usual is None):
        return argument.default_value
    return _plain(kind, usual, rng, seed)


def _plain(kind, usual, rng, seed):
    inner = kind.removeprefix("Optional[").removesuffix("]") if kind.startswith("Opt") else kind
    if inner.startswith("List"):
        if isinstance(usual, list) and not seed:
            return usual
        if usual is not None and not isinstance(usual, list):
            return [usual]
        number = rng.randrange(0, 3)
        numbers = [rng.choice([0, 1, 2, 3]) for _ in range(number)]
        return [float(n) for n in numbers] if "float" in inner.lower() else numbers
    if usual is not None and not isinstance(usual, Spec | list):
        return bool(usual) if "bool" in inner.lower() else usual
    return {
        "bool": False, "BoolType": False, "float": 0.5, "number": 1, "str": "mean",
        "ScalarType": FLOAT, "Layout": torch.strided, "Device": torch.device("cpu"),
        "MemoryFormat": torch.contiguous_format,
    }.get(inner, rng.choice([0, 1, 2]))  # fmt: skip


def spoilt(call, rng):
    """A call of which one to three arguments are changed."""
    made = dict(call)
    for key in rng.sample(list(made), min(len(made), rng.choice([1, 1, 1, 2, 3]))):
        made[key] = _changed(made[key], rng)
    return made


def _changed(value, rng):
    if isinstance(value, Spec):
        return _changed_tensor(value, rng)
    if isinstance(value, bool):
        return rng.choice([not value, None, 3])
    if isinstance(value, int):
        return rng.choice([*INTS, None, 0.5])
    if isinstance(value, float):
        return rng.choice([*FLOATS, *INTS[:4], None])
    if isinstance(value, str):
        return rng.choice([*TEXTS, None])
    if isinstance(value, torch.dtype):
        return rng.choice(DTYPES)
    if isinstance(value, list | tuple):
        return _changed_list(list(value), rng)
    return rng.choice([None, 0, 1, 1.0, True, "mean", X, [1], [1, 1], FLOAT])


def _changed_list(values, rng):
    how = rng.randrange(5)
    if values and how < 3:
        at = rng.randrange(len(values))
        values[at] = _changed(values[at], rng)
    elif values and how == 3:
        values.pop()
    else:
        values.append(values[-1] if values else rng.choice(INTS))
    return values


def _changed_tensor(spec, rng):
    how, shape = rng.randrange(7), list(spec.shape)
    if how == 0:
        return replace(spec, dtype=rng.choice(DTYPES))
    if how == 1:
        return replace(spec, content=rng.choice(["far", "odd", "index"]))
    if how == 2:
        return replace(spec, layout=rng.choice(["turned", "expanded"]))
    if how == 3:
        return None if rng.random() < 0.3 else replace(spec, shape=())
    if shape and how in (4, 5):
        at = rng.randrange(len(shape))
        shape[at] = rng.choice([0, 1, 2, shape[at] + 1, shape[at] * 2, 1000, 100_000])
    elif rng.random() < 0.5 and shape:
        shape.pop(rng.randrange(len(shape)))
    else:
        shape.insert(0, rng.choice([1, 2, 3]))
    count = 1
    for n in shape:
        count *= n
    return replace(spec, shape=tuple(shape)) if count <= 4_000_000 else spec
