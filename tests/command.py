"""The command line: its exit status, and what it printed.

`call` starts a process, as scripts do. Starting one takes longer than most verbs, so `answer` and
`refused` run the verb in this process; test_command_line.py shows that both say the same.
"""

import contextlib
import io
import json
import subprocess
import sys

import pytest

from placement.__main__ import main
from tests.instances import canonical_file


def call(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "placement", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
    )


def call_here(*arguments):
    command = [str(argument) for argument in arguments]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = main(command)
        except SystemExit as ended:
            status = ended.code
    return subprocess.CompletedProcess(command, status, out.getvalue(), err.getvalue())


def answer(*arguments, status=0):
    done = call_here(*arguments, "--json")
    assert done.returncode == status, done.stderr
    return json.loads(done.stdout)


def refused(*arguments):
    """The one line on standard error of a call that exits 2."""
    done = call_here(*arguments)
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
