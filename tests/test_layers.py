"""The architecture, held by the imports themselves: they point down, and heavy ones wait.

Rows from bottom to top as in docs/design.md; a module may import from its own row and below. What
begins with an underscore is private to its folder, and to the tests in the folder that mirrors it.
"""

import ast
import functools
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[1]
OURS = ("app", "benchmarks", "pages", "placement", "profiling", "studio")
HEAVY = {
    "networkx",
    "numba",
    "onnx",
    "onnxruntime",
    "openvino",
    "ortools",
    "plotly",
    "pyvis",
    "ray",
    "scipy",
    "streamlit",
    "torch",
    "transformers",
}
# Folders, from the bottom up. A folder imports those of its own row and of rows below it.
ROWS = (
    ("placement.compiled", "placement.core", "placement.files", "placement.parallel"),
    ("placement.costs", "placement.constraints"),
    ("placement.simulator",),
    ("placement.formats", "placement.zoo", "placement.loaders"),
    ("profiling.devices", "profiling.backends", "profiling.measuring", "profiling.sandbox"),
    ("placement.schedule", "placement.pbqp", "placement.splits", "placement.drawing"),
    ("placement.bounds", "placement.search"),
    ("placement.learning",),
    ("placement.placers",),
    (
        "placement.advice",
        "placement.exporters",
        "placement.lessons",
        "profiling.execution",
        "profiling.training",
    ),
    ("placement.remote", "placement.api"),
    ("placement.cli", "studio"),
    ("pages", "benchmarks"),
)
# Where a program begins: nobody imports them.
ENTRIES = ("app", "placement.__main__")
# Folders, and files by the end of their name, behind a door that is opened only when needed.
BEHIND_A_DOOR = {
    "compiled": {"numba"},
    "placement.formats.onnx": {"onnx"},
    "placement.formats.huggingface": {"torch", "transformers"},
    "placement.formats.torch": {"torch"},
    "placement.learning.networks": {"torch"},
    "placement.zoo": {"torch"},
    "placement.exporters._onnx": {"onnx", "onnxruntime"},
    "placement.exporters._torch": {"torch"},
    "profiling.backends._ort": {"onnx", "onnxruntime"},
    "profiling.backends._ray": {"ray"},
    "profiling.backends._torch": {"torch"},
    "benchmarks._fidelity.drawn": {"onnx"},
    "benchmarks._fidelity.networks": {"onnx"},
    "benchmarks._shared.torch_eager": {"torch"},
}


def modules() -> dict[str, Path]:
    """Our modules by dotted name."""
    paths = [ROOT / "app.py", *(p for top in OURS[1:] for p in sorted((ROOT / top).rglob("*.py")))]
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): path
        for path in paths
        if path.exists()
    }


MODULES = modules()
# More modules beside each other are a folder that nobody overlooks.
MOST_BESIDE = 20


def row(module: str) -> int:
    """Number of the row of a module's folder; above all of them for where programs begin."""
    if module in ENTRIES:
        return len(ROWS)
    if module == "placement":
        module = VERBS
    parts = module.removesuffix(".__init__").split(".")
    folders = (".".join(parts[:n]) for n in range(len(parts), 0, -1))
    found = {folder: i for i, row in enumerate(ROWS) for folder in row}
    return next(found[folder] for folder in folders if folder in found)


JOINING = ("placement.remote", "placement.api", "placement.cli", "placement.__")
DECIDING = tuple(
    folder
    for row in ROWS
    for folder in row
    if folder.startswith("placement.") and folder not in JOINING
)
# What `import placement` gives, on first use.
VERBS = "placement.api"
ROOTS = ("placement.__init__", "profiling.__init__")


@functools.cache
def imported_by(module: str, *, at_once: bool) -> tuple[str, ...]:
    return tuple(imports(tree_of(module), at_once=at_once))


