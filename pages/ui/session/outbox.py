"""What components tell: numbered messages, decoded where they come in from the browser.

A component keeps them in a queue, as a state value, until it hears that they have been applied,
because one-shot triggers of the same name overtake each other in quick succession.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import reduce
from operator import or_
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta, Struct

from pages.ui.session import choices

Count = Annotated[int, Meta(ge=0)]
_applied: dict[str, int] = {}


class Message(Struct, frozen=True, tag_field="kind"):
    """Something that a person did; `n` grows with every message of a component."""

    n: Count


M = TypeVar("M", bound=Message)


def unread(key: str, kinds: Sequence[type[M]], box: str = "ops") -> list[M]:
    """Messages of this session to the component `key` that were not applied yet, oldest first.

    They come from a browser, so whatever is none of these kinds is left out.
    """
    state = choices.typed(key, None)
    told = state.get(box) if isinstance(state, Mapping) else None
    if not isinstance(told, Mapping) or told.get("session") != choices.nonce():
        return []
    queue, after, found = told.get("queue"), last(key), {}
    for entry in queue if isinstance(queue, list) else []:
        with suppress(ValueError):
            message: M = msgspec.convert(entry, reduce(or_, kinds))
            found[message.n] = message
    return [found[n] for n in sorted(found) if n > after]


def state(key: str) -> dict[str, object]:
    """What tells a component's browser side which of its messages count, and were applied."""
    return {"ack": last(key), "session": choices.nonce()}


def last(key: str) -> int:
    """Number of the component's last message that was applied."""
    return max(int(choices.kept(f"last-{key}", 0)), _applied.get(f"{choices.nonce()}/{key}", 0))


def applied(key: str, message: Message) -> None:
    """Remember a message as applied, beside the session too: a page that is drawn may be left at
    any touch of the session's state, and no message is applied twice."""
    name = f"{choices.nonce()}/{key}"
    _applied[name] = max(_applied.get(name, 0), message.n)
    choices.keep(f"last-{key}", _applied[name])
