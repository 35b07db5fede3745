"""Processes of a cluster that are killed in the middle of a run or a training, and what is told."""

import functools
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil

import placement as pl
from placement.api.resume import run_to_the_end
from placement.core.model import Model
from placement.core.objective import Objective
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.core.profile import Profile
from placement.core.verb_options import MOST_STEPS, RunOptions, StreamOptions
from profiling import backends
from profiling.backends.base import DevicesLost
from tests.hosts.trainings import SIZES, STEPS, Reached, trained
from tests.hosts.two_nodes import Nodes, kill
from tests.profiling.live import problem_of

# More than any run here gets to.
ENDLESS = RunOptions(steps=MOST_STEPS)
# A run's inputs, reference and first steps take about so long.
RUN_S = 0.5
# A cluster looks after its nodes more often than that.
LOOK_S = 1.5
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
    """What was said after a kill, and how long after: of the loss, and of the first step since, 0
    where none was to come.
    """

    words: str
    silence_s: float
    goes_on_s: float


class _Listener:
    """Kills the actor or the node of a host, and hears of the loss and of the steps after it."""

    def __init__(self, nodes: Nodes, what: str) -> None:
        self._nodes, self._what = nodes, what
        self._killed_s = self._lost_s = self._on_s = 0.0
        self._words = ""

    def after(self, seconds: float) -> threading.Timer:
        """A timer that kills; who it is gets known before, for asking takes time."""
        host = "beta"
        victim = self._nodes.own_worker(host) if self._what == "actor" else self._nodes.raylet(host)

        def go() -> None:
            self._killed_s = time.monotonic()
            kill(victim)

        timer = threading.Timer(seconds, go)
        timer.start()
        return timer

    def __call__(self, event: Mapping[str, Any]) -> None:
        if event["event"] == "lost":
            self.hear(event["message"])
        elif event["event"] == "step" and self._words and not self._on_s:
            self._on_s = time.monotonic()

    def hear(self, words: str) -> None:
        """The sentence of the loss."""
        self._words, self._lost_s = words, time.monotonic()

    @property
    def has_heard(self) -> bool:
        return bool(self._words)

    @property
    def goes_on(self) -> bool:
        return self._on_s > 0.0

    def told(self) -> Told:
        """What was said; an AssertionError where that was not of this kill."""
        assert self.has_heard, "nobody was killed, or nobody noticed"
        assert 0.0 < self._killed_s <= self._lost_s, f"before the kill: {self._words}"
        goes_on_s = self._on_s - self._killed_s if self._on_s else 0.0
        return Told(self._words, self._lost_s - self._killed_s, goes_on_s)


def _posed(nodes: Nodes, model: Model) -> tuple[Problem, Placement]:
    """Ops on both hosts in turn; what is compiled for this computer once is compiled."""
    problem = problem_of(model, nodes.machine())
    placement = problem.placement_of([i % 2 for i in range(problem.num_units)])
    # It takes longer than noticing anything.
    pl.simulate(problem, placement)
    pl.place(problem, "single")
    return problem, placement


def during_a_run(
    nodes: Nodes, what: str, model: Model, chance: random.Random, *, resume: bool = True
) -> Told:
    """Kill an actor or a node somewhere in a run; returns when the run goes on without it, or has
    ended where it is not to.
    """
    problem, placement = _posed(nodes, model)
    listener = _Listener(nodes, what)
    limit_s = time.monotonic() + LIMIT_S

    def hear(event: Mapping[str, Any]) -> None:
        listener(event)
        if listener.goes_on:
            raise _Enough
        assert time.monotonic() < limit_s, "nobody was killed, or nobody noticed"

    timer = listener.after(chance.uniform(0.0, RUN_S))
    try:
        if resume:
            run_to_the_end(model, problem, placement, ENDLESS, emit=hear, placer="single")
        else:
            pl.run(model, problem, placement, ENDLESS, emit=hear)
    except DevicesLost as lost:
        listener.hear(str(lost))
    except _Enough:
        pass
    finally:
        timer.join()
    return listener.told()


