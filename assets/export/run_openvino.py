"""Compile the model for OpenVINO's HETERO device with every operation where it was placed.

    python run_openvino.py                  compile and say how many operations are on each device
    python run_openvino.py --device CPU     the same with all of them on one device

In a program: `compiled, counts = run_openvino.compile_placed()`.
"""

import argparse
import json
from collections import Counter
from pathlib import Path

try:
    import openvino as ov
except ImportError:
    if __name__ != "__main__":
        raise
    raise SystemExit("This needs the package openvino: pip install openvino") from None

HERE = Path(__file__).resolve().parent


def compile_placed(device=None):
    """The compiled model, and how many operations each device has."""
    placed = json.loads((HERE / "affinities.json").read_text(encoding="utf-8"))
    core = ov.Core()
    model = core.read_model(HERE / placed["model"])
    affinity_of = {name: device or where for name, where in placed["affinities"].items()}
    counts = set_affinities(model, affinity_of, placed["value_of"])
    order = [device] if device else placed["devices"]
    return core.compile_model(model, f"HETERO:{','.join(order)}"), counts


def set_affinities(model, affinity_of, value_of):
    """Note a device on every operation.

    Friendly names are the names of ONNX nodes; operations that write the model's outputs are known
    by the values they write. What OpenVINO has added (constants, parts of an operation) goes with
    its first reader that is known, else with its first maker, and a result with what it reads.
    """
    by_value = {value: affinity_of[op] for value, op in value_of.items()}
    operations = model.get_ordered_ops()
    found = {}
    for operation in operations:
        name = operation.get_friendly_name()
        values = [value for output in operation.outputs() for value in output.get_names()]
        known = affinity_of.get(name) or next((by_value[v] for v in values if v in by_value), None)
        if known and operation.get_type_name() not in ("Parameter", "Result"):
            found[name] = known
    for operation in reversed(operations):
        readers = (i.get_node() for o in operation.outputs() for i in o.get_target_inputs())
        adopt(operation, readers, found)
    for operation in operations:
        adopt(operation, (value.get_node() for value in operation.input_values()), found)
    for operation in operations:
        where = found.setdefault(operation.get_friendly_name(), next(iter(affinity_of.values())))
        operation.get_rt_info()["affinity"] = where
    return Counter(found[operation.get_friendly_name()] for operation in operations)


def adopt(operation, neighbours, found):
    if operation.get_friendly_name() not in found:
        names = (neighbour.get_friendly_name() for neighbour in neighbours)
        known = next((found[name] for name in names if name in found), None)
        if known:
            found[operation.get_friendly_name()] = known


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Compile the placed model for OpenVINO.")
    parser.add_argument("--device", help="one device for all operations, to try it out")
    _, numbers = compile_placed(parser.parse_args().device)
    print(", ".join(f"{count} operations on {where}" for where, count in numbers.items()))
