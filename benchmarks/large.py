"""Does a graph of 100 000 ops on 8 devices work? Loading, `auto`, and the memory of both.

    python -m benchmarks.large [--json] [--ops N] [--devices N] [--time-limit S] [--execution KIND]

Everything is done by the command line in processes of its own, on a problem file written before.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks._shared.figures import by_name, parser
from benchmarks._shared.graphs import layered
from placement.core.problem_json import problem_to_json

ROOT = Path(__file__).resolve().parents[1]


def answer(*arguments: str) -> tuple[dict[str, Any], float]:
    """What a verb prints as JSON, and the seconds of the whole process."""
    start_s = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "placement", *arguments, "--json"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        check=True,
    )
    return json.loads(done.stdout), time.perf_counter() - start_s


def row(file: Path, time_limit_s: float) -> dict[str, Any]:
    """Seconds and GiB; the peak is that of the largest process so far."""
    inspected, inspect_s = answer("inspect", str(file))
    limit = ("--placer", "auto", "--time-limit", str(time_limit_s))
    placed, place_s = answer("place", str(file), *limit)
    heft, _ = answer("place", str(file), "--placer", "heft")
    peak_kib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return {
        "num_ops": inspected["num_ops"],
        "file_mb": file.stat().st_size / 1e6,
        "load_s": inspect_s,
        "seconds": placed["seconds"],
        "process_s": place_s,
        "value": placed["value"],
        "beyond_heft": 100.0 * (1.0 - placed["value"] / heft["value"]),
        "lower_bound": placed["lower_bound"],
        "account": placed["account"],
        "peak_gib": peak_kib / 2**20,
    }


WANTED = {
    "load_s": "10 at most",
    "seconds": "12 at most",
    "beyond_heft": "3 at least",
    "peak_gib": "4 at most",
}
MEANING = {
    "num_ops": "ops",
    "file_mb": "problem file, MB",
    "load_s": "the command `inspect`, start and loading included, s",
    "seconds": "`auto` says it took, s",
    "process_s": "the command `place` altogether, s",
    "value": "value, s",
    "beyond_heft": "below HEFT's value, %",
    "lower_bound": "lower bound, s",
    "account": "account",
    "peak_gib": "peak memory of the process, GiB",
}


def main() -> None:
    made = parser(__doc__, ops=100_000, devices=8, time_limit=10.0)
    made.add_argument("--execution", choices=("op", "segment"), default="segment")
    options = made.parse_args()
    problem = layered(options.ops, options.devices, execution=options.execution)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "large.json"
        file.write_text(json.dumps(problem_to_json(problem)))
        del problem
        found = row(file, options.time_limit)
    if options.json:
        print(json.dumps(found))
        return
    numbers = {k: f"{v:.4g}" if isinstance(v, float) else v for k, v in found.items()}
    rows = [
        {"what": meaning, "found": numbers[key], "wanted": WANTED.get(key, "")}
        for key, meaning in MEANING.items()
    ]
    print(by_name(rows))


if __name__ == "__main__":
    main()
