"""Timelines as rows and bars for the eye: what is drawn, what a bar stands for; no Streamlit."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from typing import Any, NamedTuple

from placement.core import formatting
from placement.core.timeline import Span, Timeline, idle_s
from placement.drawing.colours.palette import device_pattern
from placement.drawing.names import names_of
from placement.drawing.spans import UNKNOWN, Sources, name_of
from placement.drawing.wording import shortened

# Apart from every device for colour-blind eyes too: a green device is grey to some.
LINK_COLOUR = "#60646b"
DARK, LIGHT = "#14181f", "#ffffff"
KIND_WORDS = {"compute": "computing", "transfer": "sending", "wait": "waiting"}
# More bars than this are more than a screen has room for: short neighbours are drawn as one.
MOST_BARS = 1500
MOST_NAMES = 3


class CriticalPath(NamedTuple):
    """The spans of a critical path; `waits` says for each which device or link it queued for, empty
    for none, where that is known."""

    spans: Sequence[Span] = ()
    waits: Sequence[str] = ()


NO_PATH = CriticalPath()


@dataclass(frozen=True)
class Row:
    """A device, or a link as "src->dst"; `about` says how busy it is.

    `sender` is the row of the device that a link sends from, -1 if that is not drawn; None for
    devices.
    """

    name: str
    colour: str
    about: str = ""
    sender: int | None = None


@dataclass(frozen=True)
class Bar:
    """A stretch of one row: a segment, a tensor, or several short ones drawn as one.

    A `ghost` is where something could be, and not where it is.
    """

    row: int
    start_s: float
    end_s: float
    colour: str
    text: str
    tip: tuple[str, ...]
    ops: tuple[str, ...] = ()
    path: bool = False
    ghost: bool = False

    @cached_property
    def ink(self) -> str:
        """Dark or light letters, whichever reads better on the bar."""
        red, green, blue = (int(self.colour[i : i + 2], 16) for i in (1, 3, 5))
        return DARK if 0.3 * red + 0.59 * green + 0.11 * blue > 135 else LIGHT


@dataclass(frozen=True)
class Panel:
    """One timeline among those that share an axis.

    `idle` and `path` are stretches as (row, start, end); those of the path carry their
    kind, and whether they began when a device or link came free and not with data.
    """

    key: str
    title: str
    note: str
    rows: tuple[Row, ...]
    bars: tuple[Bar, ...]
    end_s: float
    idle: tuple[tuple[int, float, float], ...] = ()
    path: tuple[tuple[int, float, float, str, bool], ...] = field(default=())

    @cached_property
    def version(self) -> str:
        """What tells this drawing from others of the same key, the ops of its bars included."""
        drawn = [(bar.row, bar.start_s, bar.end_s, bar.ops, bar.ghost) for bar in self.bars]
        return sha256(repr((self.rows, drawn)).encode()).hexdigest()[:16]

    @property
    def has_queues(self) -> bool:
        """Whether the path is known to have waited somewhere for a device or link to be free."""
        return any(queued for *_, queued in self.path)

    def ops_of(self, bar: int | None) -> tuple[str, ...]:
        """What a bar stands for; nothing for one that is not drawn."""
        return self.bars[bar].ops if bar is not None and bar < len(self.bars) else ()

    def selected(self, ops: Iterable[str]) -> list[int]:
        """Numbers of the bars that stand for any of these ops, ghosts left out."""
        chosen = set(ops)
        bars = enumerate(self.bars)
        return [i for i, bar in bars if not bar.ghost and not chosen.isdisjoint(bar.ops)]

    def to_data(self, ops: Iterable[str] = ()) -> dict[str, Any]:
        """What the browser draws; the names of ops stay here."""
        return {
            "key": self.key,
            "version": self.version,
            "title": self.title,
            "note": self.note,
            "rows": [
                {
                    "name": shown(r.name),
                    "about": r.about,
                    "sender": r.sender,
                    "pattern": device_pattern(i) if r.sender is None else "",
                }
                for i, r in enumerate(self.rows)
            ],
            "bars": [
                {
                    "row": b.row,
                    "start_s": b.start_s,
                    "end_s": b.end_s,
                    "colour": b.colour,
                    "ink": b.ink,
                    "text": b.text,
                    "tip": list(b.tip),
                    "path": b.path,
                    "ghost": b.ghost,
                }
                for b in self.bars
            ],
            "idle": [list(i) for i in self.idle],
            "path": [list(p) for p in self.path],
            "end_s": self.end_s,
            "selected": self.selected(ops),
        }


def shown(row: str) -> str:
    """A device's name, or a link's with an arrow."""
    return row.replace("->", " → ")


def panel(
    key: str,
    title: str,
    note: str,
    timeline: Timeline,
    colours: Mapping[str, str],
    *,
    sources: Sources = UNKNOWN,
    path: CriticalPath = NO_PATH,
    against: Timeline | None = None,
    ghosts: Sequence[Span] | None = None,
    most: int = MOST_BARS,
) -> Panel:
    """A timeline with the critical `path` marked; rows are all devices, then the links in use.

    With the graph of the `sources`, bars whose ops have only numbers for names tell their block.
    `against` is the prediction of a run's timeline: each bar then tells what was predicted, and
    how it errs against what was measured or emulated. For a plan that is not done give `ghosts`,
    the spans that could come next, which may be none: nothing is marked as idle then. Without it
    the timeline is whole.
    """
    busy, step_s = timeline.busy_s(), timeline.step_s
    links = sorted({s.device for s in timeline.spans if s.device not in colours})
    names = [*colours, *links]
    number = {name: i for i, name in enumerate(names)}
    rows = tuple(
        Row(
            name,
            colours.get(name, LINK_COLOUR),
            _busy(busy.get(name, 0.0), step_s),
            None if name in colours else number.get(name.partition("->")[0], -1),
        )
        for name in names
    )
    queued = dict(zip(map(_id, path.spans), path.waits, strict=True)) if path.waits else {}
    on_path = {_id(s): _path_words(queued.get(_id(s), "")) for s in path.spans}
    predicted = {_id(s): s.duration_s for s in against.spans} if against is not None else {}
    bars = [
        _bar(
            s,
            number[s.device],
            rows,
            sources,
            on_path.get(_id(s), ""),
            predicted.get(_id(s)),
            timeline.origin,
        )
        for s in timeline.spans
    ]
    might_be = [_bar(s, number[s.device], rows, sources, "", None, "") for s in ghosts or ()]
    return Panel(
        key,
        title,
        note,
        rows,
        (*thinned(bars, most), *(replace(bar, ghost=True) for bar in might_be)),
        step_s,
        tuple(
            (number[name], *i) for name in colours if ghosts is None for i in idle_s(timeline, name)
        ),
        tuple(
            (number[s.device], s.start_s, s.end_s, s.kind, bool(queued.get(_id(s))))
            for s in path.spans
        ),
    )


def _bar(
    span: Span,
    row: int,
    rows: Sequence[Row],
    sources: Sources,
    on_path: str,
    predicted_s: float | None,
    origin: str,
) -> Bar:
    """A bar that stands for one span."""
    ops = sources.of(span)
    name = name_of(span, ops, sources.graph)
    called = ops if sources.graph is None else names_of(sources.graph).listed(ops[:MOST_NAMES])
    tip = _tip(span, name, len(ops), called, on_path, predicted_s, origin)
    return Bar(row, span.start_s, span.end_s, rows[row].colour, name, tip, ops, bool(on_path))


def thinned(bars: Sequence[Bar], most: int = MOST_BARS) -> list[Bar]:
    """At most about `most` bars: short neighbours of a row that nearly touch are drawn as one.

    Nobody can tell them apart at that size anyway. What is on the critical path and what is not are
    never mixed.
    """
    if len(bars) <= most:
        return list(bars)
    end_s = max(bar.end_s for bar in bars)
    in_rows = sorted(bars, key=lambda b: (b.row, b.start_s, b.end_s))
    grain_s = end_s / (4 * most)
    while True:
        groups = _groups(in_rows, grain_s)
        if len(groups) <= most or grain_s >= end_s:
            return [_one(group) for group in groups]
        grain_s *= 2


def _groups(bars: Sequence[Bar], grain_s: float) -> list[list[Bar]]:
    """Bars by what is drawn as one, of a row from left to right."""
    groups: list[list[Bar]] = []
    for bar in bars:
        last = groups[-1] if groups else None
        if (
            last is not None
            and (bar.row, bar.path) == (last[0].row, last[0].path)
            and bar.end_s - bar.start_s < grain_s
            and last[-1].end_s - last[-1].start_s < grain_s
            and bar.start_s - last[-1].end_s < grain_s
            and bar.end_s - last[0].start_s < 8 * grain_s
        ):
            last.append(bar)
        else:
            groups.append([bar])
    return groups


def _one(group: Sequence[Bar]) -> Bar:
    if len(group) == 1:
        return group[0]
    first = group[0]
    rest = f"and {len(group) - 1} more, too short to be drawn apart"
    return replace(
        first,
        end_s=max(bar.end_s for bar in group),
        text=f"{len(group)} bars",
        tip=(first.tip[0], rest, *(("on the critical path",) if first.path else ())),
        ops=tuple(dict.fromkeys(op for bar in group for op in bar.ops)),
    )


def _path_words(place: str) -> str:
    """What a bar says of the critical path, and of the queue in which it waited there."""
    waited = f", waited for {shown(place)} to be free" if place else ""
    return f"on the critical path{waited}"


def _id(span: Span) -> tuple[str, str, str]:
    return span.kind, span.name, span.device


def _busy(busy_s: float, step_s: float) -> str:
    return f"busy {formatting.percent(busy_s / step_s)} of the time" if step_s else "idle"


def _tip(
    span: Span,
    name: str,
    num_ops: int,
    called: Sequence[str],
    on_path: str,
    predicted_s: float | None,
    origin: str,
) -> tuple[str, ...]:
    """What hovering tells, line by line; the browser adds when."""
    lines = [name, f"{KIND_WORDS[span.kind]} on {shown(span.device)}"]
    if span.kind == "transfer" and span.num_bytes:
        lines.append(formatting.num_bytes(span.num_bytes))
    if span.kind == "compute" and num_ops > 1:
        more = f" and {num_ops - MOST_NAMES} more" if num_ops > MOST_NAMES else ""
        names = ", ".join(shortened(op, 40) for op in called[:MOST_NAMES])
        lines.append(f"{formatting.counted(num_ops, 'op')}: {names}{more}")
    if predicted_s is not None:
        error = predicted_s / span.duration_s - 1 if span.duration_s else None
        lines.append(f"predicted {formatting.seconds(predicted_s)}")
        if error is not None:
            lines[-1] += f", {formatting.percent(error, signed=True)} against {origin}"
    if on_path:
        lines.append(on_path)
    return tuple(lines)
