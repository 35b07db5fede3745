"""The command line called as scripts call it: a process, its exit status, what it printed."""

import json
import subprocess
import sys

import pytest

from tests.instances import canonical_file


def call(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "placement", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
    )


def answer(*arguments, status=0):
    done = call(*arguments, "--json")
    assert done.returncode == status, done.stderr
    return json.loads(done.stdout)


def refused(*arguments):
    """The one line on standard error of a call that exits 2."""
    done = call(*arguments)
    assert done.returncode == 2, (done.returncode, done.stdout, done.stderr)
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.fixture
def canonical(tmp_path):
    path = tmp_path / "canonical.json"
    path.write_text(json.dumps(canonical_file()))
    return path
