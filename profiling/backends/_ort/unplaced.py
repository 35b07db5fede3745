"""The model as onnxruntime runs it by itself: the reference for outputs and for times."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from placement.core.machine import Device
from profiling.backends._ort import sessions
from profiling.backends._ort.errors import told
from profiling.backends._ort.items import ort_value, python_outputs
from profiling.backends.base import Program
from profiling.devices.lanes import Lane
from profiling.measuring.outputs import nudged


class Unplaced(Program):
    """A plain session with default optimisations, on one device or on all cores of the CPU."""

    def __init__(
        self, source: Path, device: Device | None, feeds: Mapping[str, Any], is_repeatable: bool
    ) -> None:
        import onnxruntime as ort

        self.is_repeatable = is_repeatable
        if device is None:
            options, names = sessions.options(0, "ORT_ENABLE_ALL"), [sessions.CPU]
        else:
            options = sessions.for_device(device, "ORT_ENABLE_ALL", alone=True)
            names = sessions.providers(device, options)
        self._session = sessions.session(str(source), options, names)
        self._names = [node.name for node in self._session.get_outputs()]
        self._feeds = {
            node.name: ort_value(feeds[node.name], node.type)
            for node in self._session.get_inputs()
            if node.name in feeds
        }
        self._options = ort.RunOptions()
        self._binding = self._session.io_binding()
        for name, value in self._feeds.items():
            self._binding.bind_ortvalue_input(name, value)
        self._run = sessions.bound_run(self._session, self._binding, self._options)

    def pinned(self, lanes: Sequence[Lane]) -> Sequence[Lane]:
        return sessions.on_first_cores(lanes)

    def run(self, segment: int) -> None:
        # Bound anew, or the run would write into what the last one made.
        for name in self._names:
            self._binding.bind_output(name, "cpu")
        self._run()

    def nudge(self) -> None:
        noise = np.random.default_rng(0)
        for name, value in self._feeds.items():
            if value.is_tensor() and value.data_type() == "tensor(float)":
                shaken = nudged(value.numpy(), noise)
                self._feeds[name] = ort_value(shaken, value.data_type())
                self._binding.bind_ortvalue_input(name, self._feeds[name])

    def outputs(self) -> dict[str, Any]:
        values = self._binding.get_outputs()
        with told("hand out the outputs"):
            return python_outputs(self._session, self._names, values, self._feeds)

    def stop(self) -> None:
        self._options.terminate = True

    def close(self) -> None:
        del self._run, self._binding, self._session
