"""Does an ONNX model of 6 GB open, get placed and predicted within 2 GB of memory?

    python -m benchmarks.large_onnx [--json] [--gb N] [--memory-gb N] [--fill 1]

A stack of decoder layers whose weights are external data: a sparse file of zeros in a temporary
folder, which a file system stores in no room at all, or with `--fill 1` random numbers. Every verb
is done by the command line. Its memory is the sum of the peaks (VmHWM) of its processes, which
counts pages of mapped files too. The last row is a live run in processes that may take so much
memory as `--memory-gb` says.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from benchmarks._shared.figures import by_name, parser

ROOT = Path(__file__).resolve().parents[1]
WIDTH, LENGTH, WORDS = 4096, 16, 8192
DATA = "weights.bin"
POLL_S = 0.005


def write_model(folder: Path, num_bytes: float) -> Path:
    """A model of at least so many bytes of weights, by external data that is not written."""
    from onnx import TensorProto, helper

    nodes: list[Any] = []
    weights: list[Any] = []
    end = 0

    def weight(name: str, *dims: int) -> str:
        nonlocal end
        made = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=dims)
        made.data_location = TensorProto.EXTERNAL
        length = 4 * dims[0] * (dims[1] if len(dims) > 1 else 1)
        for key, value in (("location", DATA), ("offset", end), ("length", length)):
            made.external_data.add(key=key, value=str(value))
        end += length
        weights.append(made)
        return name

    def op(kind: str, scope: str, *inputs: str, **attributes: Any) -> str:
        name = f"/{scope}/{kind}_{len(nodes)}"
        nodes.append(helper.make_node(kind, inputs, [f"{name}_out"], name, **attributes))
        return f"{name}_out"

    x, layer = op("Gather", "model/embed", weight("embed", WORDS, WIDTH), "words"), 0
    while end < num_bytes:
        scope = f"model/layers.{layer}"
        scale = weight(f"{scope}.norm", WIDTH)
        normed = op("LayerNormalization", f"{scope}/norm", x, scale)
        parts = [
            op("MatMul", f"{scope}/attention", normed, weight(f"{scope}.{word}", WIDTH, WIDTH))
            for word in ("query", "key", "value")
        ]
        turned = op("Transpose", f"{scope}/attention", parts[1], perm=[0, 2, 1])
        scores = op("MatMul", f"{scope}/attention", parts[0], turned)
        shares = op("Softmax", f"{scope}/attention", scores)
        mixed = op("MatMul", f"{scope}/attention", shares, parts[2])
        out = op("MatMul", f"{scope}/attention", mixed, weight(f"{scope}.out", WIDTH, WIDTH))
        x = op("Add", scope, x, out)
        up = op("MatMul", f"{scope}/feed", x, weight(f"{scope}.up", WIDTH, 4 * WIDTH))
        down = weight(f"{scope}.down", 4 * WIDTH, WIDTH)
        x = op("Add", scope, x, op("MatMul", f"{scope}/feed", op("Relu", scope, up), down))
        layer += 1
    words = helper.make_tensor_value_info("words", TensorProto.INT64, [1, LENGTH])
    made = helper.make_tensor_value_info(x, TensorProto.FLOAT, [1, LENGTH, WIDTH])
    graph = helper.make_graph(nodes, "large", [words], [made], initializer=weights)
    path = folder / "large.onnx"
    opset = [helper.make_opsetid("", 17)]
    path.write_bytes(helper.make_model(graph, opset_imports=opset).SerializeToString())
    with (folder / DATA).open("wb") as data:
        data.truncate(end)
    return path


def fill(data: Path) -> None:
    """Random numbers instead of nothing."""
    block = (0.02 * np.random.default_rng(0).normal(size=2**24)).astype(np.float32).tobytes()
    num_bytes = data.stat().st_size
    with data.open("r+b") as file:
        while (left := num_bytes - file.tell()) > 0:
            file.write(block[:left])


def processes(first: psutil.Process) -> Iterator[psutil.Process]:
    """A process and all that it has started."""
    yield first
    yield from first.children(recursive=True)


def peak_of(process: psutil.Process) -> int:
    """The most bytes of memory that a process has had so far."""
    text = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii", errors="replace")
    found = [line.split() for line in text.splitlines() if line.startswith("VmHWM:")]
    return int(found[0][1]) * 1024 if found else 0


def watched(*arguments: str, limit_bytes: int = resource.RLIM_INFINITY) -> dict[str, Any]:
    """What a verb of the command line takes, seconds and memory of all its processes, and says."""
    limit = partial(resource.setrlimit, resource.RLIMIT_DATA, (limit_bytes, limit_bytes))
    start_s, peaks = time.perf_counter(), dict[int, int]()
    with tempfile.TemporaryFile("w+") as said:
        command = [sys.executable, "-m", "placement", *arguments, "--json"]
        running = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=said, preexec_fn=limit
        )
        first = psutil.Process(running.pid)
        while running.poll() is None:
            with suppress(psutil.Error, OSError):
                for process in processes(first):
                    peaks[process.pid] = max(peaks.get(process.pid, 0), peak_of(process))
            time.sleep(POLL_S)
        said.seek(0)
        return {
            "verb": arguments[0],
            "s": round(time.perf_counter() - start_s, 1),
            "peak_gb": round(sum(peaks.values()) / 1e9, 2),
            "says": said.read().strip() or "done",
        }


def rows(path: Path, memory_gb: float) -> Iterator[dict[str, Any]]:
    """Every verb in turn; at last a run on two lanes that may take so much memory."""
    placed, halves = path.parent / "placed.json", path.parent / "halves.json"
    machine = ("--machine", "nvlink-8gpu")
    yield watched("inspect", str(path))
    yield watched("place", str(path), *machine, "--placer", "heft", "--out", str(placed))
    yield watched("simulate", str(path), *machine, "--placement", str(placed))
    for name in ("llama-cpp-split", "split-onnx"):
        out = ("--format", name, "--out", str(path.parent / name))
        found = watched("export", str(path), *machine, "--placement", str(placed), *out)
        yield {**found, "verb": f"export {name}"}
    ops = list(json.loads(placed.read_text())["device_of"])
    lanes = {op: f"cpu:{int(2 * i >= len(ops))}" for i, op in enumerate(ops)}
    halves.write_text(json.dumps({"device_of": lanes}))
    run = ("run", str(path), "--machine", "two-lanes", "--placement", str(halves), "--steps", "1")
    found = watched(*run, limit_bytes=int(memory_gb * 1e9))
    yield {**found, "verb": f"run in {memory_gb:g} GB"}


def main() -> None:
    options = parser(__doc__, gb=6.0, memory_gb=4.0, fill=0).parse_args()
    with tempfile.TemporaryDirectory(prefix="large-onnx-") as name:
        path = write_model(Path(name), options.gb * 1e9)
        if options.fill:
            fill(path.with_name(DATA))
        found = list(rows(path, options.memory_gb))
    print(json.dumps(found, indent=1) if options.json else by_name(found))


if __name__ == "__main__":
    main()
