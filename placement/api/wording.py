"""What results come to in words, the same on the command line and on the pages."""

from placement.api.results import FinalRow, FinalsResult, RunResult, Spread, StreamResult
from placement.core.formatting import counted, percent, seconds

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
    if finals.emulated:
        said = f"{won.name} is the fastest by the virtual clock; nothing was measured on hardware."
    if finals.machine:
        said += (
            " One device with all cores took less than every placement on lanes: this placement is"
            f" for the machine {finals.machine} (--lanes 1)."
        )
    if finals.load is not None and finals.load.is_busy:
        said += f" Meanwhile {finals.load.words}, which met all alike; the times are longer for it."
    return said


def range_in_words(limits: tuple[float, float], unit: str = "s") -> str:
    """Between what a value is measured in nine of ten cases."""
    return f"{seconds(limits[0], unit)} to {seconds(limits[1], unit)} in 9 of 10 cases"


# Steps further apart than this make a median that says little.
SCATTERED = 1.5
DOUBT = (
    "Trust none of these times, nor what they say of the prediction and of single devices; run"
    " again when it is quiet."
)
SLOWER_BY = 0.1


def is_scattered(step_s: Spread) -> bool:
    return 0.0 < SCATTERED * step_s.p5 < step_s.p95


def doubts(result: RunResult) -> str:
    """Why the times of a run are not to be trusted, in sentences; empty where they are.

    What others compute is told apart from a placement whose own steps differ. Samples of a pipeline
    come out unevenly by nature.
    """
    step_s, load = result.step_s, result.load
    if load is not None and load.is_busy:
        said = f"While this was measured {load.words}. {DOUBT}"
    elif is_scattered(step_s) and not isinstance(result, StreamResult):
        between = f"The steps took between {seconds(step_s.p5)} and {seconds(step_s.p95)}"
        if load is None or not load.is_known:
            return f"{between}: something else kept this computer busy meanwhile. {DOUBT}"
        said = (
            f"{between}, though nothing else computed here: this placement's own steps differ so"
            " much. Their median says little; more steps say more."
        )
    else:
        said = ""
    if load is not None and load.slowdown > 1 + SLOWER_BY:
        slower = percent(load.slowdown - 1)
        said = f"{said} The computer itself became {slower} slower meanwhile.".strip()
    return said
