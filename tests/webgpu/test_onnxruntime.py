"""What the live path relies on, shown by onnxruntime itself on WebGPU."""

import json
import subprocess
import sys

import numpy as np
import pytest

from tests.webgpu.models import save, weights, with_fallback

CALL = """
import json, sys
import numpy as np
import onnxruntime as ort

options = ort.SessionOptions()
options.log_severity_level = 4
options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
names = ["WebGpuExecutionProvider", "CPUExecutionProvider"]
session = ort.InferenceSession(sys.argv[1], options, providers=names, enable_fallback=0)
described = session.get_inputs()[0], session.get_outputs()[0]
given, made = (ort.OrtValue.ortvalue_from_numpy(np.zeros(d.shape, np.float32)) for d in described)
binding = session.io_binding()
binding.bind_ortvalue_output(described[1].name, made)


def run(first, *, bind):
    given.update_inplace(np.full(described[0].shape, first, np.float32))
    if bind:
        binding.bind_ortvalue_input(described[0].name, given)
    session.run_with_iobinding(binding)
    return made.numpy().ravel().tolist()


print(json.dumps({
    "providers": session.get_providers(),
    "one": run(1.0, bind=True),
    "two, not bound again": run(2.0, bind=False),
    "two": run(2.0, bind=True),
    "assigned": [
        [part.ep_name, [node.name for node in part.get_nodes()]]
        for part in session.get_provider_graph_assignment_info()
    ],
}))
del binding, session  # the driver is gone when the interpreter clears what is left
"""


@pytest.fixture
def facts(environment):
    def call(path):
        done = subprocess.run(
            (sys.executable, "-c", CALL, str(path)),
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return call


def test_an_input_in_host_memory_is_copied_when_it_is_bound(facts, tmp_path):
    """So a value that another session wrote since has to be bound again before every run."""
    drawn = weights(w=(4, 4))
    path = save(
        "one",
        [("MatMul", ["x", "w"], "y", {})],
        [("x", [1, 4])],
        [("y", [1, 4])],
        drawn,
        tmp_path,
    )
    found = facts(path)
    assert found["providers"] == ["WebGpuExecutionProvider", "CPUExecutionProvider"]
    expected = drawn["w"].sum(axis=0)
    np.testing.assert_allclose(found["one"], expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found["two"], 2 * expected, rtol=1e-5, atol=1e-6)
    assert found["two, not bound again"] == found["one"]


def test_what_fell_back_is_listed(facts, tmp_path):
    """Nodes on the CPU are listed; those on WebGPU not always, so what is not listed is there."""
    assert ["CPUExecutionProvider", ["lacking"]] in facts(with_fallback(tmp_path))["assigned"]
