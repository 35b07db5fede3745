"""Finished runs in a project's file: what of a run travels, and what is believed of one.

A run is its job's facts and its result, in one JSON object. Everything in it is read into what it
should be; what is not known is left out. A run from elsewhere is marked as such, for its times are
of the computer that it was made on.
"""

import re
import time
from collections.abc import Callable, Mapping
from typing import Any

from placement.core.placement import placement_from_json
from placement.core.schedule import schedule_from_json
from placement.core.timeline import KINDS, ORIGINS, require_order
from studio.jobs import jobs
from studio.transfer import fields

MOST_SPANS = 200_000
MOST_STEPS = 100_000
_SPREAD = ("median", "p5", "p95")
_BAR = ("kind", "name", "device", "start_s", "end_s")
# No process has this number, so nobody takes the job for a living one.
NO_PROCESS = -1
_SHELF = re.compile(r"[0-9a-f]{8,64}-[0-9a-f]{8}")

Read = Callable[[Any, str], Any]


def packed(job: jobs.Job) -> dict[str, Any]:
    """What a finished run takes along."""
    return {
        "started_at": job.started_at,
        "about": dict(job.about),
        "result": dict(job.result or {}),
    }


def run(content: Any) -> dict[str, Any]:
    """A run from elsewhere, as `packed` writes it; a ValueError where it is none."""
    content = fields.row(content, "run", "result", "about", "started_at")
    result = _taken(content["result"], _STEP, _MORE)
    if "samples_per_s" in content["result"]:
        result |= _taken(content["result"], _STREAM, {})
        if result["bottleneck"] not in result["busy_s"]:
            raise ValueError(f"its bottleneck {fields.shown(result['bottleneck'])} was never busy.")
    about = _taken(content["about"], _ABOUT, _ABOUT_MORE)
    if not _SHELF.fullmatch(about["shelf"]):
        raise ValueError(f"it belongs to {fields.shown(about['shelf'])}, which is no shelf.")
    started_at = min(time.time(), fields.seconds(content["started_at"], "started_at"))
    return {"started_at": started_at, "about": about, "result": {"event": "result", **result}}


def record_of(content: Mapping[str, Any]) -> dict[str, Any]:
    """The record of a job that ended elsewhere, and whose result is known."""
    return {
        "verb": "run",
        "argv": [],
        "pid": NO_PROCESS,
        "born_at": 0.0,
        "started_at": content["started_at"],
        "about": {**content["about"], "collected": True, "imported": True},
    }


def check(
    content: Mapping[str, Any], ops_of: Mapping[str, Any], devices_of: Mapping[str, Any]
) -> None:
    """ValueError unless a run is of a shelf that came along, and of its ops and devices.

    `ops_of` has the ops by shelf; `devices_of` the devices, where the machine is known here.
    """
    shelf, result = content["about"]["shelf"], content["result"]
    if shelf not in ops_of:
        raise ValueError("a run in it is of placements that are not inside.")
    placed = result.get("placement", {}).get("device_of")
    if placed is not None and ops_of[shelf] and placed.keys() != ops_of[shelf]:
        raise ValueError("a run in it is of other ops than the placements are.")
    named = set((placed or {}).values()) | _devices(result)
    known = devices_of.get(shelf)
    if known is not None and not named <= known:
        stranger = min(named - known)
        raise ValueError(f"a run in it used {fields.shown(stranger)}, which its machine has not.")


def _devices(result: Mapping[str, Any]) -> set[str]:
    """Every device that a run names; a link names two."""
    spans = [s for key in ("timeline", "predicted_timeline") for s in result[key]["spans"]]
    names = {name for span in spans for name in span["device"].split("->")}
    tables = ("baseline_s", "requested_devices", "actual_devices")
    return names.union(*(result.get(key, {}) for key in tables))


def _taken(content: Any, needed: Mapping[str, Read], more: Mapping[str, Read]) -> dict[str, Any]:
    content = fields.row(content, "run", *needed)
    found = {name: read(content[name], name) for name, read in needed.items()}
    return found | {
        name: read(content[name], name) for name, read in more.items() if name in content
    }


def _spread(value: Any, what: str) -> dict[str, float]:
    value = fields.row(value, what, *_SPREAD)
    return {key: fields.seconds(value[key], what) for key in _SPREAD}


def _steps(value: Any, what: str) -> list[float]:
    if not isinstance(value, list) or len(value) > MOST_STEPS:
        raise ValueError(f"its {what} are no list of at most {MOST_STEPS} times.")
    return [fields.seconds(one, what) for one in value]


