"""Steps of methods: the last is what `place` answers, each one's figures are by the definitions."""

import functools
import json
import random
import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import placement as pl
from placement.api import answers
from placement.api.results.placing import StepsResult
from placement.api.steps import placers_with_steps
from placement.bounds.lower_bound import lower_bound
from placement.core.decoding import decode
from placement.core.objective import Objective
from placement.core.problem import Execution
from placement.core.problem_json import problem_from_json
from placement.core.timeline import Span
from placement.loaders.workload import problem_from_workload
from placement.placers import names, placer_class
from placement.placers._learned import Learner
from placement.placers.genetic import Evolution, Genetic
from placement.schedule.simulated import simulate
from placement.search.feasible import missing_bytes
from placement.search.steps import deciding, placed_ops
from placement.simulator.evaluator import Evaluator
from tests.checker import plan_faults
from tests.instances import canonical_file, peft_file, random_problem
from tests.placers.slow_lists import SlowLanes
from tests.splits.test_split_placers import workload
from tests.thorough import either

BY_FINISH = ("heft", "cpop", "peft")
BY_START = ("etf", "m_etf")
METHODS = placers_with_steps()
# All that is asked of one method follows each other, so that mostly one process follows it.
EACH = pytest.mark.parametrize("name", METHODS, scope="module")
# What makes methods quick that otherwise search for seconds.
BRIEFLY = {
    name: {"max_iterations": 6} for name in METHODS if issubclass(placer_class(name), Learner)
}

# Learners that take long for what is the same for all of them, so that one stands for them.
SLOW_LEARNERS = [name for name in BRIEFLY if name != "mutation"]
# In `make fuzz` these have as many moves as `place` gives them.
FEW_MOVES = either(
    {
        "annealing": {"max_iterations": 300},
        "genetic": {"max_iterations": 5},
        "local_search": {"max_iterations": 120},
    },
    {},
)


def instance(seed):
    """A small problem of any shape that fits into memory."""
    rng = random.Random(seed)
    problem = random_problem(
        seed,
        num_ops=rng.randrange(1, 13),
        num_devices=rng.randrange(1, 5),
        execution=rng.choice(("op", "segment")),
        link_contention=rng.random() < 0.6,
        with_groups=rng.random() < 0.5,
    )
    if seed % 4 == 1 and problem.num_devices > 1:
        compute_s = problem.costs.compute_s.copy()
        compute_s[rng.randrange(len(compute_s)), rng.randrange(1, problem.num_devices)] = np.inf
        problem = replace(problem, costs=replace(problem.costs, compute_s=compute_s))
    return problem


def tight(seed, shares=(0.5, 0.3, 0.2), num_ops=24):
    """A problem whose devices have hardly room for all, so that plans do not fit at first."""
    problem = random_problem(seed, num_ops=num_ops, num_devices=3, with_groups=seed % 2 == 0)
    limits = [int(problem.kernels.param_bytes * 1.7 * share) for share in shares]
    devices = tuple(
        replace(d, memory_bytes=limit)
        for d, limit in zip(problem.machine.devices, limits, strict=True)
    )
    return replace(problem, machine=replace(problem.machine, devices=devices))


def scarce(seed):
    """The same with fewer ops, so that every method can be followed."""
    return tight(seed, num_ops=either(13, 16))


def many(seed):
    """A problem with more devices: on few devices the methods of `FEW_STEPS` have few steps.

    They split into stages, or take devices one after another.
    """
    return random_problem(seed, num_ops=16, num_devices=6)


def canonical():
    return problem_from_json(canonical_file(), "canonical")


# Seeds of `instance` and `scarce`. The first have both executions and an op that a device does not
# run, the others memory in which not every method finds a placement.
SHAPES, SCARCE = either((0, 5), range(8)), either((5, 0), range(6))
FEW_STEPS = ("ideals_dp", "linear_dp", "pipedream", "replicate", "single", "round_robin")


def brief(name):
    return placer_class(name)(**(BRIEFLY | FEW_MOVES).get(name, {}))


