"""The canvas in the browser as text: vis-network from the pyvis package, then our own modules.

It has an address of its own, so that it is there before the first session is, and compiled where a
browser has been here before. Its name is by its content, so it may be kept for good.
"""

import hashlib
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from placement.files import program

ASSETS = program.ASSETS / "canvas"
VIS = "lib/vis-9.1.2/vis-network.min.js"
FETCHING = """\
const home = (globalThis.__placementCanvas ??= {});
if (!home.draw) import(new URL("%s", document.baseURI).href);
"""
MODULES = (
    "colours",
    "patterns",
    "outbox",
    "../consequence/consequence",
    "../consequence/held_key",
    "edges",
    "nodes",
    "marks",
    "model",
    "region",
    "rest",
    "legend",
    "toolbar",
    "chrome",
    "tooltip",
    "forecast",
    "menu",
    "find",
    "minimap",
    "gestures",
    "keys",
    "instance",
    "actions",
    "focus",
    "camera",
    "table",
    "probe",
)


@cache
def library_script() -> str:
    """One script that puts the canvas on a global; it loads nothing from anywhere.

    vis-network is wrapped so that it finds an `exports` object and leaves no global of its own.
    """
    ours = "\n".join(asset(f"{name}.js") for name in MODULES)
    parts = [
        "const visHolder = {};",
        "(function (exports, module, define) {",
        _vis_text(),
        "}).call(globalThis, visHolder, {}, undefined);",
        "(function (vis) {",
        '"use strict";',
        ours,
        "})(visHolder);",
    ]
    return "\n".join(parts)


@cache
def library_path() -> str:
    """Where the studio's server has it, from the folder of the page."""
    return f"placement/canvas-{hashlib.sha256(library_script().encode()).hexdigest()[:12]}.js"


@cache
def component_script(*, served: bool) -> str:
    """What a page mounts: the library itself, or where it is `served`, what fetches it from there.

    There it is on its way already, unless the page came without it.
    """
    library = FETCHING % library_path() if served else library_script()
    return f"{library}\n{asset('shim_library.js')}"


def asset(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")


def _vis_text() -> str:
    """The library text that pyvis ships, found without importing pyvis."""
    spec = find_spec("pyvis")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("The canvas needs pyvis; pip install pyvis.")
    path = Path(spec.submodule_search_locations[0]) / VIS
    text = path.read_text(encoding="utf-8")
    # The source map would be asked for when developer tools are open.
    return "\n".join(row for row in text.split("\n") if not row.startswith("//# sourceMapping"))