def imports(tree: ast.AST, *, at_once: bool) -> Iterator[str]:
    """Dotted names that a tree imports: all of them, or those that run when it is imported."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.expr):
            # Imports are statements, which stand in no expression.
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if at_once and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "write imports in full"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                known = inner in MODULES or f"{inner}.__init__" in MODULES
                yield inner if known else str(node.module)
        yield from imports(node, at_once=at_once)


@functools.cache
def tree_of(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


def loaded_with(module: str) -> set[str]:
    """Everything that importing one of our modules imports, through other modules of ours too."""
    loaded: set[str] = set()
    waiting = [module]
    while waiting:
        for name in imported_by(waiting.pop(), at_once=True):
            if name not in loaded:
                loaded.add(name)
                waiting += [m for m in (name, f"{name}.__init__") if m in MODULES]
    return loaded


def imports_among(modules: Iterable[str], wrong: Callable[[str, str], bool]) -> list[str]:
    """What some of our modules import that is wrong by a rule about a module and a name."""
    return [
        f"{module} imports {name}"
        for module in modules
        for name in imported_by(module, at_once=False)
        if wrong(module, name)
    ]


def top(name: str) -> str:
    return name.split(".")[0]


def test_imports_point_down():
    rest = [module for module in MODULES if module not in ROOTS]
    assert imports_among(rest, lambda m, n: top(n) in OURS and row(n) > row(m)) == []


def test_the_roots_of_packages_import_nothing_of_ours():
    assert imports_among(ROOTS, lambda _, name: top(name) in OURS) == []


def test_no_modules_import_each_other_in_a_circle():
    """Not even inside functions: what two of them share stands in a third, below both."""
    below: dict[str, set[str]] = {}
    for module in MODULES:
        names = {n for name in imported_by(module, at_once=False) for n in _ours(name)}
        below[module] = names - {module}
    order = list(TopologicalSorter(below).static_order())
    assert set(order) == set(MODULES)


def _ours(name: str) -> list[str]:
    """The module of ours by that name, or the folder's."""
    return [m for m in (name, f"{name}.__init__") if m in MODULES]


def test_deciding_and_predicting_touch_no_machine():
    deciding = [module for module in MODULES if module.startswith(DECIDING)]
    assert imports_among(deciding, lambda _, name: name.startswith("profiling")) == []


def test_core_needs_the_standard_library_numpy_and_msgspec():
    core = [module for module in MODULES if module.startswith("placement.core")]
    allowed = {*sys.stdlib_module_names, "msgspec", "numpy", "placement"}
    assert imports_among(core, lambda _, name: top(name) not in allowed) == []


def test_streamlit_stays_on_the_pages():
    """Charts are pure, too."""
    charts = "pages.ui.panels.charts"
    rest = [m for m in MODULES if top(m) not in ("app", "pages") or m == charts]
    assert charts in rest
    assert imports_among(rest, lambda _, name: top(name) == "streamlit") == []


def folder_of(path: Path) -> str:
    """The folder of ours in which a file lies, or that the tests in its folder mirror."""
    folder = ".".join(path.relative_to(ROOT).parent.parts)
    mirrored = folder.removeprefix("tests.")
    if mirrored == folder or mirrored.split(".")[0] in OURS:
        return mirrored
    return f"placement.{mirrored}"


def private_names(tree: ast.AST) -> Iterator[str]:
    """What a tree uses of our private modules and names, dotted: imported, read, or put in place.

    Names of instances are not followed, as nobody can tell whose they are.
    """
    meant, nodes = dict[str, str](), list(ast.walk(tree))
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            meant |= {a.asname or a.name: f"{module}{a.name}" for a in node.names}
    used = set(meant.values())
    for node in nodes:
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "setattr":
            *target, _ = (ast.unparse(argument).strip("'") for argument in node.args)
            name = ".".join(target)
        elif isinstance(node, ast.Attribute) and is_private(node.attr):
            if isinstance(node.value, ast.Name) and node.value.id == "self":
                continue
            name = ast.unparse(node)
        else:
            continue
        first, _, rest = name.partition(".")
        used.add(f"{meant.get(first, first)}.{rest}")
    return (n for n in sorted(used) if n.split(".")[0] in OURS and owner(n))


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def owner(name: str) -> str:
    """The folder to which a private module or name belongs; none for a public one."""
    parts = name.split(".")
    first = next((i for i, part in enumerate(parts) if is_private(part)), 0)
    folders = (".".join(parts[:i]) for i in range(first, 0, -1))
    return next((folder for folder in folders if is_folder(folder)), "")


