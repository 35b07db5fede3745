"""Results of live runs: steps one by one, and pipelines of samples."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

from msgspec.structs import force_setattr

from placement.api.results.value import (
    MOST_SPANS,
    RATES,
    REMEDY,
    Amount,
    AmountOf,
    Amounts,
    ByDevice,
    ByPart,
    Count,
    Counts,
    Names,
    Number,
    Path,
    Positive,
    Range,
    Spread,
    Text,
    Texts,
    Value,
)
from placement.core.decoding import decode, shown
from placement.core.load import Load
from placement.core.placement import Placement
from placement.core.schedule import Schedule
from placement.core.timeline import Observed, Timeline, require_complete


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
    `profiled_core_to_core_s` is the core-to-core latency when the costs were measured, to be held
    against that of `load`; None where one core computes.
    """

    UNLESS_TOLD = frozenset(
        {
            "placement",
            "schedule",
            "predicted_range_s",
            "drift",
            "profiled_core_to_core_s",
            "load",
            "lanes_note",
            "outputs_note",
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
    profiled_core_to_core_s: Positive | None = None
    costs: Text = ""
    baseline_s: Annotated[Mapping[str, Positive | None], ByDevice]
    all_cores_s: Positive | None = None
    outputs_match: bool | None
    max_abs_diff: Number | None = None
    skipped_outputs_reason: Text = ""
    outputs_note: Text | None = None
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
