"""What cards are coloured by where it is not the device: categories, or steps of a scale."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from placement.drawing.colours import scales
from placement.drawing.colours.painting import MIXED, NONE, code_of, counts_by_node
from placement.drawing.colours.palette import colours
from placement.drawing.views import View

NUM_BANDS = 8


@dataclass(frozen=True)
class ToneKey:
    """One entry of the legend; `colour` is #rrggbb, `count` says how many ops or nodes have it."""

    label: str
    colour: str
    count: int


@dataclass(frozen=True)
class Tones:
    """One character per visible node: its entry in `keys`, `*` for several, `.` for none.

    `bands[node index]` shares the card of a mixed node out in eighths, a character for each. A
    `scale` is drawn as one bar with its `ends` written at it, from little to much. `note` says
    what the uncoloured nodes are.
    """

    view: str
    by: str
    title: str
    codes: str
    keys: tuple[ToneKey, ...]
    bands: Mapping[int, str]
    ends: tuple[str, str] = ("", "")
    note: str = ""

    @property
    def is_scale(self) -> bool:
        return bool(self.ends[1])

    def payload(self) -> dict[str, Any]:
        """What the browser needs to draw cards and legend."""
        return {
            "by": self.by,
            "title": self.title,
            "codes": self.codes,
            "keys": [[key.label, key.colour, key.count] for key in self.keys],
            "bands": {str(node): band for node, band in self.bands.items()},
            "ends": list(self.ends) if self.is_scale else None,
            "note": self.note,
        }


def by_class(
    view: View,
    class_of_op: Sequence[int] | NDArray[np.int64],
    keys: Sequence[tuple[str, str]],
    *,
    by: str,
    title: str,
    note: str = "",
) -> Tones:
    """Tones of categories: the index in `keys` (label, colour) for each op, -1 for none."""
    table = counts_by_node(view, class_of_op, len(keys))
    codes, bands = [], {}
    for number, row in enumerate(table):
        used = np.flatnonzero(row)
        if len(used) == 1:
            codes.append(_code(int(used[0]), len(keys)))
        else:
            codes.append(MIXED)
            shares = shared_out(row.tolist(), NUM_BANDS)
            bands[number] = "".join(
                _code(k, len(keys)) * n
                for k, n in sorted(enumerate(shares), key=lambda s: (-row[s[0]], s[0]))
            )
    counts = table.sum(axis=0)
    shown = tuple(ToneKey(*key, int(counts[i])) for i, key in enumerate(keys))
    return Tones(view.hash, by, title, "".join(codes), shown, bands, note=note)


def by_value(
    view: View,
    value_of_op: ArrayLike,
    words: Callable[[float], str],
    *,
    by: str,
    title: str,
    logarithmic: bool,
    note: str = "",
) -> Tones:
    """Tones of amounts: a closed group has the sum of its ops, so parts and wholes compare.

    The scale spans what is visible; nodes with nothing have no colour.
    """
    sums = sums_by_node(view, value_of_op)
    palette = colours("scale")
    make = scales.logarithmic if logarithmic else scales.linear
    scale = make(sums, len(palette))
    if scale is None:
        return Tones(view.hash, by, title, NONE * len(view.nodes), (), {}, note=note)
    steps = scale.steps(sums)
    said = [words(edge) for edge in scale.edges()]
    keys = tuple(
        ToneKey(f"{said[k]} to {said[k + 1]}", colour, int((steps == k).sum()))
        for k, colour in enumerate(palette)
    )
    codes = "".join(_code(int(step), len(palette)) for step in steps)
    return Tones(view.hash, by, title, codes, keys, {}, (said[0], said[-1]), note)


def sums_by_node(view: View, value_of_op: ArrayLike) -> NDArray[np.float64]:
    """The sum over the ops of each visible node; what is not finite counts as nothing."""
    values = np.asarray(value_of_op, dtype=np.float64)
    values = np.where(np.isfinite(values), values, 0.0)
    nodes = np.asarray(view.node_of_op, dtype=np.int64)
    return np.bincount(nodes, weights=values, minlength=len(view.nodes)).astype(np.float64)


def shared_out(counts: Sequence[int], places: int) -> list[int]:
    """Places in proportion to the counts, by largest remainder; equal remainders by order."""
    total = sum(counts)
    exact = [count * places / total for count in counts]
    given = [int(share) for share in exact]
    by_rest = sorted(range(len(counts)), key=lambda i: (given[i] - exact[i], i))
    for i in by_rest[: places - sum(given)]:
        given[i] += 1
    return given


def _code(index: int, num_keys: int) -> str:
    """The character of an entry; the last column of a table counts ops without one."""
    return NONE if index in (-1, num_keys) else code_of(index)
