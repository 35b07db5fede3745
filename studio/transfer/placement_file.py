"""A placement from a file, put among those of a project: what the command line writes, or a split.

A file is read as the command line reads it, and refused unless it is about the ops and devices that
are here. It comes from anywhere: its name leads nowhere, and what it holds takes nothing's place.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PureWindowsPath

from placement.constraints.fusion import mended
from placement.core import formatting
from placement.core.decoding import shown
from placement.core.graph import Graph
from placement.core.machine import is_streamed
from placement.core.placement import Placement, placement_from_json
from placement.core.verb_options import ProblemOptions, option_of
from placement.files.input import json_value, regular_file
from placement.formats.split_json import LISTS, split_from_json
from studio import editing
from studio.project.facts import FILE
from studio.project.placements import Shelf
from studio.snapshot import Studio
from studio.transfer.schema import label

SUFFIX = ".json"
# Of a graph of a million ops; `archive` takes as much of a project.
MOST_BYTES = 64 * 2**20
LONGEST_NAME, UNNAMED = 60, "placement"
MOST_TOLD = 3
ELSEWHERE = "open the model that it was made for, and then this file"


def open_file(now: Studio, file_name: str, content: bytes) -> str:
    """Put the placement in a file on the shelf, as the current one; what to tell of it.

    It stands beside all others. A ValueError says in one sentence why it cannot be used.
    """
    given = placement_in(now, content)
    placed = mended(now.problem, replace(given, machine=now.machine.name))
    # What cannot be predicted is refused as well: the page could not show it.
    value_s = now.cache.simulated(now.problem, placed).value
    name = _kept(now.shelf, name_of(file_name), placed)
    editing.show_opened(now, name)
    value = formatting.seconds(value_s, now.problem.unit)
    per = now.settings.objective.per
    said = [f"{name} is the placement now, predicted to take {value} per {per}."]
    if given.machine not in ("", now.machine.name):
        said.append(f"It was made on {shown(given.machine)} and is predicted on the machine here.")
    num_moved = sum(placed.device_of[op] != device for op, device in given.device_of.items())
    if num_moved:
        ops = formatting.counted(num_moved, "op")
        said.append(
            f"{ops} went to another device than in the file: with what they are fused with, or"
            " because theirs cannot run them."
        )
    said += [f"It is not allowed: {why}" for why in now.cache.violations(now.problem, placed)[:1]]
    return " ".join(said)


def content_of(path: Path) -> bytes:
    """What a file holds; ValueError where it is none that can be read, or too large."""
    _require_size(regular_file(path).stat().st_size)
    try:
        return path.read_bytes()
    except OSError as error:
        raise ValueError(f"it cannot be read ({error.strerror}); choose another file.") from None


def placement_in(now: Studio, content: bytes) -> Placement:
    """The placement in a file, by the devices of the project's machine; ValueError without one."""
    if not content.strip():
        raise ValueError("it is empty; export or download it again.")
    _require_size(len(content))
    told = json_value(content)
    is_split = isinstance(told, Mapping) and "device_of" not in told
    if is_split and any(key in told for key in LISTS):
        return split_from_json(now.problem, told)
    found = placement_from_json(told)
    _require_model(now.model.graph, found)
    _require_devices(now, found)
    return replace(found, graph=now.model.graph.fingerprint)


def _require_size(num_bytes: int) -> None:
    if num_bytes > MOST_BYTES:
        raise ValueError(
            f"it has {formatting.num_bytes(num_bytes)}, and a placement at most"
            f" {formatting.num_bytes(MOST_BYTES)}; choose another file."
        )


def _kept(shelf: Shelf, name: str, placed: Placement) -> str:
    """Put a file's placement on the shelf unless it is there; its name there."""
    from_files = (item.name for item in shelf.items if item.made_by == FILE)
    same = next(
        (n for n in from_files if replace(shelf.read(n), graph=placed.graph) == placed), None
    )
    return same or shelf.add(name, placed, FILE, show=False, beside=True)


def name_of(file_name: str) -> str:
    """What a placement is called that comes from a file: a short text without folders."""
    last = PureWindowsPath(file_name).name
    stem = last[: -len(SUFFIX)] if last.lower().endswith(SUFFIX) else last
    return " ".join(label(stem).split())[:LONGEST_NAME].strip(" .") or UNNAMED


def _require_model(graph: Graph, found: Placement) -> None:
    unknown = [op for op in found.device_of if op not in graph.index]
    missing = [op for op in graph.index if op not in found.device_of]
    if unknown:
        raise ValueError(
            f"it places {_named('op', unknown)}, which {shown(graph.name)} does not have;"
            f" {ELSEWHERE}."
        )
    if missing:
        raise ValueError(
            f"it gives {_named('op', missing)} of {shown(graph.name)} no device; add what is"
            f" missing, or {ELSEWHERE}."
        )
    if found.graph and not graph.is_known_as(found.graph):
        raise ValueError(
            f"it was made for another graph whose ops have the same names as those of"
            f" {shown(graph.name)} ({shown(found.graph)}, this one is {graph.fingerprint}), perhaps"
            f' for other sizes; {ELSEWHERE}, or take "graph" out of the file.'
        )
    twice = len(set(found.order)) < len(found.order)
    if twice or any(op not in graph.index for op in found.order):
        raise ValueError("its order names an op twice or one that is not there; correct it.")


def _require_devices(now: Studio, found: Placement) -> None:
    machine = now.machine
    used = (*found.device_of.values(), *(found.calls or ()), *(found.replicas or ()))
    unknown = [device for device in dict.fromkeys(used) if device not in machine.index]
    if not unknown:
        return
    if now.model.problem is not None:
        remedy = f"{shown(now.model.graph.name)} carries its own machine, so name its devices"
    elif all(map(is_streamed, unknown)):
        asked = option_of(ProblemOptions, "offload")
        remedy = f"turn on {shown(asked.label)} on the page Devices"
    elif found.machine in ("", machine.name):
        remedy = "choose a machine that has them on the page Devices"
    else:
        remedy = f"choose {shown(found.machine)}, which it was made on, on the page Devices"
    raise ValueError(
        f"it uses {_named('device', unknown)}, which the machine {shown(machine.name)} does not"
        f" have; {remedy}."
    )


def _named(noun: str, names: Sequence[str]) -> str:
    """One thing by its name; of several the first ones, and how many more there are."""
    first = ", ".join(map(shown, names[:MOST_TOLD]))
    more = f" and {len(names) - MOST_TOLD} more" if len(names) > MOST_TOLD else ""
    _, things = formatting.counted(len(names), noun).split(" ", 1)
    return f"{things} {first}{more}"
