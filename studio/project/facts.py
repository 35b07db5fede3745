"""The list of a shelf: its placements, and what is kept of the result of each beside it."""

from collections.abc import Mapping

from msgspec import Struct

from placement.api.results.value import Count, Counts, Number, Text, Texts, require_unit
from placement.core.objective import Objective
from placement.costs.what_if import ConditionRows


class Facts(Struct, frozen=True, kw_only=True, omit_defaults=True, rename={"start": "from"}):
    """What a method told, or where a placement came from; None for what nobody told.

    `rules` says in words how loads were charged, where that was not as usual.

    `value` and `lower_bound` are in `unit`, `problem` is the fingerprint of what was solved and
    `job` who solved it. `start` names the placement that another one was made from. What was found
    for a what-if machine has its sliders in `what_if`, and `unchanged_value` without them;
    `made_for` says them in words where such a placement was copied to the real machine.
    """

    value: Number | None = None
    unit: Text | None = None
    costs: Text | None = None
    rules: Text | None = None
    objective: Objective | None = None
    lower_bound: Number | None = None
    proven_optimal: bool | None = None
    seconds: Number | None = None
    gap: Number | None = None
    measured_s: Number | None = None
    num_selected: Count | None = None
    num_pinned: Count | None = None
    num_segments: Count | None = None
    ops_per_device: Counts | None = None
    account: Text | None = None
    start: Text | None = None
    placer: Text | None = None
    made_for: Text | None = None
    violations: Texts | None = None
    cancelled: bool | None = None
    outputs_match: bool | None = None
    simulated: bool | None = None
    problem: Text | None = None
    job: Text | None = None
    unchanged_value: Number | None = None
    what_if: ConditionRows | None = None

    def __post_init__(self) -> None:
        require_unit(self.unit or "s")


HAND, FILE, TRAINING = "hand", "file", "training"


class Origin(Struct, frozen=True):
    """Where a placement comes from, in words, and what happened to one that is another by now.

    What a method made needs no word for where it comes from, because it is called like the method.
    """

    words: str
    changed: str


METHOD = Origin("", "placed again by its method")
ORIGINS: Mapping[str, Origin] = {
    HAND: Origin("made by hand", "edited"),
    FILE: Origin("from a file", "opened from another file"),
    TRAINING: Origin("from training", "trained again"),
}


def origin_of(made_by: str) -> Origin:
    """Where placements come from that were made by a placer of this name, or by something else."""
    return ORIGINS.get(made_by, METHOD)


class Named(Struct, frozen=True):
    """One entry: `made_by` is a placer's name, "hand", "file" for what somebody brought, or
    "training"; `facts` what its placer reported."""

    name: str
    file: str
    made_by: str
    facts: Facts

    @property
    def by_hand(self) -> bool:
        return self.made_by == HAND

    @property
    def origin(self) -> Origin:
        return origin_of(self.made_by)


class Index(Struct, frozen=True):
    """What stands on a shelf, which of it is on the screen, and what was removed, newest last."""

    current: str = ""
    items: tuple[Named, ...] = ()
    removed: tuple[Named, ...] = ()
