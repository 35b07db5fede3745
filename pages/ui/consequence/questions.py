"""Questions of a browser about moves that nobody has made, and who may ask them.

While ops are dragged over a device, the browser asks what would come of it. That is no edit, so it
takes a way of its own past Streamlit's, which would draw parts of the page anew: a request that is
answered from what the session was last shown. Its name, which no other session knows, comes with
the request, and tells nothing but this. A session has one question; a newer one takes its place.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from pages.ui.session import cache, choices
from pages.ui.session.outbox import Count
from placement.drawing.gantt import Panel
from placement.drawing.layout.scopes import ops_inside
from studio import consequence, editing
from studio.consequence import Consequence
from studio.snapshot import Studio

# Of more sessions than these only those that were drawn last can ask.
MOST_SESSIONS = 32


class Dragged(Struct, frozen=True, forbid_unknown_fields=True):
    """A bar of one version of a timeline, and with `all` whatever is selected.

    It is held over a place right before another bar, or at the end: of a device to go to ("drop"),
    or of its own, where it would run earlier or later ("order").
    """

    kind: Literal["drop", "order"]
    panel: str
    version: str
    bar: Count
    all: bool = False
    before: Count | None = None


class Question(Struct, frozen=True, forbid_unknown_fields=True):
    """What would come of ops on the device with this number.

    They are those of `nodes` in the picture or those of a `bar`; of neither, what is selected. `n`
    grows with every question of a session.
    """

    session: Annotated[str, Meta(max_length=64)]
    n: Count
    device: Count
    nodes: tuple[str, ...] | None = None
    bar: Dragged | None = None


@dataclass(frozen=True)
class Shown:
    """What a session was last shown: its project, what is selected, and its predicted bars."""

    now: Studio
    selection: tuple[str, ...]
    panel: Panel | None = None


@dataclass
class Asker:
    """A session that may ask: one answer at a time is worked out, the newest question's.

    `session` is the one that Streamlit knows it by.
    """

    session: str
    shown: Shown
    newest: int = 0
    at_work: threading.Lock = field(default_factory=threading.Lock)


askers: OrderedDict[str, Asker] = OrderedDict()
_guard = threading.Lock()


def show(now: Studio, panel: Panel | None = None) -> str:
    """Let this session ask about what is drawn now; what stands for it, see `answer`.

    Sessions that have ended may ask no more.
    """
    # Read from files here, so that no answer has to.
    _ = now.state
    shown = Shown(now, choices.selection(), panel)
    with _guard:
        for name in [name for name, asker in askers.items() if choices.is_ended(asker.session)]:
            del askers[name]
        asker = askers.get(choices.nonce())
        if asker is None:
            asker = askers[choices.nonce()] = Asker(choices.session(), shown)
        elif panel is None:
            shown = replace(shown, panel=asker.shown.panel)
        asker.shown = shown
        askers.move_to_end(choices.nonce())
        while len(askers) > MOST_SESSIONS:
            askers.popitem(last=False)
    return _version(now)


def answer(question: Question) -> dict[str, Any] | None:
    """What the browser shows; None where a newer question came, or nobody may ask.

    `of` stands for the placement that the answer is about.
    """
    with _guard:
        asker = askers.get(question.session)
        if asker is None or question.n < asker.newest:
            return None
        asker.newest = question.n
    with _turn(asker, question) as is_newest:
        if not is_newest:
            return None
        shown = asker.shown
        found = _found(shown, question)
    return None if found is None else {"of": _version(shown.now), **_told(found)}


@contextmanager
def _turn(asker: Asker, question: Question) -> Iterator[bool]:
    """Wait until the answer before is there; whether the question is still the newest."""
    with asker.at_work:
        yield question.n >= asker.newest


def _found(shown: Shown, question: Question) -> Consequence | None:
    devices = shown.now.machine.devices
    ops = _ops(shown, question)
    if not ops or question.device >= len(devices):
        return None
    device, bar, panel = devices[question.device].name, question.bar, shown.panel
    if bar is None or panel is None:
        return consequence.of_move(shown.now, ops, device)
    before = panel.ops_of(bar.before)
    if bar.kind == "drop":
        return consequence.of_move(shown.now, ops, device, before)
    along = editing.beside(shown.now, ops, panel.bars[bar.bar].ops)
    return consequence.of_order(shown.now, along, before)


def _ops(shown: Shown, question: Question) -> tuple[str, ...]:
    if question.nodes is not None:
        return tuple(ops_inside(shown.now.model.graph, question.nodes))
    if question.bar is None:
        return shown.selection
    bar, panel = question.bar, shown.panel
    if panel is None or (panel.key, panel.version) != (bar.panel, bar.version):
        return ()
    if bar.bar >= len(panel.bars):
        return ()
    chosen = shown.selection if bar.all else ()
    return tuple(dict.fromkeys((*chosen, *panel.bars[bar.bar].ops)))


def _told(found: Consequence) -> dict[str, Any]:
    return {
        "about": found.about,
        "text": found.change.text if found.change else "",
        "way": found.change.way if found.change else 0,
        "tie": bool(found.change and found.change.is_tie),
        "note": found.note,
        "bars": found.bars.to_data() if found.bars else None,
    }


def _version(now: Studio) -> str:
    problem, placement = cache.key_of(now.problem, now.placement)
    return f"{problem}-{placement & 0xFFFFFFFFFFFF:x}"
