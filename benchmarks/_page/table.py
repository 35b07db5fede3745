"""What the figures of the page say: the tables, and which wishes they meet."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks._page.shares import LEAST
from benchmarks._page.watch import Settled

STUDIO = "Placement Studio"
SMALL = ("Inception v2", "DenseNet-121", "3,000 ops")
LARGE, HUGE = "10,000 ops", "30,000 ops"
HUGE_S, START_S = 8.0, 4.0
EDIT_S, MESSAGE_BYTES, FRAMES_PER_S, GHOST_S = 0.2, 100_000, 30.0, 0.15
# Not opened by turns with the peers, who show nothing of the kind.
DRAGGED = "1,000 ops"

Values = Sequence[float]


@dataclass
class Found:
    """All that was measured: `loads[file][side]` in seconds to the graph, in empty profiles and in
    used ones, `pages[file]` those of the studio to the whole page, `pans[side]` in frames per
    second, edits in seconds and bytes, `ghosts` and servers that were `started` in seconds, shares
    of the window, and what could not be measured, in words."""

    loads: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    used: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    pages: dict[str, list[float]] = field(default_factory=dict)
    shares: dict[str, float] = field(default_factory=dict)
    again: dict[str, list[float]] = field(default_factory=dict)
    pans: dict[str, list[float]] = field(default_factory=dict)
    painted: list[float] = field(default_factory=list)
    confirmed: list[float] = field(default_factory=list)
    held: list[float] = field(default_factory=list)
    message_bytes: list[float] = field(default_factory=list)
    ghosts: list[float] = field(default_factory=list)
    started: list[float] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)

    def load(self, file: str, side: str, took: Settled, *, used: bool = False) -> None:
        loads = self.used if used else self.loads
        loads.setdefault(file, {}).setdefault(side, []).append(took.graph_s)
        if side == STUDIO:
            self.pages.setdefault(_told(file, used), []).append(took.page_s)


def _told(file: str, used: bool) -> str:
    return f"{file}, used profile" if used else file


@dataclass(frozen=True)
class Wish:
    """A figure of the studio with what is wanted of it; `met` is None where nothing says so."""

    what: str
    values: tuple[float, ...]
    unit: str
    wanted: str
    met: bool | None


def wishes(found: Found) -> list[Wish]:
    """The studio's figures against what is wanted of them."""
    rows = [
        _beside_peers(loads[file], f"{file}, opened{told}")
        for loads, told in ((found.loads, ""), (found.used, ", used profile"))
        for file in (*SMALL, LARGE)
        if file in loads
    ]
    rows += [
        Wish(
            f"graph's share of the window, {name}",
            (share,),
            "",
            f"at least {least}",
            share >= least,
        )
        for name, least in LEAST.items()
        if (share := found.shares.get(name)) is not None
    ]
    if STUDIO in found.loads.get(HUGE, {}):
        rows.append(_at_most(f"{HUGE}, opened", found.loads[HUGE][STUDIO], HUGE_S, "s"))
    if found.confirmed:
        rows.append(_at_most("3,000 ops, key to Python's repaint", found.confirmed, EDIT_S, "s"))
        size = _at_most("received per edit", found.message_bytes, MESSAGE_BYTES, "bytes")
        rows += [
            Wish("3,000 ops, key to first repaint", tuple(found.painted), "s", "", None),
            Wish("3,000 ops, of that the key was down", tuple(found.held), "s", "", None),
            size,
        ]
    if found.ghosts:
        what = f"{DRAGGED}, entering a device to the ghost of the timeline"
        rows.append(_at_most(what, found.ghosts, GHOST_S, "s"))
    if found.started:
        what = "Inception v2, start of the server to the settled picture"
        rows.append(_at_most(what, found.started, START_S, "s"))
    if STUDIO in found.pans:
        rates = found.pans[STUDIO]
        met = statistics.median(rates) >= FRAMES_PER_S
        rows.append(
            Wish("3,000 ops, panning", tuple(rates), "fps", f"at least {FRAMES_PER_S:.0f}", met)
        )
    return rows


def _beside_peers(loads: Mapping[str, list[float]], what: str) -> Wish:
    """A load against the faster peer's."""
    medians = [statistics.median(v) for side, v in loads.items() if side != STUDIO]
    own = loads.get(STUDIO, [])
    if not medians or not own:
        return Wish(what, tuple(own), "s", "no peer to compare with", None)
    return _at_most(what, own, min(medians), "s", " (faster peer)")


def _at_most(what: str, values: Values, most: float, unit: str, reason: str = "") -> Wish:
    met = statistics.median(values) <= most if values else None
    return Wish(what, tuple(values), unit, f"at most {_number(most)}{reason}", met)


def text(found: Found) -> str:
    """Both tables and what is missing, as Markdown."""
    return "\n".join([*_load_lines(found), "", *_wish_lines(wishes(found)), *_notes(found)])


def _load_lines(found: Found) -> list[str]:
    sides = list(dict.fromkeys(side for loads in found.loads.values() for side in loads))
    again = f"{STUDIO}, again"
    lines = [
        f"| seconds to the settled graph | {' | '.join(sides)} | {again} | {STUDIO}, whole page |",
        "|---" * (len(sides) + 3) + "|",
    ]
    for used in (False, True):
        for file, loads in (found.used if used else found.loads).items():
            cells = [spread(loads.get(side, ())) for side in sides]
            cells.append("-" if used else spread(found.again.get(file, ())))
            cells.append(spread(found.pages.get(_told(file, used), ())))
            lines.append(f"| {_told(file, used)} | {' | '.join(cells)} |")
    if found.pans:
        cells = [spread(found.pans.get(side, ())) for side in sides]
        lines.append(f"| panning 3,000 ops, frames per second | {' | '.join(cells)} | - | - |")
    return lines


def _wish_lines(rows: Sequence[Wish]) -> list[str]:
    lines = ["| what | median (range) | wanted | met |", "|---|---|---|---|"]
    for row in rows:
        met = {True: "yes", False: "**no**", None: ""}[row.met]
        lines.append(f"| {row.what} | {spread(row.values)} {row.unit} | {row.wanted} | {met} |")
    return lines


def _notes(found: Found) -> list[str]:
    return ["", *(f"{what}: {why}." for what, why in found.missing.items())] * bool(found.missing)


def spread(values: Values) -> str:
    """Median and range; a dash for nothing."""
    if not values:
        return "-"
    low, high = _number(min(values)), _number(max(values))
    return f"{_number(statistics.median(values))} ({low} to {high})"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.0f}" if value >= 20 else f"{value:.3g}"


def to_json(found: Found) -> Mapping[str, Any]:
    return {**vars(found), "wishes": [vars(row) for row in wishes(found)]}