def fitting(name, problem):
    """The problem with an objective and an execution that the method knows, or a workload."""
    kind = placer_class(name)
    if Execution.SEGMENT not in kind.executions:
        problem = problem_from_workload(
            workload(problem.num_units, num_accelerators=6, limit=10.0), "w"
        )
    if problem.objective not in kind.objectives:
        problem = replace(problem, objective=kind.objectives[0])
    if problem.execution not in kind.executions:
        problem = replace(problem, execution=Execution.SEGMENT)
    return problem


def asked(name):
    """What a method is asked, as arguments of `followed`."""
    # A learner trains its networks for each.
    few, seeds = ((3,), SCARCE[:1]) if name in BRIEFLY else (SHAPES, SCARCE)
    return [*((instance, seed) for seed in few), *((scarce, seed) for seed in seeds)]


@functools.cache
def followed(name, make, seed):
    """The problem that a method is asked and all steps of its answer: once for all that look."""
    problem = fitting(name, make(seed))
    return problem, tuple(brief(name).steps(problem, 400))


@pytest.mark.thorough
@EACH
def test_the_last_step_is_what_place_answers(name):
    for make, seed in asked(name):
        placer = brief(name)
        try:
            placed = placer.place(fitting(name, make(seed)))
        except ValueError as error:
            # Not every method finds a placement where memory is tight.
            with pytest.raises(ValueError, match=re.escape(str(error))):
                followed(name, make, seed)
            continue
        problem, steps = followed(name, make, seed)
        assert steps[-1].placement == placed, name
        assert all(step.placement is None for step in steps[:-1])
        assert placed_ops(problem, steps[-1]) == dict(placed.device_of)
        assert steps[-1].spans == simulate(problem, placed).timeline.spans
        for step in steps:
            assert 0 <= step.line < len(placer.pseudo_code)
            assert step.why.endswith(".")
            assert set(step.focus) <= set(problem.graph.index)


@pytest.mark.thorough
@EACH
def test_what_is_told_of_steps_is_what_place_tells(name):
    """So whoever takes an answer that was followed need not place anew."""
    kind, problems = placer_class(name), [fitting(name, instance(3))]
    # What learners tell of workloads they tell by the same lines.
    takes_calls = Execution.CALL in kind.executions and name not in either(SLOW_LEARNERS, ())
    if takes_calls and problems[0].execution is not Execution.CALL:
        calls = problem_from_workload(workload(6, num_accelerators=3, limit=10.0), "w")
        problems.append(replace(calls, objective=kind.objectives[-1]))
    for problem in problems:
        settings = BRIEFLY.get(name, {})
        placed = pl.place(problem, name, settings=settings)
        told = pl.steps(problem, name, most=40, settings=settings)
        assert told.placement == placed.placement, problem.execution
        assert told.account == placed.account
        assert max(told.bound_s, lower_bound(problem, told.placement)) == placed.lower_bound
        assert told.seconds > 0


@pytest.mark.thorough
@EACH
def test_steps_beyond_the_most_are_one(name):
    problem, all_steps = followed(name, *((many, 1) if name in FEW_STEPS else asked(name)[-1]))
    few = tuple(brief(name).steps(problem, 3))
    assert len(few) < len(all_steps)
    assert few[-1] == all_steps[-1]
    assert few[:3] == all_steps[:3]


FOR_LATENCY = [
    name
    for name in METHODS
    if Objective.LATENCY in placer_class(name).objectives
    and Execution.OP in placer_class(name).executions
    # What happens to a pinned order is the same for all learners, which take long.
    and name not in SLOW_LEARNERS
]


