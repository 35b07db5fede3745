"""What the verbs tell, made from the values of the pipeline."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from msgspec.structs import asdict

from placement.advice.drift import drift, profiled_core_to_core_s
from placement.api.results.machines import (
    DeviceResult,
    LinkResult,
    MachineResult,
    ProfileResult,
    RateResult,
)
from placement.api.results.placing import (
    CompareRow,
    FinalRow,
    FinalsResult,
    PlaceResult,
    SimulateResult,
    StepResult,
    StepsResult,
)
from placement.api.results.running import RefinedResult, RunResult, StreamResult
from placement.api.results.training import BetweenSteps, Losses, Move, Stay, TrainResult
from placement.api.results.value import Spread, Value
from placement.api.wording import refining_in_words
from placement.core.amounts import in_unit
from placement.core.profile import runs_of
from placement.core.violations import violations
from placement.costs.offload import streamed_bytes
from placement.costs.roofline import waits_s
from placement.drawing.names import names_of
from placement.schedule.simulated import simulate
from placement.search.steps import placed_ops
from placement.simulator.critical_path import critical_path
from placement.simulator.throughput import bottleneck, loads_s

if TYPE_CHECKING:
    from placement.advice.refining import Refined
    from placement.api.finals import Final, Finals
    from placement.api.place import Placed
    from placement.api.steps import Steps
    from placement.core.machine import Machine
    from placement.core.placement import Placement
    from placement.core.problem import Problem
    from placement.core.profile import Profile
    from placement.schedule.simulated import Simulated
    from profiling.execution.execute import Run
    from profiling.execution.stream import Stream
    from profiling.training.loop import Trained

T = TypeVar("T", bound=Value)


def _result(kind: type[T], value: object, /, **others: Any) -> T:
    """A result whose fields are those that the value has by the same names, and others."""
    same = (name for name in kind.__struct_fields__ if hasattr(value, name))
    return kind(**{**{name: getattr(value, name) for name in same}, **others})


def of_machine(machine: Machine) -> MachineResult:
    from profiling import backends

    return _result(
        MachineResult,
        machine,
        devices=tuple(
            _result(DeviceResult, d, rates=tuple(_result(RateResult, r) for r in d.rates))
            for d in machine.devices
        ),
        links=tuple(
            _result(
                LinkResult,
                link,
                card=link.card or None,
                send_overhead=link.send_overhead or None,
                receive_overhead=link.receive_overhead or None,
            )
            for link in machine.links
        ),
        emulated=backends.emulated(machine.devices),
    )


def of_profile(profile: Profile, seconds: float) -> ProfileResult:
    names = tuple(d.name for d in profile.machine.devices)
    sums_s = (
        None if any(s is None for s in column) else sum(s or 0.0 for s in column)
        for column in (tuple(row[i] for row in profile.compute_s) for i in range(len(names)))
    )
    return _result(
        ProfileResult,
        profile,
        fingerprint=profile.graph,
        machine=profile.machine.name,
        devices=names,
        num_kernels=len(profile.kernels.ops),
        seconds=seconds,
        step_s=dict(zip(names, profile.step_s, strict=True)),
        sum_of_kernels_s=dict(zip(names, sums_s, strict=True)),
        refined_by=tuple(map(refining_in_words, runs_of(profile))) or None,
    )


def of_refined(found: Refined, steps_s: tuple[float, float]) -> RefinedResult:
    """What a refinement comes to, with a step predicted before and after it."""
    refinement = found.profile.refined_by
    assert refinement is not None
    before_s, after_s = steps_s
    return _result(
        RefinedResult,
        found,
        runs=len(refinement.runs),
        strength=refinement.strength,
        before_s=before_s,
        after_s=after_s,
    )


def of_placed(placed: Placed) -> PlaceResult:
    finals = None if placed.finals is None else of_finals(placed.finals)
    return _result(
        PlaceResult,
        placed,
        finals=finals,
        measured_s=None if finals is None else finals.rows[0].measured_s,
        value=in_unit(placed.value, placed.unit),
        range=_range_in(placed.range_s, placed.unit),
        lower_bound=in_unit(placed.lower_bound, placed.unit),
        ops_per_device=placed.placement.ops_per_device(),
        placement=None,
    )


def of_steps(found: Steps) -> StepsResult:
    problem = found.problem
    names = names_of(problem.graph)
    return _result(
        StepsResult,
        found,
        unit=problem.unit,
        devices=tuple(device.name for device in problem.machine.devices),
        steps=tuple(
            _result(StepResult, step, device_of=placed_ops(problem, step)) for step in found.steps
        ),
        called={op.name: names.of(op.name) for op in problem.graph.ops if names.is_made(op.name)},
    )


def of_finals(finals: Finals) -> FinalsResult:
    """What was measured of each, the winner first, then the fastest; those not measured last."""
    won = finals.winner
    others = sorted((e for e in finals.entries if e is not won), key=lambda e: e.median_s)
    return FinalsResult(
        rows=tuple(map(_final_row, (won, *others))),
        is_certain=finals.is_certain,
        machine=won.machine,
        load=finals.load,
        emulated=finals.is_emulated,
    )


def _final_row(entry: Final) -> FinalRow:
    from profiling.measuring.racing import median_interval

    limits = median_interval(entry.turn_s) if entry.turn_s else (-math.inf, math.inf)
    low_s, high_s = (limit if math.isfinite(limit) else None for limit in limits)
    return FinalRow(
        name=entry.name,
        predicted_s=entry.predicted_s,
        measured_s=entry.median_s if entry.turn_s else None,
        low_s=low_s,
        high_s=high_s,
        turns=len(entry.turn_s),
        left=entry.left,
        placement=entry.placement,
    )


def of_compared(placed: Placed) -> CompareRow:
    """A row of a comparison with its placement, which was not measured."""
    found = of_placed(placed)
    gap = found.value / found.lower_bound - 1.0 if found.lower_bound > 0 else None
    return _result(CompareRow, found, gap=gap, placement=placed.placement)


def of_prediction(problem: Problem, placement: Placement) -> SimulateResult:
    """What a placement is predicted to do, and what it breaks."""
    simulated = simulate(problem, placement)
    return _result(
        SimulateResult,
        simulated,
        value=in_unit(simulated.value, simulated.unit),
        range=_range_in(simulated.range_s, simulated.unit),
        costs=problem.costs.origin,
        streamed_bytes=streamed_bytes(problem, placement) or None,
        waits_s=waits_s(problem, placement),
        num_segments=len(simulated.schedule.segments),
        violations=violations(problem, simulated.schedule, placement.calls),
    )


def of_run(
    problem: Problem,
    predicted: Simulated,
    measured: Run,
    placement: Placement,
    profile: Profile | None = None,
) -> RunResult:
    """A live run beside its prediction, and beside what the profile measured of the model alone."""
    return _result(
        RunResult,
        measured,
        step_s=_spread(measured.step_s),
        steps_s=measured.step_s,
        predicted_s=predicted.timeline.step_s,
        predicted_range_s=predicted.range_s,
        error=_error(predicted.timeline.step_s, measured.median_s),
        drift=None
        if measured.timeline.origin == "emulated"
        else drift(profile, measured.baseline_s),
        profiled_core_to_core_s=profiled_core_to_core_s(problem, predicted.schedule),
        costs=problem.costs.origin,
        lanes_note=measured.lanes_note or None,
        outputs_note=measured.outputs_note or None,
        critical_path=critical_path(measured.timeline),
        busy_s=measured.timeline.busy_s(),
        num_segments=len(predicted.schedule.segments),
        emulated=measured.timeline.origin == "emulated",
        ops_per_device=placement.ops_per_device(),
        predicted_timeline=predicted.timeline,
        tokens_per_s=predicted.tokens and predicted.tokens.per_s(measured.median_s),
        predicted_tokens_per_s=predicted.tokens_per_s,
        first_token_s=predicted.tokens and predicted.tokens.first_s(measured.timeline.step_s),
        predicted_first_token_s=predicted.first_token_s,
    )


def of_stream(
    problem: Problem,
    predicted: Simulated,
    measured: Stream,
    placement: Placement,
    profile: Profile | None = None,
) -> StreamResult:
    """A live pipeline beside its prediction, as `of_run` for single steps."""
    whole = asdict(of_run(problem, predicted, measured.run, placement, profile))
    differing = {
        "predicted_s": predicted.value,
        "error": _error(predicted.value, measured.run.median_s),
        "busy_s": measured.busy_s,
        "critical_path": (),
    }
    return _result(
        StreamResult,
        measured,
        **{**whole, **differing},
        predicted_samples_per_s=1.0 / predicted.value if predicted.value else None,
        predicted_bottleneck=bottleneck(problem, predicted.schedule, placement.replicas),
        latency_s=_spread(measured.latency_s),
        predicted_latency_s=predicted.timeline.step_s,
        loads_s=loads_s(problem, predicted.schedule, placement.replicas),
        samples=measured.num_samples,
        outputs_compared=measured.num_outputs,
        stages=measured.num_stages,
    )


def of_training(
    problem: Problem, predicted: Simulated, trained: Trained, adjusted: bool
) -> TrainResult:
    from profiling import backends
    from profiling.training.loop import move_to_json

    losses = trained.losses
    return TrainResult(
        step_s=_spread(trained.step_s or (0.0,)),
        steps=len(trained.step_s),
        losses=Losses(first=losses[0], last=losses[-1]) if losses else None,
        predicted_s=predicted.timeline.step_s,
        predicted_final_s=trained.predicted_s[-1] if trained.predicted_s else None,
        adjusted=adjusted,
        moves=tuple(
            Move(**{**move_to_json(move), "ops": move.ops_moved}) for move in trained.moves
        ),
        stays=tuple(_result(Stay, stay) for stay in trained.stays),
        between_steps_s=BetweenSteps(
            probes=trained.probe_s, searching=trained.solve_s, switching=trained.switch_s
        ),
        costs=problem.costs.origin,
        emulated=backends.emulated(problem.machine.devices),
        ops_per_device=trained.placement.ops_per_device(),
        num_segments=len(trained.schedule.segments),
        steps_s=trained.step_s,
        all_losses=losses,
        predicted_steps_s=trained.predicted_s,
    )


def _range_in(range_s: tuple[float, float] | None, unit: str) -> tuple[float, float] | None:
    return None if range_s is None else (in_unit(range_s[0], unit), in_unit(range_s[1], unit))


def _error(predicted_s: float, measured_s: float) -> float | None:
    return predicted_s / measured_s - 1.0 if measured_s else None


def _spread(seconds: Sequence[float]) -> Spread:
    p5_s, median_s, p95_s = np.percentile(seconds, (5, 50, 95)).tolist()
    return Spread(median=median_s, p5=p5_s, p95=p95_s)