@functools.cache
def is_folder(name: str) -> bool:
    return ROOT.joinpath(*name.split(".")).is_dir()


def strangers_names(path: Path, tree: ast.AST) -> list[str]:
    """What a file uses of what is private to a folder that is not its own, nor around its own."""
    here = f"{folder_of(path)}."
    return [name for name in private_names(tree) if not here.startswith(f"{owner(name)}.")]


def test_what_is_private_stays_in_its_folder_and_in_the_tests_of_that_folder():
    """A name that tests of other folders need is public; benchmarks may measure inner parts."""
    ours = [module for module in MODULES if not module.startswith("benchmarks.")]
    found = {MODULES[module]: strangers_names(MODULES[module], tree_of(module)) for module in ours}
    for path in (ROOT / "tests").rglob("*.py"):
        found[path] = strangers_names(path, ast.parse(path.read_text(encoding="utf-8")))
    assert {str(path.relative_to(ROOT)): names for path, names in found.items() if names} == {}


def test_private_names_are_seen_however_they_are_used():
    source = """
import profiling.backends._ort.compile as library
from placement.placers import auto, heft
from placement.placers.auto import _Found
import os
heft.Heft(), auto._Watch(), os._exit(0), heft.__doc__
monkeypatch.setattr(heft, "_rank", None)
monkeypatch.setattr("studio.jobs.process._children", {})
monkeypatch.setattr(heft, "rank", None)
"""
    assert {name: owner(name) for name in private_names(ast.parse(source))} == {
        "placement.placers.auto._Found": "placement.placers",
        "placement.placers.auto._Watch": "placement.placers",
        "placement.placers.heft._rank": "placement.placers",
        "profiling.backends._ort.compile": "profiling.backends",
        "studio.jobs.process._children": "studio.jobs",
    }
    assert folder_of(ROOT / "tests/profiling/backends/test_ort.py") == "profiling.backends"
    assert folder_of(ROOT / "tests/placers/slow_lists.py") == "placement.placers"


def is_behind(door: str, module: str) -> bool:
    parts = module.split(".")
    if door == "compiled":
        return door in parts or parts[-1].endswith("_compiled")
    return f"{module}.".startswith(f"{door}.")


def test_heavy_libraries_wait_until_they_are_needed():
    loaded = {}
    for module in (m for m in MODULES if top(m) not in ("app", "pages")):
        allowed = set().union(*(d for door, d in BEHIND_A_DOOR.items() if is_behind(door, module)))
        loaded[module] = ({top(name) for name in loaded_with(module)} & HEAVY) - allowed
    assert {module: heavy for module, heavy in loaded.items() if heavy} == {}


def test_the_walk_sees_imports_where_they_stand():
    source = """
import numpy
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    import torch
try:
    import onnx
except ImportError:
    pass
class A:
    import plotly
    def f(self):
        import streamlit.web
from placement.core import graph
from placement.core.graph import Op
"""
    tree = ast.parse(source)
    assert list(imports(tree, at_once=True)) == [
        "numpy",
        "typing",
        "onnx",
        "plotly",
        "placement.core.graph",
        "placement.core.graph",
    ]
    assert "streamlit.web" in imports(tree, at_once=False)
    assert row("placement.core.graph") < row("placement.loaders.onnx")
    assert row("placement.loaders.onnx") < row("placement.placers.heft")
    assert row("studio.snapshot") < row("pages.model")


def test_no_folder_but_a_registry_holds_more_than_twenty_modules():
    """What is listed instead of named may grow: adding one is adding a file."""
    registries = {"placement.exporters", "placement.loaders", "placement.placers", "pages"}
    beside = Counter(name.rpartition(".")[0] for name in MODULES if not name.endswith("__init__"))
    crowded = {folder for folder, number in beside.items() if number > MOST_BESIDE}
    assert crowded <= registries
    assert beside["placement.placers"] > MOST_BESIDE, "the largest registry is counted"
