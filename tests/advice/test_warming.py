"""A method is compiled before its time starts: once for each kind of problem, with its settings."""

from dataclasses import replace

import pytest

from placement.advice import warming
from placement.core.objective import PLAIN, CallRules, Objective
from placement.core.problem import Execution
from placement.learning.simulated import can_overflow, simulated
from placement.placers import placer_class
from placement.splits.annealing.throughput import greedy_start, max_load_s
from placement.splits.bounds.crowd import crowd_bound_s
from placement.splits.bounds.loads import plain_sums
from placement.splits.exact import branch_calls_compiled, clusters_compiled
from placement.splits.model.contract import class_units
from placement.splits.model.instance import from_problem
from tests.instances import random_problem
from tests.workloads import random_workload_problem


@pytest.fixture
def tried(monkeypatch):
    """What was placed to have it compiled, the newest last."""
    problems = []
    warming._warm_up.cache_clear()
    monkeypatch.setattr(warming, "_try", lambda placer, tiny: problems.append((placer, tiny)))
    yield problems
    warming._warm_up.cache_clear()


def test_problems_of_one_kind_are_tried_once(tried):
    mutation = placer_class("mutation")()
    for seed in range(3):
        asked = replace(mutation, seed=seed, time_limit_s=0.5, max_iterations=100 + seed)
        warming.warm_up(asked, random_problem(seed))
    ((placer, tiny),) = tried
    assert placer == replace(mutation, max_iterations=2)
    assert tiny.num_units < 100 and tiny.execution == random_problem(0).execution


def test_another_kind_or_setting_is_tried_too(tried):
    mutation, problem = placer_class("mutation")(max_iterations=2), random_problem(0)
    split = random_workload_problem(1)
    kinds = [
        (mutation, problem),
        (placer_class("heft")(), problem),
        (replace(mutation, batch=8), problem),
        (mutation, replace(problem, objective="throughput")),
        (mutation, replace(problem, execution="op")),
        (mutation, replace(problem, execution="segment")),
        (mutation, replace(problem, memory_model="live")),
        (mutation, split),
        (mutation, replace(split, objective="throughput", rules=CallRules(gpipe=True))),
    ]
    for _ in range(2):
        for placer, posed in kinds:
            warming.warm_up(placer, posed)
    asked = [(t.objective, t.execution, t.memory_model, t.rules) for _, t in tried]
    assert len(tried) == len({(p, *about) for (p, _), about in zip(tried, asked, strict=True)})
    assert {(p, q.objective, q.execution, q.memory_model, q.rules) for p, q in kinds} == {
        (p, *about) for (p, _), about in zip(tried, asked, strict=True)
    }


def test_what_other_computers_compile_is_what_this_one_does(tried):
    problem = random_problem(2)
    kind = placer_class("mutation")
    asked = warming.PlaceOptions(placer="mutation", settings={"batch": "8"})
    call = warming.warming(kind, asked, problem)
    warming.warm_up_there(*call.args)
    warming.warm_up(kind(batch=8), problem)
    assert len(tried) == 1


def test_what_proves_and_what_learns_within_memory_has_something_to_do():
    """Else it would be compiled while a person waits for the first proof."""
    learned = warming._hard(warming._tiny(Objective.LATENCY, Execution.SEGMENT, "live"))
    assert simulated(learned).is_tight and can_overflow(learned)
    split = warming._hard(warming._tiny(Objective.THROUGHPUT, Execution.CALL, "sum"))
    units = class_units(from_problem(split))
    known_s = max_load_s(units, greedy_start(units))
    assert crowd_bound_s(plain_sums(units), known_s) < known_s


PROOFS = (
    ("branch_and_bound", Objective.LATENCY, PLAIN, branch_calls_compiled, "branch_calls"),
    ("ideals_dp", Objective.THROUGHPUT, warming.RULES[-1], clusters_compiled, "search_backwards"),
)


@pytest.mark.parametrize(("name", "objective", "rules", "module", "proof"), PROOFS)
def test_what_proves_splits_is_compiled_with_its_method(
    name, objective, rules, module, proof, monkeypatch
):
    made, search = [], getattr(module, proof)

    def noted(*given):
        made.append(name)
        return search(*given)

    monkeypatch.setattr(module, proof, noted)
    hard = warming._hard(warming._tiny(objective, Execution.CALL, "sum"))
    warming._try(warming._brief(placer_class(name)()), replace(hard, rules=rules))
    assert made
