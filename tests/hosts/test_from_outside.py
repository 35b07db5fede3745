"""A cluster that is known by the door of its head (Ray's client), as from another computer."""

import json
import os
import socket
import subprocess
import sys
from contextlib import suppress

import psutil
import pytest

from placement.parallel.executor import Threads
from placement.placers import placer_class
from profiling.backends.ray import BACKEND
from tests.hosts import kills
from tests.hosts.trainings import SIZES
from tests.hosts.two_nodes import ADDRESS, nodes
from tests.instances import random_problem
from tests.profiling.live import diamond
from tests.thorough import THOROUGH, either

# From a kill to the sentence.
SILENCE_S = 10.0
DIMS = [word for name, size in SIZES.items() for word in ("--dim", f"{name}={size}")]
HOW = ("--analytic", "--placer", "round_robin", "--steps", 3)
TRAIN = ("train", "nmt:training", *DIMS, "--no-adjust", *HOW)
# A process that is not let in, and goes on inside of the cluster.
REFUSED = """
import json, sys
from profiling.backends.ray import BACKEND
from profiling.backends._ray import outside

for address in sys.argv[1:]:
    try:
        BACKEND.machine(address)
    except ValueError as error:
        print(error)
    outside._IMPORTED = "no.such.module"
print(json.dumps(BACKEND.hosts("ray")))
"""
# A process that is outside, and connected once for all that it is told to do.
COMMANDS = """
import json, sys
from tests.command import call_here

done = [call_here(*words, "--json") for words in json.loads(sys.argv[1])]
print(json.dumps([[each.returncode, each.stdout, each.stderr] for each in done]))
"""


def written_by(script, *arguments, **variables):
    """What a process prints that was started with a script."""
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **variables},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == "", "Ray says something, too"
    return done.stdout


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
    inside = who_is_not_let_in_goes_on(outside, cluster.address)
    # From here on no command knows another address.
    with monkeypatch.context() as patch:
        patch.delenv("RAY_ADDRESS")
        works(outside, inside, tmp_path)
        if THOROUGH:
            searches(outside, monkeypatch)
        patch.setenv("RAY_ADDRESS", outside)
        # Losses are told in the same words as inside, in test_faults.
        for lose in either((), (a_host_and_the_door, the_node_of_the_head)):
            lose(cluster)


def own_doors(cluster):
    """The processes that the head has begun for whoever came, in that order."""
    wanted = {"--mode=specific-server", f"--address={cluster.address}"}
    begun = psutil.process_iter(["cmdline", "create_time"])
    found = (p for p in begun if wanted <= set(p.info["cmdline"] or ()))
    return sorted(found, key=lambda process: process.info["create_time"])


def the_node_of_the_head(cluster):
    cluster.replace()
    with kills.running("run") as process:
        is_over_without_the_head(kills.killed(process, cluster.raylet("alpha")))


def a_host_and_the_door(cluster):
    """A run goes on when a host is killed under it, and ends with its door to the cluster."""
    with kills.running("run", "--resume") as process:
        lost, silence_s = kills.lost(process, cluster.raylet("beta"))
        assert "Host 'beta' left the cluster" in lost["message"] and silence_s < SILENCE_S, lost
        is_over_without_the_head(kills.killed(process, own_doors(cluster)[-1]))


def is_over_without_the_head(told):
    assert told.status == 2 and told.silence_s < SILENCE_S, told
    assert told.words.count("\n") == 1 and "The head of the Ray cluster" in told.words, told


def who_is_not_let_in_goes_on(outside, inside):
    """What it says of the hosts once it is inside."""
    words = written_by(REFUSED, f"ray://{inside}", outside, RAY_ADDRESS=inside).splitlines()
    no_door, no_studio, hosts = words
    assert f"No Ray cluster answers at ray://{inside}" in no_door
    assert "cannot load the studio" in no_studio and "install it there" in no_studio
    found = json.loads(hosts)
    assert [host["devices"] for host in found] == [["alpha/cpu:0"], ["beta/cpu:0"]]
    return found


def works(outside, inside, folder):
    """A run, a pipeline and a training go over both hosts, and come to what they come to here."""
    diamond(folder)
    over = [
        ["run", str(folder / "small.onnx"), "--objective", objective, *map(str, HOW)]
        for objective in ("latency", "throughput")
    ]
    train = list(map(str, TRAIN))
    there = [[*words, "--machine", outside] for words in (["hosts"], *over, train)]
    asked = json.dumps([*there, [*train, "--machine", "local:2"]])
    found = []
    for status, printed, errors in json.loads(written_by(COMMANDS, asked)):
        assert (status, errors) == (0, "")
        found.append(json.loads(printed))
    hosts, *runs, trained, here = found
    assert hosts == inside
    for run in runs:
        assert run["outputs_match"] is True
        assert run["ops_per_device"].keys() == {"alpha/cpu:0", "beta/cpu:0"}
    assert trained["ops_per_device"].keys() == {"alpha/cpu:0", "beta/cpu:0"}
    assert trained["all_losses"] == here["all_losses"] and len(here["all_losses"]) == 3


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


def test_an_address_without_a_port_is_refused():
    addresses = ("ray://127.0.0.1", "ray://127.0.0.1:here", "ray://")
    asked = json.dumps([["hosts", "--machine", address] for address in addresses])
    for status, printed, errors in json.loads(written_by(COMMANDS, asked)):
        assert (status, printed, errors.count("\n")) == (2, "", 1), errors
        assert "names no port; use ray://HOST:PORT" in errors
