"""Every placer on every graph and machine: how far from the best known, and from the bound?

    python -m benchmarks.placers [--time-limit S] [--only TEXT,TEXT] [--placers NAME,NAME]
                                 [--out FILE.json] [--cases]

Graphs are the workload files of Tarnawski et al., where they are at hand (see WORKLOADS), with
their own devices, and the bundled samples on every machine preset with analytic costs. Placers that
search get the time limit, each alone. With --out every answer is kept and none is computed twice,
so that the table can be made in parts.
"""

import argparse
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path

import placement as pl
from benchmarks import _summary
from benchmarks._summary import AUTO, Row
from placement.core.amounts import in_unit
from placement.core.model import Model
from placement.core.problem import Problem
from placement.placers import names, placer_class

ROOT = Path(__file__).resolve().parents[1]
WORKLOADS = ROOT.parent / "shared" / "workloads"
PRESETS = ROOT / "assets" / "machines"
PIPELINED = ("onnx-inception-v2", "onnx-resnet50")
# They follow what a person wrote down.
BY_HAND = ("expert", "manual")
# Milliseconds that the authors' programs reached, one call per accelerator.
PUBLISHED_MS = {
    "latency/layer_bert24_inference": {"greedy": 100.219, "max-load split": 108.031},
    "latency/layer_gnmt_inference": {"greedy": 268.5, "max-load split": 244.331},
    "latency/op_bert3_inference": {"greedy": 416.204, "max-load split": 414.441},
    "latency/op_resnet50_inference": {"greedy": 839.536, "max-load split": 1123.653},
}


@dataclass(frozen=True)
class Case:
    """A graph on a machine with an objective; `problem` makes it when it is its turn."""

    name: str
    problem: Callable[[], Problem]


def cases() -> Iterator[Case]:
    """Workloads by objective, then samples by machine."""
    if not WORKLOADS.is_dir():
        print(f"There are no workload files in {WORKLOADS}; they are left out.")
    for objective in ("throughput", "latency"):
        for path in sorted((WORKLOADS / objective).glob("*.json")):
            yield Case(f"{objective}/{path.stem}", partial(_workload, path, objective))
    for sample in (row["name"] for row in pl.samples()):
        for preset in sorted(path.stem for path in PRESETS.glob("*.json")):
            for objective in ("latency", "throughput")[: 1 + (sample in PIPELINED)]:
                name = f"{sample}/{preset}/{objective}"
                yield Case(name, partial(_on_preset, sample, preset, objective))


@cache
def _opened(source: str) -> Model:
    return pl.load(source)


def _workload(path: Path, objective: str) -> Problem:
    model = _opened(str(path))
    assert model.problem is not None
    return pl.make_problem(model, model.problem.machine, objective=objective)


def _on_preset(sample: str, preset: str, objective: str) -> Problem:
    return pl.make_problem(_opened(sample), pl.machine(preset), objective=objective)


def kind_of(name: str) -> str:
    """What a placer is to the summary."""
    placer = placer_class(name)
    if name == AUTO:
        return AUTO
    return "search" if placer.all_cores else "exact" if placer.exact else "constructive"


def knows(name: str, problem: Problem) -> bool:
    placer = placer_class(name)
    return problem.execution in placer.executions and problem.objective in placer.objectives


def row(case: str, name: str, problem: Problem, time_limit_s: float) -> Row:
    """The placer's answer on a case; a refusal or a broken rule is an error."""
    limit_s = time_limit_s if placer_class(name).all_cores else None
    try:
        placed = pl.place(problem, name, time_limit_s=limit_s)
    except ValueError as error:
        return Row(case, name, kind_of(name), math.inf, 0.0, 0.0, str(error))
    value, bound = (in_unit(x, placed.unit) for x in (placed.value, placed.lower_bound))
    if placed.violations:
        return Row(case, name, kind_of(name), math.inf, bound, placed.seconds, placed.violations[0])
    return Row(case, name, kind_of(name), value, bound, placed.seconds)


