"""Two lanes of this computer, problems with invented costs, and small ONNX models."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from placement.core.costs import Costs
from placement.core.machine import Device, Link, Machine, link_arrays
from placement.core.model import Model
from placement.core.problem import Problem
from placement.core.schedule import Schedule
from placement.loaders import load
from placement.schedule.segments import make_schedule
from profiling import backends
from profiling.backends.base import Backend, Program
from profiling.devices.cores import usable_cores
from profiling.measuring import contention, crossings, kernels, links

CPU = "CPUExecutionProvider"


def measure_briefly(patch: pytest.MonkeyPatch) -> None:
    """The fewest rounds there are, and small values over links: what comes of it is no good."""
    for module in (contention, crossings, kernels):
        patch.setattr(module, "BUDGET_S", 0.0)
    patch.setattr(links, "SIZES", (1024, 65536))


def two_lanes() -> Machine:
    """Pinned where there are two cores, else two threads that share one."""
    cores = usable_cores()
    ids = [(c,) for c in cores[:2]] if len(cores) > 1 else [(), ()]
    lanes = tuple(
        Device(f"cpu:{i}", "cpu", "onnxruntime", CPU, cores=1, core_ids=own)
        for i, own in enumerate(ids)
    )
    links = (Link("cpu:0", "cpu:1", 2e-5, 1e10), Link("cpu:1", "cpu:0", 2e-5, 1e10))
    return Machine("two lanes", lanes, links)


def problem_of(model: Model, machine: Machine) -> Problem:
    """The model's kernels at 0.1 ms each."""
    compiled = backends.compiled(model, machine)
    kernels = compiled.kernels
    latency_s, s_per_byte = link_arrays(machine)
    num = len(machine.devices)
    costs = Costs(
        np.full((len(kernels.ops), num), 1e-4), np.full(num, 5e-6), latency_s, s_per_byte, "given"
    )
    index = model.graph.index
    sources = tuple(tuple(index[name] for name in names) for names in compiled.sources)
    return Problem(model.graph, machine, costs, kernels, sources)


def random_schedule(problem: Problem, rng: np.random.Generator) -> Schedule:
    """Every unit on a device drawn by chance."""
    devices = rng.integers(0, problem.num_devices, problem.num_units)
    return make_schedule(problem, problem.placement_of(devices))


def steps(program: Program, schedule: Schedule, num: int) -> list[dict[str, object]]:
    """Outputs of some steps, each from the state that the one before has made."""
    found = []
    for _ in range(num):
        for segment in range(len(schedule.segments)):
            program.run(segment)
        found.append(program.outputs())
        program.advance()
    return found


def saved(folder: Path, nodes, inputs, outputs, weights=(), opset: int = 17) -> Model:
    """A model of these nodes; inputs and outputs as name -> shape, all float32."""
    info = [
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in values.items()]
        for values in (inputs, outputs)
    ]
    graph = helper.make_graph(nodes, "small", *info, list(weights))
    opsets = [helper.make_opsetid("", opset)]
    path = folder / "small.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return load(str(path))


def diamond_for(backend: Backend, folder: Path) -> Model:
    """The diamond in a format that a runtime runs."""
    return torch_diamond() if backend.format == "torch" else diamond(folder)


def torch_diamond() -> Model:
    import torch

    from placement import from_torch

    class Diamond(torch.nn.Module):
        def forward(self, x):
            return torch.cos(torch.exp(x) * torch.sin(x))

    return from_torch(Diamond(), torch.zeros(4, 8))


def diamond(folder: Path) -> Model:
    """x -> (Exp, Sin) -> Mul -> y, four kernels with one more at the end."""
    nodes = [
        helper.make_node("Exp", ["x"], ["a"], name="exp"),
        helper.make_node("Sin", ["x"], ["b"], name="sin"),
        helper.make_node("Mul", ["a", "b"], ["c"], name="mul"),
        helper.make_node("Cos", ["c"], ["y"], name="cos"),
    ]
    return saved(folder, nodes, {"x": [4, 8]}, {"y": [4, 8]})


def endless(folder: Path) -> Model:
    """A loop of as many rounds as come in."""
    inner = [
        helper.make_node("Identity", ["on"], ["on_"]),
        helper.make_node("Cos", ["v"], ["v_"]),
    ]
    flag = lambda name: helper.make_tensor_value_info(name, TensorProto.BOOL, [])  # noqa: E731
    value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [2])  # noqa: E731
    count = lambda name: helper.make_tensor_value_info(name, TensorProto.INT64, [])  # noqa: E731
    body = helper.make_graph(
        inner, "body", [count("i"), flag("on"), value("v")], [flag("on_"), value("v_")]
    )
    nodes = [
        helper.make_node("Exp", ["x"], ["e"], name="e"),
        helper.make_node("Loop", ["rounds", "", "e"], ["l"], name="l", body=body),
        helper.make_node("Sin", ["l"], ["y"], name="y"),
    ]
    rounds = helper.make_tensor_value_info("rounds", TensorProto.INT64, [1])
    graph = helper.make_graph(nodes, "endless", [rounds, value("x")], [value("y")])
    path = folder / "endless.onnx"
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return load(str(path))
