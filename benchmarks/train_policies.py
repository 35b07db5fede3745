"""Train the bundled policies on made-up graphs, and try them on graphs of other families.

    python -m benchmarks.train_policies --learner list_policy --seconds 600
    python -m benchmarks.train_policies --learner hsdag,rnn --check

The list policy is trained by evolution strategies: in each step every changed network places some
graphs of the families in `TRAINED`, and what counts is the best of a few roll-outs on each, ranked
graph by graph, so that no graph outweighs another. The others are trained by Reptile
(`reptile.py`). `--check` places the families held out, and Inception v2, by one batch of 64
placements with nothing learned on them, and by eight, beside all on one device, HEFT and PEFT, and
beside networks that begin untrained. A policy is written to assets/policies/ at the end. The
bundled list policy was trained for 22 minutes on a busy 2-core machine with half the noise in
roll-outs, and for 7 more (`--start`) with that of now; the others for 60 to 180 s each.
"""

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import placement as pl
from benchmarks._learned import reptile
from benchmarks._learned.families import HELD_OUT, TRAINED, problem_of
from placement.core.costs import Floats
from placement.core.problem import Problem
from placement.learning.checkpoint import BUNDLED, path_of
from placement.learning.environment import Environment
from placement.learning.evolution import Evolution, centred_ranks
from placement.learning.sequential import Course, course_of, rollouts
from placement.placers import placer_class
from placement.placers._learned import chained, environment_of
from placement.placers._multistart import starts
from placement.placers.base import Progress
from placement.placers.list_policy import LEARNER, save_weights, weights_of
from placement.search.feasible import final_s

GRAPHS_PER_FAMILY, FIRST_HELD_OUT, NUM_HELD_OUT = 100, 2000, 20
GRAPHS_PER_STEP, PAIRS, ROLLOUTS = 12, 12, 12
SIGMA, LEARNING_RATE = 0.1, 0.02
REFERENCES = ("single", "heft", "peft")
MACHINES = ("laptop-gpu", "pcie-4gpu", "nvlink-8gpu", "two-lanes")
LEARNERS = (LEARNER, "hsdag", "group_pg", "hierarchical", "rnn", "placeto")
# Batches of a trial, and placements in each; those of Placeto are episodes.
TRIALS, BATCH = (1, 8), {"placeto": 8}
BATCH_OTHERWISE = 64
TELL_EVERY_S = 30.0


class Example(NamedTuple):
    environment: Environment
    course: Course


def examples() -> list[Example]:
    """What the list policy is trained on."""
    found = []
    for family in TRAINED:
        for seed in range(GRAPHS_PER_FAMILY):
            environment = chained(environment_of(problem_of(family, seed)))
            found.append(Example(environment, course_of(environment)))
    return found


def costs_of(example: Example, weights: Floats, seed: int) -> Floats:
    """Seconds of the best of a few roll-outs with each row of weights (N, W), which take the same
    chances."""
    num = len(weights)
    each = rollouts(example.course, ROLLOUTS, seed).repeated(num)
    devices = each.devices(np.repeat(weights, ROLLOUTS, axis=0))
    least_s: Floats = example.environment.values_s(devices).reshape(num, ROLLOUTS).min(axis=1)
    return least_s


def train(weights: Floats, seconds: float, seed: int) -> Floats:
    """The weights of the list policy after so many seconds of training."""
    chance, known = np.random.default_rng(seed), examples()
    evolution = Evolution(weights, sigma=SIGMA, learning_rate=LEARNING_RATE, seed=seed)
    begun_s, step = time.perf_counter(), 0
    told_s = begun_s
    while (share := (time.perf_counter() - begun_s) / seconds) < 1.0:
        evolution.learning_rate = LEARNING_RATE * (1.0 - 0.9 * share)
        asked, ranks = evolution.asked(PAIRS), np.zeros(2 * PAIRS)
        for i in chance.choice(len(known), GRAPHS_PER_STEP, replace=False).tolist():
            ranks += centred_ranks(costs_of(known[i], asked, int(chance.integers(1 << 31))))
        evolution.told(ranks)
        step += 1
        if time.perf_counter() - told_s > TELL_EVERY_S:
            told_s = time.perf_counter()
            print(f"{told_s - begun_s:6.0f} s  {step} steps", flush=True)
    return evolution.weights


