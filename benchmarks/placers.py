"""Every placer on every graph and machine: how far from the best known, and from the bound?

    python -m benchmarks.placers [--time-limit S] [--only TEXT,TEXT] [--draw N] [--seed S]
                                 [--placers NAME,NAME] [--out FILE.json] [--cases]
                                 [--search-on WHERE]

Graphs are the workload files of Tarnawski et al., where they are at hand (see WORKLOADS), with
their own devices, the bundled samples on every machine preset with analytic costs, and networks
made up by chance, which nobody tuned a method for. With --draw so many of them are drawn by the
seed, for all of them take hours. Placers that search get the time limit, each alone; with
--search-on ray they search on the hosts of a cluster. With --out every answer is kept and none is
computed twice, so that the table can be made in parts.
"""

import argparse
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

import placement as pl
from benchmarks._shared import rankings
from benchmarks._shared.figures import by_name, table
from benchmarks._shared.graphs import layered
from benchmarks._shared.rankings import AUTO, SAME, Row
from placement.core.amounts import in_unit
from placement.core.model import Model
from placement.core.problem import Problem
from placement.core.verb_options import LOCAL
from placement.files.output import write_text
from placement.placers import names, placer_class

ROOT = Path(__file__).resolve().parents[1]
WORKLOADS = ROOT.parent / "shared" / "workloads"
PRESETS = ROOT / "assets" / "machines"
PIPELINED = ("onnx-inception-v2", "onnx-resnet50")
# Layers of ops that read some of the layers before: ops, devices, and what else is made of them.
MADE_UP: dict[str, dict[str, Any]] = {
    "400-ops-4-devices": {"num_ops": 400, "num_devices": 4, "seed": 11},
    "400-ops-4-lanes": {
        "num_ops": 400,
        "num_devices": 4,
        "on_host": True,
        "contention": 0.1,
        "seed": 12,
    },
    "1500-ops-8-devices": {"num_ops": 1500, "num_devices": 8, "seed": 13},
}
# They follow what a person wrote down.
BY_HAND = ("expert", "manual")
# Milliseconds that the authors' programs reached, one call per accelerator.
PUBLISHED_MS = {
    "latency/layer_bert24_inference": {"greedy": 100.219, "max-load split": 108.031},
    "latency/layer_gnmt_inference": {"greedy": 268.5, "max-load split": 244.331},
    "latency/op_bert3_inference": {"greedy": 416.204, "max-load split": 414.441},
    "latency/op_resnet50_inference": {"greedy": 839.536, "max-load split": 1123.653},
}

# Contiguous optimum (throughput), best known before, human expert, by kind and file.
REFERENCES = {
    "throughput/layer_bert24_inference": ("17.7899", "17.7147", "20.084"),
    "throughput/layer_bert24_training": ("41.7458", "39.7895", "49.405"),
    "throughput/layer_gnmt_inference": ("32.9107", "31.6873", "46.209"),
    "throughput/layer_gnmt_training": ("107.0044", "88.4622", "137.154"),
    "throughput/layer_resnet50_inference": ("33.7747", "33.4757", "43.918"),
    "throughput/op_bert3_inference": ("27.9186", "21.908", ""),
    "throughput/op_bert3_training": ("65.3031", "", ""),
    "throughput/op_bert12_inference": ("147.478", "130.038", ""),
    "latency/layer_bert24_inference": ("", "100.2185", ""),
    "latency/layer_gnmt_inference": ("", "225.648", ""),
    "latency/op_bert3_inference": ("", "408.474", ""),
    "latency/op_resnet50_inference": ("", "651.121", ""),
}
KNOWN = ("contiguous optimum", "found before", "expert")
COLUMNS = {
    "placer": "{placer}",
    "cases": "{num_cases}",
    "failed": "{num_failed}",
    "median gap to best": "{median_gap:.1%}",
    "worst": "{worst_gap:.1%}",
    "median gap to bound": "{median_bound_gap:.1%}",
    "seconds": "{median_s:.3f}",
}


@dataclass(frozen=True)
class Case:
    """A graph on a machine with an objective; `problem` makes it when it is its turn."""

    name: str
    problem: Callable[[], Problem]


def cases() -> Iterator[Case]:
    """Workloads by objective, then samples by machine, then what is made up."""
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
    for made_up in MADE_UP:
        for objective in ("latency", "throughput"):
            yield Case(f"made-up/{made_up}/{objective}", partial(_made_up, made_up, objective))


@cache
def _opened(source: str) -> Model:
    return pl.load(source)


def _workload(path: Path, objective: str) -> Problem:
    model = _opened(str(path))
    assert model.problem is not None
    return pl.make_problem(model, model.problem.machine, objective=objective)


def _on_preset(sample: str, preset: str, objective: str) -> Problem:
    return pl.make_problem(_opened(sample), pl.machine(preset), objective=objective)


def _made_up(name: str, objective: str) -> Problem:
    return replace(layered(**MADE_UP[name]), objective=objective)


def kind_of(name: str) -> str:
    """What a placer is to the summary."""
    placer = placer_class(name)
    if name == AUTO:
        return AUTO
    return "search" if placer.all_cores else "exact" if placer.exact else "constructive"


def knows(name: str, problem: Problem) -> bool:
    placer = placer_class(name)
    return problem.execution in placer.executions and problem.objective in placer.objectives


def row(case: str, name: str, problem: Problem, time_limit_s: float, search_on: str = LOCAL) -> Row:
    """The placer's answer on a case; a refusal or a broken rule is an error."""
    limit_s = time_limit_s if placer_class(name).all_cores else None
    try:
        placed = pl.place(problem, name, time_limit_s=limit_s, search_on=search_on)
    except ValueError as error:
        return Row(case, name, kind_of(name), math.inf, 0.0, 0.0, str(error))
    value, bound = (in_unit(x, placed.unit) for x in (placed.value, placed.lower_bound))
    if placed.violations:
        return Row(case, name, kind_of(name), math.inf, bound, placed.seconds, placed.violations[0])
    return Row(case, name, kind_of(name), value, bound, placed.seconds)


