"""What the canvas draws, and how far its edits are: values, and what the browser gets of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from placement.drawing.colours.painting import Paint, selection_marks
from placement.drawing.colours.palette import DeviceKey
from placement.drawing.colours.toning import Tones
from placement.drawing.crossing import PathLines
from placement.drawing.views import View


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """A view with its colours.

    `selection`, `marks` (the critical path) and `pins` are op names. A `focus` larger than before
    makes the drawing move to the selection. `search` answers the last search. `empty` is shown over
    the canvas where the graph has no ops. `tones` colour the cards by something else than the
    device; `hatched` draws the hatch of each device too. `crossings` says which edges lead from
    device to device, `path` where the critical path runs, `sums` what to write on closed blocks,
    by node. `opacity` (painting.py) is how strongly nodes are drawn, `guessed` names ops whose
    device is a guess. `enlarged` is how much larger names are drawn than at a desk.
    """

    view: View
    paint: Paint
    devices: Sequence[DeviceKey]
    selection: Iterable[str] = ()
    marks: Iterable[str] = ()
    pins: Iterable[str] = ()
    focus: int = 0
    search: Mapping[str, str | int] | None = None
    empty: str = ""
    tones: Tones | None = None
    hatched: bool = False
    crossings: str = ""
    path: PathLines | None = None
    sums: Mapping[int, str] | None = None
    opacity: str = ""
    guessed: Iterable[str] = ()
    enlarged: float = 1.0

    def __post_init__(self) -> None:
        view = self.view.hash
        if self.paint.view != view or (self.tones and self.tones.view != view):
            raise ValueError("The paint was made for another view; call paint() with this one.")

    def payload(self) -> dict[str, object]:
        chosen, path = tuple(self.selection), self.path
        return {
            "view": self.view.hash,
            "colours": self.paint.colours,
            "mixes": {str(node): list(map(list, mix)) for node, mix in self.paint.mixes.items()},
            "counts": list(self.paint.counts),
            "selected": selection_marks(self.view, chosen),
            "chosen": len(chosen),
            "marks": selection_marks(self.view, self.marks),
            "devices": [vars(device) for device in self.devices],
            "tones": self.tones.payload() if self.tones else None,
            "hatched": self.hatched,
            "crossings": self.crossings,
            "path": path.edges if path else "",
            "queues": [vars(queue) for queue in path.queues] if path else [],
            "sums": {str(node): text for node, text in (self.sums or {}).items()},
            "pins": selection_marks(self.view, self.pins),
            "opacity": self.opacity,
            "guessed": selection_marks(self.view, self.guessed),
            "focus": self.focus,
            "search": None if self.search is None else dict(self.search),
            "empty": self.empty,
            "enlarged": self.enlarged,
        }


@dataclass(frozen=True, kw_only=True)
class Editing:
    """What may be edited.

    `read_only` keeps selection and expansion but assigns nothing; `shows` says what the picture
    shows where that is not the placement. `undo` and `redo` say which step they would take, empty
    for none. `asks` says where to ask what a move would do, and of what.
    """

    read_only: bool = False
    shows: str = ""
    undo: str = ""
    redo: str = ""
    asks: Mapping[str, str] | None = None

    def payload(self) -> dict[str, object]:
        return {
            "readOnly": self.read_only,
            "shows": self.shows,
            "undo": self.undo,
            "redo": self.redo,
            "asks": dict(self.asks) if self.asks else None,
        }
