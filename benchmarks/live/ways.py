"""What a step of two threads takes by how far apart the host has put their cores. Live.

    python -m benchmarks.live.ways [--json] [--seconds S] [MODEL ...]

In turns: two threads, each pinned to a core, that write one line of memory after another ("way":
the time from one to the other), then steps of the model on one core and on both. Where a host has
put the cores of a virtual computer changes within seconds or minutes. By the usual figures of
x86-64 servers cores are the two threads of one physical core below 30 ns, share a cache below 100,
and share none above.
"""

import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import placement as pl
from benchmarks._shared.figures import named, table
from benchmarks.live.fidelity import models
from placement.core.graph import Ints
from placement.core.machine import Device
from placement.core.model import Model
from profiling.devices.cores import usable_cores
from profiling.devices.lanes import Lane, Lanes
from profiling.devices.native import functions_of
from profiling.execution.execute import compiled_for
from profiling.measuring.lock import measuring

ROUNDS, STEPS, TIMEOUT_S = 2_000, 20, 10.0
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


def compiled_turns() -> Callable[..., int]:
    from placement.compiled.jit import jit
    from profiling.devices.lanes_compiled import now_ns

    @jit
    def take_turns(number: int, rounds: int, line: Ints, functions: Ints, now: Ints) -> int:
        """Nanoseconds of so many rounds in which two threads write a line of memory in turns.

        The clock is read between two tries, so that the line is read anew.
        """
        begun_ns = now_ns(functions, now)
        for i in range(rounds):
            while line[0] != 2 * i + number:
                now_ns(functions, now)
            line[0] += 1
        return now_ns(functions, now) - begun_ns

    return take_turns


class Way:
    """Two threads on the first two cores."""

    def __init__(self) -> None:
        self._take_turns, self._functions = compiled_turns(), functions_of()
        # Cores fetch two lines of 64 bytes at once.
        self._line, self._now = np.zeros(16, np.int64), np.zeros((2, 16), np.int64)
        self._took_ns = [0, 0]
        devices = [Device(f"core {core}", core_ids=(core,)) for core in usable_cores()[:2]]
        lanes = [Lane(device, (i,), ((),)) for i, device in enumerate(devices)]
        self._lanes = Lanes(lanes, len(lanes), self._turns)

    def ns(self) -> float:
        """From one core to the other."""
        self._line[0] = 0
        self._lanes.step(TIMEOUT_S)
        return min(self._took_ns) / (2 * ROUNDS)

    def _turns(self, number: int) -> None:
        now = self._now[number]
        self._took_ns[number] = self._take_turns(number, ROUNDS, self._line, self._functions, now)


def rows(model: Model, seconds: float) -> list[dict[str, Any]]:
    both, lanes = pl.machine("local:1"), pl.machine("two-lanes")
    found: list[tuple[float, float, float]] = []
    way = Way()
    programs = []
    for machine in (lanes, both):
        problem = pl.make_problem(model, machine, pl.profile(model, machine))
        compiled = compiled_for(problem, model)
        programs.append(compiled.unplaced(machine.devices[0], compiled.feeds(0, {})))
    try:
        until_s = time.monotonic() + seconds
        while time.monotonic() < until_s:
            before_ns = way.ns()
            one_s, both_s = (_median_s(program) for program in programs)
            after_ns = way.ns()
            # What changed in between says nothing.
            if max(before_ns, after_ns) < 1.5 * min(before_ns, after_ns):
                found.append((before_ns, one_s, both_s))
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
