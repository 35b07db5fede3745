"""What results come to in words, the same on the command line and on the pages."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from placement.advice.drift import have_moved
from placement.api.results.placing import FinalRow, FinalsResult
from placement.api.results.running import RefinedResult, RunResult, StreamResult
from placement.api.results.value import Spread
from placement.core.formatting import counted, percent, seconds, token_rate

if TYPE_CHECKING:
    from placement.advice.differences import Difference, Explanation
    from placement.core.profile import RefiningRun

# Computers that have changed by less are as they were.
SAME_SPEED = 0.02
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


# Others that disturb more than this share of a race may decide it.
DECIDING = 0.1
AGAIN = "Measure again when the computer is quiet before you trust this order."


def is_in_doubt(finals: FinalsResult) -> bool:
    """Whether others computed so much during a race that its order may be theirs."""
    return finals.load is not None and finals.load.is_busy and finals.load.disturbed > DECIDING


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
        said += f" Meanwhile {finals.load.words}: times are longer for it"
        said += f", those on several devices most. {AGAIN}" if is_in_doubt(finals) else "."
    return said


def range_in_words(limits: tuple[float, float], unit: str = "s") -> str:
    """Between what a value is measured in nine of ten cases."""
    return f"{seconds(limits[0], unit)} to {seconds(limits[1], unit)} in 9 of 10 cases"


def drift_in_words(result: RunResult) -> str:
    """Whether the computer itself has changed since it was measured, and what that explains."""
    return " ".join(filter(None, (_speed_in_words(result), _moved_in_words(result))))


def _moved_in_words(result: RunResult) -> str:
    """Whether the cores are in other places than they were; empty where they are not."""
    then_s, now_s = result.profiled_core_to_core_s, result.load and result.load.core_to_core_s
    if not (then_s and now_s and have_moved(then_s, now_s)):
        return ""
    return (
        f"A cache line takes {now_s * 1e9:.0f} ns from core to core, and took"
        f" {then_s * 1e9:.0f} ns when the model was measured: the cores are not where they were"
        " then (a host may move those of a virtual computer). What several cores compute together"
        " takes another time now than predicted, what one computes does not; measure the model"
        " anew."
    )


def _speed_in_words(result: RunResult) -> str:
    if result.drift is None:
        return ""
    off, sample = result.drift - 1.0, " a sample" * isinstance(result, StreamResult)
    if abs(off) < SAME_SPEED:
        return "The model alone takes what it took when it was measured."
    return (
        f"This computer is {percent(abs(off))} {'slower' if off > 0 else 'faster'} now than when"
        " the model was measured, by the model alone on its devices: at this speed"
        f" {seconds(result.predicted_s * result.drift)}{sample} were to be expected."
    )


DIFFERENCES = (
    "Segment",
    "On",
    "Predicted",
    "Measured",
    "Waits (predicted, measured)",
    "Difference",
    "Explains",
    "Note",
)
# Of the segments of a run those that are shown.
MOST_DIFFERENCES = 12


def differences_cells(row: Difference, name: str = "") -> tuple[str, ...]:
    """A segment as texts under the heads of `DIFFERENCES`, by its own name or a better one."""
    return (
        name or row.span.name,
        row.span.device,
        seconds(row.predicted_s),
        seconds(row.measured_s),
        f"{seconds(row.waits[0])}, {seconds(row.waits[1])}",
        _signed(row.seconds),
        _signed(row.explains_s),
        "within scatter" if row.is_noise else "",
    )


def middle_step(steps_s: Sequence[float]) -> str:
    """Which of a run's steps its timeline shows: of an even number none takes the median."""
    is_even = len(steps_s) > 1 and len(steps_s) % 2 == 0
    return "a typical step (of two the shorter)" if is_even else "a typical step"


def explanation_of(result: RunResult) -> Explanation | None:
    """Which segments explain how far a run is off; None where it says nothing of its segments."""
    from placement.advice.differences import explained

    if result.observed is None or len(result.observed.computes) < 2:
        return None
    try:
        return explained(
            result.predicted_timeline,
            result.observed,
            result.step_s.median,
            result.predicted_range_s,
        )
    except ValueError:
        # A file from elsewhere may put together what does not belong together.
        return None


def differences_verdict(found: Explanation) -> str:
    """What the segments of a run say about the difference of its step to the prediction."""
    if found.is_tie:
        return (
            "The step was measured within the range of its prediction; single segments that differ"
            " say no more."
        )
    off = f"The step took {seconds(abs(found.step_s))} {_more(found.step_s)} than predicted."
    all_of_them = (
        " Predicted with the measured times and waits of all segments it would be"
        f" {seconds(abs(found.together_s))} {_more(found.together_s)}."
    )
    if all(row.is_noise for row in found.rows):
        return f"{off} No single segment explains it: each is off by less than its times scatter."
    return off + all_of_them


