"""The lessons that are here: figures from their definitions, solved by moves, and failed.

What is said of values is worked out here for all placements at once, by `every_value`, which knows
neither the simulator nor its order of events. Solutions are made as a person makes them, op by op.
"""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from placement.api import lessons
from placement.api.place import place
from placement.bounds.lower_bound import lower_bound
from placement.core.placement import Placement
from placement.core.problem import Objective
from placement.lessons.answer import Answer
from placement.lessons.grading import graded
from placement.lessons.lesson import QUESTIONS, ChoiceCheck, NumberCheck, StepCheck
from placement.placers.heft import mean_upward_ranks
from placement.schedule.order import moved
from placement.schedule.simulated import simulate
from placement.simulator.critical_path import slack_s
from placement.simulator.flat import flatten

# By lesson: where ops go that solve it, in this order; the others are solved without moves.
SOLVED = {
    "01-one-step": {"right": "B", "join": "B"},
    "02-chains": {"matmul": "B"},
    "03-the-critical-path": {"middle": "B", "end": "B"},
    "04-heft-by-hand": {"n1": "P3", "n3": "P3", "n4": "P2", "n5": "P3", "n6": "P2"}
    | {"n7": "P3", "n9": "P2", "n10": "P2"},
    "05-beat-heft": {"n2": "P3", "n3": "P2", "n4": "P1", "n6": "P1", "n7": "P2"},
    "06-greed-pays-later": {"cut": "B", "left": "B"},
    "07-pairs-see-no-queues": {"split": "B", "w1": "A", "w2": "B", "w3": "A", "w4": "B"}
    | {"join": "B"},
    "08-pipelines-and-ideals": {"conv2": "B", "conv3": "B", "classify": "B"},
    "09-annealing": {"wide": "B", "narrow": "B"},
}
NAMES = lessons.lessons()


@pytest.fixture(scope="module", params=NAMES)
def opened(request):
    lesson = lessons.lesson(request.param)
    return request.param, lesson, lessons.posed(lesson)


def posed(number):
    return lessons.posed(lessons.lesson(str(number)))


def number_of(lesson, task):
    """What a task asks for as a number."""
    return lessons.lesson(str(lesson)).tasks[task - 1].check.right


def right_answers(lesson):
    """The right reply to every question, by its number."""
    return {
        str(task.number): task.check.right
        if isinstance(task.check, ChoiceCheck | NumberCheck)
        else task.check.ops
        for task in lesson.tasks
        if isinstance(task.check, QUESTIONS)
    }


def solution(name, found):
    """The placement that solves a lesson, made by moves; of the tenth the policy's."""
    if name.startswith("10"):
        settings = {"policy": "bundled", "max_iterations": 1}
        return place(found.problem, "list_policy", settings=settings).placement
    placement = found.start
    for op, device in SOLVED.get(name, {}).items():
        if placement.device_of[op] != device:
            placement = moved(found.problem, placement, {op: device})
    return placement


def mark_of(lesson, found, placement, answers):
    answer = Answer(
        lesson=lesson.hash,
        problem=found.problem.fingerprint,
        placement=placement,
        answers=answers,
    )
    return graded(lesson, found, answer).mark


def test_there_are_eleven_lessons_in_order():
    assert [name.partition("-")[0] for name in NAMES] == [f"{n:02}" for n in range(1, 12)]
    assert set(SOLVED) <= set(NAMES)


def test_each_is_solved_and_failed_by_each_wrong_reply(opened):
    name, lesson, found = opened
    answers, placement = right_answers(lesson), solution(name, found)
    whole = mark_of(lesson, found, placement, answers)
    assert whole.is_solved and whole.points == whole.of, whole.verdicts
    assert whole.stars == lesson.num_stars
    assert not mark_of(lesson, found, found.start, answers).is_solved or lesson.header.live
    for task in (t for t in lesson.tasks if str(t.number) in answers):
        failed = mark_of(lesson, found, placement, answers | {str(task.number): _wrong(task.check)})
        assert failed.points == whole.of - task.check.points


def _wrong(check):
    """A reply of the right kind that is wrong."""
    if isinstance(check, ChoiceCheck):
        return next(choice for choice in check.choices if choice != check.right)
    return (
        check.right + 2 * check.tolerance + 1 if isinstance(check, NumberCheck) else check.ops[1:]
    )


def test_each_has_hints_an_insight_and_what_it_is_about(opened):
    _, lesson, _ = opened
    assert lesson.hints and lesson.header.about and lesson.insight.startswith("**")


