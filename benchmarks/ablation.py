"""HSDAG without shape, position or structure among its features, after as many placements.

    python -m benchmarks.ablation --out FILE.jsonl [--cases TEXT,TEXT] [--seeds 0,1,2]
                                  [--updates N]

As the ablations of Duan et al. (NeurIPS 2024), on the cases of `benchmarks/learned.py` and in rows
like its own: values are raw, and a second start goes on from the rows that are there.
"""

import argparse
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import get_args

from benchmarks._learned.cases import cases
from benchmarks._learned.summary import Row
from benchmarks._shared.figures import numbers, parts, table
from benchmarks.learned import answered, line_of, load
from placement.learning.features import Part

CASES = ("onnx-inception-v2/pcie-4gpu", "resnet50/pcie-4gpu", "bert_base/pcie-4gpu")
COLUMNS = {
    "case": "{case}",
    "without": "{without}",
    "median, ms": "{median:.5g}",
    "worst": "{worst:.5g}",
    "beside all features": "{beside:+.1%}",
    "evaluations": "{evaluations:.0f}",
    "s": "{seconds:.1f}",
    "seeds": "{num_seeds}",
}


def settings_of(part: str, updates: int) -> str:
    return f"without={part},max_iterations={updates}"


def run(options: argparse.Namespace, known: Sequence[Row]) -> Iterator[Row]:
    """Rows that are not known yet, each as it ends; seeds go around the parts."""
    done = {row.key for row in known}
    for case in cases():
        if not any(part in case.name for part in options.cases):
            continue
        problem = case.problem()
        about = {"num_units": problem.num_units, "num_devices": problem.num_devices}
        for seed in options.seeds:
            for part in get_args(Part):
                settings = settings_of(part, options.updates)
                row = Row(case=case.name, placer="hsdag", settings=settings, seed=seed, **about)
                if row.key not in done:
                    yield answered(case, problem, row)


def lines(rows: Sequence[Row], updates: int) -> Iterator[dict[str, object]]:
    """A line for each case and what was left out, and how much longer that takes."""
    for case in dict.fromkeys(row.case for row in rows):
        whole = 0.0
        for part in get_args(Part):
            settings = settings_of(part, updates)
            own = [row for row in rows if (row.case, row.settings) == (case, settings)]
            if not own:
                continue
            median = statistics.median(row.value_ms for row in own)
            whole = whole or median
            yield {
                "case": case,
                "without": part or "nothing",
                "median": median,
                "worst": max(row.value_ms for row in own),
                "beside": median / whole - 1.0,
                "evaluations": statistics.median(row.evaluations for row in own),
                "seconds": statistics.median(row.seconds for row in own),
                "num_seeds": len(own),
            }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="keep the rows here, a line each")
    parser.add_argument("--cases", type=parts, default=CASES, help="those that hold a text")
    parser.add_argument(
        "--seeds", type=numbers, default=[0, 1, 2], help="numbers; 0,1,2 without it"
    )
    parser.add_argument("--updates", type=int, default=100, help="of the network, in each run")
    options = parser.parse_args()
    rows = load(options.out)
    with options.out.open("a", encoding="utf-8") as file:
        for row in run(options, rows):
            rows.append(row)
            file.write(line_of(row))
            file.flush()
            print(f"{row.case:28} {row.settings:36} {row.seed} {row.value_ms:10.5g}", flush=True)
    print(f"\n{table(COLUMNS, lines(rows, options.updates))}")


if __name__ == "__main__":
    main()
