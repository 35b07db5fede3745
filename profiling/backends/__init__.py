"""Device runtimes, one file each: the folder listing is the registry, and files load on use.

A backend is a module of this folder (names starting with "_" are helpers) with an object `BACKEND`
that fulfils `profiling.backends.base.Backend`.
"""

import pkgutil
from importlib import import_module

from profiling.backends.base import Backend


def names() -> tuple[str, ...]:
    """Every backend by file name, in alphabetical order; loads none of them."""
    found = (m.name for m in pkgutil.iter_modules(__path__))
    return tuple(sorted(n for n in found if not n.startswith("_") and n != "base"))


def get(name: str) -> Backend:
    """The backend of this name, whether its library is installed or not (`missing()` says)."""
    if name not in names():
        raise ValueError(f"There is no backend {name!r}; use one of {', '.join(names())}.")
    backend: Backend = import_module(f"{__name__}.{name}").BACKEND
    return backend


def usable(name: str) -> Backend:
    """The backend of this name; a ValueError says what to install where it cannot run."""
    backend = get(name)
    if backend.missing():
        raise ValueError(f"Backend {name!r} cannot run here: {backend.missing()}.")
    return backend
