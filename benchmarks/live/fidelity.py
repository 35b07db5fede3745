"""How good are predictions on networks that nothing was fitted to? Live, two one-core lanes.

    python -m benchmarks.live.fidelity [--json] [--rounds N] [--seed N] [--out ROWS] [MODEL ...]
    python -m benchmarks.live.fidelity --again ROWS [--picture PNG]

For each model: each lane alone, the whole CPU as one device, HEFT, `auto`, moves as by hand, and
random placements that change the device rarely to often. Steps run turn by turn in one process,
the profile comes right before them, a run of the whole CPU, whose threads try on, after them.
Models may be ONNX or PyTorch, files or samples.
Without any: all bundled ONNX networks and six that are built here; `drawn-N` is the network that
seed N draws (`_fidelity/drawn.py`), which nobody chose. The error is predicted /
measured median - 1. "Drift removed" is the absolute error of all but the lanes alone, once
predictions are scaled by what these take beside their prediction: that is by how much the computer
has changed since the profile. Turns during which the other hardware thread of a core was busy are
made anew, as in a run, where that is seldom. Where cores are elsewhere than when the model was
measured ("core_to_core_ns" in a row), or shared in most turns ("beside"), which a run says, all of
it is measured anew, as a run advises, and the first rows stand apart. "Disturbed" is the share of
its profile that others may have disturbed. Rank correlation is taken over placements whose measured
intervals (95 % of the median) do not overlap; "in range" are the measured medians in the range that
is shown beside a prediction. `--again` reads rows that were written.
Files are opened in this process, not in a confined one: give it those of people you trust.
"""

import json
import math
import statistics
import sys
import tempfile
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import placement as pl
from benchmarks._fidelity.placements import KINDS, schedules
from benchmarks._shared import turns
from benchmarks._shared.figures import named, table
from placement import loaders
from placement.advice.drift import have_moved
from placement.core.load import Load
from placement.core.model import Model
from placement.schedule.simulated import Simulated, simulate_schedule
from profiling.execution.execute import compiled_for
from profiling.measuring.lock import measuring
from profiling.measuring.siblings import siblings

# Steps of the whole CPU for each round of the others.
WHOLE_STEPS = 4
# So often a network is measured anew because its cores were shared in more than this share of all
# turns, or had moved since its profile.
ANEW, MOSTLY = 2, 0.5
COLUMNS = {
    "model": "{model}",
    "placement": "{placement}",
    "segments": "{num_segments}",
    "predicted ms": "{predicted_ms:.3g}",
    "measured ms": "{measured_ms:.3g}",
    "error": "{error:+.1%}",
}
SUMMARY = {
    "": "{what}",
    "cases": "{num}",
    "median": "{median:.1%}",
    "90th percentile": "{p90:.1%}",
    "signed median": "{signed:+.1%}",
    "drift removed (90th)": "{undrifted}",
    "in range": "{inside}",
    "rank correlation": "{spearman}",
    "best by prediction": "{chosen}",
}


def rows(model: Model, rounds: int, seed: int) -> list[dict[str, Any]]:
    lanes, whole = (pl.machine_for(model, pl.machine(spec)) for spec in ("two-lanes", "local:1"))
    problem = pl.make_problem(model, lanes, pl.profile(model, lanes, refresh=True))
    alone = pl.make_problem(model, whole, pl.profile(model, whole, refresh=True))
    cases = {name: (kind, problem, s) for kind, name, s in schedules(problem, seed)}
    whole_cpu = pl.place(alone, "single")
    cases["whole CPU"] = ("whole CPU", alone, whole_cpu.schedule)
    on_lanes = {n: s for n, (_, p, s) in cases.items() if p is problem}
    beside = siblings(lanes.devices, core_to_core_s=_core_to_core_s(problem.costs.load))
    with turns.opened(problem, compiled_for(problem, model), on_lanes) as steps:
        times_s = turns.turn_by_turn(steps, rounds, beside=beside)
    ran = pl.run(model, alone, whole_cpu.placement, steps=WHOLE_STEPS * rounds)
    times_s["whole CPU"] = list(ran.measured.step_s)
    print(
        f"{model.graph.name}: {beside.num_again} rounds more than {rounds}, because cores were"
        f" shared or moved; of what counts {beside.share or 0.0:.0%} is beside a busy sibling.",
        file=sys.stderr,
        flush=True,
    )
    apart_ns = _furthest_moved_ns(
        (_core_to_core_s(problem.costs.load), beside.core_to_core_s),
        (_core_to_core_s(alone.costs.load), _core_to_core_s(ran.measured.load)),
    )
    return [
        _row(model.graph.name, kind, name, simulate_schedule(p, s), times_s[name])
        | {
            "disturbed": p.costs.load.disturbed if p.costs.load else 1.0,
            "core_to_core_ns": apart_ns,
            "beside": beside.share,
        }
        for name, (kind, p, s) in cases.items()
    ]


