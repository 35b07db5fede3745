"""Commands that one process answers, a line of words each: it imports and finds the driver once.

A model's file is opened by this process itself, as a confined one does. A step takes the software
driver far longer than a device, and nobody asks here how exact its seconds are; so as few are made
as may be.
"""

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import onnxruntime
import pytest

from profiling.measuring import kernels, reference
from tests.command import call_here
from tests.profiling.live import measure_briefly
from tests.webgpu.models import attention


def opened() -> onnxruntime.InferenceSession:
    """A session on WebGPU: while there is one the runtime keeps the kernels that it has compiled,
    which takes the software driver seconds for each model."""
    with TemporaryDirectory() as folder:
        path = attention(Path(folder))
        return onnxruntime.InferenceSession(str(path), providers=["WebGpuExecutionProvider"])


def main() -> None:
    kept = opened()
    with pytest.MonkeyPatch.context() as patch:
        measure_briefly(patch)
        patch.setattr(reference, "STEPS_S", 0.0)
        patch.setattr(reference, "SETTLING_S", 0.0)
        patch.setattr(reference, "FEWEST_STEPS", 2)
        patch.setattr(kernels, "FEWEST_ROUNDS", 2)
        for module in (reference, kernels):
            patch.setattr(module, "WARMUP", 1)
        for line in sys.stdin:
            done = call_here(*json.loads(line))
            print(json.dumps([done.returncode, done.stdout, done.stderr]), flush=True)
    del kept  # the driver is gone when the interpreter clears what is left


if __name__ == "__main__":
    main()
