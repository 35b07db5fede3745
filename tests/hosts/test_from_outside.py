"""A cluster that is known by the door of its head (Ray's client), as from another computer."""

import json
import os
import socket
import subprocess
import sys
from contextlib import contextmanager, suppress

import psutil
import pytest

from placement.parallel.executor import Threads
from placement.placers import placer_class
from profiling.backends.ray import BACKEND
from tests.command import call
from tests.hosts import kills
from tests.hosts.trainings import SIZES
from tests.hosts.two_nodes import ADDRESS, nodes
from tests.instances import random_problem
from tests.profiling.live import diamond

# From a kill to the sentence.
SILENCE_S = 10.0
DIMS = [word for name, size in SIZES.items() for word in ("--dim", f"{name}={size}")]
HOW = ("--analytic", "--placer", "round_robin", "--steps", 3)
# A process that is not let in, and goes on inside of the cluster.
REFUSED = """
import sys
from profiling.backends.ray import BACKEND
from profiling.backends._ray import outside

outside._IMPORTED = "no.such.module"
try:
    BACKEND.machine(sys.argv[1])
except ValueError as error:
    print(error)
print(*(device.name for device in BACKEND.machine("ray").devices))
"""


def said(*arguments):
    done = call(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    assert done.stderr == "", "Ray says something, too"
    return json.loads(done.stdout)


def refused(*arguments):
    done = call(*arguments)
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    return done.stderr


@pytest.fixture
def own(copying, monkeypatch):
    """A cluster with a door, the only one here: doors of one computer lead to the same ports."""
    with socket.create_server((ADDRESS, 0)) as listening:
        port = listening.getsockname()[1]
    # Without this two of some twenty processes that the head began hung, and none of twenty with
    # it: gRPC does much in a process with threads that forks.
    monkeypatch.setenv("GRPC_ENABLE_FORK_SUPPORT", "0")
    with nodes(settings={**copying, "ray_client_server_port": port}) as started:
        yield started, f"ray://{ADDRESS}:{port}"
        # They would stay for half a minute.
        for process in own_doors(started):
            with suppress(psutil.NoSuchProcess):
                process.kill()


def test_a_cluster_is_what_it_is_from_inside(own, monkeypatch, tmp_path):
    cluster, outside = own
    inside = said("hosts")
    who_is_not_let_in_goes_on(outside, cluster.address)
    # From here on no command knows another address.
    with monkeypatch.context() as patch:
        patch.setenv("RAY_ADDRESS", outside)
        assert said("hosts") == inside
        with killed(lambda: cluster.raylet("beta")) as told:
            assert "Host 'beta' left the cluster" in told.words
        cluster.replace()
        patch.delenv("RAY_ADDRESS")
        works(outside, tmp_path)
        searches(outside, monkeypatch)
        patch.setenv("RAY_ADDRESS", outside)
        for victim in (lambda: own_doors(cluster)[-1], lambda: cluster.raylet("alpha")):
            with killed(victim) as told:
                assert "The head of the Ray cluster" in told.words


def own_doors(cluster):
    """The processes that the head has begun for whoever came, in that order."""
    wanted = {"--mode=specific-server", f"--address={cluster.address}"}
    begun = psutil.process_iter(["cmdline", "create_time"])
    found = (p for p in begun if wanted <= set(p.info["cmdline"] or ()))
    return sorted(found, key=lambda process: process.info["create_time"])


@contextmanager
def killed(victim):
    """What a run says in one sentence when a process is killed under it."""
    with kills.running("run") as process:
        told = kills.killed(process, victim())
    assert told.status == 2 and told.silence_s < SILENCE_S, told
    assert told.words.count("\n") == 1, told
    yield told


def who_is_not_let_in_goes_on(outside, inside):
    words = refused("hosts", "--machine", f"ray://{inside}")
    assert f"No Ray cluster answers at ray://{inside}" in words
    done = subprocess.run(
        [sys.executable, "-c", REFUSED, outside],
        capture_output=True,
        text=True,
        env={**os.environ, "RAY_ADDRESS": inside},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    told, devices = done.stdout.splitlines()
    assert "cannot load the studio" in told and "install it there" in told
    assert devices.split() == ["alpha/cpu:0", "beta/cpu:0"]


def works(outside, folder):
    """A run, a pipeline and a training go over both hosts, and come to what they come to here."""
    diamond(folder)
    for objective in ("latency", "throughput"):
        goal = ("--objective", objective, "--machine", outside)
        run = said("run", folder / "small.onnx", *goal, *HOW)
        assert run["outputs_match"] is True
        assert run["ops_per_device"].keys() == {"alpha/cpu:0", "beta/cpu:0"}
    train = ("train", "nmt:training", *DIMS, "--no-adjust", *HOW)
    there, here = (said(*train, "--machine", machine) for machine in (outside, "local:2"))
    assert there["ops_per_device"].keys() == {"alpha/cpu:0", "beta/cpu:0"}
    assert there["all_losses"] == here["all_losses"] and len(here["all_losses"]) == 3


def searches(outside, monkeypatch):
    """A search whose every batch is shared out there finds what this computer finds."""
    problem, lost, here = random_problem(2, num_ops=40, num_devices=3), [], []
    kind, given = placer_class("local_search"), {"seed": 1, "max_iterations": 2_000}
    each = Threads.each
    try:
        executor = BACKEND.executor(outside, lost.append, worth_visits=1)
        assert executor.num_lanes == 2
        with monkeypatch.context() as patch:
            # What nobody there has done is done here in the end.
            patch.setattr(Threads, "each", lambda *asked: here.extend(asked[1]) or each(*asked))
            there = kind(executor=executor, **given).place(problem)
    finally:
        BACKEND.close_farm()
    assert there == kind(**given).place(problem) and not lost and not here


@pytest.mark.parametrize("address", ["ray://127.0.0.1", "ray://127.0.0.1:here", "ray://"])
def test_an_address_without_a_port_is_refused(address):
    assert "names no port; use ray://HOST:PORT" in refused("hosts", "--machine", address)
