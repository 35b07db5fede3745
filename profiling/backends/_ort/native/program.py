"""A schedule of kernels as sessions of ONNX Runtime's C API, whose lanes need no interpreter.

The same parts, buffers, shared weights and shared arena as in a program of the Python module's
sessions, and the same bits: it is the same runtime. Everything is bound once; a run of a segment is
one call of a C function, which lanes make by themselves.
"""

import copy
import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from placement.core.machine import Device
from profiling.backends._ort.layout import Layout
from profiling.backends._ort.native.library import Library, Owned, library
from profiling.backends._ort.optimise import Optimised
from profiling.backends._ort.parts import Part, part_proto, shared_array, shared_tensors
from profiling.backends._ort.sessions import CPU, lane_entries, on_first_cores, spinning
from profiling.backends._ort.types import numpy_dtype, numpy_type
from profiling.backends._ort.values import Value
from profiling.backends.base import Program
from profiling.devices.lanes import Lane
from profiling.devices.native import NativeCalls

NOTE = "Lanes ran natively, without the interpreter's lock."
_LEVELS = {"ORT_DISABLE_ALL": 0, "ORT_ENABLE_BASIC": 1, "ORT_ENABLE_ALL": 99}
_QUIET = 4


class NativeProgram(Program):
    """See `profiling.backends.base.Program`; for what `fits.why_not` has nothing against."""

    reuses_outputs = True

    def __init__(
        self,
        layout: Layout,
        optimised: Optimised,
        values: Mapping[str, Value],
        level: str,
        is_repeatable: bool,
    ) -> None:
        found = library()
        assert isinstance(found, Library), found
        self._library, self._layout = found, layout
        self._types = {n: values[n].type for p in layout.parts for n in (*p.inputs, *p.outputs)}
        self.lanes_note, self.peak_bytes = NOTE, layout.peak_bytes
        self.is_repeatable = is_repeatable
        self.actual_devices = {device.name: CPU for device in layout.devices}
        self._options = found.owned("RunOptions", "CreateRunOptions")
        self._inputs = [
            {n: self._tensor(n, v) for n, v in one.items() if n in self._types}
            for one in layout.feeds
        ]
        shared = {
            t.name: found.tensor(shared_array(optimised, t), numpy_type(t.data_type))
            for t in shared_tensors(optimised, layout.parts)
        }
        self._sessions = [
            self._session(part_proto(optimised, part, values, shared), part, shared, device, level)
            for part, device in zip(layout.parts, layout.devices, strict=True)
        ]
        self._run = ctypes.CFUNCTYPE(ctypes.c_void_p, *(ctypes.c_void_p,) * 3)(
            found.run_with_binding
        )
        self._allocate()

    def _session(
        self, proto: Any, part: Part, shared: Mapping[str, Owned], device: Device, level: str
    ) -> Owned:
        found, alone = self._library, len(self._layout.devices) == 1
        options = found.owned("SessionOptions", "CreateSessionOptions")
        found.call("SetSessionLogSeverityLevel", options.address, _QUIET)
        found.call("SetSessionGraphOptimizationLevel", options.address, _LEVELS[level])
        found.call("SetIntraOpNumThreads", options.address, max(device.cores, 1))
        found.call("SetInterOpNumThreads", options.address, 1)
        entries = [*lane_entries(device, alone).items(), spinning(alone)]
        for key, value in entries:
            found.call("AddSessionConfigEntry", options.address, key.encode(), value.encode())
        given = [name for name in part.weights if name in shared]
        if given:
            names = (ctypes.c_char_p * len(given))(*(name.encode() for name in given))
            weights = (ctypes.c_void_p * len(given))(*(shared[name].address for name in given))
            found.call("AddExternalInitializers", options.address, names, weights, len(given))
        model = proto.SerializeToString()
        return found.owned(
            "Session",
            "CreateSessionFromArray",
            found.environment,
            model,
            len(model),
            options.address,
            needs=(options, *(shared[name] for name in given)),
        )

    def beside(self) -> "NativeProgram":
        """A program of the same sessions with buffers of its own: both may run at the same time."""
        other = copy.copy(self)
        other._allocate()
        return other

    def _allocate(self) -> None:
        """Buffers and bindings to them; inputs are bound anew when others are fed."""
        found, parts = self._library, self._layout.parts
        self._arrays = self._layout.allocate()
        self._values = {name: self._tensor(name, array) for name, array in self._arrays.items()}
        self._bindings = [
            found.owned("IoBinding", "CreateIoBinding", session.address, needs=(session,))
            for session in self._sessions
        ]
        for binding, part in zip(self._bindings, parts, strict=True):
            for name in part.outputs:
                self._bind("BindOutput", binding, name, self._values[name])
            for name in part.inputs:
                if name in self._values:
                    self._bind("BindInput", binding, name, self._values[name])
        self.feed(0)
        pairs = zip(self._sessions, self._bindings, strict=True)
        rows = [(session.address, self._options.address, b.address) for session, b in pairs]
        self._arguments = np.array(rows, np.int64).reshape(len(rows), 3)
        self.native = NativeCalls(found.run_with_binding, self._arguments, found.run_error)

    def _bind(self, how: str, binding: Owned, name: str, value: Owned) -> None:
        self._library.call(how, binding.address, name.encode(), value.address)

    def _tensor(self, name: str, array: Any) -> Owned:
        text = self._types[name]
        return self._library.tensor(np.require(array, numpy_dtype(text), "C"), text)

    def feed(self, number: int) -> None:
        self._number, given = number, self._inputs[number]
        for binding, part in zip(self._bindings, self._layout.parts, strict=True):
            for name in part.inputs:
                if name in given:
                    self._bind("BindInput", binding, name, given[name])

    def pinned(self, lanes: Sequence[Lane]) -> Sequence[Lane]:
        return on_first_cores(lanes)

    def run(self, segment: int) -> None:
        status = self._run(*self._arguments[segment].tolist())
        if status:
            raise self._library.run_error(status)

    def outputs(self) -> dict[str, Any]:
        constants = self._layout.constants[self._number]
        return {n: v if n in constants else v.copy() for n, v in self.views().items()}

    def views(self) -> dict[str, Any]:
        found = self._layout.constants[self._number]
        return {n: found[n] if n in found else self._arrays[n] for n in self._layout.names}

    def stop(self) -> None:
        self._library.call("RunOptionsSetTerminate", self._options.address)

    def close(self) -> None:
        self._bindings, self._sessions, self._values, self._inputs = [], [], {}, []
        self._arguments, self.native = self._arguments[:0], None
