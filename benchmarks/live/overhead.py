"""What cutting a model into segments costs: step time against plain `InferenceSession.run`.

Everything runs on one device; plain runs and segmented steps take turns in one process, with the
same number of threads. Each model and number of threads has a process of its own, dedicated to
that device as a live run is, so that all sessions, the plain one too, share one thread pool.

    python -m benchmarks.live.overhead [--json] [--memory] [--rounds N] [--models A,B]
"""

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._shared.figures import parser
from placement.core.machine import Device, Machine
from placement.core.schedule import Schedule, Segment

MODELS = ("onnx-inception-v2", "onnx-resnet50", "onnx-squeezenet", "onnx-densenet121")
THREADS = (1, 2)
SEGMENTS: tuple[int | str, ...] = (1, 50, "kernel")
WARMUP = 5
PAUSE_S = 0.04  # until the worker threads of the last run have stopped spinning


def main() -> None:
    made = parser(__doc__, rounds=60, models=",".join(MODELS))
    made.add_argument("--memory", action="store_true", help="memory of 50 segments instead")
    made.add_argument("--worker", nargs=3, help=argparse.SUPPRESS)
    options = made.parse_args()
    if options.worker:
        kind, model, value = options.worker
        answer = (
            _overhead(model, int(value), options.rounds) if kind == "time" else _rss(model, value)
        )
        print(json.dumps(answer))
        return
    rows = []
    for model in options.models.split(","):
        found = _memory(model) if options.memory else _times(model, options.rounds)
        rows += found
        for row in found if not options.json else ():
            print("  ".join(f"{key} {value}" for key, value in row.items()), flush=True)
    if options.json:
        print(json.dumps(rows))


def _times(model: str, rounds: int) -> list[dict[str, Any]]:
    return [row for threads in THREADS for row in _worker("time", model, str(threads), rounds)]


def _memory(model: str) -> list[dict[str, Any]]:
    from placement.loaders import load

    executable: Any = load(model).executable
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.onnx")
        path.write_bytes(executable.model_proto().SerializeToString())
        plain, cut = (_worker("memory", model, what, 1) for what in (str(path), "50"))
    ratio = round(cut / plain, 3)
    return [{"model": model, "segments": 50, "plain_bytes": plain, "bytes": cut, "ratio": ratio}]


def _worker(kind: str, model: str, value: str, rounds: int) -> Any:
    command = [sys.executable, "-m", "benchmarks.live.overhead", "--rounds", str(rounds)]
    done = subprocess.run(
        [*command, "--worker", kind, model, value], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def _overhead(model: str, threads: int, rounds: int) -> list[dict[str, Any]]:
    """Rows of one model, measured in this process."""
    from profiling.devices.cores import usable_cores
    from profiling.devices.lanes import pin
    from profiling.measuring.timing import ratio_interval

    cores = usable_cores()[:threads]
    pin(cores)
    device = Device("cpu:0", "cpu", "onnxruntime", "CPUExecutionProvider", None, threads, cores)
    path, compiled, feeds = _compiled(model, device)
    plain = _plain(path, threads, feeds)
    steps = {segments: _step(compiled, device, feeds, segments) for segments in SEGMENTS}
    times: dict[int | str, list[float]] = {"plain": [], **{s: [] for s in SEGMENTS}}
    calls: list[tuple[int | str, Callable[[], float]]] = [("plain", plain), *steps.items()]
    for number in range(WARMUP + rounds):
        for name, call in calls if number % 2 else reversed(calls):
            time.sleep(PAUSE_S if threads > 1 else 0.0)
            seconds = call()
            if number >= WARMUP:
                times[name].append(seconds)
    rows = []
    for segments in SEGMENTS:
        limits = ratio_interval(times[segments], times["plain"], seed=0)
        ratio, low, high = (round(value, 4) for value in limits)
        row = {"model": model, "threads": threads, "segments": segments}
        rows.append({**row, "ratio": ratio, "low": low, "high": high})
    return rows


def _rss(model: str, what: str) -> int:
    """Memory that a plain session (of a file) or 50 segments add to a process, after two steps."""
    import onnxruntime
    import psutil

    import profiling.backends._ort.compile as library

    assert onnxruntime and library  # the libraries themselves do not count
    device = Device("cpu:0", "cpu", "onnxruntime", "CPUExecutionProvider")
    before = psutil.Process().memory_info().rss
    if what == "50":
        _, compiled, feeds = _compiled(model, device)
        call = _step(compiled, device, feeds, 50)
    else:
        call = _plain(what, 1, None)
    for _ in range(2):
        call()
    return int(psutil.Process().memory_info().rss - before)


def _compiled(model: str, device: Device) -> tuple[str, Any, Mapping[str, Any]]:
    """Path of the model as it is run plainly, its kernels, and inputs."""
    from placement.loaders import load
    from profiling.backends import usable

    machine = Machine("one device", (device,))
    backend = usable("onnxruntime")
    backend.dedicate(machine)
    compiled: Any = backend.compile(load(model), machine)
    return str(compiled.optimised.source), compiled, compiled.feeds(0, {})


def _plain(path: str, threads: int, feeds: Mapping[str, Any] | None) -> Callable[[], float]:
    """Seconds of `InferenceSession.run` with default settings; None feeds it noise."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    if threads == 1:
        options.intra_op_num_threads = 1
    else:  # the pool that `dedicate` has set up
        options.use_per_session_threads = False
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(0)
    noise = {i.name: rng.random(i.shape, dtype=np.float32) for i in session.get_inputs()}
    given = noise if feeds is None else feeds

    def run() -> float:
        start_s = time.perf_counter()
        session.run(None, given)
        return time.perf_counter() - start_s

    return run


def _step(
    compiled: Any, device: Device, feeds: Mapping[str, Any], segments: int | str
) -> Callable[[], float]:
    """Seconds of a step of that many segments, of nearly as many kernels each."""
    from profiling.devices.lanes import Lane, Lanes

    names = [op.name for op in compiled.kernels.ops]
    number = len(names) if segments == "kernel" else min(int(segments), len(names))
    cuts = [len(names) * i // number for i in range(number + 1)]
    parts = [tuple(names[a:b]) for a, b in itertools.pairwise(cuts)]
    program = compiled.open(Schedule(tuple(Segment(device.name, part) for part in parts)), feeds)
    lane = Lane(device, tuple(range(number)), ((),) * number)
    lanes = Lanes([lane], number, program.run, native=program.native)
    return lambda: lanes.step(60.0).seconds


if __name__ == "__main__":
    main()
