"""Calls that travel: a function by its name, and values of ours as bytes.

Who is asked imports the function from an installation of its own; no code is sent to it.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pkgutil import resolve_name
from typing import Any, TypeVar, get_type_hints

from placement.parallel.encoding import decoded, encoded

F = TypeVar("F", bound=Callable[..., Any])
# Values that several calls share are read once, and the last few of them kept.
MOST_KEPT = 8
_kept: OrderedDict[tuple[str, str], Any] = OrderedDict()
_TRAVELS = "_travels"


@dataclass(frozen=True, eq=False)
class Call:
    """A function that travels, and its arguments by position: those that calls share come first.

    A function that takes `seconds` is told how many are left when its turn comes, one that takes
    `num_lanes` how many cores it may use.
    """

    function: Callable[..., Any]
    shared: tuple[Any, ...] = ()
    args: tuple[Any, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.function.__module__}:{self.function.__qualname__}"

    def answer(self, content: bytes) -> Any:
        """What was answered; a refusal is raised as the ValueError that it was."""
        refusal, value = decoded(content, tuple[str, bytes])
        if refusal:
            raise ValueError(refusal)
        return decoded(value, _types(self.name)["return"])


def travels(function: F) -> F:
    """Let a function be called from other computers: it depends on nothing but its arguments.

    All of these, and what it returns, have types of ours, by which they are read.
    """
    setattr(function, _TRAVELS, True)
    return function


def performed(
    name: str,
    shared: Mapping[str, Callable[[], bytes]],
    args: Sequence[bytes],
    seconds: float,
    num_lanes: int,
) -> bytes:
    """The answer to a call in bytes; `shared` are the bytes of its first arguments by their key."""
    function, types = _function(name), _types(name)
    kinds = iter(types.items())
    values = [_read_once(key, read, *next(kinds)) for key, read in shared.items()]
    values += [decoded(content, next(kinds)[1]) for content in args]
    told = {"seconds": seconds, "num_lanes": num_lanes}
    limits = {key: value for key, value in told.items() if key in types}
    try:
        return encoded(("", encoded(function(*values, **limits))))
    except ValueError as error:
        return encoded((str(error) or "It cannot be done.", b""))


@cache
def _function(name: str) -> Callable[..., Any]:
    function: Callable[..., Any] = resolve_name(name)
    if not getattr(function, _TRAVELS, False):
        raise ValueError(f"{name} cannot be called from another computer.")
    return function


@cache
def _types(name: str) -> dict[str, Any]:
    return get_type_hints(_function(name))


def _read_once(key: str, read: Callable[[], bytes], name: str, kind: Any) -> Any:
    """A value that calls share, read when it is first needed."""
    known = key, str(kind)
    if known not in _kept:
        _kept[known] = decoded(read(), kind)
    _kept.move_to_end(known)
    while len(_kept) > MOST_KEPT:
        _kept.popitem(last=False)
    return _kept[known]
