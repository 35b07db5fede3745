"""Are 16 hosts with 128 devices as quick to work with as one host with 8? Simulated machines.

    python -m benchmarks.live.many_hosts [--json] [--part library|page] [--rounds N] [MODEL]

Every host has a processor and seven accelerators. `library`: a large model becomes a problem, is
placed by methods that have no time limit, simulated and drawn. `page`: a project with that machine
is opened in Chromium, an op is put on one device and another, and the Devices page is opened. Times
are medians of turns, both machines in one process; a ratio of at most 2 is wanted.
"""

import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import placement as pl
from benchmarks._page import edits, sides
from benchmarks._page.watch import watched
from benchmarks._shared.figures import parser, table
from placement.bounds.lower_bound import lower_bound
from placement.core.machine import Machine, machine_from_json
from placement.core.timeline import Timeline
from placement.drawing.colours.palette import device_colour
from placement.drawing.gantt import panel
from placement.drawing.machine_graph import machine_graph
from studio.project.files import write_json
from studio.project.store import Settings

if TYPE_CHECKING:
    from playwright.sync_api import Browser

HOSTS = {"8 devices": 1, "128 devices": 16}
PER_HOST = 8
MODEL, LENGTH = "llama-3.1-8b", 512
PLACERS = ("single", "heft", "cpop", "peft", "etf", "m_topo", "m_etf", "greedy_fill", "linear_dp")
PATIENCE_S, NUM_EDITS = 120.0, 8
COLUMNS = {
    "what": "{what}",
    "8 devices ms": "{few_ms:.1f}",
    "128 devices ms": "{many_ms:.1f}",
    "ratio": "{ratio:.2f}",
}
Row = dict[str, Any]


