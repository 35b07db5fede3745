"""What the verbs give: one frozen value per result, with the checks of what is read from files.

msgspec decodes them (`core/decoding.py`) from what a worker printed, from the files of a project
and from files of strangers alike, so limits stand in the types. Fields that older files lack have
defaults. `to_json` is the way back; its keys are those of the command line.
"""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Annotated, Any, ClassVar

from msgspec import Meta, Struct, structs
from msgspec.structs import force_setattr

from placement.core.amounts import MOST, UNIT_S
from placement.core.decoding import decode, shown
from placement.core.load import Load
from placement.core.machine import MAX_DEVICES
from placement.core.objective import Objective
from placement.core.placement import Placement
from placement.core.schedule import Schedule
from placement.core.timeline import Observed, Span, Timeline, require_complete
from placement.costs.what_if import ConditionRows
from placement.search.steps import Column, Question, Table

MOST_STEPS, MOST_SPANS, MOST_ROWS = 1_000_000, 200_000, 10_000
# Devices and links that a step keeps busy.
MOST_PARTS = 100_000
LONGEST_TEXT = 4_000
REMEDY = "run it again"

Number = Annotated[float, Meta(ge=-MOST, le=MOST)]
Amount = Annotated[float, Meta(ge=0, le=MOST)]
Positive = Annotated[float, Meta(gt=0, le=MOST)]
Count = Annotated[int, Meta(ge=0, le=2**53)]
Text = Annotated[str, Meta(max_length=LONGEST_TEXT)]
Texts = Annotated[tuple[Text, ...], Meta(max_length=MOST_ROWS)]
Groups = Annotated[tuple[Count, ...], Meta(max_length=MOST_STEPS)]
Range = tuple[Amount, Amount]
Amounts = Annotated[tuple[Amount, ...], Meta(max_length=MOST_STEPS)]
ByDevice = Meta(max_length=MAX_DEVICES)
ByPart = Annotated[Mapping[str, Amount], Meta(max_length=MOST_PARTS)]
Counts = Annotated[Mapping[str, Count], ByDevice]
AmountOf = Annotated[Mapping[str, Amount], ByDevice]
Names = Annotated[Mapping[str, Text | None], ByDevice]
Path = Annotated[tuple[Span, ...], Meta(max_length=MOST_SPANS)]


# What is told of steps of generating text, and of estimates, alone.
RATES = frozenset({"tokens_per_s", "first_token_s", "waits_s"})


