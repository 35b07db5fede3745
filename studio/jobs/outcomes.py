"""What becomes of jobs that try things out: several methods, or a what-if machine."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from msgspec.structs import replace

from placement.api.results.placing import CompareRow, PlaceResult, WhatIfPlaceResult
from placement.core import formatting
from placement.core.amounts import in_unit
from placement.core.decoding import decode
from placement.core.objective import Objective
from studio.jobs import jobs
from studio.leaders import leaders, listed
from studio.project import placements
from studio.project.facts import HAND, METHOD, ORIGINS, TRAINING, Facts, Origin
from studio.project.placements import Shelf
from studio.project.store import Project

# How much is kept of the name of the placement that a training run began with.
LONGEST_START = 60
_NOT_FACTS = ("placement", "unchanged", "groups", "finals")
BY_TIMES = {"analytic": " by estimated times", "measured": " by measured times"}


def predicted(found: PlaceResult | CompareRow) -> str:
    """The value that a method reported, and by which times it is."""
    value = "nothing" if found.value is None else formatting.stated(found.value, found.unit)
    return f"predicted {value}{BY_TIMES.get(found.costs or '', '')}"


def on_this_machine(result: PlaceResult) -> PlaceResult:
    """A result as it is for the machine that was asked for: the best there, where another won."""
    finals = result.finals
    if finals is None or not finals.machine:
        return result
    others = (row for row in finals.rows[1:] if row.placement is not None)
    best = next((row for row in others if row.predicted_s is not None), None)
    if best is None or best.placement is None:
        raise ValueError("No placement on this machine was measured.")
    return replace(
        result,
        placement=best.placement,
        value=in_unit(best.predicted_s or 0.0, result.unit),
        lower_bound=0.0,
        proven_optimal=False,
        problem=None,
        measured_s=best.measured_s,
        ops_per_device=best.placement.ops_per_device(),
    )


def whole_cpu_in_words(result: PlaceResult) -> str:
    """What it means that one device with all cores was the fastest."""
    measured = "" if result.measured_s is None else f", {formatting.seconds(result.measured_s)}"
    return f"The whole CPU as one device is faster still{measured}."


def what_if_shelf(project: Path, shelf: str) -> Shelf:
    """Placements made for what-if machines: apart from those of the real one, never mixed in."""
    return Shelf(project / "what_if" / shelf)


@dataclass(frozen=True)
class Known:
    """What a placement of before is predicted to take, in seconds of the goal, and its origin."""

    value_s: float
    origin: Origin


NONE_KNOWN: Mapping[str, Known] = MappingProxyType({})


def rows_taken_over(
    project: Project, job: jobs.Job, known: Mapping[str, Known] = NONE_KNOWN
) -> str:
    """Put every row of a comparison on the shelf, however it ended; what to tell about it.

    The placement on the screen stays there. `known` has what was there before by name, where it is
    of the same problem.
    """
    shelf = Shelf(project.folder / "placements" / job.about.shelf)
    rows = job.all(CompareRow)
    found = [row for row in rows if row.placement is not None]
    for row in found:
        _keep(project, shelf, row, job.id)
    project.change()
    of = len(job.about.placers)
    whole = job.status == "done" and not getattr(job.result, "cancelled", False)
    ended = "" if whole else f" Stopped after {len(rows)} of {of}; they are kept."
    if job.status not in ("done", "cancelled"):
        ended = f" It ended early; the reason stands in the tab Board.{ended}"
    if not found:
        return f"No method found a placement.{ended}"
    number = formatting.counted(len(found), "method")
    num_by_hand = sum(before.origin == ORIGINS[HAND] for before in known.values())
    if num_by_hand:
        number += f" and {formatting.counted(num_by_hand, 'placement')} made by hand"
    return f"Compared {number}: {best_in_words(found, known)}.{ended}"


def best_in_words(found: Sequence[CompareRow], known: Mapping[str, Known] = NONE_KNOWN) -> str:
    """Which is best of some methods' rows and of what was there before; a part of a sentence."""
    allowed = [row for row in found if not row.violations] or found
    of_rows = {row.placer: _value(row) for row in allowed}
    rows = {row.placer: row for row in allowed}
    best = rows[leaders(of_rows)[0]]
    unit = best.unit
    before = {_apart(name, of_rows): there for name, there in known.items()}
    values = {name: in_unit(there.value_s, unit) for name, there in before.items()}
    among = {**values, **({} if best.violations else of_rows)} or of_rows
    not_found = [name for name, there in before.items() if there.origin != METHOD]
    first, *equal = leaders(among, not_found)
    origin = f", {before[first].origin.words}" if first in not_found else ""
    also = f"; as good: {listed(equal)}" if equal else ""
    if best.placer in (first, *equal):
        return f"the best is {first}{origin}, {predicted(best)}{also}"
    value = formatting.stated(among[first], unit)
    return (
        f"the best is {first}{origin}, predicted {value}{also};"
        f" the best method is {best.placer}, {predicted(best)}"
    )