def chosen_cases(options: argparse.Namespace) -> list[Case]:
    """Those whose names hold one of the texts, and of these as many as are drawn."""
    parts = [part for part in options.only.split(",") if part]
    named = [c for c in cases() if not parts or any(part in c.name for part in parts)]
    if not options.draw:
        return named
    drawn = Random(options.seed).sample(range(len(named)), min(options.draw, len(named)))
    return [named[i] for i in sorted(drawn)]


def run(options: argparse.Namespace, known: list[Row]) -> Iterator[Row]:
    """Rows that are not known yet."""
    done = {(r.case, r.placer) for r in known}
    chosen = [n for n in options.placers.split(",") if n] or [
        n for n in names() if n not in BY_HAND
    ]
    for case in chosen_cases(options):
        open_ = [name for name in chosen if (case.name, name) not in done]
        if not open_:
            continue
        problem = case.problem()
        for name in open_:
            if knows(name, problem):
                yield row(case.name, name, problem, options.time_limit, options.search_on)


def load(out: Path | None) -> list[Row]:
    if out is None or not out.exists():
        return []
    return [Row(**{**r, "value": _number(r["value"])}) for r in json.loads(out.read_text())]


def save(out: Path, rows: list[Row]) -> None:
    """Replace the file whole, so that a run that is stopped leaves a good one."""
    content = [{**asdict(r), "value": None if math.isinf(r.value) else r.value} for r in rows]
    write_text(out, json.dumps(content, indent=1, allow_nan=False) + "\n")


def _number(value: float | None) -> float:
    return math.inf if value is None else value


def summary(rows: list[Row]) -> str:
    """The table per placer, and the account of the automatic one."""
    worse = rankings.worse_than_constructive(rows)
    apart = rankings.not_close_to_single(rows)
    above = rankings.above_references(rows, PUBLISHED_MS)
    lists = rankings.above_others(rows, "ceft_pbqp", ("heft", "peft"))
    of = rankings.num_shared(rows, "ceft_pbqp", ("heft", "peft"))
    longest_s = max((r.seconds for r in rows if r.kind == AUTO), default=math.nan)
    text = [
        table(COLUMNS, map(asdict, rankings.lines(rows))),
        "",
        f"auto worse than the best constructive placer: {_listed(worse)}",
        f"auto within 2 % of the best single placer: {rankings.share_close(rows):.1%} of cases,"
        f" but not: {_listed(apart)}",
        f"auto, median gap to its own bound: {rankings.own_bound_gap(rows):.1%}",
        f"auto above a published value: {_listed(above)}",
        f"auto, longest run: {longest_s:.2f} s",
        f"ceft_pbqp at or below HEFT and PEFT: {of - len(lists)} of {of} cases, but not:"
        f" {_listed(lists)}",
    ]
    return "\n".join(text)


def _listed(texts: list[str]) -> str:
    return "; ".join(texts) or "none"


def case_table(rows: list[Row]) -> str:
    """Best value and bound of each case, who found them first, what auto found, what was known.

    What answers another question (copies of stages) is left out.
    """
    found = []
    for case, of_case in rankings.by_case(rows).items():
        plain = [r for r in of_case if r.placer not in rankings.APART]
        best = min(plain, key=lambda r: (round(r.value, 4), r.seconds))
        bound = max(plain, key=lambda r: (round(r.bound, 4), -r.seconds))
        gap = rankings.gap(best.value, bound.bound)
        found.append(
            {
                "case": case,
                "best": f"{best.value:.6g}",
                "by": f"{best.placer}, {best.seconds:.2f} s",
                "auto": next((f"{r.value:.6g}" for r in plain if r.kind == AUTO), ""),
                "bound": f"{bound.bound:.6g}",
                "bound by": f"{bound.placer}, {bound.seconds:.2f} s",
                "gap": "proven" if gap <= SAME else f"{gap:.2%}",
                **dict(zip(KNOWN, REFERENCES.get(case, ("", "", "")), strict=True)),
            }
        )
    return by_name(found)


def value_table(rows: list[Row]) -> str:
    """Values by case and placer, with the seconds that each took."""
    placers = list(dict.fromkeys(r.placer for r in rows))
    found = []
    for case, of_case in rankings.by_case(rows).items():
        told = {r.placer: f"{r.value:.4g} ({r.seconds:.2g} s)" for r in of_case if not r.error}
        found.append({"case": case, **{name: told.get(name, "") for name in placers}})
    return by_name(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--time-limit", type=float, default=5.0, help="seconds of each search")
    parser.add_argument("--only", default="", help="cases whose names hold one of these texts")
    parser.add_argument("--draw", type=int, default=0, help="so many of these cases, by chance")
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    parser.add_argument("--placers", default="", help="names, by comma; all without it")
    parser.add_argument("--search-on", default=LOCAL, help="local, ray, or ray://HOST:PORT")
    parser.add_argument("--out", type=Path, help="keep the rows here, and go on from them")
    parser.add_argument("--cases", action="store_true", help="tables of all cases as well")
    options = parser.parse_args()
    rows = load(options.out)
    for found in run(options, rows):
        rows.append(found)
        print(f"{found.case:50} {found.placer:16} {found.value:12.6g} {found.error}", flush=True)
        if options.out:
            save(options.out, rows)
    print()
    if options.cases:
        print(f"{case_table(rows)}\n\n{value_table(rows)}\n")
    print(summary(rows))


if __name__ == "__main__":
    main()
