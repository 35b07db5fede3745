"""Training of a network over many graphs: Reptile, Nichol, Achiam and Schulman, 2018.

The learner itself goes on from the policy for a few batches on one graph, and the policy moves part
of the way to where that led; what it did not know it takes over whole. Ops of made-up graphs have
no kinds here, since theirs mean nothing elsewhere.
"""

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._learned.families import TRAINED, problem_of
from placement.core.problem import Problem
from placement.learning.carrying import Numbers
from placement.learning.checkpoint import note_of, save_policy
from placement.placers import placer_class

GRAPHS_PER_FAMILY, MOST_UNITS = 60, 100
# Batches on a graph at a time, and how far the policy moves, at first and in the end.
BATCHES, FIRST_STEP, LAST_STEP = 5, 0.4, 0.04
# Placements of each visit, and steps smaller than a learner's own where those are large.
SETTINGS: dict[str, dict[str, Any]] = {
    "hsdag": {"batch": 128, "learning_rate": 0.002},
    "group_pg": {"batch": 128, "learning_rate": 0.003},
    "hierarchical": {"batch": 64, "learning_rate": 0.003},
    "rnn": {"batch": 64},
    "placeto": {"batch": 8, "max_iterations": 2},
}


def examples() -> list[Problem]:
    """What is trained on: graphs that are learned on one level, on two devices or more."""
    found = []
    for family in TRAINED:
        for seed in range(GRAPHS_PER_FAMILY):
            problem = without_kinds(problem_of(family, seed))
            if problem.num_units <= MOST_UNITS and len(problem.machine.devices) > 1:
                found.append(problem)
    return found


def without_kinds(problem: Problem) -> Problem:
    ops = tuple(replace(op, kind="") for op in problem.graph.ops)
    graph = replace(problem.graph, ops=ops)
    return replace(problem, graph=graph, kernels=graph)


def train(learner: str, seconds: float, seed: int, tell: Callable[[str], None]) -> bytes:
    """The file of the policy after so many seconds."""
    chance, known = np.random.default_rng(seed), examples()
    with tempfile.TemporaryDirectory() as folder:
        now, then = (Path(folder) / f"{name}.safetensors" for name in ("now", "then"))
        begun_s, share = time.perf_counter(), 0.0
        for step, number in enumerate(_visits(chance, len(known))):
            placer = placer_class(learner)(
                **{"max_iterations": BATCHES, "candidates": "", **SETTINGS[learner]},
                policy=str(now) if step else "",
                save=str(then),
                seed=int(chance.integers(1 << 31)),
            )
            placer.place(known[number])
            share = (time.perf_counter() - begun_s) / seconds
            size = FIRST_STEP + (LAST_STEP - FIRST_STEP) * min(1.0, share)
            _move(now, then, size if step else 1.0, learner)
            if step % 25 == 0:
                tell(f"{share:6.1%}  {step} graphs")
            if share >= 1.0:
                break
        return now.read_bytes()


def _visits(chance: np.random.Generator, num: int) -> Iterator[int]:
    while True:
        yield from chance.permutation(num).tolist()


def _move(now: Path, then: Path, size: float, learner: str) -> None:
    """Move the policy of one file towards that of another."""
    from safetensors.numpy import load_file

    before = load_file(now) if now.exists() else {}
    save_policy(now, learner, note_of(then).sizes, moved(before, load_file(then), size))


def moved(
    before: Mapping[str, Numbers], after: Mapping[str, Numbers], size: float
) -> dict[str, Numbers]:
    """Arrays part of the way from some to others; zeros, which nobody knows, go all of it."""
    found = {}
    for name, to in after.items():
        at = before.get(name, np.zeros_like(to))
        found[name] = np.where(at == 0.0, to, at + np.float32(size) * (to - at))
    return found
