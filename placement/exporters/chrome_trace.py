"""The timelines as a Chrome trace (Trace Event Format), for chrome://tracing and ui.perfetto.dev.

Each step is a process, each device and link a thread; slices are complete events ("X") in
microseconds, and arrows (flow events "s" and "f") lead from what was waited for to what waited.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from placement.drawing.gantt import KIND_WORDS
from placement.exporters._trace.tracks import Slice, Step, steps
from placement.exporters.base import Export, Exporter
from placement.files.output import write_text

MOST_KERNELS = 100


class ChromeTrace(Exporter):
    """Predicted and measured step side by side; `otherData` says what was placed."""

    name = "chrome-trace"
    title = "Chrome trace"
    summary = "the step for chrome://tracing and ui.perfetto.dev, as JSON"
    suffix = ".json"

    def export(self, export: Export, path: Path) -> None:
        events = [e for pid, step in enumerate(steps(export), 1) for e in _events(pid, step)]
        content = {
            "traceEvents": events,
            "displayTimeUnit": "ms",
            "otherData": {
                "model": export.problem.graph.name,
                "machine": export.problem.machine.name,
                "placement": export.label,
                "predicted from": export.costs,
            },
        }
        write_text(path, json.dumps(content, indent=0, allow_nan=False) + "\n")


def _events(pid: int, step: Step) -> Iterator[dict[str, Any]]:
    yield _named("process_name", pid, 0, {"name": step.title})
    yield _named("process_sort_index", pid, 0, {"sort_index": pid})
    where = {s.index: (tid, s) for tid, track in enumerate(step.tracks, 1) for s in track.slices}
    for tid, track in enumerate(step.tracks, 1):
        yield _named("thread_name", pid, tid, {"name": track.name})
        yield _named("thread_sort_index", pid, tid, {"sort_index": tid})
        for one in track.slices:
            yield _slice(pid, tid, one)
    for number, (source, target) in enumerate(step.arrows):
        yield from _flow(f"{pid}.{number}", pid, where[source], where[target])


def _slice(pid: int, tid: int, one: Slice) -> dict[str, Any]:
    facts: dict[str, Any] = {"critical path": one.critical}
    if one.kind == "transfer":
        facts["bytes"] = one.num_bytes
    if one.kernels:
        facts["ops"] = len(one.kernels)
        facts["runs"] = list(one.kernels[:MOST_KERNELS])
    return {
        "name": one.name,
        "cat": KIND_WORDS[one.kind],
        "ph": "X",
        "ts": one.start_ns / 1e3,
        "dur": (one.end_ns - one.start_ns) / 1e3,
        "pid": pid,
        "tid": tid,
        "args": facts,
    }


def _flow(
    name: str, pid: int, source: tuple[int, Slice], target: tuple[int, Slice]
) -> list[dict[str, Any]]:
    """An arrow from one slice to another: "s" inside the first, "f" bound to the second."""
    common = {"name": "data", "cat": "data", "id": name, "pid": pid}
    start = {**common, "ph": "s", "tid": source[0], "ts": source[1].start_ns / 1e3}
    end = {**common, "ph": "f", "bp": "e", "tid": target[0], "ts": target[1].start_ns / 1e3}
    return [start, end]


def _named(what: str, pid: int, tid: int, facts: dict[str, Any]) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": pid, "tid": tid, "ts": 0, "args": facts}


EXPORTER = ChromeTrace()