def during_a_stream(
    nodes: Nodes, what: str, model: Model, chance: random.Random, *, resume: bool = True
) -> Told:
    """Kill an actor or a node somewhere in a pipeline, which goes on without it or ends."""
    problem, placement = _posed(nodes, model)
    problem = replace(problem, objective=Objective.THROUGHPUT)
    listener, options = _Listener(nodes, what), StreamOptions(samples=MOST_STEPS)
    timer = listener.after(chance.uniform(0.0, RUN_S))
    try:
        if resume:
            asked = (model, problem, placement, options)
            over = {"emit": listener, "stop": lambda: listener.goes_on, "placer": "single"}
            pl.stream_to_the_end(*asked, **over)
        else:
            pl.stream(model, problem, placement, options)
    except DevicesLost as lost:
        listener.hear(str(lost))
    finally:
        timer.join()
    return listener.told()


def during_a_training(
    nodes: Nodes, what: str, model: Model, chance: random.Random, *, resume: bool = True
) -> tuple[Told, Reached | None]:
    """Kill an actor or a node somewhere in a training, which reaches its end without it, or ends
    where it is not to go on.

    It is killed within a step, at a share of the time that the one before has taken, or at its end,
    and missed before the training ends: a node that is no more is looked after now and then, and
    meanwhile its actor may go on.
    """
    listener, at, share = _Listener(nodes, what), chance.randrange(1, STEPS - 1), chance.random()
    began_s: list[float] = []
    timers: list[threading.Timer] = []

    def before(number: int) -> None:
        began_s.append(time.monotonic())
        if number == at:
            timers.append(listener.after(share * (began_s[-1] - began_s[-2])))
        elif number == at + 1:
            timers[0].join()
        if number == STEPS - 1 and not listener.has_heard:
            time.sleep(LOOK_S)

    seed, reached = chance.randrange(100), None
    try:
        reached = trained(model, nodes.machine(), before, resume=resume, seed=seed, emit=listener)
    except DevicesLost as lost:
        listener.hear(str(lost))
    return listener.told(), reached


def when_hosts_connect(nodes: Nodes, what: str) -> psutil.Process:
    """Have the actor or the node of beta killed the moment that alpha connects to another host."""
    import ray

    nodes.machine()
    # Who ran on them before may have connected them.
    backends.get("ray").cluster().leave()
    nodes.machine()
    victim = nodes.own_worker("beta") if what == "actor" else nodes.raylet("beta")
    actor = backends.get("ray").cluster().workers["alpha"]
    ray.get(actor.__ray_call__.remote(_kill_first, victim.pid))
    return victim


def _kill_first(worker: Any, pid: int) -> None:
    connect = socket.create_connection

    def killing(*given: Any) -> socket.socket:
        # Alpha has been told where to find beta.
        socket.create_connection = connect
        os.kill(pid, signal.SIGKILL)
        return connect(*given)

    socket.create_connection = killing  # type: ignore[assignment]


@dataclass(frozen=True)
class Ended:
    """Status and last words of a command, and how long after the end of others it ended."""

    status: int
    words: str
    silence_s: float


