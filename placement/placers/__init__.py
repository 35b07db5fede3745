"""Placers: this folder's listing is the registry; files that begin with "_" are shared steps."""

import importlib
import pkgutil

from placement.placers.base import Placer

# What placers were called before, in files and on command lines that are older.
FORMER_NAMES = {"cp_sat": "branch_and_bound"}


def current_name(name: str) -> str:
    """The name that a placer has now; other names stay as they are."""
    return FORMER_NAMES.get(name, name)


def names() -> tuple[str, ...]:
    """Names of all placers, sorted."""
    return tuple(
        sorted(
            m.name
            for m in pkgutil.iter_modules(__path__)
            if not m.name.startswith("_") and m.name != "base"
        )
    )


def placer_class(name: str) -> type[Placer]:
    """The placer of that name, also of a former one; a ValueError lists the names there are."""
    name = current_name(name)
    if name not in names():
        raise ValueError(f"There is no placer {name!r}; choose one of {', '.join(names())}.")
    found: type[Placer] = importlib.import_module(f"{__name__}.{name}").PLACER
    return found
