"""Live runs over two hosts: outputs to the bit, spans, what is predicted, the command line."""

import itertools
import os
import re
import time
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from onnx import helper

import placement as pl
from placement.api.resume import run_to_the_end
from placement.core.objective import Objective
from placement.core.schedule import Schedule, Segment
from placement.core.verb_options import MOST_IN_FLIGHT, RunOptions, StreamOptions
from placement.schedule.segments import make_schedule
from placement.schedule.stages import in_stages
from placement.simulator.executions import lower
from profiling import backends
from profiling.execution.execute import execute, lanes_of
from profiling.execution.stream import stream
from profiling.measuring.reference import release
from tests.command import answer, refused
from tests.hosts.trainings import SIZES
from tests.hosts.two_nodes import kill
from tests.profiling.live import (
    diamond,
    endless,
    problem_of,
    random_schedule,
    saved,
    two_lanes,
)
from tests.thorough import either

ONCE = RunOptions(steps=2, warmup=1)
# They are closed sooner, however busy this computer is.
CLOSED_S, WAITED_S = 60.0, 2.0
SMALL = [
    ("onnx-squeezenet", {}),
    ("nmt", SIZES),
    ("nmt:training", SIZES),
]
# More of the same formats.
OTHERS = [
    pytest.param(name, dims, marks=pytest.mark.only_thorough)
    for name, dims in (
        ("onnx-shufflenet", {}),
        ("onnx-inception-v1", {}),
        ("rnnlm", {"batch": 1, "length": 3}),
    )
]


def outputs_of(compiled, schedule, feeds):
    """What a schedule computes, by calls one after the other."""
    program = compiled.open(schedule, feeds)
    try:
        for i in range(len(schedule.segments)):
            program.run(i)
        return program.outputs()
    finally:
        program.close()


@pytest.mark.parametrize(("name", "dims"), [*SMALL, *OTHERS])
def test_outputs_are_those_of_two_local_lanes_to_the_bit(machine, name, dims):
    model = pl.load(name, dims)
    lanes = pl.machine_for(model, two_lanes())
    over, here = problem_of(model, machine), problem_of(model, lanes)
    compiled, local = backends.compiled(model, machine), backends.compiled(model, lanes)
    feeds = local.feeds(0, {})
    for seed in range(either(1, 5)):
        sides = ((local, here), (compiled, over))
        expected, found = (
            outputs_of(side, random_schedule(problem, np.random.default_rng(seed)), feeds)
            for side, problem in sides
        )
        assert expected.keys() == found.keys()
        for output, value in expected.items():
            np.testing.assert_array_equal(found[output], value, err_msg=f"{name}, {seed}: {output}")


def channels_of(hosts):
    """Whom hosts send to by channels, and from whom they hear."""
    import ray

    def ends(worker):
        heard = worker._door.hosts if worker._door else []
        return sorted(host for host, out in worker._outgoing.items() if out.is_open), heard

    workers = backends.get("ray").cluster().workers
    return dict(
        zip(hosts, ray.get([workers[h].__ray_call__.remote(ends) for h in hosts]), strict=True)
    )


def test_hosts_that_are_connected_stay_so_and_take_no_core_for_it(cluster, tmp_path):
    import psutil

    model, machine = diamond(tmp_path), cluster.machine()
    problem = problem_of(model, machine)
    apart = problem.placement_of([i % 2 for i in range(problem.num_units)])
    run_to_the_end(model, problem, apart, RunOptions(steps=2))
    over, both = backends.get("ray").cluster(), ("alpha", "beta")
    assert over.has_channel("alpha", "beta") and over.has_channel("beta", "alpha")
    expected = {"alpha": (["beta"], ["beta"]), "beta": (["alpha"], ["alpha"])}
    assert channels_of(both) == expected
    actors = [psutil.Process(cluster.own_worker(host).pid) for host in both]
    before_s = sum(sum(actor.cpu_times()[:2]) for actor in actors)
    time.sleep(WAITED_S)
    after_s = sum(sum(actor.cpu_times()[:2]) for actor in actors)
    # Ray's channels would take all of a core; what Ray does besides is a few hundredths.
    assert after_s - before_s < 0.25 * WAITED_S
    # Whoever asks the cluster anew meanwhile uses the same ones.
    after = over.anew()
    after.join([("alpha", "beta")])
    assert after.has_channel("beta", "alpha") and channels_of(both) == expected


