"""Events of long jobs: plain dictionaries for whoever listens."""

from collections.abc import Callable
from typing import Any

Emit = Callable[[dict[str, Any]], object]


def silent(event: dict[str, Any]) -> None:
    """The listener that hears events and does nothing."""


def say_nothing(message: str) -> None:
    """The listener that is told something in words and does nothing."""


def never() -> bool:
    """The default `stop` of work that can be stopped."""
    return False


def waiting(emit: Emit) -> Callable[[str], None]:
    """Tell a listener who holds what a job waits for."""

    def tell(message: str) -> None:
        emit({"event": "waiting", "holder": message})

    return tell
