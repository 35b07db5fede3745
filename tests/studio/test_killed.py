"""Writers and workers killed at any moment: every file stays whole, and what was told is there."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pages.ui.session.current import snapshot
from studio.jobs import jobs
from studio.jobs import kinds as tasks
from studio.jobs.records import About
from studio.project.files import read_json
from tests.thorough import either

ROOT = Path(__file__).parents[2]
# Of the writers: each of the nine acts comes first in so many rounds, as often as the others.
NUM_ROUNDS = either(2, 6) * 9
# Of the workers.
NUM_KILLS = either(10, 50)
# Each such one of the workers is a real one.
REAL = 10
# An edit moves the op and what runs as one with it.
MOST_MOVED = 4
WRITER = """
import fcntl, json, os, random, signal, sys, time, traceback
from contextlib import suppress
from pages.ui.session import choices
from pages.ui.session.current import snapshot
from studio import editing, snapshot as studio
from studio.jobs import jobs
from studio.project import pins, rules, store as projects, trash
from studio.project.files import all_or_nothing
from placement.constraints.rules import Rule

SLEEPER = (sys.executable, "-S", "-c", "import time; time.sleep(600)")
moments = random.Random(7)
choices.may_write = lambda: True
project = projects.create("mine")
project.change(machine="null-2", model="onnx-squeezenet")


def now():
    return snapshot(project)


ops, devices = list(now().model.graph.index), [d.name for d in now().machine.devices]
now().named


def edit(number):
    step, op = now(), ops[number % len(ops)]
    device = devices[step.placement.device_of[op] == devices[0]]
    # What is pinned stays, and the page says so.
    with suppress(ValueError):
        editing.edit(step, (op,), device)


def undo(number):
    editing.go_to(now(), len(now().history.done) - 1)


def pin(number):
    pins.pin(now(), (ops[number % len(ops)],))


def unpin(number):
    pins.unpin(now(), tuple(now().pins))


def rule(number):
    rules.keep(now(), [Rule(f"rule{number}", devices[0])])


def copy_placement(number):
    name = now().shelf.duplicate(now().named.name)
    now().shelf.remove(name)


def remember(number):
    project.change(touch=False, form={"steps": number})


def start(number):
    job_id = jobs.start(project.folder, "run", [], None, SLEEPER)
    os.kill(jobs.records.read(project.folder / "jobs" / job_id).pid, signal.SIGKILL)


def copy_project(number):
    twin = projects.copy(project)
    trash.throw_away(twin)
    trash.restore(twin.id)
    trash.throw_away(twin)


ACTS = (edit, undo, pin, unpin, rule, copy_placement, remember, start, copy_project)
OFTEN = (edit, edit, *ACTS)


def state():
    "What a person sees of the project, from the files alone."
    opened = now()
    return {
        "placed": dict(opened.placement.device_of),
        "done": [step.label for step in opened.history.done],
        "pins": dict(opened.pins),
        "rules": [rule.pattern for rule in rules.rules_of(opened)],
        "shelf": [item.name for item in opened.shelf.items],
        "removed": [item.file for item in opened.shelf.removed],
        "form": dict(opened.settings.form),
        "jobs": sorted(jobs.listed(project.folder)),
        "trash": sorted(thrown.id for thrown in trash.listed()),
    }


def work(tell, seed):
    "Say what is about to be done, do it as one change, and tell what is seen once it returned."
    chance, act = random.Random(seed), ACTS[seed % len(ACTS)]
    while True:
        os.write(tell, json.dumps(act.__name__).encode() + b"\\n")
        with all_or_nothing():
            act(chance.randrange(10**6))
        os.write(tell, json.dumps(state()).encode() + b"\\n")
        act = chance.choice(OFTEN)


for seed in range(int(sys.argv[1])):
    before = state()
    heard, tell = os.pipe()
    fcntl.fcntl(tell, fcntl.F_SETPIPE_SZ, 2**20)
    child = os.fork()
    if not child:
        try:
            work(tell, seed)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    os.close(tell)
    time.sleep(moments.uniform(0.0, 0.25))
    assert os.waitpid(child, os.WNOHANG) == (0, 0), "the writer ended by itself"
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    lines = os.fdopen(heard, "rb").read().splitlines(keepends=True)
    # A line that was cut off was not told.
    said = [json.loads(line) for line in lines if line.endswith(b"\\n")]
    done = [one for one in said if isinstance(one, str)]
    told = [one for one in said if isinstance(one, dict)]
    under_way = done[-1] if len(done) > len(told) else ""
    print(json.dumps([done, under_way, (told or [before])[-1], state()]), flush=True)
    trash.empty()
