"""How good are the splits of workload files, how near to the best, and how fast are they found?

    python -m benchmarks.exact [--folder DIR] [--time-limit S] [--only NAMES] [--files NAMES]

Without `--time-limit` a search has 20 s for throughput and 10 s for latency.

All placers for workloads on all files below the folder (`throughput/` and `latency/`), one after
another, beside reference values: the authors' optimum among contiguous splits, what a prototype
found for this project, and the expert's split. Times are in the files' unit, milliseconds.
"""

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from placement.core.problem import Problem, in_unit
from placement.loaders import load
from placement.pipeline import place
from placement.placers import names, placer_class

FOLDER = Path(__file__).parents[2] / "shared" / "workloads"
COLUMNS = ("file", "placer", "value", "bound", "gap", "seconds")
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


def rows(options: argparse.Namespace) -> Iterator[str]:
    """The lines of the table, one by one as they are found."""
    only = set(filter(None, options.only.split(",")))
    files = set(filter(None, options.files.split(",")))
    header = COLUMNS + REFERENCES
    yield f"| {' | '.join(header)} |"
    yield "|" + "---|" * len(header)
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
    """Names of the placers for a problem of this kind, but for the one that needs a file."""
    return [
        name
        for name in names()
        for kind in [placer_class(name)]
        if name != "expert"
        and problem.execution in kind.executions
        and problem.objective in kind.objectives
    ]


def row(problem: Problem, file: str, name: str, time_limit_s: float) -> str:
    """One placer on one file; its refusal where it has no answer."""
    reference = " | ".join(REFERENCE.get(file, ("", "", "")))
    try:
        placed = place(problem, name, time_limit_s=time_limit_s)
    except ValueError as error:
        return f"| {file} | {name} | {error} | | | | {reference} |"
    value, bound = (in_unit(s, placed.unit) for s in (placed.value, placed.lower_bound))
    gap = "proven" if placed.proven_optimal else f"{100 * (value / bound - 1):.2f} %"
    broken = " (breaks rules)" if placed.violations else ""
    return (
        f"| {file} | {name} | {value:.4f}{broken} | {bound:.4f} | {gap} |"
        f" {placed.seconds:.2f} | {reference} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--folder", default=str(FOLDER), help="Folder of the workload files")
    parser.add_argument("--time-limit", type=float, help="Seconds for each search")
    parser.add_argument("--only", default="", help="Placers, separated by commas; empty: all")
    parser.add_argument("--files", default="", help="Names of files; empty: all")
    for line in rows(parser.parse_args()):
        print(line, flush=True)


if __name__ == "__main__":
    main()
