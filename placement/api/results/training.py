"""The result of a training run, with its moves between steps."""

from typing import Annotated

from msgspec import Meta

from placement.api.results.value import (
    MOST_STEPS,
    Amount,
    Amounts,
    Count,
    Counts,
    Spread,
    Text,
    Value,
)
from placement.core.placement import Placement


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
