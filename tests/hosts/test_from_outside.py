"""Commands from outside of a cluster, which know it by the door of its head (Ray's client)."""

import json
import socket

from tests.command import call
from tests.hosts import kills
from tests.hosts.trainings import SIZES
from tests.hosts.two_nodes import ADDRESS, nodes
from tests.profiling.live import diamond

# From a kill to the sentence.
SILENCE_S = 10.0
DIMS = [word for name, size in SIZES.items() for word in ("--dim", f"{name}={size}")]
HOW = ("--analytic", "--placer", "round_robin", "--steps", 3)


def said(*arguments):
    done = call(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    assert done.stderr == "", "Ray says something, too"
    return json.loads(done.stdout)


def test_a_cluster_is_what_it_is_from_inside(copying, monkeypatch, tmp_path):
    """One test, for two doors on one computer let nobody in: they lead to the same ports."""
    with socket.create_server((ADDRESS, 0)) as listening:
        port = listening.getsockname()[1]
    outside = f"ray://{ADDRESS}:{port}"
    with nodes(settings={**copying, "ray_client_server_port": port}) as own:
        inside = said("hosts")
        # From here on no command knows another address.
        with monkeypatch.context() as patch:
            patch.setenv("RAY_ADDRESS", outside)
            assert said("hosts") == inside
            with kills.running("run") as process:
                told = kills.killed(process, own.raylet("beta"))
            is_named(told, "Host 'beta' left the cluster")
            own.replace()
            patch.delenv("RAY_ADDRESS")
            works(outside, tmp_path)
            searches(outside, tmp_path)
            patch.setenv("RAY_ADDRESS", outside)
            with kills.running("run") as process:
                told = kills.killed(process, *own.processes("alpha"))
            is_named(told, "The head of the Ray cluster")


def is_named(told, words):
    """Whether a command has ended in time with one sentence that says who is lost."""
    assert told.status == 2 and told.silence_s < SILENCE_S, told
    assert told.words.count("\n") == 1 and words in told.words, told


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


def searches(outside, folder):
    """A search there finds what this computer finds."""
    how = ("place", folder / "small.onnx", "--machine", "desktop-2x24gb", "--placer", "auto")
    there, here = (said(*how, "--search-on", where) for where in (outside, "local"))
    assert {**there, "seconds": 0} == {**here, "seconds": 0}
