"""Finished runs in a project's file: what of a run travels, and what is believed of one.

A run is its job's facts and its result, in one JSON object, and is decoded like those of this
computer; what is not known is left out. A run from elsewhere is marked as such, for its times are
of the computer that it was made on.
"""

import time
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Annotated

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import asdict

from placement.api.results.running import RunResult, run_from_json
from placement.api.results.value import Amount, Count
from placement.core.decoding import decode, shown
from placement.core.objective import Objective
from studio.jobs import jobs
from studio.jobs.records import About, Record
from studio.transfer import schema

# No process has this number, so nobody takes the job for a living one.
NO_PROCESS = -1
Label = Annotated[str, Meta(max_length=200)]
ShelfName = Annotated[str, Meta(pattern=r"\A[0-9a-f]{8,64}-[0-9a-f]{8}\Z")]
# Names of the model, which need not be shown as they are.
NOT_SHOWN = ("placement", "schedule")


class _About(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is taken over of a run's facts: nothing that is about its computer."""

    shelf: ShelfName
    placement: Label
    devices_key: Label = ""
    model: Label = ""
    machine: Label = ""
    steps: Count = 0
    warmup: Count | None = None
    objective: Objective | None = None
    predicted_s: Amount | None = None


class _File(Struct, frozen=True):
    started_at: Amount
    about: _About
    result: dict[str, object]


class Run(Struct, frozen=True):
    """A run from elsewhere: the record of its job, which has ended, and its result."""

    record: Record
    result: RunResult


def packed(job: jobs.Job) -> dict[str, object]:
    """What a finished run takes along."""
    assert job.ran is not None
    about = msgspec.to_builtins(job.about)
    return {"started_at": job.started_at, "about": about, "result": job.ran.to_json()}


def run(content: object) -> Run:
    """A run from elsewhere, as `packed` writes it; a ValueError where it is none."""
    found = decode(content, _File, remedy="export the project again")
    told = {name: value for name, value in found.result.items() if name not in NOT_SHOWN}
    schema.require_texts([msgspec.to_builtins(found.about), told])
    about = About(**asdict(found.about), collected=True, imported=True)
    record = Record(
        verb="run",
        argv=(),
        pid=NO_PROCESS,
        born_at=0.0,
        started_at=min(time.time(), found.started_at),
        about=about,
    )
    return Run(record, run_from_json(found.result))


def check(
    run: Run, ops_of: Mapping[str, AbstractSet[str]], devices_of: Mapping[str, AbstractSet[str]]
) -> None:
    """ValueError unless a run is of a shelf that came along, and of its ops and devices.

    `ops_of` has the ops by shelf; `devices_of` the devices, where the machine is known here.
    """
    shelf, placed = run.record.about.shelf, run.result.placement
    if shelf not in ops_of:
        raise ValueError("a run in it is of placements that are not inside.")
    device_of = {} if placed is None else placed.device_of
    if placed is not None and ops_of[shelf] and device_of.keys() != ops_of[shelf]:
        raise ValueError("a run in it is of other ops than the placements are.")
    named = {*device_of.values(), *_devices(run.result)}
    known = devices_of.get(shelf)
    if known is not None and not named <= known:
        stranger = min(named - known)
        raise ValueError(f"a run in it used {shown(stranger)}, which its machine has not.")


def _devices(result: RunResult) -> set[str]:
    """Every device that a run names; a link names two."""
    spans = (*result.timeline.spans, *result.predicted_timeline.spans)
    names = {name for span in spans for name in span.device.split("->")}
    return names.union(result.baseline_s, result.requested_devices, result.actual_devices)
