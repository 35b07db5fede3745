"""Registries: the modules of a folder, each of which defines one thing by an agreed name.

To add something is to add a file. Names that begin with an underscore, and "base", are what the
others share. Listing names imports nothing; a module is imported when what it defines is asked for.
"""

import functools
import importlib
import os
import pkgutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Registry:
    """What the modules of a package define as `attribute`; `what` is the word for one of them."""

    package: str
    path: Sequence[str]
    attribute: str
    what: str

    def names(self) -> tuple[str, ...]:
        """The names of the modules, sorted."""
        return _listed(tuple((folder, os.stat(folder).st_mtime_ns) for folder in self.path))

    def get(self, name: str) -> Any:
        """What the module of that name defines; a ValueError lists the names there are."""
        known = self.names()
        if name not in known:
            raise ValueError(f"There is no {self.what} {name!r}; use one of {', '.join(known)}.")
        return getattr(importlib.import_module(f"{self.package}.{name}"), self.attribute)

    def all(self) -> Iterator[Any]:
        """What every module defines, in the order of names; those without are passed over."""
        for name in self.names():
            module = importlib.import_module(f"{self.package}.{name}")
            if hasattr(module, self.attribute):
                yield getattr(module, self.attribute)


# Of folders as they were at a time: a file that comes or goes changes that of its folder.
@functools.lru_cache(64)
def _listed(folders: tuple[tuple[str, int], ...]) -> tuple[str, ...]:
    found = (module.name for module in pkgutil.iter_modules([path for path, _ in folders]))
    return tuple(sorted(n for n in found if not n.startswith("_") and n != "base"))