def test_hosts_that_are_left_close_what_a_run_had_between_them(cluster, tmp_path):
    model, before = diamond(tmp_path), {}
    with cluster.one_more("gamma"):
        problem = problem_of(model, cluster.machine())
        apart = problem.placement_of([0, 1, 0, 2])

        def hear(event):
            if event["event"] == "step" and not before:
                before.update(channels_of(("alpha", "beta", "gamma")))
                kill(cluster.own_worker("gamma"))

        left, _, run = run_to_the_end(
            model, problem, apart, RunOptions(steps=2), emit=hear, placer="single"
        )
        assert "gamma" in before["alpha"][0] and "beta" in before["alpha"][1]
        assert [d.name for d in left.machine.devices] == ["alpha/cpu:0", "beta/cpu:0"]
        assert run.measured.outputs_match
        end_s = time.monotonic() + CLOSED_S
        while "gamma" in str(channels_of(("alpha", "beta"))) and time.monotonic() < end_s:
            time.sleep(0.1)
        assert "gamma" not in str(channels_of(("alpha", "beta")))


@pytest.mark.parametrize("seed", range(either(1, 3)))
def test_a_run_is_a_step_of_that_schedule(machine, tmp_path, seed):
    model = diamond(tmp_path)
    problem = problem_of(model, machine)
    schedule = random_schedule(problem, np.random.default_rng(seed))
    run = execute(problem, schedule, ONCE, model=model)
    assert run.outputs_match and run.max_abs_diff == 0.0
    assert set(run.baseline_s) == {d.name for d in machine.devices}
    assert set(run.actual_devices.values()) == {"cpu"}
    spans = {s.segment: s for s in run.timeline.spans if s.kind == "compute"}
    assert sorted(spans) == list(range(len(schedule.segments)))
    for tensor in problem.kernels.tensors:
        for reader in tensor.consumers if tensor.producer else ():
            before, after = (schedule.segment_of[name] for name in (tensor.producer, reader))
            # These hosts have one clock, being one computer.
            assert before == after or spans[before].end_s <= spans[after].start_s


@pytest.mark.parametrize("seed", range(either(1, 5)))
@pytest.mark.parametrize(("name", "dims"), SMALL[:2])
def test_a_pipeline_gives_every_sample_its_outputs_to_the_bit(machine, name, dims, seed):
    model = pl.load(name, dims)
    problem = replace(problem_of(model, machine), objective=Objective.THROUGHPUT)
    schedule = random_schedule(problem, np.random.default_rng(seed))
    options = StreamOptions(samples=either(8, 30), warmup=1)
    found = stream(problem, schedule, options, model=model, baselines=False)
    assert found.bit_equal and found.run.outputs_match and found.distinct_outputs > 1
    assert found.num_samples == options.samples and not found.cancelled
    spans = [s for s in found.run.timeline.spans if s.kind == "compute"]
    assert {s.device for s in spans} == {s.device for s in schedule.segments}
    assert all(found.busy_s[s.device] > 0.0 for s in schedule.segments)


def test_outputs_of_a_sample_come_together_from_all_hosts(machine, tmp_path):
    names = [("Exp", "x", "a"), ("Sin", "x", "b"), ("Cos", "b", "y"), ("Tanh", "a", "z")]
    nodes = [helper.make_node(kind, [read], [made], name=made) for kind, read, made in names]
    model = saved(tmp_path, nodes, {"x": [4]}, {"y": [4], "z": [4]})
    problem = replace(problem_of(model, machine), objective=Objective.THROUGHPUT)
    schedule = make_schedule(problem, problem.placement_of([0, 1, 0, 1]))
    found = stream(problem, schedule, StreamOptions(samples=9), model=model, baselines=False)
    made_on = {schedule.segments[schedule.segment_of[name]].device for name in "yz"}
    assert len(made_on) == 2 and found.bit_equal and found.distinct_outputs > 1


def test_a_pipeline_of_one_host_has_its_native_lanes(machine):
    """Nothing crosses, so that no sample's segments wait for the interpreter."""
    import ray

    def natively(worker):
        (lanes,) = worker._streams.values()
        return lanes._lanes._native is not None

    model = pl.load("onnx-squeezenet")
    problem = replace(problem_of(model, machine), objective=Objective.THROUGHPUT)
    placed = problem.placement_of([1] * problem.num_units)
    schedule, compiled = make_schedule(problem, placed), backends.compiled(model, machine)
    programs = compiled.open_ring(schedule, (compiled.feeds(0, {}),), 2)
    ring = programs[0].streamed(
        programs, lanes_of(problem, lower(problem, schedule)), (0,), range(0)
    )
    beta = backends.get("ray").cluster().workers["beta"]
    try:
        assert ray.get(beta.__ray_call__.remote(natively))
    finally:
        release(programs, [ring])
    found = pl.stream(model, problem, placed, StreamOptions(samples=6, warmup=1)).measured
    assert found.bit_equal and found.run.lanes_note == "Lanes ran on beta."


