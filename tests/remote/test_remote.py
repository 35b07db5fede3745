"""Model files are read and run in processes of their own; here is only what can be checked."""

import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys

import msgspec
import pytest

import placement as pl
from placement import loaders
from placement.cli import supervisor
from placement.cli.options import make_parser
from placement.core.costs import Floats
from placement.core.graph import Graph
from placement.core.model import RemoteExecutable
from placement.remote import wire
from profiling.measuring.lock import measuring
from profiling.sandbox import confinement
from tests.command import answer, call
from tests.instances import canonical_file
from tests.loaders.models import package_files
from tests.profiling.live import diamond
from tests.workloads import shared_file

SQUEEZENET = next(p for p in package_files() if p.name == "light_squeezenet.onnx")


@pytest.fixture
def model_file(tmp_path):
    return shutil.copy(SQUEEZENET, tmp_path / "own.onnx")


@pytest.fixture
def small_file(tmp_path):
    """With few kernels, which are soon measured."""
    diamond(tmp_path)
    return tmp_path / "small.onnx"


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """A model of such a file, the problem of its pipeline on one lane, and a placement."""
    folder = tmp_path_factory.mktemp("alone")
    diamond(folder)
    model = pl.load(str(folder / "small.onnx"))
    problem = pl.make_problem(model, pl.machine(lanes=1), objective="throughput")
    return model, problem, pl.place(problem, "single").placement


def same(a, b):
    """Whether two models say the same of everything but the content."""
    assert a.graph == b.graph and a.graph.fingerprint == b.graph.fingerprint
    assert a.notes == b.notes
    assert (a.problem is None) == (b.problem is None)
    if a.problem is not None:
        assert a.problem.fingerprint == b.problem.fingerprint
        assert a.problem.machine == b.problem.machine and a.problem.unit == b.problem.unit


def test_what_comes_back_is_what_the_loader_reads(model_file):
    here, there = loaders.load(str(model_file)), pl.load(str(model_file))
    same(there, here)
    assert isinstance(there.executable, RemoteExecutable)
    assert there.executable.format == here.executable.format == "onnx"
    assert there.executable.content_hash == here.executable.content_hash


@pytest.mark.parametrize("kind", ["throughput", "latency"])
def test_workloads_come_back_whole(kind):
    file = str(shared_file(kind, "op_bert3_inference"))
    same(pl.load(file), loaders.load(file))


def test_a_problem_file_comes_back_whole(tmp_path):
    path = tmp_path / "canonical.json"
    path.write_text(json.dumps(canonical_file()))
    same(pl.load(str(path)), loaders.load(str(path)))


def test_every_verb_about_a_file(small_file, tmp_path):
    model, machine = pl.load(str(small_file)), pl.machine(lanes=2)
    heard = []
    profile = pl.profile(model, machine, emit=heard.append, refresh=True)
    assert profile.graph == model.graph.fingerprint and profile.coverage == 1.0
    assert [e["event"] for e in heard].count("progress") >= 3
    problem = pl.make_problem(model, machine, profile)
    placement = pl.place(problem, "heft").placement
    predicted, measured = pl.run(model, problem, placement, steps=3, emit=heard.append)
    assert measured.outputs_match and len(measured.step_s) == 3
    assert len(predicted.schedule.segments) == len(
        [s for s in measured.timeline.spans if s.kind == "compute"]
    )
    assert [e["event"] for e in heard].count("step") == 3
    pl.export(model, problem, placement, "split-onnx", tmp_path / "split.zip")
    assert (tmp_path / "split.zip").stat().st_size > 0
    through = dataclasses.replace(problem, objective="throughput")
    _, streamed = pl.stream(model, through, placement, samples=5)
    assert streamed.num_samples == 5 and streamed.run.outputs_match


def test_a_stop_is_passed_on(alone):
    steps = []

    def hear(event):
        steps.extend([event] if event["event"] == "step" else [])

    _, streamed = pl.stream(*alone, samples=10**6, emit=hear, stop=lambda: len(steps) > 20)
    assert streamed.cancelled and 20 < streamed.num_samples < 10**6


@pytest.mark.parametrize("how", ["stop", "emit"])
def test_what_is_stopped_at_once_is_cancelled_and_no_fault_of_the_file(how, alone):
    # Of two verbs one asks `stop`, and each tells events: the answer may be a part, or nothing.
    given = {"stop": lambda: True} if how == "stop" else {"emit": lambda event: False}
    try:
        _, streamed = pl.stream(*alone, samples=10**6, **given)
    except (RuntimeError, ValueError) as error:
        assert "was cancelled" in str(error) or "was stopped while it filled" in str(error)
    else:
        assert streamed.cancelled


