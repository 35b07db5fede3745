"""What commands say when a host, or the head, is killed under them, and how they go on."""

import json

import pytest

from tests.hosts.kills import WORK, killed, running
from tests.hosts.two_nodes import kill

# From the kill to the sentence.
SILENCE_S = 10.0


def test_a_lost_host_ends_a_run_with_a_sentence_that_names_it(cluster):
    cluster.replace()
    with running("run") as process:
        told = killed(process, cluster.raylet("beta"))
    assert told.status == 2 and told.silence_s < SILENCE_S, told
    assert told.words.count("\n") == 1 and "Host 'beta' left the cluster" in told.words, told


@pytest.mark.parametrize("verb", WORK)
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
