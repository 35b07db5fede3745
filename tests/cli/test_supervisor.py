"""Which files a confined command may read and write, and who attends to one over a cluster."""

import os
from argparse import Namespace
from pathlib import Path

import pytest

from placement.cli import supervisor
from placement.cli.supervisor import _saved, _understandable
from placement.core.machine import Device, Machine, machine_to_text


def test_a_policy_is_written_where_a_setting_says():
    options = Namespace(set=["save=learned.safetensors", "batch=8", "save="])
    assert list(_saved(options)) == [Path("learned.safetensors").absolute()]
    assert list(_saved(Namespace())) == []


def over(machine):
    return supervisor.is_over_hosts(Namespace(machine=str(machine)))


def test_a_command_over_a_cluster_is_told_by_its_machine(tmp_path):
    named = ("ray", "ray:2", "ray://10.0.0.1:10001", "local", "local:2", "two-lanes", "")
    assert [over(name) for name in named] == [True, True, True, False, False, False, False]
    for runtime, is_over in (("ray", True), ("onnxruntime", False)):
        path = tmp_path / f"{runtime}.json"
        machine = Machine("m", (Device("alpha/cpu:0", "cpu", runtime, "cpu", label="another"),))
        path.write_text(machine_to_text(machine))
        assert over(path) == is_over
    assert not supervisor.is_over_hosts(Namespace())


def test_what_ray_logs_is_not_passed_on():
    logged = b"[2026-11-23 22:43:28,235 %s 22599 22599] rpc_client.h:153: Failed to connect\n"
    lines = [b"step 1\n", logged % b"W", b"a sentence\n", logged % b"C", b"*** StackTrace ***\n"]
    assert list(_understandable(iter(lines))) == [b"step 1\n", b"a sentence\n"]


@pytest.mark.parametrize(("ends", "told"), [(lambda: 1, "1"), (lambda: supervisor.fail("no"), "2")])
def test_how_a_process_ended_is_told_to_who_attends(monkeypatch, ends, told):
    monkeypatch.setattr(supervisor.confinement, "end_with", lambda parent: None)
    reader, writer = os.pipe()
    monkeypatch.setenv("PLACEMENT_END_PIPE", str(writer))
    try:
        supervisor.tell_the_end(ends)
    except SystemExit as ended:
        assert str(ended.code) == told
    os.close(writer)
    with open(reader) as pipe:
        assert pipe.read() == told
    assert "PLACEMENT_END_PIPE" not in os.environ
