"""A command line on another execution provider: WebGPU, on Chromium's software driver if need be.

These tests run in an environment that has onnxruntime-webgpu in the place of onnxruntime. Linux
test machines have no GPU, so the Vulkan loader and the software driver that Chromium carries are
used; elsewhere the system's own driver is.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from profiling.sandbox.confinement import MARK

ROOT = Path(__file__).parents[2]
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FOLDERS = ("/usr/lib/chromium", "/usr/lib/chromium-browser", "/opt/google/chrome")
DRIVER = "vk_swiftshader_icd.json"
CPU, GPU = "cpu:0", "webgpu:0"


def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(pytest.mark.webgpu)


@pytest.fixture(scope="session")
def driver_folder():
    """The folder of Chromium's software driver, None where the system's own driver is used."""
    if sys.platform != "linux":
        return None
    beside = [Path(found).resolve().parent for n in BROWSERS if (found := shutil.which(n))]
    for folder in (*map(Path, FOLDERS), *beside):
        if (folder / DRIVER).is_file():
            return folder
    pytest.fail(f"No Chromium with {DRIVER} is installed; install the chromium package.")


@pytest.fixture(scope="session")
def environment(driver_folder, studio_home):
    """What a process must have set before it starts, so that it finds the driver."""
    # The software driver asks for pages for good. The studio waits for an end of that only where
    # nobody has said what the C library is to do about it.
    common = {**os.environ, "MALLOC_TRIM_THRESHOLD_": str(2**27)}
    if driver_folder is None:
        return common
    libraries = (str(driver_folder), os.environ.get("LD_LIBRARY_PATH", ""))
    return {
        **common,
        "VK_ICD_FILENAMES": str(driver_folder / DRIVER),
        "LD_LIBRARY_PATH": os.pathsep.join(filter(None, libraries)),
    }


@pytest.fixture(scope="session")
def command(environment):
    """Call the command line; its answer and exit status. All calls go to one process."""
    process = subprocess.Popen(
        (sys.executable, "-m", "tests.webgpu.answering"),
        cwd=ROOT,
        env={**environment, MARK: "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def call(*arguments):
        process.stdin.write(json.dumps([*map(str, arguments), "--json"]) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
        assert line, "the process that answers has ended"
        status, printed, errors = json.loads(line)
        assert status in (0, 1), errors
        return json.loads(printed), status

    yield call
    process.communicate()


@pytest.fixture(scope="session")
def confined_command(environment):
    """As `command`, by a process of its own, which opens the file in a confined one."""

    def call(*arguments):
        done = subprocess.run(
            (sys.executable, "-m", "placement", *map(str, arguments), "--json"),
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode in (0, 1), done.stderr
        return json.loads(done.stdout), done.returncode

    return call


@pytest.fixture(scope="session")
def machine(command, tmp_path_factory):
    """This computer as a machine file, CPU and WebGPU."""
    path = tmp_path_factory.mktemp("machine") / "machine.json"
    found, status = command("machine", "--lanes", 1, "--out", path)
    assert status == 0
    devices = {d["name"]: d for d in found["devices"]}
    assert list(devices) == [CPU, GPU]
    assert devices[GPU]["kind"] == "gpu" and devices[GPU]["runtime"] == "onnxruntime"
    assert {(k["src"], k["dst"]) for k in found["links"]} == {(CPU, GPU), (GPU, CPU)}
    return path
