"""What a run says when a process of a host, or a whole host, is killed, and how it goes on."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import psutil
import pytest

from tests.hosts.two_nodes import nodes

LIMIT_S = 90.0
# More than any run here gets to.
STEPS = "100000"
# From the kill to the sentence.
SILENCE_S = 10.0


@pytest.fixture
def own_nodes():
    """A cluster that may be broken."""
    with nodes(("alpha", "beta", "gamma")) as started:
        yield started


def raylet(cluster, name):
    return psutil.Process(cluster.by_name[name].all_processes["raylet"][0].process.pid)


def worker_of(cluster, name):
    """The process of the studio's actor on a node."""
    children = raylet(cluster, name).children(recursive=True)
    return next(child for child in children if "ray::Worker" in " ".join(child.cmdline()))


@contextmanager
def running(*arguments):
    """A run over all hosts that will not end by itself, once it is at its first steps."""
    command = [sys.executable, "-m", "placement", "run", "onnx-squeezenet", "--machine", "ray"]
    command += ["--placer", "round_robin", "--steps", STEPS, "--jsonl", *arguments]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as run:
        try:
            assert any(json.loads(line)["event"] == "step" for line in run.stdout), (
                run.stderr.read()
            )
            yield run
        finally:
            run.terminate()


def killed(run, victim):
    """Status and last words of a run, and how long after the end of a process they came."""
    begun_s = time.monotonic()
    os.kill(victim.pid, signal.SIGKILL)
    _, words = run.communicate(timeout=LIMIT_S)
    return run.returncode, words, time.monotonic() - begun_s


@pytest.mark.parametrize("what", ["actor", "node"])
def test_a_lost_host_ends_the_run_with_a_sentence_that_names_it(own_nodes, what):
    with running() as run:
        victim = worker_of(own_nodes, "beta") if what == "actor" else raylet(own_nodes, "beta")
        status, words, took_s = killed(run, victim)
    assert status == 2 and took_s < SILENCE_S, (status, words, took_s)
    assert words.count("\n") == 1 and "Host 'beta' left the cluster" in words, words


def test_a_lost_head_ends_the_run_with_a_sentence(own_nodes):
    with running() as run:
        status, words, took_s = killed(run, raylet(own_nodes, "alpha"))
    assert status == 2 and took_s < SILENCE_S, (status, words, took_s)
    assert words.count("\n") == 1 and "--machine local" in words, words


def test_a_run_goes_on_without_a_host_that_is_lost(own_nodes):
    lost, on = None, set()
    with running("--resume") as run:
        os.kill(worker_of(own_nodes, "beta").pid, signal.SIGKILL)
        for line in run.stdout:
            event = json.loads(line)
            lost = event if event["event"] == "lost" else lost
            if lost and event["event"] == "span":
                on.add(event["device"])
            if lost and event["event"] == "step" and event["index"] > 1:
                break
    assert lost["devices"] == ["beta/cpu:0"] and "beta" in lost["message"]
    assert on and on <= {"alpha/cpu:0", "gamma/cpu:0"}
