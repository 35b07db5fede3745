"""Device runtimes, one file each: the folder listing is the registry, and files load on use.

A backend is a module of this folder (names starting with "_" are helpers) with an object `BACKEND`
that fulfils `profiling.backends.base.Backend`.
"""

from collections.abc import Iterable

from placement.core.machine import Device, Machine
from placement.core.model import Model
from placement.core.registry import Registry
from profiling.backends import _joined
from profiling.backends.base import Backend, Compiled

_REGISTRY = Registry(__name__, __path__, "BACKEND", "backend")
names = _REGISTRY.names


def get(name: str) -> Backend:
    """The backend of this name, whether its library is installed or not (`missing()` says)."""
    backend: Backend = _REGISTRY.get(name)
    return backend


def usable(name: str) -> Backend:
    """The backend of this name; a ValueError says what to install where it cannot run."""
    backend = get(name)
    if backend.missing():
        raise ValueError(f"Backend {name!r} cannot run here: {backend.missing()}.")
    return backend


def of(devices: Iterable[Device]) -> dict[str, Backend]:
    """The backends of devices by name, in the order of the devices; without those unknown here."""
    known, used = names(), dict.fromkeys(d.runtime for d in devices)
    return {name: get(name) for name in used if name in known}


def emulated(devices: Iterable[Device]) -> bool:
    """Whether a live run of these devices follows a virtual clock instead of hardware."""
    return any(backend.emulated for backend in of(devices).values())


def elsewhere(devices: Iterable[Device]) -> frozenset[str]:
    """The names of devices that are those of other computers."""
    listed = tuple(devices)
    used = of(listed)
    return frozenset(d.name for d in listed if d.runtime in used and used[d.runtime].elsewhere)


def cpu_lanes(devices: Iterable[Device]) -> dict[str, Device]:
    """The devices by name that are the CPU of a computer, or lanes of it."""
    listed = tuple(devices)
    used = of(listed)
    return {d.name: d for d in listed if d.runtime in used and used[d.runtime].is_cpu(d)}


def running(format: str) -> tuple[Backend, ...]:
    """The backends that compute models of a format; first the one that drives the CPU's lanes."""
    found = [b for b in map(get, names()) if b.runs(format) and not b.elsewhere]
    return tuple(sorted(found, key=lambda backend: (not backend.leads, backend.name)))


def fit(devices: Iterable[Device], format: str) -> bool:
    """Whether devices are as models of a format need them, emulated or driven by what runs it.

    What drives them is asked as far as it is known here; a format that nothing runs fits anything.
    """
    used = of(devices).values()
    fits = all(backend.runs(format) for backend in used)
    return fits or any(backend.emulated for backend in used) or not running(format)


def require_format(model: Model, machine: Machine) -> None:
    """ValueError where a machine has several runtimes and one of them cannot run the model."""
    executable, used = model.executable, of(machine.devices)
    if executable is None or len(used) < 2:
        return
    other = next((b for b in used.values() if not b.runs(executable.format)), None)
    if other is not None:
        able = " or ".join(b.name for b in running(executable.format))
        raise ValueError(
            f"Machine {machine.name!r} has devices of {' and '.join(used)}, but {other.name} does"
            f" not run {model.graph.name!r}, whose format is {executable.format}; choose devices of"
            f" {able}."
        )


def compiled(model: Model, machine: Machine) -> Compiled:
    """The model as the runtimes of a machine run it: by one of them, or by several together.

    ValueError where one of several cannot run it, or makes other kernels of it than the first.
    """
    require_format(model, machine)
    runtimes = tuple(dict.fromkeys(d.runtime for d in machine.devices))
    found = {name: usable(name).compile(model, machine) for name in runtimes}
    return _joined.Joined.of(found, machine) if len(found) > 1 else found[runtimes[0]]
