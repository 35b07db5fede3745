"""A small cache for functions of a graph or a view, keyed by content instead of the object.

`functools.cache` would hash every op on every call; Streamlit's caches would tie the pure parts to
a page.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")
R = TypeVar("R")


def remembered(
    maxsize: int, key: Callable[[Any], Hashable], *, apart_from: str = ""
) -> Callable[[Callable[Concatenate[T, P], R]], Callable[Concatenate[T, P], R]]:
    """Remember the last `maxsize` results by `key(first argument)` and the further arguments.

    `apart_from` names a keyword argument that does not change the result.
    """

    def decorate(function: Callable[Concatenate[T, P], R]) -> Callable[Concatenate[T, P], R]:
        kept: OrderedDict[Hashable, R] = OrderedDict()
        lock = threading.Lock()

        @wraps(function)
        def call(first: T, /, *args: P.args, **kwargs: P.kwargs) -> R:
            counted = {k: v for k, v in kwargs.items() if k != apart_from}
            name = (key(first), args, tuple(sorted(counted.items())))
            with lock:
                if name in kept:
                    kept.move_to_end(name)
                    return kept[name]
            result = function(first, *args, **kwargs)
            with lock:
                kept[name] = result
                while len(kept) > maxsize:
                    kept.popitem(last=False)
            return result

        return call

    return decorate