def test_of_a_pipeline_that_is_stopped_what_is_in_flight_comes_out(machine, tmp_path):
    model, stops = diamond(tmp_path), itertools.count()
    problem = replace(problem_of(model, machine), objective=Objective.THROUGHPUT)
    found = stream(
        problem,
        make_schedule(problem, problem.placement_of([0, 1, 0, 1])),
        StreamOptions(samples=10_000, warmup=0, depth=4),
        model=model,
        baselines=False,
        stop=lambda: next(stops) == 9,
    )
    assert found.cancelled and found.num_outputs == 9 and found.bit_equal


def test_a_sample_that_hangs_is_ended_on_all_hosts_and_these_go_on(machine, tmp_path):
    model = endless(tmp_path)
    problem = replace(problem_of(model, machine), objective=Objective.THROUGHPUT)
    first, *others = (op.name for op in problem.kernels.ops)
    schedule = Schedule((Segment("alpha/cpu:0", (first,)), Segment("beta/cpu:0", tuple(others))))
    options = StreamOptions(samples=5, warmup=0, depth=3)
    endlessly = {"rounds": np.full(1, 10**12)}
    compiled = backends.compiled(model, machine)
    feeds = compiled.feeds(0, endlessly)
    programs = compiled.open_ring(schedule, (feeds,), options.depth)
    lanes = lanes_of(problem, lower(problem, schedule))
    ring = programs[0].streamed(programs, lanes, (0, 1), range(0))
    ring.begin(0, 0)
    with pytest.raises(TimeoutError, match=r"longer than 0\.5 s and was given up"):
        ring.completed_s(0, 0.5)
    release(programs, [ring])
    few = {"rounds": np.full(1, 3)}
    after = stream(problem, schedule, options, model=model, inputs=few, baselines=False)
    assert after.bit_equal


@pytest.mark.parametrize("fails", ["a segment", "an arrival"])
def test_a_sample_that_fails_ends_the_pipeline_with_the_reason(machine, tmp_path, fails):
    """On one host, in the middle, while the other waits for what does not come."""
    import ray

    def spoil(worker, fails):
        part = worker._parts[sorted(worker._parts)[1]]
        times = itertools.count()

        def spoilt(given, *values):
            if next(times) == 2:
                raise ValueError("spoilt here")
            return given(*values)

        if fails == "a segment":
            part.program.run = partial(spoilt, part.program.run)
        else:
            part.program.take = partial(spoilt, part.program.take)

    model = diamond(tmp_path)
    problem = replace(problem_of(model, machine), objective=Objective.THROUGHPUT)
    schedule = make_schedule(problem, problem.placement_of([0, 1, 0, 1]))
    compiled, (_, stage_of) = backends.compiled(model, machine), in_stages(problem, schedule)
    programs = compiled.open_ring(schedule, (compiled.feeds(0, {}),), 6)
    lanes = lanes_of(problem, lower(problem, schedule))
    ring = programs[0].streamed(programs, lanes, stage_of, range(0))
    beta = backends.get("ray").cluster().workers["beta"]
    ray.get(beta.__ray_call__.remote(spoil, fails))
    try:
        for sample in range(6):
            ring.begin(sample, 0)
        with pytest.raises(ValueError, match="spoilt here"):
            for sample in range(60):
                ring.completed_s(sample, 60.0)
                ring.begin(sample + 6, 0)
    finally:
        release(programs, [ring])


def test_as_many_samples_are_in_flight_as_may_be(machine, tmp_path):
    model = diamond(tmp_path)
    problem = replace(problem_of(model, machine), objective=Objective.THROUGHPUT)
    schedule = make_schedule(problem, problem.placement_of([0, 1, 0, 1]))
    options = StreamOptions(samples=80, warmup=1, depth=MOST_IN_FLIGHT)
    found = stream(problem, schedule, options, model=model, baselines=False)
    assert found.bit_equal and found.depth == MOST_IN_FLIGHT


