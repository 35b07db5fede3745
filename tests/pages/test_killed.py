"""Writers that are killed at any moment: every file stays whole, and what was told is there."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
NUM_KILLS = 40
WRITER = """
import os, random, signal, sys, time
from pages.ui import projects, trash
from pages.ui.edits import Edit, History
from pages.ui.shelf import HAND
from tests.pages.problems import diamond, everywhere
from tests.pages.test_project_file import shelf_of

problem, moments = diamond(), random.Random(7)
project = projects.create("mine")
shelf_of(project).add("manual", everywhere(problem), HAND)


def work(tell):
    "Edit, and now and then copy the project, delete the copy and take it back."
    number = project.settings.dims.get("n", 0)
    while True:
        number += 1
        history = shelf_of(project).history("manual")
        device = f"cpu:{number % 2}"
        shelf_of(project).replace("manual", everywhere(problem, b=device))
        shelf_of(project).keep_history("manual", history.add(Edit("b", (("b_conv", "", device),))))
        project.change(dims={"n": number})
        os.write(tell, b"%d\\n" % number)
        if number % 5 == 0:
            twin = projects.copy(project)
            trash.throw_away(twin)
            trash.restore(twin.id)
            trash.throw_away(twin)
            trash.empty()


for _ in range(int(sys.argv[1])):
    heard, tell = os.pipe()
    child = os.fork()
    if not child:
        work(tell)
    os.close(tell)
    first = os.read(heard, 1)
    time.sleep(moments.uniform(0.0, 0.04))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    told = (first + os.fdopen(heard, "rb").read()).split()[-1].decode()
    print(project.id, told, project.settings.dims["n"], flush=True)
"""


def test_a_writer_killed_at_any_moment_leaves_whole_files_and_all_it_told(tmp_path, monkeypatch):
    monkeypatch.setenv("PLACEMENT_STUDIO_HOME", str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-c", WRITER, str(NUM_KILLS)], cwd=ROOT, capture_output=True, text=True
    )
    rounds = [line.split() for line in done.stdout.splitlines()]
    assert len(rounds) == NUM_KILLS, done.stderr
    for _, told, stored in rounds:
        assert int(told) <= int(stored) <= int(told) + 1
    for path in tmp_path.rglob("*"):
        # A copy that was cut short is a draft, which nobody sees.
        if path.suffix in (".json", ".history") and ".draft-" not in str(path):
            json.loads(path.read_text())
    project = tmp_path / "projects" / rounds[0][0]
    (history,) = project.rglob("*.history")
    assert len(json.loads(history.read_text())["done"]) >= min(int(rounds[-1][1]), 500)