class Value(Struct, frozen=True, kw_only=True):
    """A value that is told in JSON; `UNLESS_TOLD` names fields that stand there only if they say
    something."""

    UNLESS_TOLD: ClassVar[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if type(value) is dict:
                force_setattr(self, name, MappingProxyType(value))

    def to_json(self) -> dict[str, Any]:
        pairs = zip(self.__struct_fields__, self.__struct_encode_fields__, strict=True)
        told = {key: getattr(self, name) for name, key in pairs if self._is_told(name)}
        return {key: to_json(value) for key, value in told.items()}

    def _is_told(self, name: str) -> bool:
        value = getattr(self, name)
        return name not in self.UNLESS_TOLD or not (value is None or value is False)


class Spread(Value, frozen=True, kw_only=True):
    """Seconds of many steps: the middle, and what nine in ten are between."""

    median: Amount
    p5: Amount
    p95: Amount


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

    `groups` has a number for each op, in the graph's order, where the placer formed groups.
    `measured_s` is the median of a placement that won against the others of `finals`.
    """

    UNLESS_TOLD = frozenset(
        {
            "objective",
            "costs",
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
    tables: tuple[Table, ...] = ()
    question: Question | None = None
    placement: Placement | None = None


class StepsResult(Value, frozen=True, kw_only=True):
    """What a placer works out on its way to a placement, and the lines that it follows."""

    placer: Text
    pseudo_code: Texts
    unit: Text
    devices: Texts
    steps: Annotated[tuple[StepResult, ...], Meta(max_length=MOST_STEPS)]

    def __post_init__(self) -> None:
        super().__post_init__()
        require_unit(self.unit)


class CompareRow(Value, frozen=True, kw_only=True):
    """A placer among several. One that found nothing has an `error` and no `value`."""

    UNLESS_TOLD = frozenset(
        {
            "objective",
            "costs",
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


class RefinedResult(Value, frozen=True, kw_only=True):
    """What a profile's refinement by live runs comes to: of the placement that ran last, predicted
    without and with it, and of every placement by the runs of all others.

    `runs` is how many there are, `strength` how far the profile follows them. `held_out` errors
    are means without and with the others' runs, None while there is one placement alone.
    """

    runs: Count
    strength: Amount
    before_s: Amount
    after_s: Amount
    held_out_before: Amount | None = None
    held_out_after: Amount | None = None


class RunResult(Value, frozen=True, kw_only=True):
    """A live run beside its prediction; `error` is predicted / measured median - 1.

    `drift` is what the model alone takes now beside what the costs say that it takes: above 1 where
    the computer has become slower since it was measured, below where it has become faster.
    """

    UNLESS_TOLD = frozenset(
        {
            "placement",
            "schedule",
            "predicted_range_s",
            "drift",
            "load",
            "lanes_note",
            "observed",
            "refined",
            "refined_note",
            "predicted_tokens_per_s",
            "predicted_first_token_s",
            *RATES,
        }
    )

    step_s: Spread
    steps_s: Amounts = ()
    predicted_s: Amount
    predicted_range_s: Range | None = None
    error: Number | None
    drift: Positive | None = None
    costs: Text = ""
    baseline_s: Annotated[Mapping[str, Positive | None], ByDevice]
    all_cores_s: Positive | None = None
    outputs_match: bool | None
    max_abs_diff: Number | None = None
    skipped_outputs_reason: Text = ""
    requested_devices: Names = {}
    actual_devices: Names = {}
    fallbacks: Texts = ()
    lanes_note: Text | None = None
    critical_path: Path
    busy_s: ByPart
    num_segments: Count
    transfer_bytes: Count = 0
    peak_bytes: Counts = {}
    emulated: bool = False
    ops_per_device: Counts = {}
    timeline: Timeline
    predicted_timeline: Timeline
    placement: Placement | None = None
    schedule: Schedule | None = None
    load: Load | None = None
    observed: Observed | None = None
    refined: RefinedResult | None = None
    refined_note: Text | None = None
    tokens_per_s: Amount | None = None
    predicted_tokens_per_s: Amount | None = None
    first_token_s: Amount | None = None
    predicted_first_token_s: Amount | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.emulated:
            force_setattr(self, "timeline", replace(self.timeline, origin="emulated"))

    @property
    def verb(self) -> str:
        """How the figures came about: nothing is measured on a virtual clock."""
        return "Emulated" if self.emulated else "Measured"


class StreamResult(RunResult, frozen=True, kw_only=True):
    """A pipeline of samples: a run whose step is the time from one output to the next.

    `error` is about those seconds; `loads_s` is predicted and `busy_s` measured work per sample.
    """

    busy_s: AmountOf
    samples_per_s: Amount
    predicted_samples_per_s: Positive | None
    bottleneck: Text
    predicted_bottleneck: Text
    latency_s: Spread
    predicted_latency_s: Amount
    loads_s: ByPart
    samples: Count
    outputs_compared: Count
    depth: Count
    stages: Count
    bit_equal: bool | None = None
    distinct_inputs: Count = 0
    distinct_outputs: Count = 0
    cancelled: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bottleneck not in self.busy_s:
            raise ValueError(f"The bottleneck {shown(self.bottleneck)} was never busy; {REMEDY}.")


class Move(Value, frozen=True, kw_only=True):
    """Another placement took over before a step; `ops` are (op, from, to)."""

    step: Count
    reason: Text
    ops_moved: Count
    bytes_moved: Count
    predicted_before_s: Amount | None
    predicted_after_s: Amount | None
    solve_s: Amount
    switch_s: Amount
    ops: tuple[tuple[str, str, str], ...]


class Stay(Value, frozen=True, kw_only=True):
    """A change of speed after which no other placement was worth moving to."""

    step: Count
    reason: Text


class Losses(Value, frozen=True, kw_only=True):
    """The loss of the first and of the last step, None where it is no number."""

    first: float | None
    last: float | None


class BetweenSteps(Value, frozen=True, kw_only=True):
    """Seconds that were spent between the steps."""

    probes: Amount
    searching: Amount
    switching: Amount

    @property
    def sum_s(self) -> float:
        return self.probes + self.searching + self.switching


class TrainResult(Value, frozen=True, kw_only=True):
    """A training run; `losses` is None where nothing was computed, and so is one that is none."""

    UNLESS_TOLD = frozenset({"placement", "final_placement"})

    step_s: Spread
    steps: Count
    losses: Losses | None
    predicted_s: Amount | None
    predicted_final_s: Amount | None
    adjusted: bool
    moves: tuple[Move, ...]
    stays: tuple[Stay, ...]
    between_steps_s: BetweenSteps
    costs: Text = ""
    emulated: bool = False
    ops_per_device: Counts = {}
    num_segments: Count = 0
    steps_s: Amounts
    all_losses: Annotated[tuple[float | None, ...], Meta(max_length=MOST_STEPS)]
    predicted_steps_s: Annotated[tuple[Amount | None, ...], Meta(max_length=MOST_STEPS)]
    cancelled: bool = False
    placement: Placement | None = None
    final_placement: Placement | None = None

    @property
    def verb(self) -> str:
        return "Emulated" if self.emulated else "Measured"


class ProfileResult(Value, frozen=True, kw_only=True):
    """What was measured of a model on a machine, by device in declared order.

    `refined_by` names the live runs that have refined it since, by placement and time.
    """

    UNLESS_TOLD = frozenset({"load", "refined_by"})

    fingerprint: Text
    machine: Text
    devices: Texts
    num_kernels: Count
    seconds: Amount
    coverage: Number
    step_s: Mapping[str, Amount | None] = {}
    sum_of_kernels_s: Mapping[str, Amount | None] = {}
    all_cores_s: Amount | None = None
    contention: Amount = 0.0
    measured_at: Text = ""
    load: Load | None = None
    refined_by: Texts | None = None


class ExportResult(Value, frozen=True, kw_only=True):
    """A file that was written, and what to know of it."""

    format: Text
    path: Text
    note: Text = ""


class RateResult(Value, frozen=True, kw_only=True):
    """Arithmetic per second in numbers of one type."""

    dtype: Text
    flops_per_s: Amount


class DeviceResult(Value, frozen=True, kw_only=True):
    """A device as the command line lists it."""

    name: Text
    kind: Text
    runtime: Text
    provider: Text
    memory_bytes: Count | None
    cores: Count | None
    label: Text
    rates: tuple[RateResult, ...] = ()
    memory: Text = ""


class LinkResult(Value, frozen=True, kw_only=True):
    """What carries tensors from one device to another, and how fast."""

    src: Text
    dst: Text
    latency_s: Amount
    bytes_per_s: Amount


class MachineResult(Value, frozen=True, kw_only=True):
    """A machine with what is found out about it, in declared order."""

    name: Text
    devices: Annotated[tuple[DeviceResult, ...], ByDevice]
    links: tuple[LinkResult, ...]
    fingerprint: Text
    emulated: bool
    note: Text
    sources: tuple[Text, ...] = ()


Result = (
    PlaceResult
    | CompareResult
    | SimulateResult
    | WhatIfResult
    | RunResult
    | TrainResult
    | ProfileResult
    | ExportResult
)


def result_from_json(verb: str, content: Any) -> Result:
    """What a verb printed, as its value; a ValueError says what of it is wrong."""
    if verb == "run":
        return run_from_json(content)
    if verb == "what-if":
        if "placer" in content:
            return decode(content, WhatIfPlaceResult, remedy=REMEDY)
        return decode(content, WhatIfResult, remedy=REMEDY)
    kind = _KINDS.get(verb)
    if kind is None:
        raise ValueError(f"The verb {shown(verb)} gives no result that is known here.")
    found: Result = decode(content, kind, remedy=REMEDY)
    return found


_KINDS: dict[str, type[Any]] = {
    "place": PlaceResult,
    "compare": CompareResult,
    "simulate": SimulateResult,
    "train": TrainResult,
    "profile": ProfileResult,
    "export": ExportResult,
}


def run_from_json(content: Any) -> RunResult:
    """A run, or a pipeline of samples, whose timelines can be shown."""
    streams = isinstance(content, Mapping) and "samples_per_s" in content
    found = decode(content, StreamResult if streams else RunResult, remedy=REMEDY)
    for name in ("timeline", "predicted_timeline"):
        timeline = getattr(found, name)
        if len(timeline.spans) > MOST_SPANS:
            raise ValueError(f"The {name} has more than {MOST_SPANS} spans; {REMEDY}.")
        require_complete(timeline)
    if found.observed is not None and len(found.observed.computes) > MOST_SPANS:
        raise ValueError(f"More than {MOST_SPANS} segments were observed; {REMEDY}.")
    return found


def require_unit(unit: str) -> None:
    if unit not in UNIT_S:
        raise ValueError(f"Times are in {shown(unit)}; use one of {', '.join(UNIT_S)}.")


def to_json(value: Any) -> Any:
    """A value, or a field of one, as a JSON object."""
    if isinstance(value, Span):
        # Timelines write their spans whole; on a path they say where and when.
        return {key: getattr(value, key) for key in _STEP_OF_PATH}
    if hasattr(value, "to_json"):
        return value.to_json()
    if isinstance(value, Table | Column | Question):
        return {key: to_json(each) for key, each in vars(value).items()}
    if isinstance(value, Mapping):
        return {key: to_json(each) for key, each in value.items()}
    return [to_json(each) for each in value] if isinstance(value, list | tuple) else value


_STEP_OF_PATH = ("kind", "name", "device", "start_s", "end_s")
