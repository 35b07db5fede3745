"""Train the bundled list policy on made-up graphs, and try it on graphs of other families.

    python -m benchmarks.train_policies --minutes 10
    python -m benchmarks.train_policies --check

Training is by evolution strategies: in each step every changed network places some graphs of the
families in `TRAINED`, and what counts is the best of a few roll-outs on each, ranked graph by
graph, so that no graph outweighs another. `--check` places the families held out, and Inception v2,
with 64 roll-outs and nothing learned on them, beside all on one device, HEFT and PEFT. The policy
is written to assets/policies/ at the end. The bundled one was trained for 22 minutes on a busy
2-core machine with half the noise in roll-outs, and for 7 more (`--start`) with that of now.
"""

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

import placement as pl
from benchmarks._families import HELD_OUT, TRAINED, problem_of
from placement.core.costs import Floats
from placement.core.problem import Problem
from placement.learning.environment import Environment
from placement.learning.evolution import Evolution, centred_ranks
from placement.learning.sequential import Course, course_of, rollouts
from placement.placers import placer_class
from placement.placers._learned import chained, environment_of
from placement.placers._multistart import starts
from placement.placers.list_policy import BUNDLED, UNTRAINED, save_weights, weights_of
from placement.search.feasible import final_s

GRAPHS_PER_FAMILY, FIRST_HELD_OUT, NUM_HELD_OUT = 100, 2000, 20
GRAPHS_PER_STEP, PAIRS, ROLLOUTS = 12, 12, 12
SIGMA, LEARNING_RATE = 0.1, 0.02
REFERENCES = ("single", "heft", "peft")
MACHINES = ("laptop-gpu", "pcie-4gpu", "nvlink-8gpu", "two-lanes")
TELL_EVERY_S = 30.0


class Example(NamedTuple):
    environment: Environment
    course: Course


def examples() -> list[Example]:
    """What is trained on."""
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
    """The weights after so many seconds of training."""
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


def held_out() -> Iterator[tuple[str, Problem]]:
    """What a policy is tried on, by family."""
    for family in HELD_OUT:
        for seed in range(FIRST_HELD_OUT, FIRST_HELD_OUT + NUM_HELD_OUT):
            yield family, problem_of(family, seed)
    model = pl.load("onnx-inception-v2")
    for machine in MACHINES:
        yield "inception", pl.make_problem(model, pl.machine(machine))


def check(policies: list[str]) -> None:
    """Print how policies do as they are beside the best of the references, by family."""
    ratios: dict[tuple[str, str], list[float]] = {}
    for family, problem in held_out():
        reference_s = min(final_s(problem, starts(problem, [name])[0]) for name in REFERENCES)
        for policy in policies:
            placer = placer_class("list_policy")
            settings = {"policy": policy, "max_iterations": 1, "candidates": ""}
            value_s = final_s(problem, placer(**settings).place(problem))
            of_kind = f"{family} {problem.objective}"
            ratios.setdefault((of_kind, policy), []).append(value_s / reference_s)
            ratios.setdefault(("all", policy), []).append(value_s / reference_s)
    print(f"{'family':<22} {'policy':<14} {'cases':>5} {'median':>7} {'worst':>7} {'mean':>7}")
    for (family, policy), found in sorted(ratios.items()):
        mean = float(np.exp(np.mean(np.log(found))))
        named = Path(policy).stem or "bundled"
        print(
            f"{family:<22} {named:<14} {len(found):>5} {np.median(found):>7.3f}"
            f" {max(found):>7.3f} {mean:>7.3f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="how long to train")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--start", default=UNTRAINED, help="a policy to begin with")
    parser.add_argument("--out", type=Path, default=BUNDLED, help="where to write the policy")
    parser.add_argument("--check", nargs="*", help="try policies instead; '' is the bundled one")
    options = parser.parse_args()
    if options.check is None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        save_weights(
            options.out, train(weights_of(options.start), 60.0 * options.minutes, options.seed)
        )
    check(options.check or ["", UNTRAINED])


if __name__ == "__main__":
    main()
