"""Listing is quick: the verbs that only list load none of the heavy libraries."""

import json
import subprocess
import sys
from pathlib import Path

from profiling.sandbox.confinement import MARK
from tests.profiling.live import diamond

ROOT = Path(__file__).parents[1]
NOT_LOADED = {"onnxruntime", "streamlit", "torch", "ortools", "numba", "ray", "openvino", "plotly"}


def test_listing_verbs_load_nothing_heavy():
    verbs = ("placers", "samples")
    code = (
        "import sys, placement.__main__ as cli\n"
        "for verb in sys.argv[1:]: cli.main([verb, '--json'])"
    )
    done = subprocess.run(
        (sys.executable, "-X", "importtime", "-c", code, *verbs),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    decoder, rest = json.JSONDecoder(), done.stdout
    for verb in verbs:
        listed, end = decoder.raw_decode(rest)
        assert listed, f"the list of {verb} is empty"
        rest = rest[end:].lstrip()
    assert not rest
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    loaded = {line.rpartition("|")[2].strip().split(".")[0] for line in lines}
    assert "numpy" in loaded, "the import times were not read"
    assert not loaded & NOT_LOADED


def test_importing_the_package_loads_no_part_of_it():
    code = "import sys, placement; print(*(m for m in sys.modules if m.startswith('placement.')))"
    done = subprocess.run(
        (sys.executable, "-c", code), cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert len(done.stdout.split()) <= 2, done.stdout


def test_a_run_on_this_computer_loads_nothing_of_clusters(tmp_path, monkeypatch):
    """Whether Ray is installed or not, it is neither there nor slows anything.

    It does itself what confined processes do otherwise: all is looked at but what starts these.
    """
    monkeypatch.setenv("PLACEMENT_STUDIO_HOME", str(tmp_path))
    monkeypatch.setenv(MARK, "1")
    diamond(tmp_path)
    run = ("run", str(tmp_path / "small.onnx"), "--placer", "heft", "--steps", "2", "--json")
    # Costs are measured, but in the fewest rounds.
    code = (
        "import sys, placement.__main__ as cli\n"
        "from profiling.measuring import contention, crossings, kernels\n"
        "for module in (contention, crossings, kernels): module.BUDGET_S = 0.0\n"
        "print(cli.main(sys.argv[1:]), *sys.modules)"
    )
    done = subprocess.run(
        (sys.executable, "-c", code, *run), cwd=ROOT, capture_output=True, text=True, check=True
    )
    status, *loaded = done.stdout.splitlines()[-1].split()
    assert status == "0" and "onnxruntime" in loaded
    assert not [name for name in loaded if name.split(".")[0] == "ray" or "._ray" in name]