@pytest.mark.thorough
@pytest.mark.parametrize("name", FOR_LATENCY)
def test_the_last_step_keeps_an_order_that_is_pinned(name):
    """Where it changes the method's answer, that is one step more."""
    problem = canonical()
    settings = FEW_MOVES.get(name, {})
    own = pl.place(problem, name, settings=settings).placement
    free = pl.steps(problem, name, most=400, settings=settings)
    orders = (("n6", "n5", "n4", "n3", "n2"), ("n1", "n10"), ("n6", "n4", "n9", "n10"))
    for order in orders[: either(2, 3)]:
        held = replace(problem, sequences=(("P2", order), ("P3", order)))
        told = pl.steps(held, name, most=400, settings=settings)
        placed = pl.place(held, name, settings=settings)
        assert told.placement == placed.placement, order
        assert told.steps[-1].spans == placed.timeline.spans, order
        assert told.account == placed.account, order
        assert all(step.placement is None for step in told.steps[:-1])
        assert len(told.steps) - len(free.steps) == (placed.placement != own), order
        assert ("pinned" in told.steps[-1].why) == (placed.placement != own), order


def test_ceft_pbqp_says_best_only_of_answers_that_keep_to_memory():
    """Of the sentence's three cases each comes up; what fits is asked of the simulator."""
    said = set()
    roomier = [tight(seed, (0.7, 0.4, 0.4)) for seed in (5, 6)]
    for problem in (*map(instance, range(4)), *map(tight, range(4)), *roomier):
        steps = list(placer_class("ceft_pbqp")().steps(problem, 400))
        (table,) = next(step.tables for step in steps if step.tables[:1] and step.line == 2)
        values, fits = table.column("simulated"), table.column("keeps to memory")
        answer, why = steps[-1].placement, steps[-1].why
        (won,) = table.marked
        if "No answer kept" in why:
            assert set(fits) == {"no"}
            said.add("none")
            continue
        good = [value for value, fit in zip(values, fits, strict=True) if fit == "yes"]
        assert values[won] == min(good) and fits[won] == "yes"
        assert not missing_bytes(problem, answer).any()
        is_best = values[won] == min(values)
        assert ("best of those that keep to memory" in why) != is_best
        assert ("best when it is simulated" in why) == is_best
        said.add("best" if is_best else "best that fits")
    assert said == {"none", "best", "best that fits"}


def decided(steps):
    """The steps that put a kernel on a device, with the step before."""
    return [(before, step) for before, step in pairwise(steps) if step.ghosts]


def by_device(step):
    """The rows of a step's table by device, in seconds, None where it may not go."""
    table = step.tables[0]
    assert [column.name for column in table.columns[:4]] == ["device", "ready", "start", "finish"]
    return {str(row[0]): row[1:] for row in table.rows}


@pytest.mark.thorough
@pytest.mark.parametrize("name", (*BY_FINISH, *BY_START))
def test_each_table_of_a_list_scheduler_is_by_the_definitions(name):
    """On random problems; the plan that grows beside it is checked, too."""
    for seed in range(either(25, 200)):
        problem = instance(seed)
        lanes = SlowLanes(problem, insertion=name in BY_FINISH)
        names = [d.name for d in problem.machine.devices]
        order, steps = [], [*placer_class(name)().steps(problem, 400)]
        for before, step in decided(steps):
            compute = [s for s in step.spans if s.kind == "compute"]
            k, d = problem.kernels.index[compute[-1].name], names.index(compute[-1].device)
            rows, choices = by_device(step), lanes.choices(k)
            assert [e for e, row in enumerate(rows.values()) if row[0] is not None] == choices
            for e in choices:
                slot = lanes.slot(k, e)
                assert rows[names[e]][:3] == (lanes.ready(k, e)[0], *slot), (seed, name)
                ghost = next(g for g in step.ghosts if g.device == names[e])
                assert (ghost.start_s, ghost.end_s) == slot
            assert step.tables[0].marked == (d,)
            assert step.ghosts[step.winner] == compute[-1]
            assert _is_least(name, problem, rows, names[d], step), (seed, name)
            lanes.put(k, d)
            assert (compute[-1].start_s, compute[-1].end_s) == (lanes.start[k], lanes.end[k])
            assert set(before.spans) < set(step.spans)
            order.append(k)
        assert len(order) == len(problem.kernels.ops)
        assert plan_faults(problem, steps[-2].spans) == [], (seed, name)


