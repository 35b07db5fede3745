"""The layer assignment that is exported puts every node where it was placed, on two providers."""

import json
import subprocess
import sys
import zipfile

import onnx
import pytest

from tests.webgpu.conftest import CPU, GPU
from tests.webgpu.models import MODELS

ASK = """
import json, sys

sys.path.insert(0, sys.argv[1])
import load
import numpy as np

made = load.session()
x = made.get_inputs()[0]
given = {x.name: np.random.default_rng(0).random(x.shape, dtype=np.float32)}
groups = made.get_provider_graph_assignment_info()
print(json.dumps({
    "cpu": [n.name for g in groups if g.ep_name == "CPUExecutionProvider" for n in g.get_nodes()],
    "y": made.run(None, given)[0].ravel().tolist(),
}))
"""


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("first", [0, 1])
def test_nodes_run_on_the_provider_of_their_device(
    name, first, machine, command, environment, tmp_path
):
    """Ops are dealt one by one; the runtime lists those of the CPU as its own, and no others."""
    path = MODELS[name](tmp_path)
    ops = [node.name for node in onnx.load(path).graph.node]
    device_of = {op: (CPU, GPU)[(i + first) % 2] for i, op in enumerate(ops)}
    (tmp_path / "p.json").write_text(json.dumps({"device_of": device_of}))
    given = ("--machine", machine, "--placement", tmp_path / "p.json", "--analytic")
    archive = tmp_path / "layers.zip"
    command("export", path, *given, "--format", "ort-layers", "--out", archive)
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(tmp_path / "layers")
    done = subprocess.run(
        (sys.executable, "-c", ASK, str(tmp_path / "layers")),
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    answer = json.loads(done.stdout.splitlines()[-1])
    # Copies between the providers are nodes of the runtime's own.
    found = sorted(name for name in answer["cpu"] if name in ops)
    assert found == sorted(op for op, device in device_of.items() if device == CPU)
    assert any(answer["y"])