def stated(num_hosts: int) -> dict[str, Any]:
    """A machine file: hosts with fast links inside and slow ones between them."""
    devices = [
        {
            "name": f"h{host}/cuda:{i - 1}" if i else f"h{host}/cpu:0",
            "kind": "gpu" if i else "cpu",
            "memory_bytes": (80 if i else 256) * 2**30,
            "flops_per_s": 6e13 if i else 1e12,
            "memory_bytes_per_s": 2e12 if i else 2e11,
        }
        for host in range(num_hosts)
        for i in range(PER_HOST)
    ]
    inside, between = (
        {"latency_s": 1e-5, "bytes_per_s": 5e10},
        {"latency_s": 5e-5, "bytes_per_s": 5e9},
    )
    links = [
        {
            "src": a["name"],
            "dst": b["name"],
            **(inside if m // PER_HOST == n // PER_HOST else between),
        }
        for m, a in enumerate(devices)
        for n, b in enumerate(devices)
        if m != n
    ]
    return {"name": f"{num_hosts} hosts", "devices": devices, "links": links}


def library(name: str, rounds: int) -> Iterator[Row]:
    """What pages and the command line ask of the library."""
    model = pl.load(name, {"batch": 1, "length": LENGTH})
    files = {called: stated(num) for called, num in HOSTS.items()}
    machines = {called: machine_from_json(file) for called, file in files.items()}
    problems = {called: pl.make_problem(model, machine) for called, machine in machines.items()}
    placed = {called: pl.place(problem, "heft").placement for called, problem in problems.items()}

    def pose(machine: Machine) -> object:
        return pl.make_problem(model, machine)

    yield _row("read the machine", rounds, _each(machine_from_json, files))
    yield _row("pose the problem", rounds, _each(pose, machines))
    yield _row("prove a bound", rounds, _each(lower_bound, problems))
    for placer in PLACERS:
        yield _row(f"place by {placer}", rounds, _each(partial(_placed, placer), problems))
    simulated = {called: partial(pl.simulate, problems[called], placed[called]) for called in HOSTS}
    yield _row("simulate", rounds, simulated)
    yield _row("draw the machine", rounds, _each(_drawn, machines))
    timelines = {called: call().timeline for called, call in simulated.items()}
    yield _row("draw the timeline", rounds, _each(_timeline, timelines))


def _placed(placer: str, problem: Any) -> object:
    return pl.place(problem, placer)


def _drawn(machine: Machine) -> object:
    return json.dumps(machine_graph(machine).to_data())


def _timeline(timeline: Timeline) -> object:
    colours = {name: device_colour(i) for i, name in enumerate(timeline.peak_bytes)}
    return json.dumps(panel("timeline", "", "", timeline, colours).to_data())


def _each(
    call: Callable[[Any], object], values: Mapping[str, Any]
) -> dict[str, Callable[[], object]]:
    return {called: partial(call, value) for called, value in values.items()}


def _row(what: str, rounds: int, calls: Mapping[str, Callable[[], object]]) -> Row:
    times_s: dict[str, list[float]] = {called: [] for called in calls}
    for number in range(-1, rounds):
        for called, call in calls.items():
            begun_s = time.perf_counter()
            call()
            if number >= 0:
                times_s[called].append(time.perf_counter() - begun_s)
    return _ratio(what, times_s)


def _ratio(what: str, times_s: Mapping[str, list[float]]) -> Row:
    few, many = (statistics.median(times_s[called]) * 1e3 for called in HOSTS)
    return {"what": what, "few_ms": few, "many_ms": many, "ratio": many / few}


def page(name: str, rounds: int) -> Iterator[Row]:
    """What is seen of it: an opened project, edits, the Devices page."""
    from playwright.sync_api import sync_playwright

    found: dict[str, dict[str, list[float]]] = {}
    with ExitStack() as stack:
        driver = stack.enter_context(sync_playwright())
        browser = driver.chromium.launch(executable_path=edits.chromium(), args=[*edits.FLAGS])
        stack.callback(browser.close)
        url, home = sides.studio_server(stack)
        for number in range(-1, rounds):
            for called, num_hosts in HOSTS.items():
                machine = f"{num_hosts}-hosts.json"
                dims = {"batch": 1, "length": LENGTH}
                made = Settings(called, time.time(), model=name, dims=dims, machine=machine)
                folder = sides.new_project(home, made)
                write_json(folder / "machines" / machine, stated(num_hosts))
                times_s = _seen(browser, url, folder.name)
                for what, seconds in times_s.items() if number >= 0 else ():
                    found.setdefault(what, {}).setdefault(called, []).extend(seconds)
    for what, by_machine in found.items():
        yield _ratio(what, by_machine)


@dataclass(frozen=True)
class Shown:
    """A page that says by `drawn` that it is there."""

    drawn: str
    seen: str = ""
    stage: str = ""


STUDIO = Shown(sides.DRAWN)
# The picture lies in a component, whose elements have a root of their own.
DEVICES = Shown(
    "[...document.querySelectorAll('*')].some((e) => e.shadowRoot?.querySelector('.machine .card'))"
)


def _seen(browser: "Browser", url: str, project: str) -> dict[str, list[float]]:
    """Seconds of one visit to the Studio page, and of one to the Devices page."""
    with watched(browser) as shown:
        opened_s = shown.settled(f"{url}/?project={project}", STUDIO, PATIENCE_S).page_s
        made = edits.edits(shown.page, NUM_EDITS)
    with watched(browser) as shown:
        there = f"{url}/devices?project={project}"
        devices_s = shown.settled(there, DEVICES, PATIENCE_S).page_s
    # The first edit starts a placement of its own.
    return {
        "open the project": [opened_s],
        "an edit, painted": made.painted[1:],
        "an edit, confirmed": made.confirmed[1:],
        "open the Devices page": [devices_s],
    }


def main() -> None:
    options = parser(__doc__, rounds=3)
    options.add_argument("--part", choices=("library", "page"), default="library")
    options.add_argument("model", nargs="?", default=MODEL)
    given = options.parse_args()
    rows = []
    for row in (page if given.part == "page" else library)(given.model, given.rounds):
        rows.append(row)
        print(f"{row['what']}: {row['few_ms']:.1f} and {row['many_ms']:.1f} ms", file=sys.stderr)
    print(json.dumps(rows) if given.json else table(COLUMNS, rows))


if __name__ == "__main__":
    main()
