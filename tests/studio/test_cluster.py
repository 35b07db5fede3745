"""Asking a cluster for its hosts by a process: what it writes and says is passed on."""

import sys

import pytest

from studio.cluster import save_hosts


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
