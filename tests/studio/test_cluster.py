"""Asking a cluster for its hosts by a process: what it writes and says is passed on."""

import socket
import sys

import pytest

from studio.cluster import save_hosts, silent_head


def asked_by(monkeypatch, folder, script):
    """A program that stands in for the interpreter which would ask."""
    program = folder / "asks"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))


def test_what_it_writes_is_there(monkeypatch, tmp_path):
    asked_by(monkeypatch, tmp_path, 'for last; do :; done; echo "$@" > "$last"')
    save_hosts(tmp_path / "ray.json")
    assert "-m placement machine --machine ray --out" in (tmp_path / "ray.json").read_text()


def test_the_last_line_of_what_it_says_is_the_reason(monkeypatch, tmp_path):
    asked_by(
        monkeypatch, tmp_path, 'echo "a log" >&2; echo "No Ray cluster runs here." >&2; exit 2'
    )
    with pytest.raises(ValueError, match=r"^No Ray cluster runs here\.$"):
        save_hosts(tmp_path / "ray.json")
    assert not (tmp_path / "ray.json").exists()


def test_a_head_that_does_not_answer_is_known_by_its_address(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as head:
        address = f"127.0.0.1:{head.getsockname()[1]}"
        for told in (address, f"ray://{address}"):
            monkeypatch.setenv("RAY_ADDRESS", told)
            assert silent_head() == ""
    assert silent_head() == address


def test_the_cluster_that_was_started_last_is_asked(monkeypatch, tmp_path):
    monkeypatch.setenv("RAY_ADDRESS", "auto")
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    assert silent_head() == "any address that is known here"
    (tmp_path / "ray").mkdir()
    with socket.create_server(("127.0.0.1", 0)) as head:
        port = head.getsockname()[1]
        (tmp_path / "ray/ray_current_cluster").write_text(f"127.0.0.1:{port}\n")
        assert silent_head() == ""
    assert silent_head() == f"127.0.0.1:{port}"
