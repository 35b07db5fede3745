"""What was typed, and what was written, before folders were the layers still answers.

The placement file and the figures are that version's own answers, the commands are its README's.
"""

import csv
import json
import re
from pathlib import Path

import pytest

from placement.cli.options import make_parser
from tests.command import answer, call_here

PLACED = Path(__file__).parents[1] / "data" / "older_placement.json"
PROBLEM = ("onnx-squeezenet", "--machine", "null-2", "--analytic")
VALUE_S, NUM_SEGMENTS, TRANSFER_BYTES = 0.012928827333333335, 25, 3_626_240
COMMANDS = """
compare onnx-inception-v2 --placers single,heft,round_robin --live
export alexnet:training --placement training.json --format torch-step --out step.zip
export onnx-inception-v2 --placement placed.json --format networkx --out g.json
exporters
inspect onnx-inception-v2
machine --lanes 2
place alexnet:training --placer heft --out training.json
place onnx-inception-v2 --placer auto --time-limit 5 --out placed.json
placers
profile onnx-inception-v2
run onnx-inception-v2 --placement placed.json --steps 30
run onnx-squeezenet --placer auto --time-limit 5 --objective throughput
samples
simulate onnx-inception-v2 --placement placed.json
train alexnet:training --placement training.json --steps 20 --adjust
what-if onnx-inception-v2 --placement placed.json --speed cpu:1=0.5
"""
COMMON = "--json --dim N=1 --machine local --lanes 2 --objective latency --profile p --analytic"
FLAGS = {
    "place": "--placer heft --time-limit 5 --seed 1 --set a=1 --pin a=b --pins f --keep f --move f"
    " --mend --out f --split f --jsonl",
    "simulate": "--placement f --mend",
    "run": "--placement f --mend --steps 2 --time-limit 5 --seed 1 --set a=1"
    " --inputs f --timeout 3 --jsonl --warmup 1 --depth 2",
    "train": "--placer heft --mend --steps 2 --time-limit 5 --seed 1 --set a=1"
    " --inputs f --timeout 3 --jsonl --adjust --adjust-placer heft --margin 0.1",
    "compare": "--placers a,b --time-limit 5 --seed 1 --pin a=b --pins f --mend --live --jsonl",
    "export": "--placement f --mend --format csv --run f --out f",
}


@pytest.mark.parametrize("command", COMMANDS.strip().splitlines())
def test_a_command_of_then_is_understood(command):
    verb, *_ = command.split()
    assert make_parser().parse_args(command.split()).verb == verb


@pytest.mark.parametrize("verb", FLAGS)
def test_the_options_of_then_are_there(verb):
    words = f"{verb} model {COMMON} {FLAGS[verb]}".split()
    options = vars(make_parser().parse_args(words))
    for flag in re.findall(r"--([a-z-]+)", f"{COMMON} {FLAGS[verb]}"):
        assert options[flag.replace("-", "_")] not in (None, "", False), flag


def test_a_placement_file_of_then_is_worth_what_it_was():
    simulated = answer("simulate", *PROBLEM, "--placement", PLACED)
    assert simulated["value"] == pytest.approx(VALUE_S, rel=1e-12)
    assert simulated["num_segments"] == NUM_SEGMENTS and simulated["violations"] == []
    assert simulated["transfer_bytes"] == TRANSFER_BYTES
    assert simulated["critical_path"][0]["name"] == "n0"
    ran = answer("run", *PROBLEM, "--placement", PLACED, "--steps", 3)
    assert ran["step_s"]["median"] == pytest.approx(VALUE_S, rel=1e-12)
    assert (ran["emulated"], ran["error"], ran["num_segments"]) == (True, 0.0, NUM_SEGMENTS)


def test_a_placement_file_of_then_is_exported_with_the_devices_that_it_names(tmp_path):
    wanted = json.loads(PLACED.read_text("utf-8"))["device_of"]
    table, again = tmp_path / "ops.csv", tmp_path / "again.json"
    for form, out in (("csv", table), ("json", again)):
        done = call_here("export", *PROBLEM, "--placement", PLACED, "--format", form, "--out", out)
        assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(table.read_text("utf-8").splitlines()))
    column = next(name for name in rows[0] if name.lower() == "device")
    assert [row[column] for row in rows] == list(wanted.values())
    assert json.loads(again.read_text("utf-8"))["device_of"] == wanted