def _core_to_core_s(load: Load | None) -> float | None:
    return None if load is None else load.core_to_core_s


def _furthest_moved_ns(*pairs: tuple[float | None, float | None]) -> list[float] | None:
    """Core-to-core latencies when something was measured and when it ran, where most differs."""
    known = [[round(then_s * 1e9, 1), round(s * 1e9, 1)] for then_s, s in pairs if then_s and s]
    return max(known, key=lambda pair: max(pair) / min(pair), default=None)


def _row(
    model: str,
    kind: str,
    placement: str,
    predicted: Simulated,
    steps_s: Sequence[float],
) -> dict[str, Any]:
    measured_s = statistics.median(steps_s)
    low_s, high_s = interval_s(steps_s)
    range_s = predicted.range_s or (math.nan, math.nan)
    return {
        "model": model,
        "kind": kind,
        "placement": placement,
        "num_segments": len(predicted.schedule.segments),
        "predicted_ms": predicted.timeline.step_s * 1e3,
        "range_ms": [limit_s * 1e3 for limit_s in range_s],
        "measured_ms": measured_s * 1e3,
        "low_ms": low_s * 1e3,
        "high_ms": high_s * 1e3,
        "error": predicted.timeline.step_s / measured_s - 1.0,
    }


def interval_s(steps_s: Sequence[float]) -> tuple[float, float]:
    """The 95 % interval of the median by order statistics."""
    ordered, num = sorted(steps_s), len(steps_s)
    reach = 0.98 * num**0.5
    low, high = int(num / 2 - reach), int(num / 2 + reach)
    return ordered[max(0, low)], ordered[min(num - 1, high)]


def spearman(found: Sequence[Mapping[str, Any]]) -> tuple[float, int]:
    """Rank correlation of predicted and measured over placements that are told apart, and how many.

    From the fastest on, a placement counts whose interval begins after that of the last one ends.
    """
    apart: list[Mapping[str, Any]] = []
    for row in sorted(found, key=lambda r: float(r["measured_ms"])):
        if not apart or row["low_ms"] > apart[-1]["high_ms"]:
            apart.append(row)
    if len(apart) < 2:
        return float("nan"), len(apart)
    predicted = np.argsort(np.argsort([r["predicted_ms"] for r in apart]))
    return float(np.corrcoef(predicted, np.arange(len(apart)))[0, 1]), len(apart)


def is_doubted(row: Mapping[str, Any]) -> bool:
    """Whether a run says that its cores were elsewhere than when the model was measured, or mostly
    shared: by each other, on one physical core, or with others.
    """
    moved = have_moved(*(row.get("core_to_core_ns") or (None, None)))
    return moved or (row.get("beside") or 0.0) > MOSTLY


def line_of(what: str, found: Sequence[Mapping[str, Any]], *, ranked: bool) -> dict[str, Any]:
    errors = np.array([r["error"] for r in found])
    median, p90 = np.percentile(np.abs(errors), (50, 90)).tolist()
    rank, num_apart = spearman(found)
    chosen = min(found, key=lambda r: float(r["predicted_ms"]))["measured_ms"]
    best = min(float(r["measured_ms"]) for r in found)
    return {
        "what": what,
        "num": len(found),
        "median": median,
        "p90": p90,
        "signed": float(np.median(errors)),
        "undrifted": _undrifted(found),
        "inside": _inside(found),
        "spearman": f"{rank:.2f} of {num_apart}" if ranked else "",
        "chosen": f"{chosen / best - 1.0:+.1%}" if ranked else "",
    }