def every_value(problem):
    """All placements (N, ops) and their steps (N,), ops by falling upward rank."""
    index = problem.graph.index
    tensors = [
        (index[t.producer], [index[c] for c in t.consumers], float(t.num_bytes))
        for t in problem.graph.tensors
    ]
    times, contends = problem.costs.compute_s.tolist(), problem.link_contention
    found = list(itertools.product(range(problem.num_devices), repeat=len(index)))
    return found, np.array([one_value(times, tensors, each, contends) for each in found])


def one_value(times, tensors, devices, contends):
    """The step of one placement, from the definitions.

    An op begins when its device is free and all its data is there. What it makes leaves at its end,
    once per device, and takes a second per byte; on a link that contends one after the other.
    """
    ops, rank = range(len(devices)), [0.0] * len(devices)
    for i in reversed(ops):
        readers = ((j, c) for p, js, c in tensors if p == i for j in js)
        after = (c * (devices[i] != devices[j]) + rank[j] for j, c in readers)
        rank[i] = times[i][devices[i]] + max(after, default=0.0)
    end, free, link, there = {}, {}, {}, {}
    for i in sorted(ops, key=lambda i: (-rank[i], i)):
        device = devices[i]
        read = [(n, p) for n, (p, js, _) in enumerate(tensors) if i in js]
        ready = [end[p] if devices[p] == device else there[n, device] for n, p in read]
        end[i] = free[device] = max([free.get(device, 0.0), *ready]) + times[i][device]
        for n, (p, js, c) in enumerate(tensors):
            for to in dict.fromkeys(devices[j] for j in js if p == i and devices[j] != device):
                begin = max(end[i], link.get((device, to), 0.0)) if contends else end[i]
                there[n, to] = link[device, to] = begin + c
    return max(end.values())


@pytest.mark.parametrize("number", [1, 2, 3, 6, 7, 9])
def test_the_best_of_all_placements_is_the_star_or_what_is_asked(number):
    lesson, found = lessons.lesson(str(number)), posed(number)
    placements, values = every_value(found.problem)
    asked = next(t.check for t in lesson.tasks if isinstance(t.check, StepCheck))
    assert values.min() == (asked.at_most if asked.star is None else asked.star)
    names = [d.name for d in found.problem.machine.devices]
    ops = [op.name for op in found.problem.graph.ops]
    for devices, value in zip(placements, values, strict=True):
        where = {op: names[d] for op, d in zip(ops, devices, strict=True)}
        assert simulate(found.problem, Placement("", "", where)).value == pytest.approx(value)


def test_of_all_placements_of_the_canonical_example_39_beat_heft_and_73_is_the_best():
    """All 59 049 at once, as arrays: the same definitions as `one_value`, without contention."""
    problem = posed(5).problem
    times, index = problem.costs.compute_s, problem.graph.index
    edges = [
        (index[t.producer], index[t.consumers[0]], float(t.num_bytes))
        for t in problem.graph.tensors
    ]
    devices = np.array(list(itertools.product(range(3), repeat=10)))
    every, work = np.arange(len(devices)), times[np.arange(10), devices]
    rank = work.copy()
    for i in range(9, -1, -1):
        after = [c * (devices[:, i] != devices[:, j]) + rank[:, j] for p, j, c in edges if p == i]
        rank[:, i] += np.max(after, axis=0) if after else 0.0
    order = np.argsort(-rank, axis=1, kind="stable")
    end, free = np.zeros_like(work), np.zeros((len(devices), 3))
    for k in range(10):
        op = order[:, k]
        device = devices[every, op]
        start = free[every, device]
        for p, j, c in edges:
            data = end[:, p] + c * (devices[:, p] != devices[:, j])
            start = np.where(op == j, np.maximum(start, data), start)
        end[every, op] = free[every, device] = start + work[every, op]
    steps = end.max(axis=1)
    assert len(steps) == 59_049 and (steps < 80 - 1e-9).sum() == 39 and steps.min() == 73
    assert simulate(problem, posed(5).start).value == 80
    for devices_of in devices[[0, 1_000, 40_000, int(steps.argmin())]]:
        names = [problem.machine.devices[d].name for d in devices_of]
        found = simulate(problem, Placement("", "", dict(zip(index, names, strict=True)))).value
        assert found == pytest.approx(steps[(devices == devices_of).all(axis=1)][0])


@pytest.mark.parametrize("name", lessons.lessons())
def test_each_wrong_choice_has_its_sentence(name):
    checks = [task.check for task in lessons.lesson(name).tasks]
    for check in (check for check in checks if isinstance(check, ChoiceCheck)):
        assert {check.right, *check.wrong} == set(check.choices)
        assert all(check.right not in said for said in check.wrong.values())


