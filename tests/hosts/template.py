"""Processes that have imported what workers and agents of Ray import, and whose copies these are.

To import PyTorch and numba takes seconds of a core's time, and tests that kill hosts start dozens
of nodes, of two agents each, and of workers. So copied.py is started instead of Ray's own scripts;
it asks a process here, which forks, and the copy goes on as Ray's script would (as with
`multiprocessing.forkserver`). These processes have modules and no thread, so that a copy lacks
nothing: a worker imports ONNX Runtime itself, which begins one, and Ray, which reads when it is
imported whose worker it is. Agents are nobody's, so theirs has Ray.
"""

import gc
import importlib.util
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from profiling.devices import lanes
from profiling.sandbox import confinement
from tests.hosts import trainings
from tests.hosts.copied import AGENTS, TEMPLATE
from tests.hosts.two_nodes import VARIABLES

MODULES = (
    # What Ray imports of others.
    "filelock",
    "google.protobuf.json_format",
    "jsonschema",
    "pydantic.v1.dataclasses",
    "requests",
    "starlette.datastructures",
    "wcwidth",
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
OF_AGENTS = ("ray.dashboard.agent", "ray._private.runtime_env.agent.main")
# Agents end with their node, which is a copy's parent no more, once their input ends.
COPIES = {"RAY_enable_pipe_based_agent_to_parent_health_check": "1"}
ROOT, SETUP = Path(__file__).parents[2], Path(__file__).with_name("copied.py")
READY = b"ready\n"


@contextmanager
def template() -> Iterator[dict[str, Any]]:
    """Have nodes start copies as their agents; yields Ray's settings of a node that starts them as
    its workers, too.
    """
    if sys.platform != "linux":
        # Libraries of other systems may not go on in a copy.
        yield {}
        return
    with TemporaryDirectory() as folder:
        path = f"{folder}/template"
        variables = {**VARIABLES, **COPIES, TEMPLATE: path}
        with patch.dict(os.environ, variables), _started(path):
            from ray._private import services

            copied = [sys.executable, str(SETUP), AGENTS]
            own = services._build_python_executable_command_memory_profileable

            def command(component: str, *how: Any, **named: Any) -> list[str]:
                is_agent = component.endswith("agent")
                return copied if is_agent else own(component, *how, **named)

            with patch.object(services, own.__name__, command):
                yield {"setup_worker_path": str(SETUP)}


@contextmanager
def _started(path: str) -> Iterator[None]:
    """The process, which listens there."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.hosts.template", path], cwd=ROOT, stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(2)]
        assert said == [READY, READY], said
        yield
    finally:
        process.kill()
        process.communicate()


def main() -> None:
    confinement.end_with(os.getppid())
    path = sys.argv[1]
    # Nobody asks how copies end.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    own = os.getpid()
    if os.fork() == 0:
        confinement.end_with(own)
        _serve(f"{path}{AGENTS}", OF_AGENTS)
        return
    lanes.warm_up()
    # What is prepared when the first program is traced.
    trainings.opened()
    _serve(path, MODULES)


def _serve(path: str, modules: Sequence[str]) -> None:
    """Import what is there of these, and fork for whoever connects; returns in copies, once their
    work is done."""
    for name in modules:
        if importlib.util.find_spec(name.partition(".")[0]):
            importlib.import_module(name)
    assert len(os.listdir("/proc/self/task")) == 1, "a copy would lack threads"
    # What is here by now is written to by no copy that looks for garbage.
    gc.collect()
    gc.freeze()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
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
    """Be the process that was asked for by way of a connection, which ends with this one."""
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
