"""How good are the splits of workload files, how near to the best, and how fast are they found?

    python -m benchmarks.exact [--folder DIR] [--time-limit S] [--only NAMES] [--files NAMES]

Without `--time-limit` a search has 20 s for throughput and 10 s for latency.

All placers for workloads on all files below the folder (`throughput/` and `latency/`), one after
another, beside reference values: the authors' optimum among contiguous splits, what a prototype
found for this project, and the expert's split. Times are in the files' unit, milliseconds.
"""

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from placement import place
from placement.core.amounts import in_unit
from placement.core.problem import Problem
from placement.loaders import load
from placement.placers import names, placer_class

FOLDER = Path(__file__).parents[2] / "shared" / "workloads"
TIME_LIMIT_S = {"throughput": 20.0, "latency": 10.0}
REFERENCES = ("contiguous optimum", "found before", "expert")
# Contiguous optimum (throughput), best known before, human expert, by kind and file.
REFERENCE = {
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


@dataclass(frozen=True)
class Row:
    """One placer on one file, in milliseconds; `refusal` where it has no answer."""

    file: str
    placer: str
    value: float = math.inf
    bound: float = 0.0
    proven: bool = False
    seconds: float = 0.0
    refusal: str = ""

    @property
    def gap(self) -> str:
        if self.refusal:
            return self.refusal
        return "proven" if self.proven else f"{100 * (self.value / self.bound - 1):.2f} %"


def rows(options: argparse.Namespace) -> Iterator[Row]:
    """What each placer finds on each file, one by one."""
    only = set(filter(None, options.only.split(",")))
    files = set(filter(None, options.files.split(",")))
    for kind in ("throughput", "latency"):
        for path in sorted((Path(options.folder) / kind).glob("*.json")):
            if files and path.stem not in files:
                continue
            problem = load(str(path)).problem
            assert problem is not None
            problem = replace(problem, objective=kind)
            for name in placers(problem):
                if not only or name in only:
                    time_limit_s = options.time_limit or TIME_LIMIT_S[kind]
                    yield row(problem, f"{kind}/{path.stem}", name, time_limit_s)


def placers(problem: Problem) -> list[str]:
    """Names of the placers for a problem of this kind, but for those that need to be told."""
    return [
        name
        for name in names()
        for kind in [placer_class(name)]
        if name not in ("expert", "manual")
        and problem.execution in kind.executions
        and problem.objective in kind.objectives
    ]


def row(problem: Problem, file: str, name: str, time_limit_s: float) -> Row:
    try:
        placed = place(problem, name, time_limit_s=time_limit_s)
    except ValueError as error:
        return Row(file, name, refusal=str(error))
    value, bound = (in_unit(s, placed.unit) for s in (placed.value, placed.lower_bound))
    broken = f"breaks rules: {placed.violations[0]}" if placed.violations else ""
    return Row(file, name, value, bound, placed.proven_optimal, placed.seconds, broken)


def best_table(found: Sequence[Row]) -> Iterator[str]:
    """By file the best split on its devices, the best bound, and who has them; replicas apart."""
    yield from heading("file", "best", "by", "s", "bound", "gap", "by", "s", *REFERENCES)
    for file, of_file in grouped(found):
        plain = [r for r in of_file if r.placer != "replicate" and not r.refusal]
        best = min(plain, key=lambda r: (round(r.value, 4), r.seconds))
        bound = min(plain, key=lambda r: (not r.proven, -round(r.bound, 4), r.seconds))
        proven = bound.proven and bound.value <= best.value * (1 + 1e-9)
        gap = "proven" if proven else f"{100 * (best.value / bound.bound - 1):.2f} %"
        who = (f"{best.value:.4f}", best.placer, f"{best.seconds:.2f}")
        proof = (f"{bound.bound:.4f}", gap, bound.placer, f"{bound.seconds:.2f}")
        yield line(file, *who, *proof, *REFERENCE.get(file, ("", "", "")))


def value_table(found: Sequence[Row]) -> Iterator[str]:
    """Values by file and placer, with the seconds that each took."""
    known = list(dict.fromkeys(r.placer for r in found))
    yield from heading("file", *known)
    for file, of_file in grouped(found):
        cells = {r.placer: f"{r.value:.4g} ({r.seconds:.2g} s)" for r in of_file if not r.refusal}
        yield line(file, *(cells.get(name, "") for name in known))


def grouped(found: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    for file in dict.fromkeys(r.file for r in found):
        yield file, [r for r in found if r.file == file]


def heading(*cells: str) -> Iterator[str]:
    yield line(*cells)
    yield "|" + "---|" * len(cells)


def line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--folder", default=str(FOLDER), help="Folder of the workload files")
    parser.add_argument("--time-limit", type=float, help="Seconds for each search")
    parser.add_argument("--only", default="", help="Placers, separated by commas; empty: all")
    parser.add_argument("--files", default="", help="Names of files; empty: all")
    found = []
    for r in rows(parser.parse_args()):
        found.append(r)
        told = f"{r.file} {r.placer}: {r.value:.4f}, at least {r.bound:.4f}, {r.gap}"
        print(f"{told}, {r.seconds:.2f} s", file=sys.stderr, flush=True)
    print("\n".join([*best_table(found), "", *value_table(found)]))


if __name__ == "__main__":
    main()
