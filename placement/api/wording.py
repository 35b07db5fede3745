"""What results come to in words, the same on the command line and on the pages."""

from placement.api.results import FinalRow, FinalsResult
from placement.core.formatting import counted, seconds

FINALS = ("Placement", "Predicted", "Measured", "95 % interval", "Turns", "Out")


def finals_cells(row: FinalRow) -> tuple[str, ...]:
    """A finalist as texts under the heads of `FINALS`."""
    limits = ""
    if row.low_s is not None and row.high_s is not None:
        limits = f"{seconds(row.low_s)} to {seconds(row.high_s)}"
    return (
        row.name,
        "" if row.predicted_s is None else seconds(row.predicted_s),
        "" if row.measured_s is None else seconds(row.measured_s),
        limits,
        str(row.turns),
        _left(row),
    )


def _left(row: FinalRow) -> str:
    """When and why it was out."""
    if not row.left:
        return ""
    return f"{row.left} after {counted(row.turns, 'turn')}" if row.turns else row.left


def finals_verdict(finals: FinalsResult) -> str:
    """Who won, how sure that is, and what machine the answer is for."""
    won = finals.rows[0]
    if won.measured_s is None:
        return "Nothing was measured; the answer is the best by prediction."
    sure = "and that is certain" if finals.is_certain else "but more turns might say otherwise"
    said = f"{won.name} is the fastest measured, {sure}."
    if finals.machine:
        said += (
            " One device with all cores beats every placement on lanes here: the placement is for"
            f" the machine {finals.machine} (--lanes 1)."
        )
    return said
