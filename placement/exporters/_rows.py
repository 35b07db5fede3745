"""Rows of comma-separated values that a spreadsheet opens as text and numbers, never as formulas.

RFC 4180: lines end in CR LF, cells with commas, quotes or line ends are quoted. A cell of text that
begins like a formula gets an apostrophe before it, because names come from model files.
"""

import csv
import io
import math
from collections.abc import Iterable, Sequence

Cell = str | int | float | bool | None
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """The table as text, numbers exact, nothing for None and for times that do not exist."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow([_cell(name) for name in header])
    writer.writerows([_cell(cell) for cell in row] for row in rows)
    return text.getvalue()


def _cell(cell: Cell) -> str:
    if cell is None or (isinstance(cell, float) and not math.isfinite(cell)):
        return ""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if not isinstance(cell, str):
        return repr(cell)
    clean = cell.replace("\0", "\ufffd")
    return f"'{clean}" if clean.startswith(_FORMULA) else clean
