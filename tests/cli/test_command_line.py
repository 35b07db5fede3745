"""The command line as scripts see it: one JSON value, exit status, one line on bad input."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import pytest

from placement.api import compare
from placement.core.machine import Device, Link, Machine, machine_from_json, machine_to_text
from tests import workloads
from tests.command import answer, call, call_here, canonical, refused
from tests.instances import canonical_file
from tests.pages.problems import diamond
from tests.profiling.live import saved

assert canonical
MODELS = Path(__file__).parents[2] / "assets" / "models"


@pytest.mark.parametrize(
    "wrong",
    [
        (),
        pytest.param(("--dim", "batch=2"), marks=pytest.mark.only_thorough),
        ("--nonsense",),
    ],
)
def test_a_process_says_what_the_verb_says_here(canonical, wrong):
    arguments = ("inspect", canonical, "--json", *wrong)
    there, here = call(*arguments), call_here(*arguments)
    assert (there.returncode, there.stderr) == (here.returncode, here.stderr)
    assert there.stdout == here.stdout and bool(wrong) != bool(there.stdout)


def test_placers_have_all_keys():
    rows = answer("placers")
    assert {"single", "round_robin", "manual", "heft"} <= {r["name"] for r in rows}
    for row in rows:
        assert set(row) >= {
            "name",
            "summary",
            "paper",
            "objectives",
            "executions",
            "exact",
            "needs",
            "settings",
        }


def test_steps_are_told_as_json_and_in_lines(canonical, tmp_path):
    out = tmp_path / "placement.json"
    told = answer("steps", canonical, "--placer", "heft", "--out", out)
    assert told["placer"] == "heft" and told["unit"] == "s"
    assert [step["line"] for step in told["steps"]] == [0, *[3] * 10, 4]
    assert told["steps"][-1]["placement"] == json.loads(out.read_text())
    assert answer("simulate", canonical, "--placement", out)["value"] == 80.0
    lines = call_here("steps", canonical, "--placer", "heft", "--most", "2").stdout.splitlines()
    assert lines[0].startswith("  1  rank of an op")
    assert (
        lines[6]
        == "step 2 (line 4): n1 goes to P3, where it would finish at 9 s (P1 14 s, P2 16 s)."
    )
    assert lines[-2].startswith("step 4 (line 4): The other 8 ops")
    assert "80 s" in lines[-1]
    shown = {row["name"] for row in answer("placers") if row["pseudo_code"]}
    assert {"heft", "cpop", "peft", "etf"} <= shown
    assert "does not show its steps" in refused("steps", canonical, "--placer", "branch_and_bound")


def test_samples_are_the_nine_light_models():
    rows = answer("samples")
    assert {r["name"] for r in rows} >= {
        "onnx-alexnet",
        "onnx-vgg19",
        "onnx-inception-v1",
        "onnx-inception-v2",
        "onnx-resnet50",
        "onnx-densenet121",
        "onnx-squeezenet",
        "onnx-shufflenet",
        "onnx-zfnet512",
    }
    for row in rows:
        assert set(row) == {"name", "num_ops", "source", "has_weights"}
        assert row["has_weights"] is not (MODELS / row["name"]).is_dir()
    have = [row["has_weights"] for row in rows]
    assert have == sorted(have, reverse=True) and len(set(have)) == 2


def test_place_then_simulate_a_problem_file(canonical, tmp_path):
    out = tmp_path / "placement.json"
    placed = answer("place", canonical, "--placer", "heft", "--out", out)
    assert placed["value"] == 80.0
    assert placed["costs"] == "given"
    assert placed["unit"] == "s"
    assert placed["violations"] == []
    assert placed["lower_bound"] <= 80.0
    assert placed["proven_optimal"] is False
    assert sum(placed["ops_per_device"].values()) == 10
    assert placed["seconds"] < 60
    simulated = answer("simulate", canonical, "--placement", out)
    assert simulated["value"] == 80.0
    path = simulated["critical_path"]
    assert path[0]["start_s"] == 0 and path[-1]["end_s"] == 80.0
    assert set(path[0]) == {"kind", "name", "device", "start_s", "end_s"}
    assert set(simulated["busy_s"]) >= {"P1", "P2", "P3"}
    assert set(simulated["peak_bytes"]) == {"P1", "P2", "P3"}


def test_pins_and_settings_from_the_command_line(canonical, tmp_path):
    out = tmp_path / "p.json"
    answer("place", canonical, "--pin", "n1=P2", "--set", "insertion=false", "--out", out)
    assert json.loads(out.read_text())["device_of"]["n1"] == "P2"


def test_throughput_is_the_largest_load(canonical, tmp_path):
    """Single on P1: all work on one device, nothing to send, so the load is the sum, 127."""
    placed = answer(
        "place", canonical, "--placer", "single", "--set", "device=P1", "--objective", "throughput"
    )
    assert placed["value"] == 127.0


def test_violations_exit_1(canonical, tmp_path):
    content = canonical_file()
    for row in content["ops"]:
        row["memory_bytes"] = 10
    content["devices"][0]["memory_bytes"] = 50
    canonical.write_text(json.dumps(content))
    out = tmp_path / "p.json"
    out.write_text(json.dumps({"device_of": {f"n{i}": "P1" for i in range(1, 11)}}))
    simulated = answer("simulate", canonical, "--placement", out, status=1)
    assert simulated["violations"] == ["Device 'P1' needs 100 B but has 50 B."]


def test_a_terminal_shows_how_far_a_search_is_and_ctrl_c_ends_it_with_a_sentence(canonical):
    search = ("--placer", "mutation", "--set", "max_iterations=1000000")
    command = [sys.executable, "-m", "placement", "steps", str(canonical), *search]
    ours, its = os.openpty()
    child = subprocess.Popen(command, stdin=its, stdout=its, stderr=its, start_new_session=True)
    os.close(its)
    seen = b""
    with contextlib.suppress(OSError):
        # Who has a terminal reads an error where Linux has no more to say.
        while told := os.read(ours, 4096):
            if b"batches" not in seen and b"batches" in seen + told:
                os.killpg(child.pid, signal.SIGINT)
            seen += told
    os.close(ours)
    assert child.wait() == 2
    *shown, last = re.split(r"\r(?:\x1b\[K)?", seen.decode().strip())
    assert any(re.match(r"\d+/\d+ batches", line) for line in shown), shown
    assert last == "Stopped."


def test_a_ctrl_c_that_comes_while_an_object_is_taken_away_ends_a_command(monkeypatch):
    class Interrupted:
        def __del__(self):
            signal.raise_signal(signal.SIGINT)

    def taking_away(options):
        made = Interrupted()
        del made
        time.sleep(60)
        return 0

    monkeypatch.setattr("placement.cli.verbs.placers", taking_away)
    # Whoever starts tests in the background has them ignore a Ctrl-C.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        done = call_here("placers")
    finally:
        signal.signal(signal.SIGINT, before)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "Stopped.\n")


@pytest.mark.parametrize("ends", [KeyboardInterrupt(), SystemExit(143)])
def test_a_signal_that_comes_while_a_class_is_made_is_no_error_of_that_class(monkeypatch, ends):
    """As it may while a module is imported; Python 3.11 tells it as a RuntimeError."""

    class Interrupted:
        def __set_name__(self, owner, name):
            raise ends

    def importing(options):
        return type("Imported", (), {"field": Interrupted()})

    monkeypatch.setattr("placement.cli.verbs.placers", importing)
    done = call_here("placers")
    if isinstance(ends, SystemExit):
        assert (done.returncode, done.stdout, done.stderr) == (143, "", "")
    else:
        assert (done.returncode, done.stdout, done.stderr) == (2, "", "Stopped.\n")


def test_compare_gives_a_row_per_placer(canonical):
    rows = answer("compare", canonical, "--placers", "single,heft,round_robin")
    assert [r["placer"] for r in rows] == ["single", "heft", "round_robin"]
    assert rows[0]["value"] == 127.0 and rows[1]["value"] == 80.0
    assert set(rows[0]) >= {"placer", "value", "unit", "lower_bound", "seconds", "measured_s"}
    for row in rows:
        assert row["gap"] == pytest.approx(row["value"] / row["lower_bound"] - 1)
        assert row["proven_optimal"] is False and row["error"] == ""
        assert row["problem"] == rows[0]["problem"]


def test_compare_tells_every_row_as_soon_as_it_is_there(canonical):
    done = call_here("compare", canonical, "--placers", "single,heft", "--jsonl")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    kinds = [e["event"] for e in events]
    told = [e for e in events if e["event"] == "row"]
    assert [r["placer"] for r in told] == ["single", "heft"] and kinds[-1] == "result"
    assert set(told[1]["placement"]["device_of"]) == {f"n{i}" for i in range(1, 11)}
    assert kinds.index("row") < max(i for i, k in enumerate(kinds) if k == "progress")
    steps = [(e["step"], e["of"]) for e in events if e["event"] == "progress"]
    assert steps == sorted(steps) and steps[-1] == (1, 2)
    assert events[-1]["rows"][1]["value"] == told[1]["value"] == 80.0


@pytest.mark.parametrize("kind", [ValueError, RuntimeError])
def test_a_comparison_goes_on_where_a_placement_cannot_be_run(monkeypatch, kind):
    def fail_first(model, problem, placement, **more):
        if not heard:
            raise kind("the runtime gave up.")
        return None, SimpleNamespace(median_s=0.5, outputs_match=True)

    def listen(event):
        heard.extend([event] if event["event"] == "row" else [])

    heard = []
    monkeypatch.setattr(compare, "run", fail_first)
    rows = compare.compare(None, diamond(), ["single", "heft"], live=True, emit=listen)
    assert "the runtime gave up" in rows[0].error and rows[0].measured_s is None
    assert rows[0].value > 0 and heard[0]["placement"]["device_of"]
    assert (rows[1].error, rows[1].measured_s, rows[1].outputs_match) == ("", 0.5, True)


def test_compare_and_what_if_leave_pinned_ops_where_they_are(canonical, tmp_path):
    pins = tmp_path / "pins.json"
    pins.write_text(json.dumps({"n1": "P2"}))
    done = call_here("compare", canonical, "--placers", "heft,single", "--pins", pins, "--jsonl")
    told = [json.loads(line) for line in done.stdout.splitlines()]
    placed = [e["placement"]["device_of"] for e in told if e["event"] == "row"]
    assert [device_of["n1"] for device_of in placed] == ["P2", "P2"]
    asked = ("what-if", canonical, "--placer", "single", "--speed", "P3=50", "--pin", "n1=P2")
    assert answer(*asked)["ops_per_device"]["P2"] >= 1


def test_what_if_predicts_a_machine_that_is_not_there(canonical, tmp_path):
    """On P1 alone all ten tasks take 127 s; at half the speed twice as long."""
    out = tmp_path / "p.json"
    out.write_text(json.dumps({"device_of": {f"n{i}": "P1" for i in range(1, 11)}}))
    slow = answer("what-if", canonical, "--placement", out, "--speed", "P1=0.5")
    assert (slow["value"], slow["unchanged"]["value"], slow["simulated"]) == (254.0, 127.0, True)
    placed = answer("what-if", canonical, "--placer", "single", "--speed", "P2=100")
    assert placed["ops_per_device"] == {"P2": 10}
    assert placed["what_if"]["speed"] == {"P2": 100.0}
    full = answer("what-if", canonical, "--placement", out, "--memory", "P1=0")
    assert full["violations"] == []
    endless = [(option, f"P1={n}") for option in ("--speed", "--memory") for n in ("inf", "nan")]
    wrongs = (("--speed", "P9=2"), ("--speed", "P1=x"), ("--speed", "P1=0"), ("--speed", "P1"))
    for wrong in (*wrongs, *endless):
        refused("what-if", canonical, "--placement", out, *wrong)


def test_analytic_costs_on_a_machine_that_is_not_here():
    placed = answer("place", "onnx-squeezenet", "--machine", "pcie-4gpu")
    assert placed["costs"] == "analytic"
    assert placed["value"] > 0


def test_a_null_machine_runs_on_a_virtual_clock(tmp_path):
    ran = answer("run", "onnx-squeezenet", "--placer", "heft", "--machine", "null-2")
    assert ran["emulated"] is True
    assert ran["step_s"]["median"] == pytest.approx(ran["predicted_s"])
    assert ran["error"] == pytest.approx(0.0, abs=1e-9)


def convolutions(folder):
    """Three pairs that the runtime fuses, each with one op after it that it does not."""
    weights = [
        onnx.numpy_helper.from_array(np.full((4, 4, 3, 3), 0.01, np.float32), f"w{i}")
        for i in range(3)
    ]
    nodes, last = [], "x"
    for i in range(3):
        nodes += [
            onnx.helper.make_node("Conv", [last, f"w{i}"], [f"c{i}"], f"conv{i}", pads=[1] * 4),
            onnx.helper.make_node("Relu", [f"c{i}"], [f"r{i}"], f"relu{i}"),
            onnx.helper.make_node("Sin", [f"r{i}"], [f"s{i}"], f"sin{i}"),
        ]
        last = f"s{i}"
    shape = [1, 4, 8, 8]
    saved(folder, nodes, {"x": shape}, {last: shape}, weights)


def test_a_placement_that_parts_what_is_fused_is_refused_or_mended(tmp_path):
    """Dealt one by one, ops that the runtime fuses come to lie on two devices."""
    path = tmp_path / "p.json"
    convolutions(tmp_path)
    model = (str(tmp_path / "small.onnx"), "--machine", "two-lanes")
    names = [f"{kind}{i}" for i in range(3) for kind in ("conv", "relu", "sin")]
    dealt = {name: f"cpu:{number % 2}" for number, name in enumerate(names)}
    path.write_text(json.dumps({"device_of": dealt}))
    assert "--mend" in refused("run", *model, "--placement", path)
    ran = answer("run", *model, "--placement", path, "--mend", "--steps", "3")
    assert ran["outputs_match"] is True
    assert ran["num_segments"] > 1


def test_the_verbs_in_a_notebook():
    import placement as pl

    model = pl.load("onnx-squeezenet")
    machine = pl.machine("pcie-4gpu")
    problem = pl.make_problem(model, machine)
    placed = pl.place(problem, "heft")
    assert pl.simulate(problem, placed.placement).value == placed.value
    assert {row["name"] for row in pl.list_placers()} >= {"heft"}


def test_only_some_ops_move_and_pins_come_from_a_file(canonical, tmp_path):
    base, pins, move = (tmp_path / f"{name}.json" for name in ("base", "pins", "move"))
    base.write_text(json.dumps({"device_of": {f"n{i}": "P1" for i in range(1, 11)}}))
    pins.write_text(json.dumps({"n2": "P3", "n4": "P2"}))
    move.write_text(json.dumps(["n1", "n2"]))
    out = tmp_path / "p.json"
    held = ("--keep", base, "--move", move, "--pins", pins, "--mend", "--out", out)
    answer("place", canonical, "--placer", "single", "--set", "device=P2", *held)
    placed = json.loads(out.read_text())["device_of"]
    # A pin says more than where an op happens to be.
    others = {f"n{i}": "P1" for i in (3, *range(5, 11))}
    assert placed == {"n1": "P2", "n2": "P3", "n4": "P2", **others}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM to be handled")
def test_a_search_that_is_stopped_gives_the_best_so_far(canonical):
    command = ("place", str(canonical), "--placer", "annealing", "--time-limit", "600", "--jsonl")
    process = subprocess.Popen(
        (sys.executable, "-m", "placement", *command), stdout=subprocess.PIPE, text=True
    )
    try:
        events = []
        for line in process.stdout:
            events.append(json.loads(line))
            if events[-1].get("best") is not None:
                break
        process.send_signal(signal.SIGTERM)
        events += [json.loads(line) for line in process.communicate()[0].splitlines()]
    finally:
        process.kill()
    assert process.returncode == 143
    result = events[-1]
    assert result["event"] == "result" and result["cancelled"] and not result["violations"]
    assert len(result["placement"]["device_of"]) == 10


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM to be handled")
def test_a_comparison_that_is_stopped_gives_its_rows_so_far(canonical):
    command = [sys.executable, "-m", "placement", "compare", str(canonical), "--jsonl"]
    command += ["--placers", "heft,annealing,single", "--time-limit", "600"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        events = []
        for line in process.stdout:
            events.append(json.loads(line))
            if "annealing" in events[-1].get("what", "") and events[-1].get("best") is not None:
                break
        process.send_signal(signal.SIGTERM)
        events += [json.loads(line) for line in process.communicate()[0].splitlines()]
    finally:
        process.kill()
    assert process.returncode == 143
    assert [e["placer"] for e in events if e["event"] == "row"] == ["heft", "annealing"]
    assert events[-1]["event"] == "result" and events[-1]["cancelled"] is True


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such signal")
@pytest.mark.parametrize(
    "arguments",
    [("placers",), pytest.param(("samples", "--json"), marks=pytest.mark.only_thorough)],
)
def test_a_reader_that_goes_away_ends_the_command_quietly(arguments):
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "placement", *arguments],
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        timeout=300,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, "")


def test_the_former_name_of_a_placer_is_taken(tmp_path):
    path = tmp_path / "small.json"
    path.write_text(json.dumps(workloads.diamond()))
    given = ("place", str(path), "--objective", "throughput", "--time-limit", "1")
    named = [answer(*given, "--placer", name)["placer"] for name in ("cp_sat", "branch_and_bound")]
    assert named == ["branch_and_bound"] * 2


TERMINATED_TWICE = """
import signal, sys, time
import placement.__main__ as command_line

