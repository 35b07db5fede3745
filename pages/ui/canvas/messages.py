"""What the browser tells of gestures in the picture.

Nodes are ids of visible nodes; None stands for whatever is selected, because a selection may hold
ops inside closed groups, for which no visible node stands alone.
"""

from typing import Annotated, Literal

from msgspec import Meta

from pages.ui.session.outbox import Count, Message
from placement.drawing.searching import By, Way


class Gesture(Message, frozen=True):
    """Something that a person did in the picture."""


class Select(Gesture, frozen=True, tag="select"):
    nodes: tuple[str, ...]
    how: Literal["set", "add", "toggle"] = "set"


class Widen(Gesture, frozen=True, tag="widen"):
    """Select all before, behind or like the selection too."""

    way: Way


class Search(Gesture, frozen=True, tag="search"):
    """Select match number `at` (-1: only count them), or all of them."""

    text: Annotated[str, Meta(max_length=200)]
    by: By
    at: Annotated[int, Meta(ge=-1)]
    all: bool = False


class Toggle(Gesture, frozen=True, tag="toggle"):
    """Open this closed group, or close this open one."""

    node: str


class ExpandAll(Gesture, frozen=True, tag="expand_all"): ...


class CollapseAll(Gesture, frozen=True, tag="collapse_all"): ...


class Edit(Gesture, frozen=True):
    """What changes the placement or its pins, and not only what is seen of it."""


class Assign(Edit, frozen=True, tag="assign"):
    """Put nodes on the device with this index."""

    device: Count
    nodes: tuple[str, ...] | None = None


class Pin(Edit, frozen=True, tag="pin"):
    nodes: tuple[str, ...] | None = None


class Unpin(Edit, frozen=True, tag="unpin"):
    nodes: tuple[str, ...] | None = None


class PinOrder(Edit, frozen=True, tag="pin_order"):
    """Hold the order on the devices that nodes are on."""

    nodes: tuple[str, ...] | None = None


class Undo(Edit, frozen=True, tag="undo"): ...


class Redo(Edit, frozen=True, tag="redo"): ...


GESTURES: tuple[type[Gesture], ...] = (
    *(Select, Widen, Search, Toggle, ExpandAll, CollapseAll),
    *(Assign, Pin, Unpin, PinOrder, Undo, Redo),
)
