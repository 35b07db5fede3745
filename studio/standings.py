"""How the placements of a project stand on one problem: predicted, proven and measured.

All values are of the goal and the times that the project has now. What a method reported for
another goal, other times or another machine is not shown beside them; its placement is predicted
anew.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from placement.api.results.running import StreamResult
from placement.constraints.fusion import mended
from placement.core import formatting
from placement.core.placement import Placement
from placement.schedule.symmetry import renaming, with_names
from placement.simulator.uncertainty import is_tie
from studio import snapshot
from studio.jobs import caveats, jobs, runs
from studio.leaders import SAME, leaders
from studio.project.facts import FILE, HAND, METHOD, TRAINING, Named, origin_of
from studio.snapshot import Studio

SAME_BUT_NAMES = "the same as {} up to the names of equal devices"


@dataclass(frozen=True)
class Measured:
    """What a live run of a placement took, seconds of the goal, and how the prediction erred.

    `error` is predicted / measured - 1. `edited` says that the placement has changed since, so
    that the figure is of an earlier state of it; `emulated` that a virtual clock took the place of
    hardware; `scattered` that its steps differ so much that their median says little. `of` is what
    the placement was called that ran.
    """

    seconds: float
    error: float | None
    emulated: bool
    edited: bool
    scattered: bool = False
    of: str = ""


@dataclass(frozen=True)
class Standing:
    """One placement: seconds of the goal, the bound that no placement like it can beat, and notes.

    `bound_s` is 0 where nothing is known. `search_s` is how long its method took, None for one
    made by hand. `range_s` holds what is measured in nine of ten cases.
    """

    name: str
    made_by: str
    value_s: float
    bound_s: float
    search_s: float | None
    measured: Measured | None
    broken: tuple[str, ...]
    notes: tuple[str, ...]
    range_s: tuple[float, float] | None = None

    @property
    def gap(self) -> float | None:
        """How far above the bound it is, as a share of the bound."""
        return formatting.gap(self.value_s, self.bound_s)

    def ties_with(self, other: "Standing") -> bool:
        """Whether nobody can tell by prediction which of two placements is faster."""
        return is_tie(self.value_s, self.range_s, other.value_s, other.range_s)

    @property
    def is_best_possible(self) -> bool:
        """Whether no placement can be better, which is proven."""
        return not self.broken and self.bound_s > 0 and self.value_s <= self.bound_s * (1 + SAME)


def standings(now: Studio) -> tuple[Standing, ...]:
    """All placements of the shelf, the best first; those that break a rule come last."""
    found = runs.made_here(now)
    # Asking for the one on the screen puts a first placement on an empty shelf.
    first = now.named
    items = now.shelf.items or (first,)
    placements = {item.name: placement_of(now, item.name) for item in items}
    bounds_s = snapshot.bounds_of(now, items)
    rows = [_standing(now, i, placements[i.name], bounds_s[i.name], found) for i in items]
    allowed = {row.name: row.value_s for row in rows if not row.broken}
    best = leaders(allowed, [row.name for row in rows if origin_of(row.made_by) != METHOD])
    place = {name: number for number, name in enumerate(best)}

    def order(row: Standing) -> tuple[bool, int, float, str]:
        return bool(row.broken), place.get(row.name, len(place)), row.value_s, row.name

    rows = sorted(rows, key=order)
    same = _same_but_for_names(now, rows, placements)
    return tuple(
        replace(row, notes=(*row.notes, SAME_BUT_NAMES.format(same[row.name])))
        if row.name in same
        else row
        for row in rows
    )


def _same_but_for_names(
    now: Studio, rows: Sequence[Standing], placements: Mapping[str, Placement]
) -> dict[str, str]:
    """Rows whose placement is that of a row before but for the names of equal devices."""
    found: dict[str, str] = {}
    seen: dict[tuple[int, ...], list[str]] = {}
    for row in rows:
        placement = placements[row.name]
        # A cheap look first: equal placements have equal numbers of ops on their devices.
        alike = seen.setdefault(tuple(sorted(placement.ops_per_device().values())), [])
        for name in alike:
            new = renaming(now.pinned_problem, placements[name], placement)
            if new and with_names(placement, new).device_of == placements[name].device_of:
                found[row.name] = name
                break
        else:
            alike.append(row.name)
    return found


def placement_of(now: Studio, name: str) -> Placement:
    """A placement of the shelf with every fusion group on one device."""
    return mended(now.problem, now.shelf.read(name))


def _standing(
    now: Studio,
    item: Named,
    placement: Placement,
    bound_s: float,
    found: tuple[jobs.Job, ...],
) -> Standing:
    simulated = now.cache.simulated(now.problem, placement)
    return Standing(
        name=item.name,
        made_by=item.made_by,
        value_s=simulated.value,
        bound_s=bound_s,
        search_s=item.facts.seconds,
        measured=measured_of(item.name, placement, simulated.value, found),
        broken=now.cache.violations(now.problem, placement),
        notes=_notes(now, item),
        range_s=simulated.range_s,
    )


def _notes(now: Studio, item: Named) -> tuple[str, ...]:
    """What keeps a placement from being compared without a thought, in a few words each."""
    facts, said = item.facts, []
    if item.made_by == HAND:
        start = facts.start
        return (f"by hand, from {start}" if start else "by hand",)
    if item.made_by == FILE:
        return (item.origin.words,)
    if item.made_by == TRAINING:
        return (f"what training ended with that began with {facts.start}",)
    if facts.made_for:
        return (f"found for a what-if machine: {facts.made_for}",)
    if facts.num_selected:
        number = formatting.counted(facts.num_selected, "op")
        said.append(f"only {number} placed by it, from {facts.start}")
    if facts.objective not in (None, now.settings.objective):
        said.append("found for the other goal")
    if facts.costs not in (None, now.problem.costs.origin):
        said.append("found with other times than those of now; place again for these")
    if not said and facts.problem not in (None, now.problem.fingerprint):
        same = facts.problem == now.pinned_problem.fingerprint
        said.append("found with pins" if same else "found with other pins or times")
    return tuple(said)


def measured_of(
    name: str, placement: Placement, value_s: float, found: tuple[jobs.Job, ...]
) -> Measured | None:
    """The newest run of this very placement; failing that, of an earlier state of this name."""
    if not found:
        return None
    own = runs.of_placement(found, placement)
    job = own or next((job for job in found if job.about.placement == name), None)
    if job is None or job.ran is None:
        return None
    result = job.ran
    seconds = runs.measured_s(result)
    error = value_s / seconds - 1.0 if own and seconds else result.error
    scattered = not isinstance(result, StreamResult) and caveats.is_doubtful(result)
    of = job.about.placement
    return Measured(seconds, error, result.emulated, own is None, scattered, of)