def refining_in_words(run: RefiningRun) -> str:
    """Which run refines a profile."""
    return f"{run.placement or 'a placement'}, {run.measured_at}"


def refined_in_words(result: RefinedResult, measured_s: float) -> str:
    """What a refinement changes, and how far it can be trusted."""
    by = f"Refined by {counted(result.runs, 'live run')}"
    if not result.strength:
        return (
            f"The runs so far ({result.runs}) do not make predictions better of placements that are"
            " held out, so the times stay as they were measured."
        )
    said = (
        f"{by}: predicted {seconds(result.before_s)} before, {seconds(result.after_s)} now,"
        f" measured {seconds(measured_s)}."
    )
    before, after = result.held_out_before, result.held_out_after
    if before is None or after is None:
        return (
            f"{said} Whether other placements are predicted better, only runs of others can show."
        )
    return (
        f"{said} Held out, each placement is predicted by the runs of the others within"
        f" {percent(after)} (mean), against {percent(before)} without them."
    )


def _more(seconds_more: float) -> str:
    return "longer" if seconds_more >= 0 else "less"


def _signed(value: float) -> str:
    return f"{'+' if value > 0 else ''}{seconds(value)}"


def tokens_in_words(tokens_per_s: float | None, first_token_s: float | None) -> str:
    """What a step of generating text comes to for whoever waits for it; empty for other steps."""
    said = [] if first_token_s is None else [f"time to first token {seconds(first_token_s)}"]
    return ", ".join([*said, *([] if tokens_per_s is None else [token_rate(tokens_per_s)])])


# From this share of the computing time on it is told what launching and streaming take.
TOLD_SHARE = 0.1


def bound_in_words(waits_s: Mapping[str, float] | None) -> str:
    """What estimated kernels wait for once they are launched, and what launching and streaming take
    if it is much; empty where times are measured."""
    if not waits_s or sum(waits_s.values()) <= 0:
        return ""
    arithmetic_s, memory_s = waits_s["arithmetic"], waits_s["memory"]
    waited_for = "memory bandwidth" if memory_s >= arithmetic_s else "arithmetic"
    share = max(arithmetic_s, memory_s) / max(arithmetic_s + memory_s, 1e-300)
    said = f"bound by {waited_for} for {percent(share)} of what kernels compute"
    whole_s = sum(waits_s.values())
    for key, what in (("launch", "launching them takes"), ("link", "weights that stream take")):
        if waits_s[key] >= TOLD_SHARE * whole_s:
            said += f", and {what} {percent(waits_s[key] / whole_s)} of the computing time"
    return said


# A median says little whose limits (95 %) are further apart than this; where single steps are not
# known, one of steps that are further apart than that.
UNSURE, SCATTERED = 1.1, 1.5
FEWEST_STEPS = 10
DOUBT = (
    "Trust none of these times, nor what they say of the prediction and of single devices; run"
    " again when it is quiet."
)
SLOWER_BY = 0.1


def is_scattered(step_s: Spread, steps_s: Sequence[float] = ()) -> bool:
    """Whether steps differ so much that their median says little.

    A few that were disturbed among many change no median.

    >>> is_scattered(Spread(median=1.0, p5=1.0, p95=2.0), [1.0] * 18 + [2.0] * 2)
    False
    """
    if len(steps_s) < FEWEST_STEPS:
        return 0.0 < SCATTERED * step_s.p5 < step_s.p95
    # Order statistics: the median is between those whose ranks are two deviations from the middle.
    ordered, off = sorted(steps_s), 0.98 * math.sqrt(len(steps_s))
    low = ordered[max(0, math.floor(len(ordered) / 2 - off))]
    high = ordered[min(len(ordered) - 1, math.ceil(len(ordered) / 2 + off))]
    return 0.0 < UNSURE * low < high


def doubts(result: RunResult) -> str:
    """Why the times of a run are not to be trusted, in sentences; empty where they are.

    What others compute is told apart from a placement whose own steps differ. Samples of a pipeline
    come out unevenly by nature.
    """
    step_s, load = result.step_s, result.load
    if load is not None and load.is_busy:
        said = f"While this was measured {load.words}. {DOUBT}"
    elif not isinstance(result, StreamResult) and is_scattered(step_s, result.steps_s):
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
