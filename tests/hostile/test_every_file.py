"""Every file of this folder by the command that opens it: a sentence or a right answer, and little
memory. What each file does wrong is told in the tests of its kind beside this one."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command import answer
from tests.thorough import either

FOLDER = Path(__file__).parent
MOST_BYTES = 2 * 10**9
TIMEOUT_S = 240
RUN = ("run", "{}", "--placer", "single", "--steps", "2")
PLACE = ("place", "{}", "--placer", "heft")
INSPECT, PROFILE = ("inspect", "{}"), ("profile", "{}")
WITH_PROFILE = (*("place", "onnx-squeezenet", "--placer", "heft"), "--profile", "{}")
EXPORT = (
    *("export", "onnx-squeezenet", "--placement", "{placement}", "--format", "chrome-trace"),
    *("--out", "{folder}/trace.json", "--run", "{}"),
)
COMMANDS = {
    "onnx_laughs.onnx": INSPECT,
    "onnx_body.onnx": INSPECT,
    "onnx_loop_memory.onnx": PROFILE,
    "op_lie.pt2": PROFILE,
    "op_jit.pt2": INSPECT,
    "op_laguerre.pt2": (*RUN, "--timeout", "5"),
    "op_maxpool_bw.pt2": RUN,
    "op_sobol.pt2": RUN,
    "op_weightnorm.pt2": RUN,
    "op_flash.pt2": RUN,
    "op_bn.pt2": RUN,
    "w_empty10g.pt2": RUN,
    "w_zero_stride.pt2": INSPECT,
    "w_oob.pt2": INSPECT,
    "p_int.json": PLACE,
    "n_attr2.json": PLACE,
    "n_idnone.json": PLACE,
    "356-profile.json": WITH_PROFILE,
    "776-profile.json": WITH_PROFILE,
    "58-run.json": EXPORT,
    "80-run.json": EXPORT,
    "575-run.json": EXPORT,
    "801-run.json": EXPORT,
}
# Each takes some processes, and one that loads PyTorch seconds. In `make test` are all of ONNX, of
# PyTorch one whose operators make too much and one whose weights would, by `profile` and `run`, and
# one each of problems, graphs of networkx, profiles and runs. `inspect` of a .pt2, and operators
# that are refused by name, are only in `make fuzz`. What each file says is in tests of its kind.
ONLY_THOROUGH = {
    *("op_bn.pt2", "op_flash.pt2", "op_maxpool_bw.pt2", "op_sobol.pt2", "op_weightnorm.pt2"),
    *("op_jit.pt2", "op_laguerre.pt2", "w_oob.pt2", "w_zero_stride.pt2"),
    *("n_idnone.json", "776-profile.json", "80-run.json", "575-run.json", "801-run.json"),
}
# Right answers are as good as a sentence.
MAY_ANSWER = {"onnx_loop_memory.onnx", "n_attr2.json"}
# Opened by the pages: see test_rules_of_projects.py.
BY_PAGES = {"redos100.zip"}
# A process that waits for a command and then tells the largest memory of all that it started.
WATCH = (
    "import json, resource, subprocess, sys;"
    "done = subprocess.run(sys.argv[1:], capture_output=True, text=True);"
    "used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss;"
    "print(json.dumps([done.returncode, done.stdout, done.stderr,"
    " used * (1 if sys.platform == 'darwin' else 1024)]))"
)


@pytest.fixture(scope="module")
def placement(tmp_path_factory):
    path = tmp_path_factory.mktemp("placed") / "placed.json"
    answer("place", "onnx-squeezenet", "--placer", "single", "--analytic", "--out", path)
    return path


def watched(*arguments):
    """Exit status, output, errors and largest memory (bytes) of a command and what it starts."""
    command = (sys.executable, "-c", WATCH, sys.executable, "-m", "placement", *arguments)
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=True)
    return json.loads(done.stdout)


def files():
    """What the commands open, by name."""
    return sorted(p.name for p in FOLDER.iterdir() if p.suffix in (".onnx", ".pt2", ".json"))


TAKEN = either([name for name in files() if name not in ONLY_THOROUGH], files())


def test_every_file_has_its_command():
    assert (
        set(files()) == set(COMMANDS) > ONLY_THOROUGH
        and {p.name for p in FOLDER.iterdir()} >= BY_PAGES
    )


@pytest.mark.thorough
@pytest.mark.parametrize("name", TAKEN)
def test_it_is_refused_by_a_sentence_or_answered(name, placement, tmp_path):
    words = {"placement": placement, "folder": tmp_path}
    arguments = [word.format(FOLDER / name, **words) for word in COMMANDS[name]]
    status, said, errors, num_bytes = watched(*arguments)
    assert num_bytes < MOST_BYTES
    if name in MAY_ANSWER and status == 0:
        assert said and not errors
        return
    assert status == 2 and said == "", (status, said, errors)
    assert errors.count("\n") == 1 and errors.endswith((".\n", ")\n")), errors
    assert "Traceback" not in errors and "crashed" not in errors, errors
