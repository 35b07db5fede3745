"""Training of policies over many graphs, and the table of what features are good for."""

import numpy as np

from benchmarks._learned.families import problem_of
from benchmarks._learned.reptile import moved, without_kinds
from benchmarks._learned.summary import Row
from benchmarks.ablation import lines, settings_of


def test_a_policy_moves_part_of_the_way_and_takes_over_what_it_did_not_know():
    before = {"w": np.array([1.0, 0.0, -2.0], dtype=np.float32)}
    after = {"w": np.array([2.0, 5.0, -2.0], dtype=np.float32), "b": np.float32([3.0])}
    found = moved(before, after, 0.25)
    assert found["w"].tolist() == [1.25, 5.0, -2.0]
    assert found["b"].tolist() == [3.0]


def test_ops_without_kinds_cost_what_they_did():
    problem = problem_of("towers", 1)
    found = without_kinds(problem)
    assert {op.kind for op in found.graph.ops} == {""}
    assert found.costs is problem.costs
    assert found.kernels.arrays.producer.tolist() == problem.kernels.arrays.producer.tolist()


def test_an_ablation_is_beside_the_median_with_all_features():
    rows = [
        Row(case="a", placer="hsdag", settings=settings_of(part, 5), seed=seed, value_ms=value_ms)
        for part, values in (("", (1.0, 2.0, 3.0)), ("id", (3.0, 4.0, 9.0)))
        for seed, value_ms in enumerate(values)
    ]
    every, without = lines(rows, 5)
    assert (every["without"], every["median"], every["worst"], every["beside"]) == (
        "nothing",
        2.0,
        3.0,
        0.0,
    )
    assert (without["without"], without["median"], without["worst"]) == ("id", 4.0, 9.0)
    assert without["beside"] == 1.0 and without["num_seeds"] == 3
    assert list(lines(rows, 6)) == []
