"""Training on batches of placements: its parts by hand, and what it finds against brute force."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from placement.learning.budget import Budget, default_evaluations
from placement.learning.simulated import simulated
from placement.learning.training import (
    Elite,
    Recipe,
    advantages,
    at_random,
    changed,
    sampled,
    train,
)
from tests.instances import random_problem
from tests.learning.independent import Independent


def small(seed=0, **more):
    return simulated(random_problem(seed, num_ops=7, num_devices=2, **more))


def of_everything(environment):
    """All placements of a small environment and their values."""
    choices = [np.flatnonzero(row) for row in environment.allowed]
    devices = np.array(list(itertools.product(*choices)))
    return devices, environment.values_s(devices)


def test_advantages_are_standard_deviations_of_logarithms():
    values_s = np.array([1.0, 10.0, 100.0])
    # Logarithms -1, 0 and 1 around their mean, in units of their spread sqrt(2 / 3).
    assert advantages(values_s).tolist() == pytest.approx([math.sqrt(1.5), 0.0, -math.sqrt(1.5)])
    assert advantages(values_s * 7).tolist() == pytest.approx(advantages(values_s).tolist())


def test_what_cannot_be_is_a_little_worse_than_the_worst_that_can():
    found = advantages(np.array([1.0, math.e, np.inf, np.inf]))
    # The spread of the possible ones, 1/2, comes on top: logarithms 0, 1, 1.5 and 1.5.
    logs = np.array([0.0, 1.0, 1.5, 1.5])
    assert found.tolist() == pytest.approx(((logs.mean() - logs) / logs.std()).tolist())


@pytest.mark.parametrize("values_s", [[np.inf, np.inf], [2.0, 2.0, 2.0], [0.0], []])
def test_where_nothing_is_better_there_is_no_advantage(values_s):
    assert not advantages(np.array(values_s)).any()


def test_random_placements_are_uniform_over_what_is_allowed():
    environment = simulated(random_problem(5, num_devices=4, with_gaps=True))
    drawn = at_random(environment, 20_000, np.random.default_rng(0))
    for unit in range(environment.num_units):
        counts = np.bincount(drawn[:, unit], minlength=4)
        share = environment.allowed[unit] / environment.allowed[unit].sum()
        # Five standard deviations of a share of 20 000 draws.
        assert counts / 20_000 == pytest.approx(share, abs=0.018), unit


def test_changes_draw_a_share_of_the_units_anew_and_at_least_one():
    problem = replace(random_problem(2, num_ops=200, num_devices=4, with_gaps=True))
    environment, chance = simulated(problem), np.random.default_rng(1)
    units = np.arange(environment.num_units)
    base = at_random(environment, 1, chance)[0]
    rows = changed(environment, base, 2_000, 0.05, chance)
    assert environment.allowed[units, rows].all()
    # Each is drawn anew with 5 %, and of those some fall on the device that they have.
    apart = (1 - 1 / environment.allowed.sum(axis=1)) * 0.05
    assert (rows != base).mean(axis=0) == pytest.approx(apart, abs=0.025)
    assert changed(environment, base, 0, 0.05, chance).shape == (0, 200)


def test_a_change_without_a_share_moves_one_unit():
    environment = small(1)
    base = np.zeros(environment.num_units, dtype=np.int64)
    rows = changed(environment, base, 4_000, 0.0, np.random.default_rng(2))
    moved = (rows != base).sum(axis=1)
    assert set(moved.tolist()) == {0, 1}
    # One unit is drawn anew each time, half the time on the device that it has.
    assert moved.mean() == pytest.approx(0.5, abs=0.04)
    assert (rows != base).mean(axis=0) == pytest.approx(0.5 / environment.num_units, abs=0.02)


def test_the_elite_is_the_start_of_a_plain_sort():
    chance = np.random.default_rng(3)
    elite, best_of_all = Elite(5), {}
    assert math.isinf(elite.best_s) and not elite.num
    for _ in range(30):
        devices = chance.integers(3, size=(8, 4))
        values_s = (devices @ [1, 2, 3, 5]).astype(float)
        values_s[chance.random(8) < 0.2] = np.inf
        elite.add(devices, values_s)
        for row, value_s in zip(devices.tolist(), values_s.tolist(), strict=True):
            if math.isfinite(value_s):
                best_of_all.setdefault(tuple(row), value_s)
        wanted = sorted(best_of_all.values())[:5]
        assert [float(row @ [1, 2, 3, 5]) for row in elite.devices] == wanted
        assert len({tuple(row) for row in elite.devices.tolist()}) == elite.num
        if wanted:
            assert elite.best_s == wanted[0]


def test_of_equals_the_elite_keeps_the_older():
    elite = Elite(2)
    rows = np.arange(4)[:, None]
    elite.add(rows[:2], np.array([1.0, 2.0]))
    elite.add(rows[2:], np.array([2.0, 1.0]))
    assert elite.devices[:, 0].tolist() == [0, 3]
    elite.add(rows[:1] + 7, np.array([1.0]))
    assert elite.devices[:, 0].tolist() == [0, 3]


@pytest.mark.parametrize("objective", ["latency", "throughput"])
@pytest.mark.parametrize(
    "recipe",
    [
        Recipe(),
        Recipe(proposed=0.0, elite=0, imitation=0.0, batch=64, learning_rate=0.05),
    ],
)
def test_training_finds_what_brute_force_finds(objective, recipe):
    for seed in range(2):
        problem = random_problem(seed, num_ops=7, num_devices=2, with_gaps=True)
        environment = simulated(replace(problem, objective=objective))
        found = train(environment, Independent(environment), recipe, Budget(None, 4_000), seed=seed)
        assert found.value_s == of_everything(environment)[1].min()
        assert environment.values_s(found.devices[None])[0] == found.value_s
        assert found.evaluations == len(found.curve) * recipe.batch
        best_s = [point.best_s for point in found.curve]
        assert best_s == sorted(best_s, reverse=True)


def test_a_policy_alone_comes_to_prefer_what_is_best():
    """Without elite and proposals what it draws nears the optimum, on average by four fifths."""
    environment = small(4)
    recipe = Recipe(proposed=0.0, elite=0, imitation=0.0, entropy=0.0, batch=64, learning_rate=0.05)
    found = train(environment, Independent(environment), recipe, Budget(None, 8_000), seed=0)
    values_s = of_everything(environment)[1]
    first, last = found.curve[0], found.curve[-1]
    assert first.mean_s == pytest.approx(values_s.mean(), rel=0.1)
    assert last.mean_s < values_s.min() + 0.2 * (first.mean_s - values_s.min())
    assert last.entropy < 0.5 * first.entropy


def test_a_start_is_the_incumbent_and_a_report_may_end_it():
    environment = small(2)
    devices, values_s = of_everything(environment)
    best = devices[values_s.argmin()]
    heard = []

    def tell(point, share, batch):
        heard.append((point, share))
        return len(heard) < 3

    policy = Independent(environment)
    found = train(
        environment, policy, Recipe(), Budget(None, 10_000), seed=0, tell=tell, start=best
    )
    assert found.value_s == values_s.min() and len(found.curve) == 3
    assert [point for point, _ in heard] == list(found.curve)
    assert [share for _, share in heard] == [0.0128, 0.0256, 0.0384]


def test_where_nothing_is_possible_training_says_so():
    environment = small(3)
    environment = replace(environment, allowed=np.zeros_like(environment.allowed))
    environment.allowed[:, 0] = True
    environment = replace(environment, limit_bytes=np.zeros(2), size_bytes=np.ones(7))
    with pytest.raises(ValueError, match=r"None of the 256 placements .* is possible; give"):
        train(environment, Independent(environment), Recipe(), Budget(None, 200), seed=0)
    with pytest.raises(ValueError, match=r"None of the 200 placements .* is possible; give"):
        sampled(
            environment,
            lambda best: at_random(environment, 100, np.random.default_rng(0)),
            Budget(None, 200),
        )


def test_samples_are_drawn_from_the_best_and_of_equals_the_newer_is_taken():
    environment = small(6)
    devices, values_s = of_everything(environment)
    seen, worst = [], int(values_s.argmax())

    def draw(best):
        seen.append(best)
        return devices[[worst, len(seen)]]

    found = sampled(environment, draw, Budget(None, 20))
    assert seen[0] is None and found.evaluations == 20
    for i, best in enumerate(seen[1:], 1):
        least_s = values_s[[worst, *range(1, i + 1)]].min()
        newest = max(n for n in [0, *range(1, i + 1)] if values_s[n] == least_s)
        assert best.tolist() == devices[newest].tolist()
        assert found.curve[i - 1].best_s == least_s


def test_a_budget_is_spent_by_what_is_used_up_first():
    by_number = Budget(None, 200)
    assert [by_number.spent(n) for n in (0, 50, 200, 300)] == [0.0, 0.25, 1.0, 1.0]
    assert Budget(3600.0, 0).spent(10**9) < 0.1
    assert Budget(3600.0, 10).spent(10) == 1.0
    assert Budget(0.0, 10).spent(0) == 1.0


def test_small_problems_get_few_placements_by_default():
    """A hundred for each device that a unit may also be on, within limits by the graph's size."""
    one = random_problem(0, num_ops=1, num_devices=1)
    assert default_evaluations(one) == 1
    few = random_problem(0, num_ops=4, num_devices=3)
    assert default_evaluations(few) == 100 * 4 * 2
    assert default_evaluations(random_problem(0, num_ops=900, num_devices=5)) < 100 * 900 * 4
