"""The verb export: every format, a measured run beside the prediction, refusals in one line."""

import json

import pytest
import torch

import placement as pl
from placement.__main__ import main
from placement.exporters import exporters
from placement.loaders import load
from tests.exporters.torch_models import Scaled
from tests.instances import canonical_file
from tests.loaders.test_huggingface import TINY
from tests.thorough import either

MODEL = ("onnx-squeezenet", "--machine", "null-2")
TORCH = ("torch-step", "device-map", "torch-pipeline")
LANGUAGE = ("vllm-layers", "llama-cpp-split")
# Of these in JSON with the model's name: a map has modules alone, and a step is several files.
NAMED = (*LANGUAGE, "torch-pipeline")


@pytest.fixture
def answer(capsys):
    """Call the command line with --json; what it printed."""

    def call(*arguments):
        status = main([*map(str, arguments), "--json"])
        printed = capsys.readouterr()
        assert status == 0 and not printed.err
        return json.loads(printed.out)

    return call


@pytest.fixture
def refused(capsys):
    """Call the command line with bad input; the one line that it says."""

    def call(*arguments):
        with pytest.raises(SystemExit) as ended:
            main([*map(str, arguments), "--json"])
        printed = capsys.readouterr()
        assert ended.value.code == 2 and not printed.out
        assert len(printed.err.splitlines()) == 1
        return printed.err

    return call


@pytest.fixture
def placed(answer, tmp_path):
    path = tmp_path / "mine.json"
    answer("place", *MODEL, "--placer", "heft", "--out", path)
    return path


def test_formats_are_listed(answer):
    rows = answer("exporters")
    assert [row["name"] for row in rows] == [found.name for found in exporters()]
    assert all({"name", "title", "summary", "suffix"} == set(row) for row in rows)


@pytest.mark.parametrize("name", [f.name for f in exporters() if f.name not in (*TORCH, *LANGUAGE)])
def test_every_format_from_the_command_line(name, answer, placed, tmp_path):
    out = tmp_path / "out"
    given = ("export", *MODEL, "--placement", placed, "--format", name, "--out", out)
    found = answer(*given)
    assert {**found, "note": ""} == {"format": name, "path": str(out), "note": ""}
    joins = name in ("ort-layers", "openvino-hetero")
    assert ("are one device" in found["note"]) == joins and out.exists()


def program_in(folder):
    """The path of a small exported module."""
    torch.manual_seed(0)
    program = torch.export.export(Scaled().eval(), (torch.randn(4),))
    torch.export.save(program, folder / "model.pt2")
    return folder / "model.pt2"


def configuration_in(folder):
    """The folder of a configuration, for which it stands."""
    (folder / "config.json").write_text(json.dumps(TINY))
    return folder


# Of what only PyTorch models have: files without weights have all formats but one.
OF_PYTORCH = [(program_in, name) for name in TORCH]
OF_PYTORCH += [(configuration_in, name) for name in (*LANGUAGE, *TORCH[1:])]
FEW_OF_PYTORCH = [(program_in, "device-map"), (configuration_in, "vllm-layers")]


@pytest.mark.thorough
@pytest.mark.parametrize(("model_in", "name"), either(FEW_OF_PYTORCH, OF_PYTORCH))
def test_formats_of_pytorch_from_the_command_line(model_in, name, answer, tmp_path):
    """The file is opened in a process of its own, which takes seconds: in `make test` one of each.

    What the formats say is in their tests; here that the command line has them for such files.
    """
    given = tmp_path / "model"
    given.mkdir()
    model, path = model_in(given), tmp_path / "mine.json"
    graph = load(str(model)).graph
    devices = {op.name: f"null:{i % 2}" for i, op in enumerate(graph.ops)}
    if name in LANGUAGE:
        devices = dict.fromkeys(devices, "null:0")
    path.write_text(json.dumps({"device_of": devices}))
    out = tmp_path / name
    found = answer(
        *("export", model, "--machine", "null-2", "--placement", path),
        *("--format", name, "--out", out),
    )
    assert out.exists()
    if name in NAMED:
        assert json.loads(out.read_text())["model"] == graph.name
    assert ("knows one CPU" in found["note"]) == (name == "device-map")


def test_a_run_stands_beside_the_prediction(answer, placed, tmp_path):
    """On a virtual clock, from both forms in which a run is printed."""
    run = answer("run", *MODEL, "--placement", placed, "--steps", 2)
    result = tmp_path / "run.json"
    for text in (json.dumps(run), f'{{"event": "step"}}\n{json.dumps(run)}\n'):
        result.write_text(text)
        out = tmp_path / "trace.json"
        given = ("--placement", placed, "--run", result, "--format", "chrome-trace", "--out", out)
        answer("export", *MODEL, *given)
        events = json.loads(out.read_text())["traceEvents"]
        titles = [e["args"]["name"].split()[0] for e in events if e["name"] == "process_name"]
        assert titles == ["Predicted", "Emulated"]


def test_bad_input_is_refused_in_a_line(refused, placed, tmp_path):
    def export(*given, name="csv", out="out.csv"):
        given = ("--placement", placed, "--format", name, *given)
        return refused("export", *MODEL, *given, "--out", tmp_path / out)

    assert "There is no folder" in export(out="nowhere/out.csv")
    assert "is a folder" in export(out=".")
    assert "chrome-trace" in export(name="powerpoint")
    assert "There is no file" in export("--run", tmp_path / "none.json")
    odd = [
        f'{{"timeline": {{"origin": "measured", "spans": [], "step_s": {step_s}}}}}'
        for step_s in ('"x"', "Infinity", "NaN", "null", "true", "1" + "0" * 400)
    ]
    for content in ("{}", "[1, 2", '{"timeline": {"spans": 3}}', "\x00", *odd):
        (tmp_path / "run.json").write_text(content)
        assert "run.json" in export("--run", tmp_path / "run.json")
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.thorough
def test_a_graph_without_a_model_is_exported_but_for_its_model(answer, refused, tmp_path):
    problem, placed = tmp_path / "problem.json", tmp_path / "placed.json"
    problem.write_text(json.dumps(canonical_file()))
    answer("place", problem, "--placer", "heft", "--out", placed)
    given = ("export", problem, "--placement", placed, "--out", tmp_path / "out", "--format")
    # test_exporters.py tries every format on a model without an executable side.
    for name in either(("split-onnx",), ("split-onnx", "ort-layers", "openvino-hetero")):
        assert "has no executable side" in refused(*given, name)
    others = ("graph-svg", "html", "timeline-svg", "perfetto-trace")
    for name in ("csv", "chrome-trace", *either((), others)):
        answer(*given, name)


def test_a_stored_profile_is_used_and_nothing_is_measured(answer, placed, tmp_path, monkeypatch):
    """Without one an export is of estimates; it never starts a measurement."""

    def refuse(*arguments, **options):
        raise AssertionError("an export measured")

    monkeypatch.setattr(pl, "profile", refuse)
    out = tmp_path / "trace.json"
    model = ("onnx-squeezenet", "--machine", "two-lanes")
    monkeypatch.setattr(pl, "stored_profile", lambda model, machine: None)
    path = tmp_path / "cpu.json"
    names = list(json.loads(placed.read_text())["device_of"])
    path.write_text(json.dumps({"device_of": dict.fromkeys(names, "cpu:0")}))
    answer("export", *model, "--placement", path, "--format", "chrome-trace", "--out", out)
    about = json.loads(out.read_text())["otherData"]
    assert about["predicted from"] == "estimated by formula, not measured"