def _is_least(name, problem, rows, chosen, step):
    """Whether the row that was chosen has the least of what the method compares."""
    if "critical path" in step.why:
        return name == "cpop"
    compared = 1 if name in BY_START else -1
    figures = {d: row[compared] for d, row in rows.items() if row[compared] is not None}
    return figures[chosen] == min(figures.values())


def twins(seed):
    """The canonical example with lanes that are alike, so that many choices are equally good."""
    content = canonical_file()
    for i, op in enumerate(content["ops"]):
        own_s = float(3 + (i * (seed + 1)) % 4)
        op["times_s"] = [own_s, own_s, own_s + (seed % 2) * (i % 2)]
    return problem_from_json(content, "twins")


@pytest.mark.thorough
@pytest.mark.parametrize("name", (*BY_FINISH, "ceft_pbqp"))
def test_all_answers_that_are_equally_good_are_right_and_none_is_asked_for_among_equals(name):
    asked_with_a_tie = untold = 0
    for seed in range(either(6, 12)):
        problem = twins(seed)
        for step in placer_class(name)().steps(problem, 400):
            figures = step.tables and step.tables[0].columns[-1].kind == "seconds"
            if not (step.ghosts and figures) or "critical path" in step.why:
                continue
            least = step.tables[0].columns[-1].name
            found_s = dict(
                zip(step.tables[0].column("device"), step.tables[0].column(least), strict=True)
            )
            best = {d for d, s in found_s.items() if s == pytest.approx(min(found_s.values()))}
            asked_with_a_tie += 1 < len(best) < len(found_s)
            untold += len(best) == len(found_s)
            if len(best) == len(found_s):
                assert step.question is None, (seed, name, step.why)
            else:
                assert set(step.question.answers) == best, (seed, name, step.why)
                assert step.question.answer in best
            assert all(d in step.why for d in best), "who has taken another reads that it was right"
    # The first op, which has equal lanes, is on the critical path that CPoP has placed.
    assert asked_with_a_tie and (untold or name == "cpop")


@pytest.mark.parametrize("name", (*BY_START, "m_sct"))
def test_of_ready_ops_all_that_start_as_early_on_the_same_level_are_right(name):
    ties = 0
    for seed in range(12):
        for step in placer_class(name)().steps(twins(seed), 400):
            if step.question is None or step.question.text != "Which op starts next?":
                continue
            ready = {row[0]: row[2:] for row in step.tables[1].rows}
            own = ready[step.question.answer]
            equal = {op for op in step.question.choices if ready[op] == pytest.approx(own)}
            assert set(step.question.answers) <= equal
            if name != "m_sct":
                assert set(step.question.answers) == equal
            assert len(equal) < len(step.question.choices) or name == "m_sct"
            ties += len(step.question.answers) > 1
    assert ties or name == "m_sct"


def test_the_op_that_comes_first_waits_for_nothing_though_others_rank_as_high():
    """Along CPoP's critical path all ops have one rank; only its first op is ready."""
    asked = pl.steps(canonical(), "cpop").steps[0].question
    assert asked.answers == ("n1",)


@pytest.mark.thorough
@pytest.mark.parametrize("name", (*BY_START, "m_sct"))
def test_the_earliest_of_all_ready_ops_is_taken(name):
    for seed in range(either(15, 40)):
        problem = instance(seed)
        for _, step in decided(placer_class(name)().steps(problem, 400)):
            ready = step.tables[1]
            starts = ready.column("start")
            assert starts == tuple(sorted(starts))
            assert ready.marked == (0,)
            assert step.why.startswith(str(ready.rows[0][0]))
            assert step.ghosts[step.winner] == step.spans[-1], (seed, name)


def test_heft_by_hand():
    """Topcuoglu et al. 2002, table 2 and figure 3(a): ranks, order, and the choices of devices."""
    steps = pl.steps(canonical(), "heft").steps
    ranks = dict(steps[0].tables[0].rows)
    expected = (108, 77, 80, 80, 69, 63.333, 42.667, 35.667, 44.333, 14.667)
    assert [ranks[f"n{i}"] for i in range(1, 11)] == pytest.approx(expected, abs=1e-3)
    order = [step.focus for step in steps[1:-1]]
    assert order == [(f"n{i}",) for i in (1, 4, 3, 2, 5, 6, 9, 7, 8, 10)]
    assert [step.question.answer for step in steps[1:-1]] == [
        *("P3", "P2", "P3", "P1", "P3", "P2", "P2", "P3", "P1", "P2")
    ]
    assert steps[-1].spans and max(span.end_s for span in steps[-1].spans) == 80.0
    assert Span("compute", "n10", "P2", 73.0, 80.0) in steps[-2].spans


