"""Live runs over two hosts: outputs to the bit, spans, what is predicted, the command line."""

import time
from dataclasses import replace

import numpy as np
import pytest

import placement as pl
from placement.api.resume import run_to_the_end
from placement.core.objective import Objective
from placement.core.verb_options import RunOptions, StreamOptions
from profiling import backends
from profiling.execution.execute import execute
from tests.command import answer, refused
from tests.hosts.trainings import SIZES
from tests.hosts.two_nodes import kill
from tests.profiling.live import diamond, problem_of, random_schedule, two_lanes
from tests.thorough import either

ONCE = RunOptions(steps=2, warmup=1)
# They are closed sooner, however busy this computer is.
CLOSED_S = 60.0
SMALL = [
    ("onnx-squeezenet", {}),
    ("onnx-shufflenet", {}),
    ("onnx-inception-v1", {}),
    ("rnnlm", {"batch": 1, "length": 3}),
    ("nmt", SIZES),
    ("nmt:training", SIZES),
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


@pytest.mark.parametrize(("name", "dims"), SMALL)
def test_outputs_are_those_of_two_local_lanes_to_the_bit(machine, name, dims):
    model = pl.load(name, dims)
    lanes = pl.machine_for(model, two_lanes())
    over, here = problem_of(model, machine), problem_of(model, lanes)
    compiled, local = backends.compiled(model, machine), backends.compiled(model, lanes)
    feeds = local.feeds(0, {})
    for seed in range(either(2, 5)):
        sides = ((local, here), (compiled, over))
        expected, found = (
            outputs_of(side, random_schedule(problem, np.random.default_rng(seed)), feeds)
            for side, problem in sides
        )
        assert expected.keys() == found.keys()
        for output, value in expected.items():
            np.testing.assert_array_equal(found[output], value, err_msg=f"{name}, {seed}: {output}")


def channels_of(hosts):
    """Whom hosts have channels to, and from whom."""
    import ray

    def ends(worker):
        return sorted(worker._outgoing), sorted(worker._incoming)

    workers = backends.get("ray").cluster().workers
    return dict(
        zip(hosts, ray.get([workers[h].__ray_call__.remote(ends) for h in hosts]), strict=True)
    )


def have_none(hosts):
    """Whether hosts have no channels, once they had time to close what they were told to."""
    end_s = time.monotonic() + CLOSED_S
    while any(map(any, channels_of(hosts).values())) and time.monotonic() < end_s:
        time.sleep(0.1)
    return not any(map(any, channels_of(hosts).values()))


def test_hosts_have_channels_as_long_as_somebody_uses_any(machine):
    """Ray's threads look at each of them all the while, whether or not anything is sent."""
    over, both = backends.get("ray").cluster(), ("alpha", "beta")
    there, back = {("alpha", "beta"): 1000}, {("beta", "alpha"): 1000}
    with over.channels(there):
        with over.channels({**there, **back}):
            assert over.has_channels("alpha", "beta") and over.has_channels("beta", "alpha")
        # Whoever asks the cluster anew meanwhile uses the same ones.
        after = over.anew()
        with after.channels(there):
            assert after.has_channels("beta", "alpha")
        assert channels_of(both) == {"alpha": (["beta"], ["beta"]), "beta": (["alpha"], ["alpha"])}
    assert have_none(both)
    with after.channels(there):
        assert after.has_channels("alpha", "beta")
    assert have_none(both)


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
        assert before["alpha"] == (["gamma"], ["beta"])
        assert [d.name for d in left.machine.devices] == ["alpha/cpu:0", "beta/cpu:0"]
        assert run.measured.outputs_match and have_none(("alpha", "beta"))


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


def test_a_pipeline_gives_every_sample_its_outputs(machine):
    model = pl.load("onnx-squeezenet")
    problem = replace(problem_of(model, machine), objective=Objective.THROUGHPUT)
    half = problem.num_units // 2
    placed = problem.placement_of([0] * half + [1] * (problem.num_units - half))
    stream = pl.stream(model, problem, placed, StreamOptions(samples=6, warmup=1)).measured
    assert stream.run.outputs_match


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
