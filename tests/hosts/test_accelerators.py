"""Accelerators of hosts: placed on and run like those of one computer, here pretended ones."""

from itertools import pairwise

import numpy as np
import pytest

import placement as pl
from placement.core.machine import Device
from profiling import backends
from profiling.backends.torch import Torch
from profiling.execution.execute import execute
from profiling.measuring.links import measure_links
from tests.hosts import trainings
from tests.hosts.test_runs import ONCE, outputs_of
from tests.profiling.backends.pretend import Pretend, put_in_place, work_briefly
from tests.profiling.live import problem_of, random_schedule
from tests.thorough import either

PRETENDED = tuple(
    Device(f"pretend:{i}", "gpu", "torch", "pretend", 2**30, flops_per_s=1e12, label="pretended")
    for i in range(2)
)


# The second node's first one is the first node's second.
VISIBLE = {"alpha": "0,1", "beta": "1,2"}


def give(worker):
    """Let a host have accelerators that are none: see tests/profiling/backends/pretend.py."""
    worker.patched, own = pytest.MonkeyPatch(), Torch.devices
    worker.patched.setenv("PRETEND_VISIBLE_DEVICES", VISIBLE[worker._host.name])
    put_in_place(worker.patched, lambda name: Pretend(compute_s=1e-3))
    work_briefly(worker.patched)
    worker.patched.setattr(Torch, "devices", lambda torch: (*own(torch), *PRETENDED))


def take_back(worker):
    worker.patched.undo()


@pytest.fixture(scope="module")
def pretending(cluster):
    """The machine of all nodes, which see two accelerators each, one of them both."""
    import ray

    cluster.machine()
    over = backends.get("ray").cluster()

    def have(change):
        ray.get([over.workers[host].__ray_call__.remote(change) for host in VISIBLE])
        over._facts.clear()

    have(give)
    yield backends.get("ray").machine("ray")
    have(take_back)


@pytest.fixture(scope="module")
def model():
    return pl.load("nmt", trainings.SIZES)


def test_hosts_say_what_they_have(pretending):
    devices = {device.name: device for device in pretending.devices}
    names = ["alpha/cpu:0", "beta/cpu:0", "alpha/pretend:0", "alpha/pretend:1", "beta/pretend:1"]
    assert list(devices) == names, "both hosts are on one computer"
    assert devices["alpha/pretend:0"].memory_bytes == 2**30
    assert len(pretending.links) == 20


def test_outputs_are_those_of_local_lanes_to_the_bit(pretending, model):
    over = problem_of(model, pretending)
    here = problem_of(model, pl.machine_for(model, pl.machine("local:1")))
    compiled, local = (backends.compiled(model, p.machine) for p in (over, here))
    feeds = local.feeds(0, {})
    alone = random_schedule(here, np.random.default_rng(0))
    expected = outputs_of(local, alone, feeds)
    for seed in range(either(1, 3)):
        schedule = random_schedule(over, np.random.default_rng(seed))
        assert {s.device for s in schedule.segments} == {d.name for d in pretending.devices}
        found = outputs_of(compiled, schedule, feeds)
        assert found.keys() == expected.keys()
        for output, value in expected.items():
            np.testing.assert_array_equal(found[output], value, err_msg=f"{seed}: {output}")


def test_a_step_follows_its_schedule_on_the_devices_own_clocks(pretending, model):
    problem = problem_of(model, pretending)
    schedule = random_schedule(problem, np.random.default_rng(1))
    run = execute(problem, schedule, ONCE, model=model)
    assert run.outputs_match
    spans = {s.segment: s for s in run.timeline.spans if s.kind == "compute"}
    assert sorted(spans) == list(range(len(schedule.segments)))
    for segment, span in spans.items():
        # A pretended one takes a millisecond for whatever it does.
        is_pretended = "pretend" in schedule.segments[segment].device
        assert not is_pretended or span.duration_s >= 1e-3
    for tensor in problem.kernels.tensors:
        for reader in tensor.consumers if tensor.producer else ():
            before, after = (schedule.segment_of[name] for name in (tensor.producer, reader))
            assert before == after or spans[before].end_s <= spans[after].start_s


def test_a_training_over_them_has_the_losses_of_one_computer(pretending):
    model = trainings.opened()
    found = trainings.trained(model, pretending, resume=True, seed=1)
    assert trainings.is_same(found, trainings.alone())


def test_links_to_them_are_measured_through_their_host(pretending):
    are_through_their_host(measure_links(pretending))


@pytest.mark.only_thorough
def test_a_profile_has_every_kernel_and_these_links(pretending, model):
    profile = pl.profile(model, pretending)
    are_through_their_host(profile.machine)
    assert all(row.count(None) == 0 for row in profile.compute_s)


def are_through_their_host(machine):
    links = {(link.src, link.dst): link for link in machine.links}
    copied, sent = links["alpha/cpu:0", "alpha/pretend:0"], links["alpha/cpu:0", "beta/cpu:0"]
    both = links["beta/cpu:0", "alpha/pretend:0"]
    back = links["beta/cpu:0", "alpha/cpu:0"]
    assert both.latency_s == pytest.approx(back.latency_s + copied.latency_s)
    assert both.bytes_per_s < min(back.bytes_per_s, copied.bytes_per_s)
    across = ["alpha/pretend:0", "alpha/cpu:0", "beta/cpu:0", "beta/pretend:1"]
    legs = [links[way].latency_s for way in pairwise(across)]
    assert links[across[0], across[-1]].latency_s == pytest.approx(sum(legs))
    assert sent.latency_s > 1e-6


def test_a_format_that_they_do_not_run_is_refused_in_a_sentence(pretending):
    with pytest.raises(ValueError, match=r"has no pretend:\d on host '\w+'"):
        backends.compiled(pl.load("onnx-squeezenet"), pretending)
