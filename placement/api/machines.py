"""The verbs `machine` and `machine_for`: what a model may be placed on."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from placement.core.machine import Machine
    from placement.core.model import Model


def machine(spec: str = "local", lanes: int | None = None) -> Machine:
    """This computer ("local", its CPU split into `lanes`), a preset by name, or a machine file.

    "local:2" has as many lanes, "local:onnxruntime" only the devices of that runtime.
    """
    from profiling.devices.local import load_machine, local_machine

    if lanes is not None:
        if spec != "local":
            raise ValueError(
                f"Lanes split this computer's CPU; machine {spec!r} has its own devices."
            )
        return local_machine(lanes)
    return load_machine(spec)


def machine_for(model: Model, machine: Machine) -> Machine:
    """The machine as the runtimes of this model's format have it."""
    if model.executable is None:
        return machine
    from profiling.devices.local import for_format

    return for_format(machine, model.executable.format)


def can_measure(model: Model, machine: Machine) -> bool:
    """Whether the model can be executed and every device of the machine is on this computer."""
    from profiling import backends
    from profiling.devices.local import missing_devices

    if model.not_executable or backends.emulated(machine.devices):
        return False
    return not missing_devices(machine)
