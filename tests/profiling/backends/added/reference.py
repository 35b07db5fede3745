"""ONNX's own reference implementation as a runtime: every op is a kernel, computed by numpy."""

from importlib.metadata import version
from importlib.util import find_spec
from typing import ClassVar

import numpy as np

from placement.core.machine import Device
from placement.core.schedule import Schedule, Segment
from profiling.backends.base import Backend, Compiled, Program


class ReferenceProgram(Program):
    """Values by name in one dictionary; of its own device's segments alone."""

    def __init__(self, compiled, schedule, feeds):
        self.compiled, self._feeds, self._names = compiled, feeds, compiled.outputs
        self._segments = [
            s.kernels if compiled.machine.device(s.device).runtime == "reference" else None
            for s in schedule.segments
        ]
        self.actual_devices = {
            s.device: "numpy"
            for s, own in zip(schedule.segments, self._segments, strict=True)
            if own is not None
        }
        self.values, self.taken = {}, []
        self.feed(0)

    def feed(self, number):
        self.values = {**self.compiled.weights, **self._feeds[number]}

    def run(self, segment):
        for kernel in self._segments[segment]:
            node = self.compiled.nodes[kernel]
            made = node.run(*(self.values[name] for name in node.input))
            self.values.update(zip(node.output, made, strict=True))

    def outputs(self):
        return {name: self.values[name] for name in self._names}

    def value(self, name):
        return self.values[name]

    def take(self, name, value):
        self.taken.append(name)
        self.values[name] = value


class ReferenceCompiled(Compiled):
    random_ops = ()

    def __init__(self, model, machine):
        self.kernels, self.machine = model.graph, machine
        self.sources = tuple((op.name,) for op in model.graph.ops)
        from onnx.reference import ReferenceEvaluator

        proto = model.executable.model_proto()
        evaluator = ReferenceEvaluator(proto)
        names = [node.name for node in proto.graph.node]
        self.nodes = dict(zip(names, evaluator.rt_nodes_, strict=True))
        self.weights, self.outputs = dict(evaluator.rt_inits_), [o.name for o in proto.graph.output]
        self.opened = []

    def feeds(self, seed, given):
        rng = np.random.default_rng(seed)
        drawn = {t.name: rng.random(t.shape).astype(t.dtype) for t in self.kernels.inputs}
        return {**drawn, **given}

    def open(self, schedule, feeds):
        return self.open_ring(schedule, (feeds,), 1)[0]

    def open_ring(self, schedule, feeds, depth):
        ring = tuple(ReferenceProgram(self, schedule, feeds) for _ in range(depth))
        self.opened += ring
        return ring

    def unplaced(self, device, feeds):
        names = tuple(op.name for op in self.kernels.ops)
        return ReferenceProgram(self, Schedule((Segment("reference:0", names),)), (feeds,))

    def exchanges(self, tensor):
        return True


class Reference(Backend):
    name: ClassVar[str] = "reference"
    format: ClassVar[str] = "onnx"

    def missing(self):
        return "" if find_spec("onnx") else "needs: pip install onnx"

    def devices(self):
        speeds = {"flops_per_s": 1e9, "memory_bytes_per_s": 1e9}
        return (Device("reference:0", "cpu", self.name, "numpy", **speeds),)

    def libraries(self):
        return (("onnx", version("onnx")),)

    def compile(self, model, machine):
        return ReferenceCompiled(model, machine)


BACKEND = Reference()