def _apart(name: str, rows: Collection[str]) -> str:
    """A placement's name that no method of the comparison bears."""
    return f"{name} of before" if name in rows else name


def _value(row: CompareRow) -> float:
    return math.inf if row.value is None else row.value


def _keep(project: Project, shelf: Shelf, row: CompareRow, job_id: str) -> None:
    """Add a row under its method's name, unless an earlier result there is as good.

    What is there from this very job stays. What the method found for another goal keeps its name;
    this one then says its goal.
    """
    name, facts = row.placer, facts_of(row, job_id)
    if any(i.made_by == name for i in shelf.of_job(job_id)):
        return
    earlier = next((i for i in shelf.items if i.name == name and i.made_by == name), None)
    if earlier is not None and earlier.facts.objective not in (None, row.objective):
        name = f"{name}, {(row.objective or Objective.LATENCY).goal}"
        earlier = next((i for i in shelf.items if i.name == name), None)
    if earlier is not None and _is_as_good(earlier.facts, row):
        return
    assert row.placement is not None
    placements.keep(project, shelf, name, row.placement, row.placer, facts, show=False)


def _is_as_good(facts: Facts, row: CompareRow) -> bool:
    """Whether an earlier result is of the same problem and no worse."""
    if facts.problem != row.problem or facts.violations or facts.value is None:
        return False
    return facts.value <= _value(row)


def facts_of(result: PlaceResult | CompareRow, job_id: str, **more: object) -> Facts:
    """What is kept of a method's result beside its placement, and more that is known of it."""
    told = {key: value for key, value in result.to_json().items() if key not in _NOT_FACTS}
    return decode({**told, "job": job_id, **more}, Facts)


def end_of_training_kept(project: Project, job: jobs.Job) -> str:
    """Put the placement that training ended with on the shelf, where ops moved; what to tell."""
    result = job.trained
    if result is None or not result.moves or result.final_placement is None:
        return ""
    shelf = Shelf(project.folder / "placements" / job.about.shelf)
    start = job.about.placement
    kept = shelf.of_job(job.id)
    name = kept[0].name if kept else ""
    if not kept:
        facts = Facts(start=start, objective=Objective.LATENCY, job=job.id)
        called = f"{start[:LONGEST_START]} after training"
        name = shelf.add(called, result.final_placement, TRAINING, facts, show=False, beside=True)
        project.change()
    return f" What it ended with is among the placements: {name}."


def answer_taken_over(project: Project, job: jobs.Job) -> str:
    """Put what a method found for a what-if machine on the shelf for such; what to tell."""
    result = job.result
    if job.status == "cancelled":
        return ""
    if job.status != "done" or not isinstance(result, WhatIfPlaceResult) or not result.placement:
        why = "the reason stands in the tab What if."
        return f"Placing for the what-if machine did not finish; {why}"
    shelf = what_if_shelf(project.folder, job.about.shelf)
    taken: Sequence[str] = [i.name for i in shelf.items]
    placer = job.about.placer
    number = 1 + sum(name.startswith(f"{placer} ") for name in taken)
    facts = facts_of(result, job.id, unchanged_value=result.unchanged.value)
    if not shelf.of_job(job.id):
        shelf.add(f"{placer} what-if {number}", result.placement, placer, facts)
    project.change()
    found = formatting.stated(result.value, result.unit)
    if result.cancelled:
        return f"Stopped early; the best that {placer} had found is kept: {found} (simulated)."
    return f"On the what-if machine {placer} would reach {found} (simulated)."
