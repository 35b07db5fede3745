"""Results of placing, comparing, simulating, changed conditions and a method's steps."""

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta, structs

from placement.api.results.value import (
    MOST_ROWS,
    MOST_STEPS,
    RATES,
    Amount,
    AmountOf,
    ByPart,
    Count,
    Counts,
    Groups,
    Number,
    Path,
    Range,
    Text,
    Texts,
    Value,
    require_unit,
)
from placement.core.load import Load
from placement.core.objective import Objective
from placement.core.placement import Placement
from placement.costs.what_if import ConditionRows
from placement.search.steps import Question, Table


class FinalRow(Value, frozen=True, kw_only=True):
    """A placement that was measured against others, by seconds of its turns.

    `low_s` and `high_s` hold the median in 95 of 100 cases, None after too few turns; `left` says
    why it was out before the end, after its last turn.
    """

    UNLESS_TOLD = frozenset({"placement"})

    name: Text
    predicted_s: Amount | None
    measured_s: Amount | None
    low_s: Amount | None = None
    high_s: Amount | None = None
    turns: Count = 0
    left: Text = ""
    placement: Placement | None = None


class FinalsResult(Value, frozen=True, kw_only=True):
    """Finalists that ran turn by turn, the winner first, and whether it is certain to be one.

    `machine` names the machine of the winner where it is another one than that of the rest.
    """

    UNLESS_TOLD = frozenset({"load"})

    rows: Annotated[tuple[FinalRow, ...], Meta(min_length=1, max_length=MOST_ROWS)]
    is_certain: bool
    machine: Text = ""
    load: Load | None = None
    emulated: bool = False

    def without_placements(self) -> "FinalsResult":
        return structs.replace(
            self, rows=tuple(structs.replace(row, placement=None) for row in self.rows)
        )


class PlaceResult(Value, frozen=True, kw_only=True):
    """What a placer found; `value` and `lower_bound` in `unit`, `seconds` inside `place()`.

    The `range` holds what is measured of the value in nine of ten cases, where anybody can tell.

    `rules` says how loads are charged, where that is not as usual.
    `groups` has a number for each op, in the graph's order, where the placer formed groups.
    `measured_s` is the median of a placement that won against the others of `finals`.
    """

    UNLESS_TOLD = frozenset(
        {
            "objective",
            "costs",
            "rules",
            "problem",
            "groups",
            "cancelled",
            "placement",
            "measured_s",
            "finals",
            "range",
            *RATES,
        }
    )

    placer: Text = ""
    objective: Objective | None = None
    value: Amount
    range: Range | None = None
    unit: Text
    costs: Text | None = None
    rules: Text | None = None
    lower_bound: Amount = 0.0
    proven_optimal: bool = False
    violations: Texts = ()
    seconds: Amount = 0.0
    account: Text = ""
    problem: Text | None = None
    groups: Groups | None = None
    ops_per_device: Counts = {}
    num_segments: Count = 0
    cancelled: bool = False
    placement: Placement | None = None
    measured_s: Amount | None = None
    finals: FinalsResult | None = None
    tokens_per_s: Amount | None = None
    first_token_s: Amount | None = None
    waits_s: AmountOf | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require_unit(self.unit)


class StepResult(Value, frozen=True, kw_only=True):
    """A step of a method: the line of its pseudo-code, why, and what is compared and drawn.

    `device_of` has the ops that are placed, `spans` the plan so far; times are in seconds. The
    method's answer stands in the last step alone.
    """

    UNLESS_TOLD = frozenset({"question", "placement"})

    line: Count
    why: Text
    device_of: Mapping[str, str]
    focus: Texts = ()
    spans: Path = ()
    ghosts: Path = ()
    winner: int = -1
    guessed: Texts = ()
    tables: tuple[Table, ...] = ()
    question: Question | None = None
    placement: Placement | None = None


class StepsResult(Value, frozen=True, kw_only=True):
    """What a placer works out on its way to a placement, and the lines that it follows.

    `called` has the ops that sentences and tables call otherwise than their file does.
    """

    placer: Text
    pseudo_code: Texts
    unit: Text
    devices: Texts
    steps: Annotated[tuple[StepResult, ...], Meta(max_length=MOST_STEPS)]
    called: Mapping[str, str] = {}

    def __post_init__(self) -> None:
        super().__post_init__()
        require_unit(self.unit)


class CompareRow(Value, frozen=True, kw_only=True):
    """A placer among several. One that found nothing has an `error` and no `value`."""

    UNLESS_TOLD = frozenset(
        {
            "objective",
            "costs",
            "rules",
            "account",
            "problem",
            "ops_per_device",
            "num_segments",
            "placement",
            "range",
            *RATES,
        }
    )

    placer: Text
    objective: Objective | None = None
    value: Amount | None
    range: Range | None = None
    unit: Text
    costs: Text | None = None
    rules: Text | None = None
    lower_bound: Amount | None = None
    proven_optimal: bool = False
    violations: Texts = ()
    seconds: Amount | None = None
    account: Text | None = None
    problem: Text | None = None
    ops_per_device: Counts | None = None
    num_segments: Count | None = None
    gap: Number | None = None
    measured_s: Amount | None = None
    outputs_match: bool | None = None
    error: Text = ""
    placement: Placement | None = None
    tokens_per_s: Amount | None = None
    first_token_s: Amount | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require_unit(self.unit)


class CompareResult(Value, frozen=True, kw_only=True):
    """All placers that were compared; `cancelled` before all had their turn."""

    rows: Annotated[tuple[CompareRow, ...], Meta(max_length=MOST_ROWS)]
    cancelled: bool = False


class SimulateResult(Value, frozen=True, kw_only=True):
    """What a placement is predicted to do, and what it breaks."""

    UNLESS_TOLD = frozenset({"range", "streamed_bytes", *RATES})

    value: Amount
    range: Range | None = None
    unit: Text
    costs: Text
    critical_path: Path = ()
    busy_s: ByPart = {}
    transfer_bytes: Amount = 0
    peak_bytes: AmountOf = {}
    streamed_bytes: AmountOf | None = None
    num_segments: Count = 0
    violations: Texts = ()
    tokens_per_s: Amount | None = None
    first_token_s: Amount | None = None
    waits_s: AmountOf | None = None


class WhatIfPlaceResult(PlaceResult, frozen=True, kw_only=True):
    """What a placer found for a changed machine, and what that does on the machine as it is."""

    UNLESS_TOLD = PlaceResult.UNLESS_TOLD - {"cancelled"}

    what_if: ConditionRows
    unchanged: SimulateResult
    simulated: bool = True


class WhatIfResult(SimulateResult, frozen=True, kw_only=True):
    """What a placement would do on a changed machine, and what it does on the machine as it is."""

    what_if: ConditionRows
    unchanged: SimulateResult
    simulated: bool = True
    cancelled: bool = False
