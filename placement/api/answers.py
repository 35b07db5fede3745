"""What the verbs print: values of the pipeline as the JSON objects of the command line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from placement.core.amounts import in_unit
from placement.core.violations import violations
from placement.schedule.simulated import simulate
from placement.simulator.critical_path import critical_path
from placement.simulator.throughput import bottleneck, loads_s

if TYPE_CHECKING:
    from placement.api.place import Placed
    from placement.core.machine import Machine
    from placement.core.placement import Placement
    from placement.core.problem import Problem
    from placement.core.profile import Profile
    from placement.core.timeline import Span
    from placement.schedule.simulated import Simulated
    from profiling.execution.execute import Run
    from profiling.execution.stream import Stream


def of_machine(machine: Machine) -> dict[str, Any]:
    return {
        "name": machine.name,
        "devices": [
            {
                "name": d.name,
                "kind": d.kind,
                "runtime": d.runtime,
                "provider": d.provider,
                "memory_bytes": d.memory_bytes,
                "cores": d.cores,
                "label": d.label,
            }
            for d in machine.devices
        ],
        "links": [
            {"src": i.src, "dst": i.dst, "latency_s": i.latency_s, "bytes_per_s": i.bytes_per_s}
            for i in machine.links
        ],
        "fingerprint": machine.fingerprint,
        "emulated": machine.emulated,
        "note": machine.note,
    }


def of_profile(profile: Profile, seconds: float) -> dict[str, Any]:
    return {
        "fingerprint": profile.graph,
        "machine": profile.machine.name,
        "devices": [d.name for d in profile.machine.devices],
        "num_kernels": len(profile.kernels.ops),
        "seconds": seconds,
        "coverage": profile.coverage,
        "step_s": dict(zip((d.name for d in profile.machine.devices), profile.step_s, strict=True)),
        "sum_of_kernels_s": {
            d.name: None
            if any(row[i] is None for row in profile.compute_s)
            else sum(row[i] or 0.0 for row in profile.compute_s)
            for i, d in enumerate(profile.machine.devices)
        },
        "all_cores_s": profile.all_cores_s,
        "contention": profile.contention,
        "measured_at": profile.measured_at,
    }


def of_placed(placed: Placed) -> dict[str, Any]:
    return {
        "placer": placed.placer,
        "objective": placed.objective,
        "value": in_unit(placed.value, placed.unit),
        "unit": placed.unit,
        "costs": placed.costs,
        "lower_bound": in_unit(placed.lower_bound, placed.unit),
        "proven_optimal": placed.proven_optimal,
        "violations": list(placed.violations),
        "seconds": placed.seconds,
        "account": placed.account,
        "problem": placed.problem,
        "ops_per_device": placed.placement.ops_per_device(),
        "num_segments": placed.num_segments,
    }


def of_path(path: tuple[Span, ...]) -> list[dict[str, Any]]:
    return [
        {"kind": s.kind, "name": s.name, "device": s.device, "start_s": s.start_s, "end_s": s.end_s}
        for s in path
    ]


def of_simulated(simulated: Simulated, costs: str) -> dict[str, Any]:
    return {
        "value": in_unit(simulated.value, simulated.unit),
        "unit": simulated.unit,
        "costs": costs,
        "critical_path": of_path(simulated.critical_path),
        "busy_s": dict(simulated.busy_s),
        "transfer_bytes": simulated.transfer_bytes,
        "peak_bytes": dict(simulated.peak_bytes),
        "num_segments": len(simulated.schedule.segments),
    }


def of_prediction(problem: Problem, placement: Placement) -> dict[str, Any]:
    """What a placement is predicted to do, and what it breaks."""
    simulated = simulate(problem, placement)
    answer = of_simulated(simulated, problem.costs.origin)
    broken = violations(problem, simulated.schedule, placement.calls)
    return answer | {"violations": list(broken)}


def of_run(predicted: Simulated, measured: Run, placement: Placement, costs: str) -> dict[str, Any]:
    return {
        "step_s": _spread(measured.step_s),
        "steps_s": list(measured.step_s),
        "predicted_s": predicted.timeline.step_s,
        "error": predicted.timeline.step_s / measured.median_s - 1.0 if measured.median_s else None,
        "costs": costs,
        "baseline_s": dict(measured.baseline_s),
        "all_cores_s": measured.all_cores_s,
        "outputs_match": measured.outputs_match,
        "max_abs_diff": measured.max_abs_diff,
        "skipped_outputs_reason": measured.skipped_outputs_reason,
        "requested_devices": dict(measured.requested_devices),
        "actual_devices": dict(measured.actual_devices),
        "fallbacks": list(measured.fallbacks),
        "critical_path": of_path(critical_path(measured.timeline)),
        "busy_s": measured.timeline.busy_s(),
        "num_segments": len(predicted.schedule.segments),
        "transfer_bytes": measured.transfer_bytes,
        "peak_bytes": dict(measured.peak_bytes),
        "emulated": measured.timeline.origin == "emulated",
        "ops_per_device": placement.ops_per_device(),
        "timeline": measured.timeline.to_json(),
        "predicted_timeline": predicted.timeline.to_json(),
    }


def of_stream(
    problem: Problem, predicted: Simulated, measured: Stream, placement: Placement
) -> dict[str, Any]:
    """A pipeline's answer: that of a run, whose step is the time from one output to the next.

    `error` is about those seconds; `loads_s` is predicted and `busy_s` measured work per sample.
    """
    whole = of_run(predicted, measured.run, placement, problem.costs.origin)
    between_s = measured.run.median_s
    return whole | {
        "samples_per_s": measured.samples_per_s,
        "predicted_samples_per_s": 1.0 / predicted.value if predicted.value else None,
        "bottleneck": measured.bottleneck,
        "predicted_bottleneck": bottleneck(problem, predicted.schedule, placement.replicas),
        "predicted_s": predicted.value,
        "error": predicted.value / between_s - 1.0 if between_s else None,
        "latency_s": _spread(measured.latency_s),
        "predicted_latency_s": predicted.timeline.step_s,
        "loads_s": loads_s(problem, predicted.schedule, placement.replicas),
        "busy_s": dict(measured.busy_s),
        "samples": measured.num_samples,
        "outputs_compared": measured.num_outputs,
        "depth": measured.depth,
        "stages": measured.num_stages,
        "bit_equal": measured.bit_equal,
        "distinct_inputs": measured.distinct_inputs,
        "distinct_outputs": measured.distinct_outputs,
        "cancelled": measured.cancelled,
        "critical_path": [],
    }


def _spread(seconds: Sequence[float]) -> dict[str, float]:
    p5_s, median_s, p95_s = np.percentile(seconds, (5, 50, 95)).tolist()
    return {"median": median_s, "p5": p5_s, "p95": p95_s}