@contextmanager
def running(verb: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A run or a training over all hosts that will not end by itself, once it is at its steps."""
    with _started(verb, *arguments) as process:
        _await(process, event="step")
        yield process


@contextmanager
def _started(verb: str, *arguments: str, **variables: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "placement", *WORK[verb], "--machine", "ray"]
    command += ["--placer", "round_robin", "--steps", "100000", "--jsonl", *arguments]
    with ExitStack() as stack:
        if verb == "run":
            folder = stack.enter_context(TemporaryDirectory())
            command += ["--profile", f"{folder}/profile.json"]
            Path(command[-1]).write_text(_profile(), "utf-8")
        process = stack.enter_context(
            subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, **variables},
                text=True,
            )
        )
        stack.callback(process.terminate)
        yield process


@functools.cache
def _profile() -> str:
    """The kernels of what is run at 0.1 ms each, so that no command measures anything first."""
    model = pl.load(WORK["run"][1])
    lanes = pl.machine_for(model, pl.machine("two-lanes"))
    names = dict(zip(lanes.index, ("alpha/cpu:0", "beta/cpu:0"), strict=True))
    machine = replace(
        lanes,
        devices=tuple(replace(device, name=names[device.name]) for device in lanes.devices),
        links=tuple(
            replace(link, src=names[link.src], dst=names[link.dst]) for link in lanes.links
        ),
    )
    compiled = backends.compiled(model, lanes)
    rows = len(compiled.kernels.ops)
    profile = Profile(
        graph=model.graph.fingerprint,
        machine=machine,
        kernels=compiled.kernels,
        sources=compiled.sources,
        compute_s=((1e-4, 1e-4),) * rows,
        spread=((0.0, 0.0),) * rows,
        call_s=(5e-6, 5e-6),
        step_s=(None, None),
    )
    return json.dumps(profile.to_json())


def _await(process: subprocess.Popen[str], **wanted: str) -> Mapping[str, Any]:
    """Read what a command says until there is an event with all that is wanted, and give it."""
    assert process.stdout is not None and process.stderr is not None
    said = map(json.loads, process.stdout)
    found = next((event for event in said if wanted.items() <= event.items()), None)
    assert found is not None, process.stderr.read()
    return dict(found)


def lost(process: subprocess.Popen[str], victim: psutil.Process) -> tuple[Mapping[str, Any], float]:
    """What a command that goes on says of a host that is killed, and how long after; it is at its
    steps again by then.
    """
    begun_s = time.monotonic()
    kill(victim)
    found = _await(process, event="lost")
    silence_s = time.monotonic() - begun_s
    _await(process, event="step")
    return found, silence_s


def killed(process: subprocess.Popen[str], *victims: psutil.Process) -> Ended:
    """What a command says when others are killed, and how it ends."""
    reader = _reading(process)
    begun_s = time.monotonic()
    for victim in victims:
        kill(victim)
    found = _ended(process, begun_s)
    reader.join(LIMIT_S)
    return found


def _reading(process: subprocess.Popen[str]) -> threading.Thread:
    """Read what a command says from now on, for a pipe that is full stops it at its next step."""
    reader = threading.Thread(target=deque, args=(process.stdout, 0), daemon=True)
    reader.start()
    return reader


def of_a_head(nodes: Nodes, chance: random.Random, verbs: Sequence[str]) -> list[Ended]:
    """Kill all processes of the head under commands, somewhere in their steps; a training is begun
    first.
    """
    with ExitStack() as stack:
        begun: list[subprocess.Popen[str]] = []
        for verb in verbs:
            # Of those that have one home one runs at a time.
            apart = {"PLACEMENT_STUDIO_HOME": stack.enter_context(TemporaryDirectory())}
            begun.append(stack.enter_context(_started(verb, **apart)))
            if verb == "train":
                # A run, which is at its steps sooner, is not to wait there while the training's
                # hosts open their model.
                _await(begun[-1], event="progress", what="preparing to train")
        for process in reversed(begun):
            # Meanwhile the other one comes no further than what it says fills its pipe.
            _await(process, event="step")
        readers = [_reading(process) for process in begun]
        time.sleep(chance.uniform(0.0, RUN_S))
        begun_s = time.monotonic()
        for victim in nodes.processes("alpha"):
            kill(victim)
        with ThreadPoolExecutor() as pool:
            found = list(pool.map(lambda process: _ended(process, begun_s), begun))
        for reader in readers:
            # What is still in the pipe is read before somebody closes it.
            reader.join(LIMIT_S)
        return found


def _ended(process: subprocess.Popen[str], begun_s: float) -> Ended:
    assert process.stderr is not None
    # It has few words, which nobody needs to read before it ends.
    status = process.wait(LIMIT_S)
    return Ended(status, process.stderr.read(), time.monotonic() - begun_s)
