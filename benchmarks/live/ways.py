"""What a step of two threads takes by how far apart the host has put their cores. Live.

    python -m benchmarks.live.ways [--json] [--seconds S] [MODEL ...]

In turns: a look at two cores, which tells how long a line of memory takes from one to the other
("way"), then steps of the model on one core and on both. Where a host has
put the cores of a virtual computer changes within seconds or minutes. By the usual figures of
x86-64 servers cores are the two threads of one physical core below 30 ns, share a cache below 100,
and share none above.
"""

import json
import math
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import placement as pl
from benchmarks._shared.figures import named, table
from benchmarks.live.fidelity import models
from placement.core.load import MOVED
from placement.core.model import Model
from profiling.devices.cores import usable_cores
from profiling.execution.execute import compiled_for
from profiling.measuring.lock import measuring
from profiling.measuring.siblings import Siblings

STEPS = 20
# The longest way in ns.
CORES = {"threads of one core": 30.0, "share a cache": 100.0, "share no cache": np.inf}
COLUMNS = {
    "model": "{model}",
    "cores": "{cores}",
    "turns": "{num}",
    "way ns": "{way_ns:.0f}",
    "one core ms": "{one_ms:.3g}",
    "both cores ms": "{both_ms:.3g}",
    "both / one": "{ratio:.2f}",
}


def rows(model: Model, seconds: float) -> list[dict[str, Any]]:
    both, lanes = pl.machine("local:1"), pl.machine("two-lanes")
    found: list[tuple[float, float, float]] = []
    looks = Siblings(usable_cores()[:2], patience_s=math.inf)
    programs = []
    for machine in (lanes, both):
        problem = pl.make_problem(model, machine, pl.profile(model, machine))
        compiled = compiled_for(problem, model)
        programs.append(compiled.unplaced(machine.devices[0], compiled.feeds(0, {})))
    try:
        until_s = time.monotonic() + seconds
        while time.monotonic() < until_s:
            looked = looks.around(lambda: [_median_s(program) for program in programs])
            before_ns, after_ns = looked.before.latency_ns, looked.after.latency_ns
            if before_ns is None or after_ns is None:
                sys.exit("Nobody can look at two cores here: there is one, or threads choose none.")
            # What changed in between says nothing.
            if max(before_ns, after_ns) < MOVED * min(before_ns, after_ns):
                found.append((before_ns, looked.value[0], looked.value[1]))
    finally:
        for program in programs:
            program.close()
    return _by_way(model.graph.name, np.array(found))


def _median_s(program: Any) -> float:
    times_s = []
    for _ in range(STEPS):
        began_s = time.perf_counter()
        program.run(0)
        times_s.append(time.perf_counter() - began_s)
    return statistics.median(times_s)


def _by_way(name: str, found: Any) -> list[dict[str, Any]]:
    described, least_ns = [], 0.0
    for cores, most_ns in CORES.items():
        which = (found[:, 0] >= least_ns) & (found[:, 0] < most_ns)
        least_ns = most_ns
        if which.any():
            way_ns, one_s, both_s = np.median(found[which], axis=0)
            described.append(
                {
                    "model": name,
                    "cores": cores,
                    "num": int(which.sum()),
                    "way_ns": way_ns,
                    "one_ms": 1e3 * one_s,
                    "both_ms": 1e3 * both_s,
                    "ratio": both_s / one_s,
                }
            )
    return described


def main() -> None:
    options = named(__doc__, ["small-mobilenet", "onnx-shufflenet"], seconds=40.0)
    found = []
    with measuring("ways"), tempfile.TemporaryDirectory() as folder:
        for model in models(options.names, Path(folder)):
            found += rows(model, options.seconds)
    print(json.dumps(found) if options.json else table(COLUMNS, found))


if __name__ == "__main__":
    main()
