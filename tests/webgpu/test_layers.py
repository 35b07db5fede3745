"""The layer assignment that is exported puts every node where it was placed, on two providers."""

import json
import subprocess
import sys
import zipfile

import onnx

from tests.webgpu.conftest import CPU, GPU
from tests.webgpu.models import MODELS

ASK = """
import json, runpy, sys

import numpy as np

kept = []  # with it what the driver has compiled
for folder in sys.argv[1:]:
    made = runpy.run_path(folder + "/load.py")["session"]()
    kept.append(made)
    x = made.get_inputs()[0]
    given = {x.name: np.random.default_rng(0).random(x.shape, dtype=np.float32)}
    groups = made.get_provider_graph_assignment_info()
    on_cpu = [g for g in groups if g.ep_name == "CPUExecutionProvider"]
    print(json.dumps({
        "cpu": [node.name for group in on_cpu for node in group.get_nodes()],
        "y": made.run(None, given)[0].ravel().tolist(),
    }))
del made, kept
"""


def exported(path, device_of, machine, command, folder):
    """What is exported for a placement, unpacked."""
    folder.mkdir()
    (folder / "p.json").write_text(json.dumps({"device_of": device_of}))
    given = ("--machine", machine, "--placement", folder / "p.json", "--analytic")
    archive = folder / "layers.zip"
    command("export", path, *given, "--format", "ort-layers", "--out", archive)
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(folder / "layers")
    return folder / "layers"


def test_nodes_run_on_the_provider_of_their_device(machine, command, environment, tmp_path):
    """Ops are dealt one by one; the runtime lists those of the CPU as its own, and no others."""
    placed, folders = [], []
    for name, make in MODELS.items():
        path = make(tmp_path)
        ops = [node.name for node in onnx.load(path).graph.node]
        for first in (0, 1):
            device_of = {op: (CPU, GPU)[(i + first) % 2] for i, op in enumerate(ops)}
            folder = tmp_path / f"{name}-{first}"
            placed.append(device_of)
            folders.append(exported(path, device_of, machine, command, folder))
    done = subprocess.run(
        (sys.executable, "-c", ASK, *map(str, folders)),
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    for device_of, line in zip(placed, done.stdout.splitlines(), strict=True):
        answer = json.loads(line)
        # Copies between the providers are nodes of the runtime's own.
        found = sorted(name for name in answer["cpu"] if name in device_of)
        assert found == sorted(op for op, device in device_of.items() if device == CPU)
        assert any(answer["y"])
