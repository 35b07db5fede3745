"""A schedule of kernels as onnxruntime sessions bound to shared memory.

Each segment is one session, built without further optimisation, so that what was profiled is what
runs. Values that cross borders lie in buffers allocated once, output of one session and input of
the next; only values without a fixed size (dynamic shapes, strings, sequences, optionals) are
handed on as whatever the producing session made in this step. Between devices everything goes
through host memory. Several samples in flight share the sessions; each has buffers and bindings of
its own.
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from placement.core.machine import Device
from profiling.backends._ort import sessions
from profiling.backends._ort.errors import told
from profiling.backends._ort.items import ort_value, python_outputs, python_value, python_view
from profiling.backends._ort.layout import Layout
from profiling.backends._ort.optimise import PROTOBUF_LIMIT, Optimised
from profiling.backends._ort.parts import Part, part_proto, shared_weights
from profiling.backends._ort.values import Value
from profiling.backends.base import Program
from profiling.devices.lanes import Lane
from profiling.measuring.outputs import ACROSS_DEVICES


class OrtProgram(Program):
    """See `profiling.backends.base.Program`.

    `level` is the optimisation inside each part. With several inputs these can be changed, and the
    programs `beside` share this one's sessions.
    """

    def __init__(
        self,
        layout: Layout,
        optimised: Optimised,
        values: Mapping[str, Value],
        level: str,
        value_names: Mapping[str, str],
    ) -> None:
        import onnxruntime as ort

        self._layout, self._value_names = layout, value_names
        self._options = ort.RunOptions()
        self._types = {n: values[n].type for part in layout.parts for n in part.outputs}
        self.peak_bytes = layout.peak_bytes
        if not all(device.on_host for device in layout.devices):
            self.tolerance = ACROSS_DEVICES
        used = {name for part in layout.parts for name in part.inputs}
        self._inputs = [
            {n: ort_value(v, values[n].type) for n, v in one.items() if n in used}
            for one in layout.feeds
        ]
        shared = shared_weights(optimised, layout.parts)
        alone = len(layout.devices) == 1
        self._sessions = [
            _session(optimised, part, values, shared, device, level, alone) if part.nodes else None
            for part, device in zip(layout.parts, layout.devices, strict=True)
        ]
        self.actual_devices, self.fallbacks, self.fallen = _assignment(
            self._sessions, layout.parts, layout.devices
        )
        self._allocate()

    def beside(self) -> "OrtProgram":
        """A program of the same sessions with buffers of its own: both may run at the same time."""
        other = copy.copy(self)
        other._allocate()
        return other

    def _allocate(self) -> None:
        """Buffers, and calls bound to them. Inputs that change are bound before each call."""
        import onnxruntime as ort

        self._values = {
            name: ort.OrtValue.ortvalue_from_numpy(memory)
            for name, memory in self._layout.allocate().items()
        }
        self.feed(0)
        ready = set(self._layout.fixed) | set(self._inputs[0] if len(self._inputs) == 1 else ())
        self._bindings: list[Any] = []
        self._calls = [
            self._bound(session, part, ready, device) if part.nodes else None
            for session, part, device in zip(
                self._sessions, self._layout.parts, self._layout.devices, strict=True
            )
        ]

    def feed(self, number: int) -> None:
        self._number = number
        self._values.update(self._inputs[number])

    def _bound(
        self, session: Any, part: Part, ready: set[str], device: Device
    ) -> Callable[[], None]:
        binding = session.io_binding()
        self._bindings.append(binding)
        for name in part.inputs:
            if name in ready:
                binding.bind_ortvalue_input(name, self._values[name])
        for name in part.outputs:
            if name in ready:
                binding.bind_ortvalue_output(name, self._values[name])
            else:
                binding.bind_output(name, "cpu")
        run: Callable[[], None] = sessions.bound_run(session, binding, self._options)
        # Binding copies to a device with memory of its own, so there it is done in every step.
        loose_in = tuple(n for n in part.inputs if n not in ready or not device.on_host)
        loose_out = tuple((i, n) for i, n in enumerate(part.outputs) if n not in ready)
        if not loose_in and not loose_out:
            return run
        return partial(self._run_loose, run, binding, loose_in, loose_out)

    def _run_loose(
        self,
        run: Callable[[], None],
        binding: Any,
        loose_in: tuple[str, ...],
        loose_out: tuple[tuple[int, str], ...],
    ) -> None:
        for name in loose_in:
            binding.bind_ortvalue_input(name, self._values[name])
        # Bound anew, or the run would write into what the last one made.
        for _, name in loose_out:
            binding.bind_output(name, "cpu")
        run()
        if loose_out:
            made = binding.get_outputs()
            for i, name in loose_out:
                self._values[name] = made[i]

    def pinned(self, lanes: Sequence[Lane]) -> Sequence[Lane]:
        return sessions.on_first_cores(lanes)

    def run(self, segment: int) -> None:
        call = self._calls[segment]
        assert call is not None, f"segment {segment} is another runtime's"
        call()

    def value(self, name: str) -> Any:
        with told(f"hand out {name!r}"):
            return python_value(self._values[self._value_names.get(name, name)])

    def view(self, name: str) -> Any:
        with told(f"hand out {name!r}"):
            return python_view(self._values[self._value_names.get(name, name)])

    def take(self, name: str, value: Any) -> None:
        name = self._value_names.get(name, name)
        if name in self._layout.fixed:
            dtype = self._layout.fixed[name].dtype
            as_made = np.ascontiguousarray(value, dtype=dtype)
            self._values[name].update_inplace(as_made)
        else:
            # The array is its owner's again, who may write the next value into it.
            own = np.array(value) if isinstance(value, np.ndarray) else value
            self._values[name] = ort_value(own, self._types[name])

    def outputs(self) -> dict[str, Any]:
        found, names = dict(self._layout.constants[self._number]), self._layout.names
        for part, session in zip(self._layout.parts, self._sessions, strict=True):
            wanted = [name for name in part.outputs if name in names]
            if session is None:
                found.update({name: self.value(name) for name in wanted})
            elif wanted:
                feeds = {name: self._values[name] for name in part.inputs}
                values = [self._values[name] for name in wanted]
                with told("hand out the outputs"):
                    found.update(python_outputs(session, wanted, values, feeds))
        return {name: found[name] for name in names}

    def stop(self) -> None:
        self._options.terminate = True

    def close(self) -> None:
        self._calls, self._bindings, self._sessions, self._values = [], [], [], {}


def _session(
    optimised: Optimised,
    part: Part,
    values: Mapping[str, Value],
    shared: Mapping[str, Any],
    device: Device,
    level: str,
    alone: bool,
) -> Any:
    proto = part_proto(optimised, part, values, shared)
    options = sessions.for_device(device, level, alone)
    given = [t.name for t in proto.graph.initializer if t.name in shared]
    if given:
        options.add_external_initializers(given, [shared[name] for name in given])
    providers = sessions.providers(device, options)
    if sum(len(t.raw_data) for t in proto.graph.initializer) < PROTOBUF_LIMIT:
        return sessions.session(proto.SerializeToString(), options, providers)
    import onnx

    path = optimised.path / f"part{part.nodes[0]}.onnx"
    onnx.save(proto, path, save_as_external_data=True, location=path.name + ".bin")
    return sessions.session(str(path), options, providers)


def _assignment(
    made: Sequence[Any], parts: Sequence[Part], devices: Sequence[Device]
) -> tuple[dict[str, str], tuple[str, ...], tuple[int, ...]]:
    """Providers that really compute, by device; what fell back to another one, and the segments.

    A provider that changes the layout of its nodes takes them without listing them (WebGPU), so
    whatever no other provider lists runs where it was asked to.
    """
    actual: dict[str, dict[str, None]] = {}
    sentences: list[str] = []
    fallen: dict[int, None] = {}
    for i, (session, part, device) in enumerate(zip(made, parts, devices, strict=True)):
        if session is None:
            continue
        elsewhere = 0
        for subgraph in session.get_provider_graph_assignment_info():
            if subgraph.ep_name == device.provider:
                continue
            nodes = [node.name or node.op_type for node in subgraph.get_nodes()]
            elsewhere += len(nodes)
            actual.setdefault(device.name, {})[subgraph.ep_name] = None
            asked = f"asked of {device.name}, run by {subgraph.ep_name}"
            sentences.append(f"{', '.join(nodes)}: {asked}.")
            fallen[i] = None
        if elsewhere < len(part.nodes):
            actual.setdefault(device.name, {})[device.provider] = None
    names = {name: "+".join(found) for name, found in actual.items()}
    return names, tuple(sentences), tuple(fallen)
