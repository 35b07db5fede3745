"""Run a placed model: its parts side by side, each on the device it was placed on.

Needs onnxruntime and numpy only. Every device has a thread, which runs its parts in order; a part
starts when the parts that make its inputs have ended.

    python run.py                                   random inputs, the median step time
    python run.py --inputs in.npz --outputs out.npz --steps 1

In a program: `PlacedModel("folder").run({"input": array})` returns the outputs by name.
"""

import argparse
import json
import os
import statistics
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort

CPU = "CPUExecutionProvider"


class PlacedModel:
    """The parts that `parts.json` lists, ready to run; close it to end its threads."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.about = json.loads((self.folder / "parts.json").read_text(encoding="utf-8"))
        self.devices = {device["name"]: device for device in self.about["devices"]}
        self.lanes = {name: ThreadPoolExecutor(1, name) for name in self.devices}
        # In the thread that will run it, because worker threads inherit its cores.
        opened = [
            self.lanes[part["device"]].submit(self._open, part) for part in self.about["parts"]
        ]
        self.sessions = [job.result() for job in opened]
        makers = {v: i for i, part in enumerate(self.about["parts"]) for v in part["outputs"]}
        self.needs = [
            sorted({makers[value] for value in part["inputs"] if value in makers})
            for part in self.about["parts"]
        ]

    def _open(self, part: dict[str, Any]) -> Any:
        device = self.devices[part["device"]]
        if device["core_ids"] and hasattr(os, "sched_setaffinity"):
            with suppress(OSError):  # where this computer has other cores
                os.sched_setaffinity(0, device["core_ids"])
        options = ort.SessionOptions()
        options.log_severity_level = 3
        if device["provider"] == CPU:
            options.intra_op_num_threads = max(1, device["cores"])
            options.inter_op_num_threads = 1
            # Threads that wait for work must not take the cores of other devices.
            options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        return ort.InferenceSession(
            str(self.folder / part["file"]), options, providers=_providers(device)
        )

    def run(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """One step: outputs by name."""
        values = dict(inputs)
        missing = [i["name"] for i in self.about["inputs"] if i["name"] not in values]
        if missing:
            raise ValueError(f"The inputs lack {', '.join(missing)}.")
        jobs: list[Future[None]] = []
        for number, part in enumerate(self.about["parts"]):
            before = [jobs[i] for i in self.needs[number]]
            jobs.append(self.lanes[part["device"]].submit(self._step, number, values, before))
        for job in jobs:
            job.result()
        return {name: values[name] for name in self.about["outputs"]}

    def _step(self, number: int, values: dict[str, Any], before: list["Future[None]"]) -> None:
        for job in before:
            job.result()
        part = self.about["parts"][number]
        feeds = {name: values[name] for name in part["inputs"]}
        found = self.sessions[number].run(part["outputs"], feeds)
        values.update(zip(part["outputs"], found, strict=True))

    def random_inputs(self, seed: int = 0) -> dict[str, Any]:
        """Random arrays of the right types and sizes: small whole numbers, floats from 0 to 1."""
        rng = np.random.default_rng(seed)
        return {i["name"]: _random(i, rng) for i in self.about["inputs"]}

    def close(self) -> None:
        for lane in self.lanes.values():
            lane.shutdown()


def _providers(device: dict[str, Any]) -> list[Any]:
    """The device's execution provider, and the CPU behind it for what it lacks."""
    name = device["provider"]
    if name == CPU:
        return [CPU]
    if name not in ort.get_available_providers():
        print(f"{device['name']}: this onnxruntime has no {name}, so CPU is used", file=sys.stderr)
        return [CPU]
    return [(name, device["options"]), CPU]


def _random(value: dict[str, Any], rng: np.random.Generator) -> Any:
    shape = [size if isinstance(size, int) and size > 0 else 1 for size in value["shape"] or ()]
    if value["dtype"] in ("float16", "float32", "float64"):
        return rng.random(shape).astype(value["dtype"])
    if value["dtype"] == "bool" or value["dtype"].startswith(("int", "uint")):
        return rng.integers(0, 2, shape).astype(value["dtype"])
    raise ValueError(f"Input {value['name']!r} is {value['dtype']}; give it with --inputs.")


def main() -> int:
    parser = argparse.ArgumentParser(description="Run a placed model.")
    parser.add_argument("--inputs", metavar="FILE.npz", help="inputs by name; random without it")
    parser.add_argument("--outputs", metavar="FILE.npz", help="where to write the outputs")
    parser.add_argument(
        "--steps", type=int, default=20, help="measured steps, after one to warm up"
    )
    parser.add_argument("--seed", type=int, default=0, help="of random inputs")
    options = parser.parse_args()
    model = PlacedModel(Path(__file__).resolve().parent)
    if options.inputs:
        with np.load(options.inputs, allow_pickle=False) as stored:
            inputs = {name: stored[name] for name in stored.files}
    else:
        inputs = model.random_inputs(options.seed)
    outputs = model.run(inputs)
    seconds = []
    for _ in range(options.steps):
        start = time.perf_counter()
        outputs = model.run(inputs)
        seconds.append(time.perf_counter() - start)
    if options.outputs:
        np.savez(options.outputs, **outputs)
    shown = {name: getattr(value, "shape", type(value).__name__) for name, value in outputs.items()}
    print(f"{len(model.sessions)} parts on {', '.join(model.devices)}; outputs {shown}")
    if seconds:
        print(f"median of {len(seconds)} steps: {statistics.median(seconds) * 1e3:.2f} ms")
    model.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