def test_cpop_says_its_path_and_peft_its_table():
    path = pl.steps(canonical(), "cpop").steps[1]
    assert path.focus == ("n1", "n2", "n9", "n10")
    assert path.tables[0].rows == (("P1", 66.0), ("P2", 54.0), ("P3", 63.0))
    assert path.question.answer == "P2"
    # Arabnejad and Barbosa 2014, table 2.
    steps = pl.steps(problem_from_json(peft_file(), "peft"), "peft").steps
    table = {row[0]: row[1:] for row in steps[0].tables[0].rows}
    assert table["n1"] == pytest.approx((64, 68, 86), abs=0.5)
    assert max(span.end_s for span in steps[-1].spans) == 122.0


@pytest.mark.parametrize("name", ["annealing", "local_search"])
def test_a_move_changes_what_it_says_and_nothing_else(name):
    """What was accepted moves the ops in focus, what was taken back none; figures add up.

    Where a device is full something of it goes back to where the ops came from.
    """
    verdicts, num_exchanged = set(), 0
    for seed in range(6):
        problem = tight(seed) if seed % 2 else instance(seed)
        for before, step in pairwise(placer_class(name)().steps(problem, 100)):
            if not step.tables or step.tables[0].title != "The last moves":
                continue
            op, _, to, before_s, limit_s, after_s, verdict = step.tables[0].rows[0]
            verdicts.add(verdict)
            what, _, back = op.partition(", for ")
            old, new = placed_ops(problem, before), placed_ops(problem, step)
            changed = {name for name in new if new[name] != old[name]}
            now_s = step.tables[1].column("value")[0]
            if after_s is None:
                assert not changed and verdict in ("taken back", "no room")
                assert now_s == before_s
            else:
                going = {name for name in changed if new[name] == to}
                others = changed - going
                assert changed == set(step.focus) and going and bool(others) == bool(back)
                assert {old[name] for name in others} <= {to}
                assert {new[name] for name in others} <= {old[name] for name in going}
                num_exchanged += bool(others)
                assert now_s == after_s <= limit_s * (1 + 1e-12)
            if step.question:
                shorter = after_s is not None and after_s < before_s
                assert step.question.answer == ("yes" if shorter else "no")
                assert what in step.question.text and back in step.question.text
    assert num_exchanged > 0
    assert {"taken back", "accepted", "the best so far"} <= verdicts


def test_a_generation_is_worth_what_its_table_says():
    """The best of each, simulated anew; it never gets worse within a level."""
    problem = random_problem(3, num_ops=30, num_devices=3, execution="op")
    steps = [*placer_class("genetic")(max_iterations=5).steps(problem, 400)][:-1]
    assert len(steps) >= 12
    order = Evolution(Genetic(), problem).order
    for before, step in pairwise(steps):
        table = step.tables[0]
        best_s = table.column("best")[0]
        own = Evaluator(problem, order)
        assert own.value_s(step.devices) == pytest.approx(best_s)
        if step.question:
            was_s = before.tables[0].column("best")[0]
            assert step.question.answer == ("yes" if best_s < was_s else "no")
            assert best_s <= was_s