def held_out(num: int) -> Iterator[tuple[str, Problem]]:
    """What a policy is tried on, by family."""
    for family in HELD_OUT:
        for seed in range(FIRST_HELD_OUT, FIRST_HELD_OUT + num):
            problem = problem_of(family, seed)
            yield f"{family} {problem.objective}", problem
    model = pl.load("onnx-inception-v2")
    for machine in MACHINES:
        yield "inception", pl.make_problem(model, pl.machine(machine))


def check(learner: str, policies: list[str], num: int) -> None:
    """Print how policies do beside the best of the references, by family and number of batches."""
    ratios: dict[tuple[str, int, str], list[float]] = {}
    tried: dict[tuple[int, str], list[int]] = {}
    for family, problem in held_out(num):
        reference_s = min(final_s(problem, starts(problem, [name])[0]) for name in REFERENCES)
        for batches in TRIALS:
            for policy in policies:
                value_s, evaluations = _tried(learner, problem, policy, batches)
                tried.setdefault((batches, policy), []).append(evaluations)
                for group in (family, "all"):
                    key = (group, batches, policy)
                    ratios.setdefault(key, []).append(value_s / reference_s)
    print(
        f"{learner:<22} {'batches':>7} {'policy':<14} {'cases':>5} {'evaluations':>11}"
        f" {'median':>7} {'worst':>7} {'mean':>7}"
    )
    for (family, batches, policy), found in sorted(ratios.items()):
        mean = float(np.exp(np.mean(np.log(found))))
        print(
            f"{family:<22} {batches:>7} {Path(policy).stem or 'untrained':<14} {len(found):>5}"
            f" {np.median(tried[batches, policy]):>11.0f} {np.median(found):>7.3f}"
            f" {max(found):>7.3f} {mean:>7.3f}",
            flush=True,
        )


def _tried(learner: str, problem: Problem, policy: str, batches: int) -> tuple[float, int]:
    """Seconds of what a policy finds in so many batches, and the placements that it valued."""
    heard = [0]

    def hear(progress: Progress) -> bool:
        heard.append(progress.evaluations)
        return True

    settings: dict[str, Any] = {"candidates": "", "policy": policy, "max_iterations": batches}
    placer = placer_class(learner)(batch=BATCH.get(learner, BATCH_OTHERWISE), **settings)
    return final_s(problem, placer.place(problem, hear)), max(heard)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--learner", default=LEARNER, help=f"by comma, of {', '.join(LEARNERS)}")
    parser.add_argument("--seconds", type=float, default=200.0, help="how long to train each")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--start", default="", help="a list policy to begin with")
    parser.add_argument("--out", type=Path, help="where to write a policy; without it: bundled")
    parser.add_argument("--held-out", type=int, default=NUM_HELD_OUT, help="graphs of each family")
    parser.add_argument(
        "--check", nargs="*", help="try policies instead; 'bundled', or '' for an untrained one"
    )
    options = parser.parse_args()
    for learner in filter(None, options.learner.split(",")):
        if learner not in LEARNERS:
            parser.error(f"learner {learner!r} has no policy; use one of {', '.join(LEARNERS)}")
        out = options.out or path_of(BUNDLED, learner)
        if options.check is None:
            out.parent.mkdir(parents=True, exist_ok=True)
            if learner == LEARNER:
                weights = weights_of(options.start)
                save_weights(out, train(weights, options.seconds, options.seed))
            else:
                out.write_bytes(reptile.train(learner, options.seconds, options.seed, print))
        check(learner, options.check or ["", str(out)], options.held_out)


if __name__ == "__main__":
    main()