def test_clocks_of_other_computers_are_read_and_the_run_says_how_well(
    machine, tmp_path, monkeypatch
):
    """As if these hosts had been started elsewhere: they are zero ahead, and gain nothing."""
    over = backends.get("ray").cluster()
    monkeypatch.setattr(type(over), "has_this_clock", lambda cluster, host: False)
    model = diamond(tmp_path)
    problem = problem_of(model, machine)
    schedule = make_schedule(problem, problem.placement_of([0, 1, 0, 1]))
    run = execute(problem, schedule, ONCE, model=model)
    streamed = stream(
        replace(problem, objective=Objective.THROUGHPUT),
        schedule,
        StreamOptions(samples=20),
        model=model,
        baselines=False,
    )
    assert min(streamed.run.step_s) > 0.0 and min(streamed.latency_s) > 0.0
    for host in ("alpha", "beta"):
        offset = over.offset(host)
        assert 0.0 < offset.uncertainty_s < 1.0 and abs(offset.ahead_s) <= offset.uncertainty_s
        assert offset.rate_uncertainty > 0.0 and abs(offset.rate) <= offset.rate_uncertainty
    known = r"Lanes ran on (alpha and beta|beta and alpha), whose clocks are known to [\d.]+ ms"
    assert re.fullmatch(rf"{known} and drift by -?\d+ us per second, within \d+\.", run.lanes_note)


def test_what_hosts_compute_for_us_is_not_that_of_others(machine):
    import ray

    def compute(worker, seconds):
        os.sched_setaffinity(0, set(worker._cores) & os.sched_getaffinity(0))
        until_s = time.process_time() + seconds
        while time.process_time() < until_s:
            pass

    read = partial(backends.get("ray").counters, [d.name for d in machine.devices])
    workers = backends.get("ray").cluster().workers
    before = read()
    ray.get([workers[h].__ray_call__.remote(compute, 0.4) for h in ("alpha", "beta")])
    after = read()
    assert [len(busy_s) for busy_s, _ in before] == [1, 1], "a core of each"
    for (begun, own_begun_s), (ended, own_ended_s) in zip(before, after, strict=True):
        assert own_ended_s - own_begun_s >= 0.4
        assert sum(ended.values()) - sum(begun.values()) >= 0.3, "clocks tick a hundred times"


def test_a_run_counts_others_on_the_cores_of_hosts(machine, tmp_path):
    model = diamond(tmp_path)
    problem = problem_of(model, machine)
    schedule = make_schedule(problem, problem.placement_of([0, 1, 0, 1]))
    load = execute(problem, schedule, ONCE, model=model).load
    assert load.is_known and load.num_cores == 2 and load.slowdown == 1.0


def test_links_between_hosts_are_measured_and_used(machine):
    model = pl.load("onnx-squeezenet")
    profile = pl.profile(model, machine)
    between = profile.machine.links
    assert len(between) == 2 and all(1e-6 < link.latency_s < 1.0 for link in between)
    assert all(row[0] is not None and row[1] is not None for row in profile.compute_s)
    problem = pl.make_problem(model, machine, profile)
    apart = pl.simulate(problem, problem.placement_of([i % 2 for i in range(problem.num_units)]))
    alone = pl.simulate(problem, problem.placement_of([0] * problem.num_units))
    assert apart.value > alone.value + between[0].latency_s


def test_the_command_line_lists_hosts_and_runs_over_them(cluster, tmp_path):
    rows = answer("hosts")
    assert [row["name"] for row in rows] == ["alpha", "beta"]
    assert rows[0]["versions"] == rows[1]["versions"]
    assert [row["devices"] for row in rows] == [["alpha/cpu:0"], ["beta/cpu:0"]]
    how = ("--placer", "round_robin", "--steps", "2")
    run = answer("run", "onnx-squeezenet", "--machine", "ray", *how)
    assert run["outputs_match"] is True
    diamond(tmp_path)
    run = answer("run", tmp_path / "small.onnx", "--machine", "ray", "--analytic", *how)
    assert run["outputs_match"] is True


def test_placements_of_a_file_race_on_the_hosts_that_open_it(cluster, tmp_path):
    """The confined process that opens a file for what runs here reaches no cluster."""
    cluster.replace()
    diamond(tmp_path)
    how = ("--machine", "ray", "--placer", "peft", "--live", "--live-limit", "2")
    placed = answer("place", tmp_path / "small.onnx", *how)
    rows = placed["finals"]["rows"]
    assert len(rows) > 1 and all(row["measured_s"] > 0 for row in rows)


def test_what_is_no_cluster_is_refused_in_a_sentence(cluster):
    assert "use ray, ray:2" in refused("machine", "--machine", "ray:many")
    words = refused("place", "onnx-squeezenet", "--machine", "local:ray")
    assert "local:ray" in words
