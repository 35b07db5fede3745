"""Run a placed PyTorch program: its segments side by side, each on the device it was placed on.

Needs torch and numpy only. Every device has a thread, which runs its segments in order; a segment
starts when those that make its inputs have ended. A training step starts from the parameters that
the step before it made.

    python step.py                                  ten steps on seeded inputs, losses and times
    python step.py --steps 100 --save after.npz     and keep the parameters
    python step.py --weights after.npz              go on from there

In a program:

    with PlacedStep() as placed:
        for image, target in batches:
            print(placed.step({"image": image, "target": target})["loss"])
        print(placed.state)                         parameters, buffers, optimiser state by name
"""

import argparse
import atexit
import importlib.util
import json
import os
import statistics
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch

HERE = Path(__file__).resolve().parent


class PlacedStep:
    """The program in a folder, ready to run; close it (or leave its `with`) to end its threads."""

    def __init__(
        self,
        folder: str | os.PathLike[str] = HERE,
        weights: str | os.PathLike[str] | None = None,
    ) -> None:
        self.folder = Path(folder)
        self.about = json.loads((self.folder / "step.json").read_text(encoding="utf-8"))
        self._segments = _segments(self.folder / "segments.py")
        self._held: list[Any] = [None] * self.about["num_values"]
        self.load(self.folder / "weights.npz" if weights is None else weights)
        self._values: list[Any] = []
        self._error: BaseException | None = None
        self._over = False
        lanes = self.about["lanes"]
        self._there = {
            (number, lane["name"]): _taken()
            for lane in lanes
            for awaits in lane["awaits"]
            for number in awaits
        }
        self._go = [_taken() for _ in lanes]
        self._done = [_taken() for _ in lanes]
        self._threads = [
            threading.Thread(target=self._work, args=row, name=row[1]["name"], daemon=True)
            for row in enumerate(lanes)
        ]
        for thread in self._threads:
            thread.start()
        atexit.register(self.close)

    def __enter__(self) -> "PlacedStep":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def step(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """One step: outputs by name. What it updates is the state of the next step."""
        if self._over:
            raise RuntimeError("This program is closed, or a step of it has failed; open it again.")
        self._values = self._held.copy()
        self._feed(inputs)
        for go in self._go:
            with suppress(RuntimeError):  # a lane before it has failed already and stopped all
                go.release()
        for done in self._done:
            done.acquire()
        if self._error is not None:
            raise self._error
        made, self._values = self._values, []
        for row in self.about["state"]:
            if row["new"] is not None:
                self._held[row["place"]] = made[row["new"]].to(row["device"])
        return {row["name"]: made[row["place"]] for row in self.about["outputs"]}

    @property
    def state(self) -> dict[str, torch.Tensor]:
        """Parameters, buffers and what the optimiser keeps, by name, as they are now."""
        return {row["name"]: self._held[row["place"]] for row in self.about["state"]}

    def load(self, weights: str | os.PathLike[str]) -> None:
        """Take the state from a file that `save` wrote, or that came with the program."""
        with np.load(weights, allow_pickle=False) as stored:
            for row in self.about["state"]:
                value = _tensor(stored[row["key"]], row)
                self._held[row["place"]] = value.to(row["device"])
        for row in self.about["copies"]:
            self._held[row["place"]] = self._held[row["of"]].to(row["device"])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state as it is now, without pickles."""
        rows = self.about["state"]
        np.savez(path, **{row["key"]: _array(self._held[row["place"]]) for row in rows})

    def seeded_inputs(self, seed: int = 0) -> dict[str, Any]:
        """Inputs of the right types and sizes: images from 0 to 1, valid numbers of rows."""
        rng = np.random.default_rng(seed)
        return {row["name"]: _seeded(row, rng) for row in self.about["inputs"]}

    def close(self) -> None:
        """End the threads and wait for them: the process must not end while one still runs."""
        self._stop()
        for thread in self._threads:
            thread.join()
        atexit.unregister(self.close)

    def _stop(self) -> None:
        self._over = True
        for lock in (*self._go, *self._there.values()):
            with suppress(RuntimeError):  # it was free already
                lock.release()

    def _feed(self, inputs: dict[str, Any]) -> None:
        rows = {row["name"]: row for row in self.about["inputs"]}
        unknown = [name for name in inputs if name not in rows]
        if unknown:
            raise ValueError(f"There is no input {unknown[0]!r}; use {', '.join(rows)}.")
        for name, row in rows.items():
            if "dtype" not in row:
                self._values[row["place"]] = inputs.get(name, row["value"])
            elif name not in inputs:
                raise ValueError(f"The inputs lack {name!r}.")
            else:
                self._values[row["place"]] = _checked(row, inputs[name])

    def _work(self, number: int, lane: dict[str, Any]) -> None:
        """What the thread of a device does: its segments of every step, in order."""
        _settle(lane)
        tasks = []
        for segment, awaits in zip(lane["segments"], lane["awaits"], strict=True):
            waits = [self._there[producer, lane["name"]] for producer in awaits]
            signals = [lock for (producer, _), lock in self._there.items() if producer == segment]
            tasks.append((self._segments[segment], waits, signals))
        while True:
            self._go[number].acquire()
            if not self._over:
                try:
                    with torch.no_grad():
                        self._once(tasks)
                except BaseException as error:  # handed to the thread that asked for the step
                    self._error = self._error or error
                    self._stop()
            with suppress(RuntimeError):  # nobody waits for this step any more
                self._done[number].release()
            if self._over:
                return

    def _once(self, tasks: list[tuple[Any, list[Any], list[Any]]]) -> None:
        for run, waits, signals in tasks:
            for there in waits:
                there.acquire()
            if self._over:
                return
            run(self._values)
            for there in signals:
                there.release()


def _taken() -> Any:
    lock = threading.Lock()
    lock.acquire()
    return lock


def _segments(path: Path) -> tuple[Any, ...]:
    """The functions of the module beside this one, wherever it was started from."""
    spec = importlib.util.spec_from_file_location("placed_segments", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: tuple[Any, ...] = module.SEGMENTS
    return found


def _settle(lane: dict[str, Any]) -> None:
    """Keep the calling thread on its cores, with as many threads for operators as it has."""
    if lane["core_ids"] and hasattr(os, "sched_setaffinity"):
        cores = set(lane["core_ids"]) & os.sched_getaffinity(0)
        if cores:  # none where this computer has other cores
            os.sched_setaffinity(0, cores)
    # A thread takes over what others have set when it first asks; so it asks first.
    torch.get_num_threads()
    torch.set_num_threads(max(1, lane["cores"]))


def _tensor(array: Any, row: dict[str, Any]) -> torch.Tensor:
    """A stored array as the tensor it was; types that numpy lacks are stored as bytes.

    A copy, because torch's own memory is aligned and sums may be taken in another order elsewhere.
    """
    value, dtype = torch.from_numpy(array), getattr(torch, row["dtype"])
    if value.dtype != dtype:
        value = value.view(dtype)
    return value.reshape(row["shape"]).clone()


def _array(value: torch.Tensor) -> Any:
    value = value.detach().cpu().contiguous()
    try:
        return value.numpy()
    except TypeError:
        return value.reshape(-1).view(torch.uint8).numpy()


def _checked(row: dict[str, Any], given: Any) -> torch.Tensor:
    value = torch.as_tensor(given).detach()
    dtype = getattr(torch, row["dtype"])
    if list(value.shape) != row["shape"]:
        raise ValueError(
            f"Input {row['name']!r} has shape {tuple(value.shape)}; the program takes"
            f" {tuple(row['shape'])}."
        )
    if not torch.can_cast(value.dtype, dtype):
        raise ValueError(f"Input {row['name']!r} is {value.dtype}; the program takes {dtype}.")
    return value.to("cpu", dtype).contiguous()


def _seeded(row: dict[str, Any], rng: np.random.Generator) -> Any:
    if "dtype" not in row:
        return row["value"]
    shape, dtype = row["shape"], getattr(torch, row["dtype"])
    if dtype == torch.bool:
        return torch.from_numpy(rng.integers(0, 2, size=shape).astype(np.bool_))
    if not dtype.is_floating_point:
        if "mask" in row["name"].lower():
            return torch.ones(shape, dtype=dtype)
        return torch.from_numpy(np.asarray(rng.integers(0, row["below"] or 2, size=shape))).to(
            dtype
        )
    made = rng.random(size=shape) if len(shape) >= 4 else rng.standard_normal(size=shape)
    return torch.from_numpy(np.asarray(made)).to(dtype)


def _shown(outputs: dict[str, Any]) -> str:
    """Numbers in full, of larger outputs their shapes."""
    return ", ".join(
        f"{name} {value.item():.9g}"
        if isinstance(value, torch.Tensor) and value.numel() == 1
        else f"{name} {tuple(getattr(value, 'shape', ()))}"
        for name, value in outputs.items()
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="Run a placed PyTorch program.")
    parser.add_argument("--steps", type=int, default=10, help="how many steps to run")
    parser.add_argument("--seed", type=int, default=0, help="of the inputs")
    parser.add_argument("--weights", metavar="FILE.npz", help="start from this state")
    parser.add_argument("--save", metavar="FILE.npz", help="where to write the state afterwards")
    options = parser.parse_args()
    seconds = []
    with PlacedStep(weights=options.weights) as placed:
        if placed.about["torch"] != torch.__version__.partition("+")[0]:
            print(f"made with torch {placed.about['torch']}, this is {torch.__version__}")
        inputs = placed.seeded_inputs(options.seed)
        for number in range(options.steps):
            start = time.perf_counter()
            outputs = placed.step(inputs)
            shown = _shown(outputs)  # reading the outputs waits for devices that run on
            seconds.append(time.perf_counter() - start)
            print(f"step {number + 1}: {shown}")
        names = ", ".join(lane["name"] for lane in placed.about["lanes"])
        print(f"{len(placed.about['state'])} tensors of state, segments on {names}")
        if len(seconds) > 1:
            median_s = statistics.median(seconds[1:])
            print(f"median of {len(seconds) - 1} steps after the first: {median_s * 1e3:.2f} ms")
        if options.save:
            placed.save(options.save)
    return 0


if __name__ == "__main__":
    sys.exit(main())
