"""GPipe and 1F1B against their closed formulas, and against the rules of any schedule."""

import itertools
import random
from dataclasses import replace

import pytest

import placement as pl
from placement.schedule.microbatches import (
    BACKWARD,
    FORWARD,
    SCHEDULES,
    Stage,
    microbatched,
    passes,
    stages_of,
)
from placement.schedule.segments import make_schedule
from placement.simulator.throughput import loads_s
from tests.instances import random_devices, random_problem
from tests.workloads import shared_problem


def equal(num_stages, forward_s=1.0, backward_s=2.0, update_s=0.0):
    return [Stage(f"d{i}", forward_s, backward_s, update_s) for i in range(num_stages)]


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("num_stages", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("num_microbatches", [1, 2, 3, 4, 5, 16])
def test_equal_stages_take_what_the_formula_says(schedule, num_stages, num_microbatches):
    """(m + p - 1) * (f + b), of which the share (p - 1) / (m + p - 1) is idle."""
    found = microbatched(equal(num_stages), num_microbatches, schedule)
    rounds = num_microbatches + num_stages - 1
    assert found.step_s == rounds * 3.0
    assert found.bubble_share == pytest.approx((num_stages - 1) / rounds)
    kept = [num_microbatches] * num_stages
    if schedule == "1f1b":
        kept = [min(num_microbatches, num_stages - i) for i in range(num_stages)]
    assert list(found.in_flight) == kept


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("seed", range(30))
def test_unequal_stages_keep_every_rule(schedule, seed):
    rng = random.Random(seed)
    p, m = rng.randrange(1, 6), rng.randrange(1, 9)
    stages = [Stage(f"d{i}", *(rng.randrange(0, 9) / 4 for _ in range(3))) for i in range(p)]
    found = microbatched(stages, m, schedule)
    times = {(s.segment, s.name): s for s in found.timeline.spans}
    updates = sum(stage.update_s > 0 for stage in stages)
    assert len(times) == len(found.timeline.spans) == 2 * p * m + updates
    for i, stage in enumerate(stages):
        own = sorted((s for s in found.timeline.spans if s.segment == i), key=lambda s: s.start_s)
        assert all(a.end_s <= b.start_s for a, b in itertools.pairwise(own))
        assert all(s.device == stage.device for s in own)
        for n in range(m):
            forward, backward = times[i, f"forward {n}"], times[i, f"backward {n}"]
            assert forward.duration_s == stage.forward_s
            assert backward.duration_s == stage.backward_s
            assert forward.end_s <= backward.start_s
            if i:
                assert times[i - 1, f"forward {n}"].end_s <= forward.start_s
                assert backward.end_s <= times[i - 1, f"backward {n}"].start_s
    for span in found.timeline.spans:
        ends = [found.timeline.spans[j].end_s for j in span.after]
        assert span.start_s == max(ends, default=0.0), "nobody waits without a cause"
    idle_s = sum(found.step_s - s.forward_s * m - s.backward_s * m - s.update_s for s in stages)
    assert found.bubble_share * p * found.step_s == pytest.approx(idle_s)
    assert found.step_s >= max((s.forward_s + s.backward_s) * m + s.update_s for s in stages)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_update_comes_once_at_the_end(schedule):
    found = microbatched(equal(3, update_s=5.0), 4, schedule)
    assert found.step_s == (4 + 3 - 1) * 3.0 + 5.0, "the first stage is the last to go backward"
    assert [s.name for s in found.timeline.spans].count("update") == 3


def test_every_pass_runs_once_and_forward_comes_first():
    for schedule in SCHEDULES:
        for num_stages in range(1, 6):
            for stage in range(num_stages):
                order = passes(schedule, stage, num_stages, 7)
                wanted = {(d, n) for d in (FORWARD, BACKWARD) for n in range(7)}
                assert len(order) == 14 and set(order) == wanted
                assert all(order.index((FORWARD, n)) < order.index((BACKWARD, n)) for n in range(7))


@pytest.mark.parametrize(
    ("stages", "num_microbatches", "schedule", "message"),
    [
        ([], 1, "gpipe", "at least one stage and one micro-batch, not 0 and 1"),
        (equal(1), 0, "gpipe", "not 1 and 0"),
        (equal(1), 1, "interleaved", "no schedule 'interleaved'; use one of gpipe, 1f1b"),
    ],
)
def test_what_cannot_be_scheduled_is_refused(stages, num_microbatches, schedule, message):
    with pytest.raises(ValueError, match=message):
        microbatched(stages, num_microbatches, schedule)


def test_a_stage_takes_no_negative_or_endless_time():
    with pytest.raises(ValueError, match="'d0' has forward_s = -1"):
        equal(1, forward_s=-1.0)
    with pytest.raises(ValueError, match="backward_s = inf"):
        equal(1, backward_s=float("inf"))


def test_phases_of_a_workload_add_up_to_its_loads():
    problem = shared_problem("throughput", "layer_bert24_training")
    problem = replace(problem, objective="throughput")
    placed = pl.place(problem, "ideals_dp")
    stages = stages_of(problem, placed.schedule)
    loads = loads_s(problem, placed.schedule)
    for stage in stages:
        assert stage.forward_s + stage.backward_s == pytest.approx(loads[stage.device])
    assert len({stage.device for stage in stages}) == len(stages) > 1
    assert any(stage.backward_s > 0 for stage in stages)
    few = microbatched(stages, 1, "1f1b").step_s
    assert few == pytest.approx(sum(s.forward_s + s.backward_s for s in stages))
    many = microbatched(stages, 400, "1f1b").step_s / 400
    assert many >= placed.value, "never faster than the pipeline's bottleneck"


@pytest.mark.parametrize("seed", range(10))
def test_phases_of_a_model_add_up_to_its_loads(seed):
    problem = random_problem(seed, num_ops=15, num_devices=3)
    names = [op.name for op in problem.graph.ops]
    phases = dict(zip(names, ("forward",) * 6 + ("backward",) * 6 + ("update",) * 3, strict=True))
    ops = tuple(replace(op, phase=phases[op.name]) for op in problem.graph.ops)
    graph = replace(problem.graph, ops=ops)
    problem = replace(problem, graph=graph, kernels=graph)
    schedule = make_schedule(problem, problem.placement_of(random_devices(problem, seed)))
    loads = loads_s(problem, schedule)
    for stage in stages_of(problem, schedule):
        together_s = stage.forward_s + stage.backward_s + stage.update_s
        assert together_s == pytest.approx(loads[stage.device])


def test_a_graph_for_inference_has_no_such_stages():
    problem = random_problem(0)
    schedule = make_schedule(problem, problem.placement_of(random_devices(problem, 0)))
    with pytest.raises(ValueError, match="'random' has no backward ops"):
        stages_of(problem, schedule)
