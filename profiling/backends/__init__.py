"""Device runtimes, one file each: the folder listing is the registry, and files load on use.

A backend is a module of this folder (names starting with "_" are helpers) with an object `BACKEND`
that fulfils `profiling.backends.base.Backend`.
"""

from placement.core.registry import Registry
from profiling.backends.base import Backend

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
