"""Pictures of what can be set for workload files: how loads are charged, copies and calls."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

from playwright.sync_api import Browser, Page, expect

from placement.core.objective import CallRules
from studio.project import store
from tests.browser.serving import Server
from tests.browser.studio import drawn, open_tab, settled
from tests.workloads import edges, node, workload

VIEW = {"width": 1440, "height": 900}
# Methods are compiled when they are used for the first time on a computer.
COMPILING_MS = 360_000
CHARGED = CallRules(overlap=True, gpipe=True, cluster_size=2, slow_link_factor=4.0)
SYNCHRONISED = CallRules(sync_bytes_per_ms=50.0)
# Two towers of layers and what joins them, in milliseconds of an accelerator.
TOWERS = ((6, 9, 5, 7), (4, 8, 8, 3))
JOINED = (5, 6)
CPU_SLOWER, BACKWARD_SLOWER, MOVED_MS, BYTES = 10, 2, 2, 20
NAME = "two towers"


def two_towers(*, training: bool) -> dict:
    """Two towers of layers, joined at their end; with `training` the way back behind them.

    A layer's backward part is in its class of colour, as both use the same weights. Without it no
    accelerator can join the towers, and there are two of them: one is called before and after.
    """
    layers = [*TOWERS[0], *TOWERS[1], *JOINED]
    tall = len(TOWERS[0])
    arcs = [(i, i + 1) for start in (0, tall) for i in range(start, start + tall - 1)]
    arcs += [(tall - 1, 2 * tall), (2 * tall - 1, 2 * tall), (2 * tall, 2 * tall + 1)]
    nodes = [node(i, ms * CPU_SLOWER, ms, BYTES, colorClass=i) for i, ms in enumerate(layers)]
    if training:
        last = len(layers) - 1
        for i, ms in reversed(list(enumerate(layers))):
            slower = ms * BACKWARD_SLOWER
            back = {"colorClass": i, "isBackwardNode": True}
            nodes.append(node(2 * last + 1 - i, slower * CPU_SLOWER, slower, 0, **back))
        arcs += [(2 * last + 1 - b, 2 * last + 1 - a) for a, b in arcs] + [(last, last + 1)]
    else:
        nodes[2 * tall] |= {"supportedOnFpga": False, "cpuLatency": JOINED[0]}
    rows = edges(*((a, b, MOVED_MS) for a, b in arcs))
    num_accelerators = 4 if training else 2
    return workload(nodes, rows, maxFPGAs=num_accelerators, maxSizePerFPGA=10 * BYTES)


def pages(browser: Browser, server: Server, folder: Path) -> Iterator[tuple[str, Page]]:
    """File name, and the page to be photographed under it once it is at rest."""
    for_training, for_inference = folder / f"{NAME}, training.json", folder / f"{NAME}.json"
    for_training.write_text(json.dumps(two_towers(training=True)))
    for_inference.write_text(json.dumps(two_towers(training=False)))
    throughput = {"model": str(for_training), "objective": "throughput"}
    latency = {"model": str(for_inference)}
    page = browser.new_page(viewport=VIEW)

    charged = _project(server, rules=CHARGED, form={"placer": "ideals_dp"}, **throughput)
    page.goto(f"{server.url}/devices?project={charged}")
    page.get_by_text("How throughput is charged").scroll_into_view_if_needed()
    yield "workload-charges-1440-light.png", page

    _placed(page, server, charged)
    yield "workload-clusters-1440-light.png", page

    copied = _project(server, rules=SYNCHRONISED, form={"placer": "replicate"}, **throughput)
    _placed(page, server, copied)
    yield "workload-replicas-1440-light.png", page

    called = _project(server, form={"placer": "branch_and_bound"}, **latency)
    _placed(page, server, called, "Calls", "3")
    yield "workload-calls-1440-light.png", page

    page.close()


def _project(server: Server, **settings: object) -> str:
    """The id of a new project of the studio with these settings."""
    with patch.dict(os.environ, PLACEMENT_STUDIO_HOME=str(server.home)):
        project = store.create()
        project.change(model_kind="path", name=NAME, **settings)
    return project.id


def _placed(page: Page, server: Server, project: str, label: str = "", value: str = "") -> None:
    """Let the project's method place the model, one of its settings typed in before."""
    page.goto(f"{server.url}/?project={project}")
    drawn(page)
    settled(page)
    if label:
        page.get_by_role("button", name="Settings", exact=True).click()
        field = page.get_by_label(label, exact=True)
        field.fill(value)
        field.press("Enter")
        page.keyboard.press("Escape")
        settled(page)
    page.get_by_role("button", name="Place", exact=True).click()
    expect(page.get_by_text(re.compile("Placed by")).first).to_be_visible(timeout=COMPILING_MS)
    open_tab(page, "Table")