def verb(options):
    terminated = signal.getsignal(signal.SIGTERM)
    try:
        terminated(signal.SIGTERM, None)
    except SystemExit:
        time.sleep(0.5)
    terminated(signal.SIGTERM, None)

import placement.cli.verbs as verbs
verbs.samples = verb
sys.exit(command_line.main(["samples"]))
"""


def test_a_signal_that_comes_twice_ends_the_command_as_once():
    """The second may be on its way before the first one's handler has had others ignored."""
    done = subprocess.run([sys.executable, "-c", TERMINATED_TWICE], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (143, "")


def test_offload_is_an_option_of_the_problem(tmp_path):
    """A placement with weights that stream is a file like any other, and opens with the option."""
    devices = (
        Device("cpu:0", memory_bytes=10**9, flops_per_s=1e9, memory_bytes_per_s=1e8),
        Device("cuda:0", "gpu", memory_bytes=10**7, flops_per_s=1e12, memory_bytes_per_s=1e11),
    )
    links = (Link("cpu:0", "cuda:0", 1e-5, 1e9), Link("cuda:0", "cpu:0", 1e-5, 1e9))
    (tmp_path / "m.json").write_text(machine_to_text(Machine("m", devices, links)))
    asked = ("onnx-squeezenet", "--machine", str(tmp_path / "m.json"), "--analytic")
    out = str(tmp_path / "placed.json")
    place = ("place", *asked, "--placer", "single", "--set", "device=cuda:0-streamed")
    assert answer(*place, "--offload", "--out", out)["violations"] == []
    found = answer("simulate", *asked, "--offload", "--placement", out)
    assert found["streamed_bytes"]["cuda:0"] > 4 * 10**6
    assert found["peak_bytes"]["cuda:0"] <= 10**7


RULES = ["--overlap", "--gpipe", "--cluster-size", "1", "--slow-link-factor", "4"]


def test_rules_for_loads_are_options_of_the_problem(tmp_path):
    """1 -> 2 and 3 -> 4 on two accelerators: what a placement is worth changes with the rules."""
    given, out = str(tmp_path / "diamond.json"), str(tmp_path / "placed.json")
    Path(given).write_text(json.dumps(workloads.diamond()))
    rows = {"cpus": [], "fpgas": [{"nodes": [1, 2, 3]}, {"nodes": [4]}]}
    (tmp_path / "split.json").write_text(json.dumps(rows))
    asked = (given, "--objective", "throughput")
    answer("place", *asked, "--placer", "expert", "--set", f"split={tmp_path / 'split.json'}",
           "--out", out)  # fmt: skip
    values = [
        answer("simulate", *asked, *rules, "--placement", out)["value"]
        for rules in ([], ["--overlap"], RULES[2:], RULES)
    ]
    # Each accelerator moves the outputs of 2 and 3: 5 ms, four times as much into another cluster.
    assert values == pytest.approx([11.0, 6.0, 26.0, 20.0])
    placed = answer("place", *asked, *RULES, "--placer", "branch_and_bound")
    assert placed["proven_optimal"] and placed["value"] <= 10.0
    assert placed["rules"] == (
        "transfers overlap compute; forward and backward apart (GPipe);"
        " clusters of 1 accelerator, 4 times as long between them"
    )
    assert "rules" not in answer("place", *asked, "--placer", "single")


def test_rules_for_loads_are_refused_where_they_say_nothing(tmp_path):
    given = tmp_path / "diamond.json"
    given.write_text(json.dumps(workloads.diamond()))
    asked = ("place", str(given), "--placer", "auto")
    assert "settings of throughput" in refused(*asked, "--overlap")
    model = ("place", "onnx-squeezenet", "--analytic", "--placer", "single", "--gpipe")
    assert "settings of workload files" in refused(*model)
    throughput = (*asked, "--objective", "throughput")
    assert "--cluster-size" in refused(*throughput, "--slow-link-factor", "2")
    assert "use 1 or more" in refused(*throughput, "--cluster-size", "0")
    assert "more than zero" in refused(*throughput, "--sync-bytes-per-ms", "-1")
    assert "use 1 or more" in refused(*throughput, "--cluster-size=2", "--slow-link-factor=nan")


def test_a_gpu_is_told_by_its_memory_and_a_cpu_by_its_cores():
    lines = call_here("machine", "--machine", "desktop-24gb").stdout.splitlines()
    cpu = next(line for line in lines if line.startswith("cpu:0:"))
    gpu = next(line for line in lines if line.startswith("cuda:0:"))
    assert " core" in cpu and "GiB" in gpu and " core" not in gpu


def test_a_machine_can_be_read_as_it_is_listed():
    told = answer("machine")
    machine = machine_from_json(told)
    assert [d.name for d in machine.devices] == [d["name"] for d in told["devices"]]
    assert len(machine.links) == len(told["links"])