def with_drift(found: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows with what the lanes alone of their network take beside what they are predicted to."""
    alone = dict[str, list[float]]()
    for row in found:
        if row["kind"] == "alone":
            alone.setdefault(_turn(row), []).append(row["measured_ms"] / row["predicted_ms"])
    return [{**row, "drift": statistics.median(alone[_turn(row)])} for row in found]


def _turn(row: Mapping[str, Any]) -> str:
    """What tells a network that was measured anew from the first time."""
    return f"{row['model']} {row.get('core_to_core_ns')} {row.get('beside')}"


def _undrifted(found: Sequence[Mapping[str, Any]]) -> str:
    """Median and 90th percentile of errors without what the computer has drifted."""
    errors = [
        abs(row["predicted_ms"] * row["drift"] / row["measured_ms"] - 1.0)
        for row in found
        if row["kind"] != "alone"
    ]
    return "{:.1%} ({:.1%})".format(*np.percentile(errors, (50, 90))) if errors else ""


def _inside(found: Sequence[Mapping[str, Any]]) -> str:
    """Of rows with a range the share whose measured median lies in it."""
    ranged = [(*r["range_ms"], r["measured_ms"]) for r in found if "range_ms" in r]
    share = sum(low <= ms <= high for low, high, ms in ranged) / max(1, len(ranged))
    return f"{share:.0%}" if ranged else ""


def summary(found: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """All cases but those that their own run doubts, then these, then by kind of placement and by
    network.
    """
    found = with_drift(found)
    doubted = [row for row in found if is_doubted(row)]
    found = [row for row in found if not is_doubted(row)]
    parts = (("all", found), ("cores moved or shared", doubted))
    lines = [line_of(name, own, ranked=False) for name, own in parts if own]
    for key, names in (("kind", KINDS), ("model", dict.fromkeys(r["model"] for r in found))):
        for name in names:
            own = [r for r in found if r[key] == name]
            if own:
                lines.append(line_of(str(name), own, ranked=key == "model"))
    return lines


def models(names: Iterable[str], folder: Path) -> Iterable[Model]:
    """Models that are written here, drawn by chance (`drawn-N`), in files, or bundled."""
    from benchmarks._fidelity import drawn
    from benchmarks._fidelity.networks import WRITTEN

    for name in names:
        if seeded := drawn.NAME.fullmatch(name):
            path = drawn.drawn(int(seeded[1]), folder)
        else:
            path = WRITTEN[name](folder) if name in WRITTEN else Path(name)
        yield loaders.load(str(path)) if path.is_file() else pl.load(name)


def main() -> None:
    from benchmarks._fidelity.networks import WRITTEN

    defaults = {"rounds": 15, "seed": 0, "out": "", "again": "", "picture": ""}
    options = named(__doc__, [*turns.samples(), *WRITTEN], **defaults)
    if options.again:
        written = Path(options.again).read_text(encoding="utf-8").splitlines()
        _tell([json.loads(row) for row in written], options)
        return
    found: list[dict[str, Any]] = []
    with measuring("fidelity"), tempfile.TemporaryDirectory() as folder:
        for model in models(options.names, Path(folder)):
            for _ in range(1 + ANEW):
                found += (new := rows(model, options.rounds, options.seed))
                if options.out:
                    with Path(options.out).open("a", encoding="utf-8") as file:
                        file.writelines(json.dumps(row) + "\n" for row in new)
                if not options.json:
                    print(f"{table(COLUMNS, new)}\n", flush=True)
                if not is_doubted(new[0]):
                    break
    _tell(found, options)


def _tell(found: Sequence[Mapping[str, Any]], options: Namespace) -> None:
    lines = summary(found)
    print(json.dumps({"rows": found, "summary": lines}) if options.json else table(SUMMARY, lines))
    if options.picture:
        from benchmarks._fidelity.scatter import picture

        Path(options.picture).write_bytes(picture([row for row in found if not is_doubted(row)]))


if __name__ == "__main__":
    main()