def run(options: argparse.Namespace, known: list[Row]) -> Iterator[Row]:
    """Rows that are not known yet."""
    done = {(r.case, r.placer) for r in known}
    chosen = [n for n in options.placers.split(",") if n] or [
        n for n in names() if n not in BY_HAND
    ]
    parts = [part for part in options.only.split(",") if part]
    for case in cases():
        open_ = [name for name in chosen if (case.name, name) not in done]
        if not open_ or (parts and not any(part in case.name for part in parts)):
            continue
        problem = case.problem()
        for name in open_:
            if knows(name, problem):
                yield row(case.name, name, problem, options.time_limit)


def load(out: Path | None) -> list[Row]:
    if out is None or not out.exists():
        return []
    return [Row(**{**r, "value": _number(r["value"])}) for r in json.loads(out.read_text())]


def save(out: Path, rows: list[Row]) -> None:
    """Replace the file whole, so that a run that is stopped leaves a good one."""
    content = [{**asdict(r), "value": None if math.isinf(r.value) else r.value} for r in rows]
    fresh = out.with_suffix(".part")
    fresh.write_text(json.dumps(content, indent=1, allow_nan=False) + "\n")
    fresh.replace(out)


def _number(value: float | None) -> float:
    return math.inf if value is None else value


def summary(rows: list[Row]) -> str:
    """The table per placer, and the account of the automatic one."""
    text = [
        "| placer | cases | failed | median gap to best | worst | median gap to bound | seconds |",
        "|---|---|---|---|---|---|---|",
    ]
    text += [
        f"| {line.placer} | {line.num_cases} | {line.num_failed} | {line.median_gap:.1%} |"
        f" {line.worst_gap:.1%} | {line.median_bound_gap:.1%} | {line.median_s:.3f} |"
        for line in _summary.lines(rows)
    ]
    worse = _summary.worse_than_constructive(rows)
    apart = _summary.not_close_to_single(rows)
    above = _summary.above_references(rows, PUBLISHED_MS)
    longest_s = max((r.seconds for r in rows if r.kind == AUTO), default=math.nan)
    text += [
        "",
        f"auto worse than the best constructive placer: {_listed(worse)}",
        f"auto within 2 % of the best single placer: {_summary.share_close(rows):.1%} of cases,"
        f" but not: {_listed(apart)}",
        f"auto, median gap to its own bound: {_summary.own_bound_gap(rows):.1%}",
        f"auto above a published value: {_listed(above)}",
        f"auto, longest run: {longest_s:.2f} s",
    ]
    return "\n".join(text)


def _listed(texts: list[str]) -> str:
    return "; ".join(texts) or "none"


def case_table(rows: list[Row]) -> str:
    """Best value and bound of each case, who found it first, and what auto found."""
    text = ["| case | best | by | auto | bound |", "|---|---|---|---|---|"]
    for case, found in _summary.by_case(rows).items():
        best = min(found, key=lambda r: r.value)
        auto = next((f"{r.value:.6g}" for r in found if r.kind == AUTO), "")
        bound = max(r.bound for r in found)
        text.append(f"| {case} | {best.value:.6g} | {best.placer} | {auto} | {bound:.6g} |")
    return "\n".join(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--time-limit", type=float, default=5.0, help="seconds of each search")
    parser.add_argument("--only", default="", help="cases whose names hold one of these texts")
    parser.add_argument("--placers", default="", help="names, by comma; all without it")
    parser.add_argument("--out", type=Path, help="keep the rows here, and go on from them")
    parser.add_argument("--cases", action="store_true", help="a table of all cases as well")
    options = parser.parse_args()
    rows = load(options.out)
    for found in run(options, rows):
        rows.append(found)
        print(f"{found.case:50} {found.placer:16} {found.value:12.6g} {found.error}", flush=True)
        if options.out:
            save(options.out, rows)
    print()
    if options.cases:
        print(case_table(rows), end="\n\n")
    print(summary(rows))


if __name__ == "__main__":
    main()