def test_hefts_ranks_and_order_are_those_of_the_lesson():
    problem = posed(4).problem
    ranks = mean_upward_ranks(flatten(problem))
    told = {"n1": 108, "n2": 77, "n3": 80, "n4": 80, "n5": 69, "n6": 63.33}
    told |= {"n7": 42.67, "n8": 35.67, "n9": number_of(4, 1), "n10": 14.67}
    assert dict(zip(problem.graph.index, ranks, strict=True)) == pytest.approx(told, abs=0.01)
    order = sorted(problem.graph.index, key=lambda op: -round(ranks[problem.graph.index[op]], 6))
    assert tuple(order) == lessons.lesson("4").tasks[1].check.ops
    heft = place(problem, "heft")
    assert heft.placement.device_of["n1"] == lessons.lesson("4").tasks[2].check.right
    n4 = next(s for s in heft.timeline.spans if s.name == "n4" and s.kind == "compute")
    assert (n4.end_s, heft.value) == (number_of(4, 4), 80)


def test_numbers_asked_of_a_step_are_those_of_a_simulation():
    first = posed(1)
    spans = simulate(first.problem, first.start).timeline.spans
    assert next(s.start_s for s in spans if s.name == "right") == number_of(1, 1)
    for number, task, moves in ((6, 1, {}), (9, 2, {"wide": "B"}), (10, 1, {})):
        found = posed(number)
        placement = moved(found.problem, found.start, moves) if moves else found.start
        assert simulate(found.problem, placement).value == number_of(number, task)
    greed = posed(6).problem.costs.compute_s[posed(6).problem.graph.index["cut"]]
    assert greed[1] - greed[0] == number_of(6, 3)


def test_the_chain_meets_its_bound():
    found = posed(2)
    best = moved(found.problem, found.start, {"matmul": "B"})
    assert simulate(found.problem, best).value == 15
    assert lower_bound(found.problem) == pytest.approx(number_of(2, 2))


def test_slack_and_queues_are_as_the_lesson_says():
    found = posed(3)
    predicted = simulate(found.problem, found.start)
    spans = predicted.timeline.spans
    slack = dict(zip((s.name for s in spans), slack_s(spans, predicted.value), strict=True))
    assert slack["short"] == number_of(3, 2)
    middle = next(s for s in spans if s.name == "middle")
    assert {spans[i].name for i in middle.after if spans[i].end_s == middle.start_s} == {"long"}
    assert "long" not in [
        t.producer for t in found.problem.graph.tensors if "middle" in t.consumers
    ]


def test_the_longest_path_without_queues_is_that_of_the_lesson():
    """split, any worker, join, each on its faster device."""
    problem = posed(7).problem
    least = problem.costs.compute_s.min(axis=1)
    ops = problem.graph.index
    assert least[ops["split"]] + least[ops["w1"]] + least[ops["join"]] == number_of(7, 1)
    assert simulate(problem, posed(7).start).value == 14


def num_ideals(graph):
    """Sets of ops that hold, with each op, all that it needs: counted by trying every set."""
    edges = [(t.producer, c) for t in graph.tensors if t.producer for c in t.consumers]
    sets = itertools.product((False, True), repeat=len(graph.ops))
    held = (dict(zip(graph.index, chosen, strict=True)) for chosen in sets)
    return sum(all(inside[p] or not inside[c] for p, c in edges) for inside in held)


def test_a_pipeline_takes_turns_and_ideals_are_counted():
    found = posed(8)
    placement = solution("08-pipelines-and-ideals", found)
    alone = replace(found.problem, objective=Objective.LATENCY)
    assert simulate(alone, placement).value == number_of(8, 3)
    names, ops = ("A", "B"), [op.name for op in found.problem.graph.ops]
    values = [
        simulate(found.problem, Placement("", "", dict(zip(ops, each, strict=True)))).value
        for each in itertools.product(names, repeat=len(ops))
    ]
    assert (min(values), values[0]) == (10, 18)
    assert num_ideals(found.problem.graph) == number_of(8, 4)
    assert num_ideals(posed(1).problem.graph) == number_of(8, 5)


def test_no_single_move_helps_where_the_annealing_lesson_begins():
    found = posed(9)
    ops = found.problem.graph.index
    after = [simulate(found.problem, moved(found.problem, found.start, {op: "B"})) for op in ops]
    start = simulate(found.problem, found.start).value
    assert min(each.value for each in after) > start == 20
    assert 100 * math.exp(-(number_of(9, 2) - start) / 5) == pytest.approx(number_of(9, 4), abs=0.1)
