"""What commands say when a host, or the head, is killed under them, and how they go on."""

import json
import socket
import subprocess
import sys

import pytest

from tests.command import call
from tests.hosts.kills import killed, running
from tests.hosts.two_nodes import kill

# From the kill to the sentence.
SILENCE_S = 10.0
# A process that looks for a cluster at one address after the other, each soon given up.
NOBODY = """
import os, sys
from profiling.backends._ray import connection
from tests.command import refused

connection.ANSWER_S = 0.5
for address in sys.argv[1:]:
    os.environ["RAY_ADDRESS"] = address
    print(refused("hosts"), end="")
"""


def test_a_lost_host_ends_a_run_with_a_sentence_that_names_it(cluster):
    cluster.replace()
    with running("run") as process:
        told = killed(process, cluster.raylet("beta"))
    assert told.status == 2 and told.silence_s < SILENCE_S, told
    assert told.words.count("\n") == 1 and "Host 'beta' left the cluster" in told.words, told


# That a run goes on is shown in test_kills, too.
@pytest.mark.parametrize("verb", [pytest.param("run", marks=pytest.mark.only_thorough), "train"])
def test_a_command_goes_on_without_a_host_that_is_lost(cluster, verb):
    cluster.replace()
    others, lost, after = cluster.workers("beta"), None, []
    with running(verb, "--resume") as process:
        kill(cluster.worker_since("beta", others))
        for line in process.stdout:
            event = json.loads(line)
            lost = event if event["event"] == "lost" else lost
            after += [event] if lost is not None else []
            if sum(one["event"] == "step" for one in after) > 1:
                break
        else:
            raise AssertionError(process.stderr.read())
    assert lost is not None and lost["devices"] == ["beta/cpu:0"] and "beta" in lost["message"]
    spans = {one["device"] for one in after if one["event"] == "span"}
    assert spans <= {"alpha/cpu:0"} and (spans or verb == "train")
    if verb == "train":
        (move,) = (one for one in after if one["event"] == "move")
        assert {to for _, _, to in move["ops"]} == {"alpha/cpu:0"}


def test_where_no_head_answers_is_said_and_not_waited_for():
    """Ray itself tries for minutes, and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as hangs:
        with socket.create_server(("127.0.0.1", 0)) as closed:
            heads = ["{}:{}".format(*head.getsockname()) for head in (hangs, closed)]
        addresses = [scheme + head for scheme in ("", "ray://") for head in heads]
        done = subprocess.run(
            [sys.executable, "-c", NOBODY, *addresses], capture_output=True, text=True, timeout=300
        )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    for address, said in zip(addresses, done.stdout.splitlines(), strict=True):
        assert f"No Ray cluster answers at {address} (nobody answers" in said
        assert "use --machine local" in said


def test_where_the_last_head_was_is_said_and_not_waited_for(monkeypatch, tmp_path):
    """The file that names it outlives a head that is killed."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = "{}:{}".format(*closed.getsockname())
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    (tmp_path / "ray").mkdir()
    (tmp_path / "ray" / "ray_current_cluster").write_text(address)
    done = call("hosts")
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "No Ray cluster runs here (nobody answers" in done.stderr
