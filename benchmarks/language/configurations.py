"""Configurations without weights: what opening one costs, and parameters against published counts.

    python -m benchmarks.language.configurations [--json] [NAME ...]

For each model of assets/models/ the command `python -m placement inspect FOLDER` is started and
timed until it has ended, imports and the confined process included; the memory is the largest of
its processes. Published counts and where they stand are those of assets/models/index.json; models
without one are compared with nothing.
"""

import json
import re
import resource
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any

from benchmarks._shared.figures import named, show
from placement.loaders.huggingface import FOLDER

COLUMNS = {
    "model": "{model}",
    "ops": "{num_ops}",
    "seconds": "{seconds:.1f}",
    "peak MB": "{peak_mb:.0f}",
    "parameters": "{parameters:,}",
    "published": "{published}",
    "difference": "{difference}",
    "published in": "{published_in}",
}


def row(name: str, about: Mapping[str, Any]) -> dict[str, Any]:
    command = [
        sys.executable,
        "-m",
        "benchmarks.language.configurations",
        "--worker",
        str(FOLDER / name),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, peak_mb, answer = json.loads(done.stdout)
    parameters = int(re.sub(r"\D", "", answer["notes"][0].partition(" ")[0]))
    published = about.get("published_parameters")
    return {
        "model": name,
        "num_ops": answer["num_ops"],
        "seconds": seconds,
        "peak_mb": peak_mb,
        "parameters": parameters,
        "published": "" if published is None else f"{published:,.0f}",
        "difference": "" if published is None else f"{parameters / published - 1:+.2%}",
        "published_in": about.get("published_in", ""),
    }


def opened(folder: str) -> tuple[float, float, Any]:
    """Seconds of the command, memory in MB of the largest of its processes, and its answer."""
    begin_s = time.perf_counter()
    done = subprocess.run(
        (sys.executable, "-m", "placement", "inspect", folder, "--json"),
        capture_output=True,
        text=True,
        check=True,
    )
    seconds = time.perf_counter() - begin_s
    peak_kb = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return seconds, peak_kb / 1e3, json.loads(done.stdout)


def main() -> None:
    index = json.loads((FOLDER / "index.json").read_text(encoding="utf-8"))
    if sys.argv[1:2] == ["--worker"]:
        print(json.dumps(opened(sys.argv[2])))
        return
    options = named(__doc__, index)
    show(options.json, COLUMNS, [row(name, index[name]) for name in options.names])


if __name__ == "__main__":
    main()
