"""The verbs `machine`, `machine_for` and `hosts`: what a model may be placed on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from placement.core.machine import Machine
    from placement.core.model import Model


def machine(spec: str = "local", lanes: int | None = None) -> Machine:
    """This computer ("local", its CPU split into `lanes`), a preset by name, or a machine file.

    "local:2" has as many lanes, "local:onnxruntime" only the devices of that runtime, "ray" those
    of all hosts of a Ray cluster.
    """
    from profiling.devices.local import load_machine, local_machine

    if lanes is not None:
        if spec != "local":
            raise ValueError(
                f"Lanes split this computer's CPU; machine {spec!r} has its own devices."
            )
        return local_machine(lanes)
    return load_machine(spec)


def hosts(address: str = "ray") -> list[dict[str, Any]]:
    """The hosts of a Ray cluster: name, address, cores, versions and devices.

    `address` is "ray" for the cluster that runs here, or "ray://HOST:PORT". A ValueError says what
    keeps the hosts from computing together, such as mixed versions of a library.
    """
    from profiling import backends

    return [dict(row) for row in backends.usable("ray").hosts(address)]


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
