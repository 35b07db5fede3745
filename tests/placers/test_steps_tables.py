"""What tables of steps say, by definitions: parts and cuts, fillings, chances, guesses, stages."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from placement.core.objective import CallRules
from placement.loaders.workload import problem_from_workload
from placement.placers import placer_class
from placement.search.feasible import final_s
from placement.search.step_parts import cut_bytes
from placement.search.steps import placed_ops
from tests.instances import random_problem
from tests.placers.test_steps import brief, fitting, instance, tight
from tests.splits.test_split_placers import workload


def tables_of(step, title):
    return [table for table in step.tables if table.title.startswith(title)]


def sent_bytes(problem, device_of):
    """Each value once for every device that reads it and has not made it."""
    kernels, unit = problem.kernels, problem.unit_of_kernel.tolist()
    where = {op.name: device_of[unit[k]] for k, op in enumerate(kernels.ops)}
    return sum(
        tensor.num_bytes
        for tensor in kernels.tensors
        if tensor.producer is not None
        for _ in {where[c] for c in tensor.consumers} - {where[tensor.producer]}
    )


@pytest.mark.parametrize("seed", range(8))
def test_cut_bytes_are_what_parts_send_each_other(seed):
    problem = instance(seed)
    part = np.random.default_rng(seed).integers(3, size=problem.num_units)
    assert cut_bytes(problem, part) == sent_bytes(problem, part.tolist())


@pytest.mark.parametrize("name", ["metis", "kahip"])
def test_a_division_has_the_parts_that_its_table_says(name):
    for problem in (random_problem(1, num_ops=30, num_devices=3), tight(0), tight(1)):
        steps = list(placer_class(name)().steps(problem, 400))
        devices = [device.name for device in problem.machine.devices]
        for step in steps[1:-1]:
            so_far = tables_of(step, "Divisions")[0]
            for parts in tables_of(step, "Parts"):
                placed = placed_ops(problem, step)
                for part, speed, share, num_ops in parts.rows:
                    assert num_ops == list(placed.values()).count(part)
                    assert 0 <= share <= 1 and 0 < speed <= 1
                assert sum(parts.column("share of the work")) == pytest.approx(1.0)
                assert so_far.column("cut")[-1] == sent_bytes(problem, step.devices)
                assert set(parts.column("part for")) <= set(devices)
            if step.question:
                last_s = so_far.column("predicted")[-1]
                placement = problem.placement_of(step.devices)
                assert last_s == pytest.approx(final_s(problem, placement))
                before_s = [s for s in so_far.column("predicted")[:-1] if s is not None]
                is_better = all(last_s < s for s in before_s)
                assert step.question.answer == ("yes" if is_better else "no")
        (best,) = tables_of(steps[-1], "Divisions")[0].marked
        values = tables_of(steps[-1], "Divisions")[0].column("predicted")
        assert values[best] == min(s for s in values if s is not None)


@pytest.mark.parametrize(
    ("name", "room", "need"),
    [("m_topo", "room before", "it needs"), ("greedy_fill", "room for weights", None)],
)
def test_what_was_put_somewhere_takes_room_there_and_nowhere_else(name, room, need):
    for problem in (tight(0), tight(1)):
        size = np.bincount(
            problem.unit_of_kernel, problem.kernels.arrays.resident_bytes, problem.num_units
        )
        puts = [step for step in placer_class(name)().steps(problem, 400) if step.tables]
        puts = [step for step in puts if step.tables[0].title.startswith("Room for")]
        assert len(puts) == problem.num_units
        for before, step in pairwise(puts):
            (at,) = before.tables[0].marked
            (unit,) = [
                u for u, d in enumerate(before.devices) if d >= 0 and _is_new(puts, before, u)
            ]
            taken = size[unit] if need is None else before.tables[0].column(need)[at]
            old, new = before.tables[0].column(room), step.tables[0].column(room)
            for d, (was, now) in enumerate(zip(old, new, strict=True)):
                if was is not None and now is not None:
                    assert now == pytest.approx(was - (taken if d == at else 0), abs=1e-6)


def _is_new(puts, step, unit):
    """Whether a unit was put somewhere in this step."""
    number = puts.index(step)
    return number == 0 or puts[number - 1].devices[unit] < 0


@pytest.mark.parametrize("name", ["group_pg", "hsdag", "rnn", "list_policy"])
def test_chances_are_shares_and_the_opacity_of_what_was_drawn(name):
    problem = random_problem(3, num_ops=14, num_devices=3, execution="op")
    steps = list(brief(name).steps(problem, 400))
    batches = [step for step in steps if tables_of(step, "Batches") and step.opacity]
    assert len(batches) >= 3
    best_s = np.inf
    for step in batches:
        curve, chances = tables_of(step, "Batches")[0], step.tables[1]
        number, _, _, mean_s, now_s, sure = curve.rows[0]
        assert now_s <= best_s and (mean_s is None or mean_s >= now_s)
        if step.question:
            assert step.question.answer == ("yes" if now_s < best_s * (1 - 1e-12) else "no")
        best_s = now_s
        assert number == len(curve.rows) or len(curve.rows) == 12
        assert 1 / 3 - 1e-6 <= sure <= 1 + 1e-6
        for row in chances.rows:
            assert sum(row[2:]) == pytest.approx(1.0, abs=1e-5)
            drawn = row[2 + [d.name for d in problem.machine.devices].index(row[1])]
            assert drawn == pytest.approx(min(step.opacity, key=lambda p: abs(p - drawn)))
        assert all(0 <= p <= 1 for p in step.opacity)


def test_what_rn_has_fixed_is_a_guess_and_nothing_else_is():
    """Without any search of cores, so that RN has to come up."""
    problem = random_problem(5, num_ops=24, num_devices=3, execution="op")
    steps = list(placer_class("ceft_pbqp")(exact_expansions=0).steps(problem, 400))
    reduced = [step for step in steps if tables_of(step, "Taken out")]
    rules = set()
    for step in reduced:
        table = tables_of(step, "Taken out")[0]
        rules |= set(table.column("rule"))
        for i, rule in enumerate(table.column("rule")):
            assert (i in table.guessed) == (rule == "RN")
            assert (table.column("nothing lost?")[i] == "exact") == (rule != "RN")
        assert len(step.guessed) >= len(table.guessed)
        assert all(
            opacity == 1.0 or device < 0
            for opacity, device in zip(step.opacity, step.devices, strict=True)
        )
    assert {"RN", "RI"} <= rules
    assert set(reduced[-1].opacity) == {1.0}


@pytest.mark.parametrize("name", ["ideals_dp", "linear_dp", "pipedream", "replicate"])
@pytest.mark.parametrize("rules", [CallRules(), CallRules(gpipe=True)])
def test_stages_grow_by_what_needs_nothing_from_outside(name, rules):
    problem = problem_from_workload(workload(4), "w")
    problem = replace(problem, objective="throughput", rules=rules)
    if name == "replicate":
        problem = fitting(name, problem)
    steps = list(placer_class(name)().steps(problem, 400))
    stages = steps[1:-1]
    assert stages and all(device >= 0 for device in stages[-1].devices)
    for before, step in pairwise(steps[:-1]):
        old, new = placed_ops(problem, before), placed_ops(problem, step)
        assert set(old) < set(new) and len({new[op] for op in set(new) - set(old)}) == 1
        for tensor in problem.graph.tensors:
            if tensor.producer is not None and set(tensor.consumers) & set(new):
                assert tensor.producer in new
        assert set(step.focus) <= set(new)