def _timeline(value: Any, what: str) -> dict[str, Any]:
    value = fields.row(value, what, "origin", "spans", "step_s")
    if value["origin"] not in ORIGINS:
        raise ValueError(f"its {what} is {fields.shown(value['origin'])}, which is not known.")
    spans = _spans(value["spans"], what)
    try:
        require_order([span.get("after", ()) for span in spans])
    except ValueError as error:
        raise ValueError(f"its {what} cannot be shown: {error}") from None
    return {
        "origin": value["origin"],
        "step_s": fields.seconds(value["step_s"], what),
        "peak_bytes": fields.table(fields.count)(value.get("peak_bytes", {}), what),
        "spans": spans,
    }


def _spans(value: Any, what: str) -> list[dict[str, Any]]:
    return [_span(row, what) for row in fields.rows(value, what, MOST_SPANS, *_BAR)]


def _span(value: Mapping[str, Any], what: str) -> dict[str, Any]:
    """A span of a timeline, or one of a critical path, which says less."""
    if value["kind"] not in KINDS:
        raise ValueError(f"its {what} has a bar of the kind {fields.shown(value['kind'])}.")
    found = {
        "kind": value["kind"],
        "name": fields.text(value["name"], what, fields.LONGEST_TEXT),
        "device": fields.label(value["device"], what),
        "start_s": fields.number(value["start_s"], what),
        "end_s": fields.number(value["end_s"], what),
    }
    if "after" in value:
        segment = value.get("segment", -1)
        found["segment"] = -1 if segment == -1 else fields.count(segment, what)
        found["num_bytes"] = fields.count(value.get("num_bytes", 0), what)
        if not isinstance(value["after"], list):
            raise ValueError(f"its {what} has a bar after {fields.shown(value['after'])}.")
        found["after"] = [fields.count(i, what) for i in value["after"]]
    return found


def _path(value: Any, what: str) -> list[dict[str, Any]]:
    return [{key: span[key] for key in _BAR} for span in _spans(value, what)]


def _goal(value: Any, what: str) -> str:
    if not isinstance(value, str) or value not in ("latency", "throughput"):
        raise ValueError(f"its {what} is {fields.shown(value)}, which is no goal.")
    return str(value)


_number, _positive = fields.or_none(fields.number), fields.or_none(fields.positive)
# What every run tells, what some do, and what those do that ran a pipeline of samples.
_STEP: dict[str, Read] = {
    "step_s": _spread,
    "predicted_s": fields.seconds,
    "error": _number,
    "baseline_s": fields.table(_positive),
    "outputs_match": fields.or_none(fields.truth),
    "num_segments": fields.count,
    "critical_path": _path,
    "busy_s": fields.table(fields.seconds),
    "timeline": _timeline,
    "predicted_timeline": _timeline,
}
_MORE: dict[str, Read] = {
    "steps_s": _steps,
    "all_cores_s": _positive,
    "max_abs_diff": _number,
    "skipped_outputs_reason": fields.long_text,
    "costs": fields.label,
    "requested_devices": fields.table(fields.or_none(fields.label)),
    "actual_devices": fields.table(fields.or_none(fields.label)),
    "fallbacks": fields.texts,
    "transfer_bytes": fields.count,
    "peak_bytes": fields.table(fields.count),
    "ops_per_device": fields.table(fields.count),
    "emulated": fields.truth,
    "cancelled": fields.truth,
    "bit_equal": fields.or_none(fields.truth),
    "placement": lambda value, what: placement_from_json(value).to_json(),
    "schedule": lambda value, what: schedule_from_json(value).to_json(),
}
_STREAM: dict[str, Read] = {
    "samples_per_s": fields.seconds,
    "predicted_samples_per_s": _positive,
    "bottleneck": fields.label,
    "predicted_bottleneck": fields.label,
    "latency_s": _spread,
    "predicted_latency_s": fields.seconds,
    "loads_s": fields.table(fields.seconds),
    "samples": fields.count,
    "outputs_compared": fields.count,
    "depth": fields.count,
    "stages": fields.count,
}
_ABOUT: dict[str, Read] = {"shelf": fields.label, "placement": fields.label}
_ABOUT_MORE: dict[str, Read] = {
    "devices_key": fields.label,
    "model": fields.label,
    "machine": fields.label,
    "steps": fields.count,
    "warmup": fields.count,
    "objective": _goal,
    "predicted_s": fields.seconds,
}
