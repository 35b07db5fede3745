"""Placers: this folder's listing is the registry; files that begin with "_" are shared steps."""

from placement.core.registry import Registry
from placement.placers.base import Placer

# What placers were called before, in files and on command lines that are older.
FORMER_NAMES = {"cp_sat": "branch_and_bound"}


def current_name(name: str) -> str:
    """The name that a placer has now; other names stay as they are."""
    return FORMER_NAMES.get(name, name)


_REGISTRY = Registry(__name__, __path__, "PLACER", "placer")
names = _REGISTRY.names


def placer_class(name: str) -> type[Placer]:
    """The placer of that name, also of a former one; a ValueError lists the names there are."""
    found: type[Placer] = _REGISTRY.get(current_name(name))
    return found