@pytest.mark.parametrize("seed", range(6))
def test_a_chain_of_ideals_is_found_back(seed):
    """Each step holds all that its ops need, one device's stage more; the table grows with it."""
    if seed % 2:
        problem = fitting("ideals_dp", random_problem(seed, num_ops=14, num_devices=3))
    else:
        problem = replace(problem_from_workload(workload(seed), "w"), objective="throughput")
    steps = [*placer_class("ideals_dp")().steps(problem, 400)]
    stages, before_s = steps[1:-1], 0.0
    assert stages and all(device >= 0 for device in stages[-1].devices)
    for before, step in pairwise(steps[:-1]):
        old, new = placed_ops(problem, before), placed_ops(problem, step)
        assert set(old) < set(new) and len({new[name] for name in set(new) - set(old)}) == 1
        for tensor in problem.graph.tensors:
            if tensor.producer is not None and set(tensor.consumers) & set(new):
                assert tensor.producer in new
        assert set(step.focus) <= set(new)
        table = step.tables[0]
        (at,) = table.marked
        value_s = table.rows[at][1]
        assert value_s >= before_s
        before_s = value_s
        assert max(step.tables[1].column("work")) <= value_s * (1 + 1e-9)
    # No split is better than what the table says of the whole graph.
    assert before_s == min(stages[-1].tables[0].column("least largest load"))
    assert before_s <= simulate(problem, steps[-1].placement).value * (1 + 1e-9)
    loads, asked = dict(steps[-1].tables[0].rows), steps[-1].question
    largest = [name for name, load_s in loads.items() if load_s == max(loads.values())]
    assert (asked is None) == (len(largest) == len(loads))
    assert asked is None or list(asked.answers) == largest


def test_what_is_told_of_steps_can_be_read_back():
    found = answers.of_steps(pl.steps(canonical(), "heft"))
    told = json.loads(json.dumps(found.to_json()))
    assert decode(told, StepsResult).to_json() == found.to_json()
    assert told["steps"][3]["device_of"] == {"n1": "P3", "n4": "P2", "n3": "P3"}
    assert told["steps"][3]["question"]["answer"] == "P3"
    assert told["steps"][-1]["placement"]["device_of"]["n10"] == "P2"


def test_a_placer_without_steps_says_so():
    with pytest.raises(
        ValueError,
        match=r"'manual' does not show its steps: it decides nothing.*; those that do are .*heft",
    ):
        pl.steps(canonical(), "manual")
    with pytest.raises(ValueError, match="0 steps cannot be shown; use 1 to"):
        pl.steps(canonical(), "heft", most=0)


@pytest.mark.parametrize("name", sorted(set(names()) - set(METHODS)))
def test_who_shows_no_steps_says_why(name):
    assert placer_class(name).no_steps


@pytest.mark.thorough
@pytest.mark.parametrize("name", [name for name in METHODS if placer_class(name).tells_up_to])
def test_the_step_that_is_told_of_an_op_has_put_it_where_the_answer_has_it(name):
    told = 0
    # Round robin finds nothing where memory is scarce.
    seeds = () if name == "round_robin" else either((0,), (0, 4, 5))
    for make, seed in (
        *((instance, s) for s in range(either(6, 12))),
        *((scarce, s) for s in seeds),
    ):
        problem, steps = followed(name, make, seed)
        placement = steps[-1].placement
        for op in problem.graph.ops:
            step = brief(name).step_of(problem, op.name)
            whole = deciding(problem, steps, op.name)
            if step is None or whole is None:
                assert step is whole, (name, op.name)
                continue
            told += 1
            assert step.why == whole.why and step.tables == whole.tables, (name, op.name)
            assert placed_ops(problem, step)[op.name] == placement.device_of[op.name]
            unit = problem.unit_of_op[problem.graph.index[op.name]]
            group = {problem.graph.ops[i].name for i in problem.ops_of_unit[unit]}
            assert group & set(step.focus), (name, op.name)
    assert told > either(20, 60)


@pytest.mark.thorough
@EACH
def test_no_method_tells_of_a_step_that_its_answer_has_undone(name):
    told = 0
    for make, seed in asked(name):
        try:
            problem, steps = followed(name, make, seed)
        except ValueError:
            continue
        for op in problem.graph.ops:
            step = deciding(problem, steps, op.name)
            if step is not None:
                told += 1
                assert placed_ops(problem, step)[op.name] == steps[-1].placement.device_of[op.name]
    # Taking one device is decided for all ops at once.
    assert told or name == "single"