def test_whoever_measures_does_not_wait_for_itself(small_file):
    """The lock belongs to a thread here, and what needs it is carried out in another process."""
    model, machine = pl.load(str(small_file)), pl.machine(lanes=1)

    def hear(event):
        return "Waiting for process" not in str(event)

    with measuring("a test"):
        assert pl.profile(model, machine, emit=hear, refresh=True).coverage == 1.0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_command_about_a_file_heeds_signals(number, tmp_path):
    """As a terminal sends them: to the process that waits and to the confined one."""
    path = tmp_path / "canonical.json"
    path.write_text(json.dumps(canonical_file()))
    command = ["place", str(path), "--placer", "annealing", "--time-limit", "600", "--jsonl"]
    process = subprocess.Popen(
        [sys.executable, "-m", "placement", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert "progress" in process.stdout.readline()
        os.killpg(process.pid, number)
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
    if number == signal.SIGTERM:
        assert process.returncode == 143
    else:
        assert (process.returncode, said.strip().splitlines()[-1]) == (2, "Stopped.")


def test_a_file_that_changed_since_is_refused(model_file):
    model, machine = pl.load(str(model_file)), pl.machine(lanes=1)
    other = next(p for p in package_files() if p.name == "light_shufflenet.onnx")
    shutil.copy(other, model_file)
    with pytest.raises(ValueError, match="has changed since it was opened"):
        pl.profile(model, machine, refresh=True)


def instead(monkeypatch, code):
    """Let confined processes run some code that has taken them over."""
    monkeypatch.setattr(confinement, "command", lambda *about: [sys.executable, "-c", code])


FRAME = "import os, struct; os.write(1, struct.pack('<cQ', {!r}, {}) + {!r})"


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "crashed (SIGSEGV)"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "ended from outside"),
        ("pass", "without an answer"),
        (FRAME.format(b"r", 2**40, b""), "an answer that is none"),
        (FRAME.format(b"r", 5, b"\x93\x01\x02\x03\x04"), "an answer that is none"),
        (FRAME.format(b"r", 1, b"\x80"), "an answer that is none"),
        (FRAME.format(b"e", 1, b"\x01"), "an answer that is none"),
        (FRAME.format(b"q", 1, b"\x01"), "without an answer"),
    ],
)
def test_a_process_that_was_taken_over_is_not_believed(monkeypatch, model_file, code, said):
    instead(monkeypatch, code)
    with pytest.raises((ValueError, RuntimeError)) as caught:
        pl.load(str(model_file))
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_a_graph_that_is_none_is_refused_as_any_other():
    opened = wire.encoded({"graph": {"name": "g", "ops": [], "tensors": [{"name": 1}]}})
    with pytest.raises(RuntimeError, match="an answer that is none"):
        wire.decoded(opened, wire.Opened)
    graph = {"name": "g", "ops": [], "tensors": [dict.fromkeys("ab")]}
    with pytest.raises(RuntimeError, match="an answer that is none"):
        wire.decoded(msgspec.msgpack.encode(graph), Graph)
    array = wire.encoded(["|O8", [1], b"\0" * 8])
    with pytest.raises(RuntimeError, match="an answer that is none"):
        wire.decoded(array, Floats)


def test_a_command_about_a_file_runs_confined(model_file):
    assert answer("inspect", model_file)["num_ops"] == len(loaders.load(str(model_file)).graph.ops)


def test_a_command_whose_process_crashes_says_so(monkeypatch, capsys, model_file):
    instead(monkeypatch, "import os, signal; os.kill(os.getpid(), signal.SIGABRT)")
    options = make_parser().parse_args(["inspect", str(model_file)])
    with pytest.raises(SystemExit) as ended:
        supervisor.supervise(options, ["inspect", str(model_file)])
    said = capsys.readouterr().err
    assert ended.value.code == 2 and "'own.onnx' crashed (SIGABRT)" in said
    assert said.count("\n") == 1


def test_samples_and_listings_run_where_they_are():
    parse = make_parser().parse_args
    assert not supervisor.is_about_a_file(parse(["inspect", "onnx-squeezenet"]))
    assert not supervisor.is_about_a_file(parse(["placers"]))
    assert supervisor.is_about_a_file(parse(["inspect", "some.onnx"]))


def test_a_command_that_is_told_to_stop_takes_its_process_along(small_file):
    arguments = ("run", str(small_file), "--placer", "single", "--analytic")
    command = subprocess.Popen(
        [sys.executable, "-m", "placement", *arguments, "--steps", "1000000", "--jsonl"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert any('"event": "step"' in line for line in command.stdout)
        command.send_signal(signal.SIGTERM)
        command.communicate(timeout=60)
        assert command.returncode == 143
    finally:
        command.kill()
        command.communicate()


def test_a_time_limit_bounds_what_is_measured_beforehand(tmp_path):
    """A step of this model takes far longer than the limit, in one native call."""
    import onnx
    from onnx import TensorProto, helper

    n = 1 << 14
    matrix = helper.make_node("RandomNormal", [], ["a"], shape=[n, n], seed=1.0)
    products = [
        helper.make_node("MatMul", [f"m{i - 1}" if i else "a", "a"], [f"m{i}"]) for i in range(20)
    ]
    shrink = helper.make_node("ReduceSum", ["m19"], ["s"], keepdims=1)
    add = helper.make_node("Add", ["x", "s"], ["y"])
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1])
    graph = helper.make_graph([matrix, *products, shrink, add], "slow", [x], [y])
    path = tmp_path / "slow.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    done = call("run", path, "--placer", "single", "--steps", "1", "--timeout", "3")
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.count("\n") == 1 and "time" in done.stderr, done.stderr
