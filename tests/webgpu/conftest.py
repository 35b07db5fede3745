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
    if driver_folder is None:
        return dict(os.environ)
    libraries = (str(driver_folder), os.environ.get("LD_LIBRARY_PATH", ""))
    return {
        **os.environ,
        "VK_ICD_FILENAMES": str(driver_folder / DRIVER),
        "LD_LIBRARY_PATH": os.pathsep.join(filter(None, libraries)),
    }


@pytest.fixture(scope="session")
def command(environment):
    """Call the command line; its answer and exit status."""

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