"""
# What the act that a kill cuts short may have changed of what is seen; nothing else may differ.
CHANGES = {
    "": set(),
    "edit": {"placed", "done", "shelf"},
    "undo": {"placed", "done", "pins"},
    "pin": {"done", "pins"},
    "unpin": {"done", "pins"},
    "rule": {"rules"},
    "copy_placement": {"placed", "done", "shelf", "removed"},
    "remember": {"form"},
    "start": {"jobs"},
    "copy_project": {"trash"},
}


@pytest.mark.thorough
def test_a_server_killed_at_any_moment_leaves_whole_files_and_all_it_told(tmp_path, monkeypatch):
    """Edits, undo, pins, rules, placements, fields, job starts, copies: as the pages do them."""
    monkeypatch.setenv("PLACEMENT_STUDIO_HOME", str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-c", WRITER, str(NUM_ROUNDS)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    rounds = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(rounds) == NUM_ROUNDS, done.stderr
    assert {act for acts, *_ in rounds for act in acts} == set(CHANGES) - {""}
    assert len({cut for _, cut, *_ in rounds}) > 3, "kills came between what was done, not into it"
    for _, cut, told, seen in rounds:
        differ = {part for part in told if told[part] != seen[part]}
        assert differ <= CHANGES[cut], (cut, differ)
        for part in ("shelf", "jobs", "trash"):
            assert set(told[part]) <= set(seen[part]), (cut, part)
        ops = [op for op in told["placed"] if told["placed"][op] != seen["placed"][op]]
        assert len(ops) <= MOST_MOVED or cut != "edit", ops
    for path in tmp_path.rglob("*"):
        # A copy that was cut short is a draft, which nobody sees.
        if path.suffix in (".json", ".history") and "/." not in f"/{path.relative_to(tmp_path)}":
            json.loads(path.read_text())


WORKER = """
import json, sys
for number in range(10**6):
    print(json.dumps({"event": "progress", "what": "x" * 200, "step": number}), flush=True)
"""
RESULT = """
print('{"event": "result", "value": 1, "unit": "s"}')
"""


def ended(project, job_id):
    """The job once its process is gone."""
    end_s = time.monotonic() + 120
    while jobs.read(project.folder, job_id).is_live and time.monotonic() < end_s:
        time.sleep(0.002)
    return jobs.read(project.folder, job_id)


@pytest.mark.thorough
def test_workers_killed_at_any_moment_leave_the_project_and_earlier_results(project):
    """Mostly programs that write as workers do, for the sake of time, and some real workers."""
    moments, started = random.Random(3), []
    project.change(model="onnx-squeezenet")

    def start(verb, argv, *command):
        given = (command,) if command else ()
        started.append(jobs.start(project.folder, verb, argv, About(shelf="x"), *given))
        return started[-1]

    first = start("place", [], sys.executable, "-S", "-c", RESULT)
    assert ended(project, first).status == "done"
    seen = snapshot(project)
    before = (seen.placement.device_of, seen.shelf.items)
    for number in range(NUM_KILLS):
        is_real = number % REAL == REAL - 1
        if is_real:
            argv = ["onnx-squeezenet", "--machine", "null-2", "--analytic", "--placer", "single"]
            job_id, patience_s = start("place", [*argv, "--jsonl"]), 1.5
        else:
            job_id, patience_s = start("run", [], sys.executable, "-S", "-c", WORKER), 0.1
        assert jobs.read(project.folder, job_id).is_live
        time.sleep(moments.uniform(0.0, patience_s))
        os.killpg(read_json(project.folder / "jobs" / job_id / "job.json")["pid"], signal.SIGKILL)
        job = ended(project, job_id)
        # A real worker may have been quicker.
        possible = ("interrupted", "done") if is_real else ("interrupted",)
        assert job.status in possible and not job.num_garbled, job.message
        assert job.status == "done" or "start it again" in job.message
    assert list(jobs.listed(project.folder)) == started[::-1]
    assert jobs.read(project.folder, first).result.value == 1.0
    assert len(tasks.collect(seen)) == len(started)
    seen = snapshot(project)
    assert (seen.placement.device_of, seen.shelf.items) == before
    again = start("place", [], sys.executable, "-S", "-c", RESULT)
    assert ended(project, again).status == "done"
