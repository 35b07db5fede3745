"""What the page takes of a core while a job goes on: the server, and the browser with its renderer.

The jobs are made up and compute nothing: they say what a run, a profile and a search would, so that
all that is counted is what looking at them costs.
"""

import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil

from benchmarks._page import sides
from placement.core.objective import Objective
from studio.jobs import jobs
from studio.jobs.records import About
from studio.project.store import Settings

MODEL, MACHINE = "onnx-squeezenet", "null-2"
SETTLE_S, MEASURED_S, GOES_ON_S = 6.0, 15.0, 60.0
STEP_S, SAY_S = 0.015, 0.1
TABS = {"run": "Run"}
# Says an event of a kind again and again; times in it grow.
SAYS = f"""
import json, sys, time
verb, begun = sys.argv[1], time.time()
for n in range(10 ** 9):
    since = time.time() - begun
    if since > {GOES_ON_S}:
        break
    told = {{
        "run": {{"event": "step", "seconds": {STEP_S} * (1 + 0.1 * (n % 7))}},
        "profile": {{"event": "progress", "what": f"kernel {{n}}", "step": n, "of": 1000}},
        "place": {{"event": "progress", "seconds": since, "best": 0.1 / (1 + since)}},
    }}[verb]
    print(json.dumps(told), flush=True)
    time.sleep({STEP_S} if verb == "run" else {SAY_S})
"""


def cores(browser: Any) -> dict[str, dict[str, float]]:
    """Cores that the server and the browser take, by what goes on beside an open page."""
    found = {}
    with ExitStack() as stack:
        url, home = sides.studio_server(stack)
        server = _listening(int(url.rpartition(":")[2]))
        for verb in ("", "run", "profile", "place"):
            form = {"dock-tab": TABS.get(verb, "Timeline")}
            settings = Settings(MODEL, time.time(), model=MODEL, machine=MACHINE, form=form)
            project = sides.new_project(home, settings)
            page = browser.new_page(viewport={"width": 1440, "height": 900})
            job = _begin(project, verb) if verb else ""
            page.goto(f"{url}/?project={project.name}")
            page.wait_for_function(sides.DRAWN, timeout=120_000)
            page.wait_for_timeout(1e3 * SETTLE_S)
            found[verb or "nothing"] = _taken(page, server)
            page.close()
            if job:
                jobs.stop(project, job)
    return found


def _begin(project: Path, verb: str) -> str:
    about = About(steps=1000, objective=Objective.LATENCY, time_limit_s=GOES_ON_S)
    return jobs.start(project, verb, (), about, command=(sys.executable, "-c", SAYS))


def _listening(port: int) -> psutil.Process:
    """The server: the child of this program that listens on its port."""
    children = psutil.Process().children(recursive=True)
    return next(c for c in children if str(port) in c.cmdline())


def _taken(page: Any, server: psutil.Process) -> dict[str, float]:
    chromium = [c for c in psutil.Process().children(recursive=True) if "chrom" in c.name()]
    before, begun_s = (_cpu_s([server]), _cpu_s(chromium)), time.monotonic()
    page.wait_for_timeout(1e3 * MEASURED_S)
    seconds = time.monotonic() - begun_s
    after = (_cpu_s([server]), _cpu_s(chromium))
    shares = [(a - b) / seconds for a, b in zip(after, before, strict=True)]
    return {"server": round(shares[0], 3), "browser": round(shares[1], 3)}


def _cpu_s(processes: list[psutil.Process]) -> float:
    return sum(sum(p.cpu_times()[:2]) for p in processes if p.is_running())
