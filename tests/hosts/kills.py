"""Processes of a cluster that are killed in the middle of a run or a training, and what is told."""

import json
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psutil

import placement as pl
from placement.api.resume import run_to_the_end
from placement.core.model import Model
from placement.core.verb_options import RunOptions
from tests.hosts.trainings import SIZES, STEPS, Reached, trained
from tests.hosts.two_nodes import Nodes, kill
from tests.profiling.live import problem_of

# More than any run here gets to.
ENDLESS = RunOptions(steps=10**6)
# A run's inputs, reference and first steps take about so long.
RUN_S, STEP_S = 1.0, 0.05
LIMIT_S = 90.0
DIMS = [word for name, size in SIZES.items() for word in ("--dim", f"{name}={size}")]
WORK = {
    "run": ["run", "onnx-squeezenet"],
    # What adjusting takes and makes ready is no matter of who is killed.
    "train": ["train", "nmt:training", *DIMS, "--analytic", "--no-adjust"],
}


class _Enough(Exception):
    """A run has shown that it goes on."""


@dataclass(frozen=True)
class Told:
    """What was said after a kill, and how long after: of the loss, and of the first step since.

    `words` are empty where all was over before.
    """

    words: str
    silence_s: float
    goes_on_s: float


class _Listener:
    """Hears of a loss and of the steps after it."""

    def __init__(self, nodes: Nodes, what: str) -> None:
        self._nodes, self._what = nodes, what
        self._killed_s = self._lost_s = self._on_s = 0.0
        self._words = ""

    def kill(self) -> None:
        host = "beta"
        victim = self._nodes.own_worker(host) if self._what == "actor" else self._nodes.raylet(host)
        self._killed_s = time.monotonic()
        kill(victim)

    def __call__(self, event: Mapping[str, Any]) -> None:
        if event["event"] == "lost":
            self._words, self._lost_s = event["message"], time.monotonic()
        elif event["event"] == "step" and self._words and not self._on_s:
            self._on_s = time.monotonic()

    @property
    def goes_on(self) -> bool:
        return self._on_s > 0.0

    def told(self) -> Told:
        return Told(self._words, self._lost_s - self._killed_s, self._on_s - self._killed_s)


def during_a_run(nodes: Nodes, what: str, model: Model, chance: random.Random) -> Told:
    """Kill an actor or a node somewhere in a run; returns when the run goes on without it."""
    problem = problem_of(model, nodes.machine())
    placement = problem.placement_of([i % 2 for i in range(problem.num_units)])
    # What is compiled for this computer once takes longer than noticing anything.
    pl.simulate(problem, placement)
    pl.place(problem, "single")
    listener = _Listener(nodes, what)
    limit_s = time.monotonic() + LIMIT_S

    def hear(event: Mapping[str, Any]) -> None:
        listener(event)
        if listener.goes_on:
            raise _Enough
        assert time.monotonic() < limit_s, "nobody was killed, or nobody noticed"

    timer = threading.Timer(chance.uniform(0.0, RUN_S), listener.kill)
    timer.start()
    try:
        run_to_the_end(model, problem, placement, ENDLESS, emit=hear, placer="single")
    except _Enough:
        pass
    finally:
        timer.join()
    return listener.told()


def during_a_training(
    nodes: Nodes, what: str, model: Model, chance: random.Random
) -> tuple[Told, Reached]:
    """Kill an actor or a node somewhere in a training, which reaches its end without it."""
    listener, at = _Listener(nodes, what), chance.randrange(STEPS - 1)
    timer = threading.Timer(chance.uniform(0.0, STEP_S), listener.kill)

    def before(number: int) -> None:
        if number == at and not timer.is_alive() and not timer.finished.is_set():
            timer.start()

    seed = chance.randrange(100)
    reached = trained(model, nodes.machine(), before, resume=True, seed=seed, emit=listener)
    timer.join()
    return listener.told(), reached


@contextmanager
def running(verb: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A run or a training over all hosts that will not end by itself, once it is at its steps."""
    command = [sys.executable, "-m", "placement", *WORK[verb], "--machine", "ray"]
    command += ["--placer", "round_robin", "--steps", "100000", "--jsonl", *arguments]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None and process.stderr is not None
            begun = any(json.loads(line)["event"] == "step" for line in process.stdout)
            assert begun, process.stderr.read()
            yield process
        finally:
            process.terminate()


def killed(process: subprocess.Popen[str], *victims: psutil.Process) -> tuple[int, str, float]:
    """Status and last words of a command, and how long after the end of others they came."""
    begun_s = time.monotonic()
    for victim in victims:
        kill(victim)
    _, words = process.communicate(timeout=LIMIT_S)
    return process.returncode, words, time.monotonic() - begun_s
