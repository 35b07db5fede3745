"""A process that has imported what workers of Ray import, and of which they are copies.

To import PyTorch and numba takes seconds of a core's time, and tests that kill hosts start dozens
of workers. So a node starts copied.py instead of Ray's own script; that asks this process, which
forks, and the copy goes on as Ray's worker would (as with `multiprocessing.forkserver`). This
process has modules and no thread, so that a copy lacks nothing: each imports ONNX Runtime itself,
which begins one, and Ray, which reads when it is imported whose worker it is.
"""

import gc
import importlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from profiling.devices import lanes
from profiling.sandbox import confinement
from tests.hosts.copied import TEMPLATE
from tests.hosts.two_nodes import VARIABLES

MODULES = (
    # What Ray imports of others.
    "filelock",
    "google.protobuf.json_format",
    "jsonschema",
    "requests",
    "yaml",
    "onnx",
    "placement.advice.warming",
    "placement.api.models",
    "placement.formats.torch.training",
    "placement.loaders.onnx",
    "placement.loaders.zoo",
    "placement.splits.annealing.latency",
    "placement.splits.annealing.throughput",
    "profiling.backends._ray.worker",
    "profiling.backends._torch.compile",
    "torch._dynamo",
)
ROOT, SETUP = Path(__file__).parents[2], Path(__file__).with_name("copied.py")
READY = b"ready\n"


@contextmanager
def template() -> Iterator[dict[str, Any]]:
    """How nodes are started, as Ray's settings of a node, so that workers are copies of one."""
    if sys.platform != "linux":
        # Libraries of other systems may not go on in a copy.
        yield {}
        return
    with TemporaryDirectory() as folder:
        path = f"{folder}/template"
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.hosts.template", path],
            env={**os.environ, **VARIABLES},
            cwd=ROOT,
            stdout=subprocess.PIPE,
        )
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            assert said == READY, said
            yield {"setup_worker_path": str(SETUP), "env_vars": {TEMPLATE: path}}
        finally:
            process.kill()
            process.communicate()


def main() -> None:
    confinement.end_with(os.getppid())
    for name in MODULES:
        importlib.import_module(name)
    lanes.warm_up()
    assert len(os.listdir("/proc/self/task")) == 1, "a copy would lack threads"
    # What is here by now is written to by no copy that looks for garbage.
    gc.collect()
    gc.freeze()
    # Nobody asks how copies end.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(sys.argv[1])
        server.listen()
        sys.stdout.buffer.write(READY)
        sys.stdout.flush()
        while True:
            connection, _ = server.accept()
            if os.fork() == 0:
                break
            connection.close()
    _go_on(connection)


def _go_on(connection: socket.socket) -> None:
    """Be the worker that was asked for by way of a connection, which ends with this process."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _, descriptors, *_ = socket.recv_fds(connection, 1, 3)
    with connection.makefile("rb") as stream:
        asked = json.load(stream)
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    # A node may end all of a worker's group.
    os.setpgid(0, 0)
    os.environ.clear()
    os.environ.update(asked["variables"])
    os.chdir(asked["folder"])
    os.nice(asked["niceness"] - os.nice(0))
    from ray._private.workers import setup_worker

    _, sys.argv[:] = setup_worker.parser.parse_known_args(asked["words"])
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
