"""CPU and WebGPU share a model: same outputs, devices as asked, transfers counted."""

import json

import pytest

from tests.webgpu.conftest import CPU, GPU
from tests.webgpu.models import attention, cnn, with_fallback

PROVIDERS = {CPU: "CPUExecutionProvider", GPU: "WebGpuExecutionProvider"}
CNN = ("conv1", "relu1", "conv2", "relu2", "sum", "pooled", "flat", "y")
ATTENTION = ("q", "k", "v", "kt", "scores", "shares", "mixed", "y")
X, MAP, POOLED, Y = 3 * 16 * 16 * 4, 8 * 16 * 16 * 4, 8 * 4, 10 * 4
ROWS, SQUARE = 12 * 32 * 4, 12 * 12 * 4
# Model, ops on WebGPU, bytes that must cross: inputs start on the host and outputs end there.
CASES = {
    "cnn, last part": (cnn, CNN[5:], MAP + Y),
    "cnn, skip over the border": (cnn, CNN[:4], X + 2 * MAP),
    "attention, scores": (attention, ("scores", "shares"), 2 * ROWS + SQUARE),
    "attention, all": (attention, ATTENTION, 2 * ROWS),
}
# Where values cross both ways; the others need no process of their own.
CONFINED = "cnn, skip over the border"


@pytest.fixture
def run(command, machine, tmp_path):
    """Run a model live with these ops on WebGPU and the rest on the CPU."""

    def call(model, names, on_gpu, *more, command=command):
        placement = {"device_of": {name: GPU if name in on_gpu else CPU for name in names}}
        path = tmp_path / "placement.json"
        path.write_text(json.dumps(placement))
        chosen = ("--placement", path, "--machine", machine)
        found, status = command("run", model, *chosen, "--steps", 2, "--warmup", 1, *more)
        assert status == (0 if found["outputs_match"] else 1)
        return found

    return call


@pytest.mark.parametrize("case", CASES)
def test_a_shared_model_gives_the_same(run, request, tmp_path, case):
    make, on_gpu, num_bytes = CASES[case]
    names = CNN if make is cnn else ATTENTION
    how = {"command": request.getfixturevalue("confined_command")} if case == CONFINED else {}
    # What is predicted of it is of no matter here, so nothing is measured beforehand.
    found = run(make(tmp_path), names, on_gpu, "--analytic", **how)
    assert found["outputs_match"], found["max_abs_diff"]
    assert found["max_abs_diff"] <= 1e-4
    used = {GPU if name in on_gpu else CPU for name in names}
    assert found["requested_devices"].items() <= PROVIDERS.items()
    assert found["actual_devices"] == {name: PROVIDERS[name] for name in PROVIDERS if name in used}
    assert found["fallbacks"] == []
    assert found["transfer_bytes"] == num_bytes
    spans = found["timeline"]["spans"]
    assert sum(s["num_bytes"] for s in spans if s["kind"] == "transfer") == num_bytes
    assert {s["device"] for s in spans if s["kind"] == "compute"} == used


def test_an_op_that_webgpu_lacks_is_reported(run, tmp_path):
    names = ("before", "lacking", "y")
    found = run(with_fallback(tmp_path), names, names, "--analytic")
    assert found["outputs_match"]
    assert set(found["actual_devices"][GPU].split("+")) == set(PROVIDERS.values())
    assert len(found["fallbacks"]) == 1
    assert "lacking" in found["fallbacks"][0] and PROVIDERS[CPU] in found["fallbacks"][0]


def test_a_fallback_placed_where_it_can_run_is_none(run, tmp_path):
    names = ("before", "lacking", "y")
    found = run(with_fallback(tmp_path), names, ("before", "y"), "--analytic")
    assert found["outputs_match"]
    assert found["actual_devices"] == PROVIDERS
    assert found["fallbacks"] == []


def test_placers_know_both_devices(command, machine, tmp_path):
    found, status = command("place", cnn(tmp_path), "--placer", "round_robin", "--machine", machine)
    assert status == 0
    assert found["costs"] == "measured"
    assert set(found["ops_per_device"]) == {CPU, GPU}
    assert all(number > 0 for number in found["ops_per_device"].values())
