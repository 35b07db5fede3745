"""What a project from elsewhere says, field by field: taken over where it is what it should be."""

import re
from collections.abc import Container, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Annotated

import msgspec
from msgspec import Meta, Struct, structs

from placement import loaders
from placement.constraints.regexes import search_names
from placement.constraints.rules import REGEX, Rule
from placement.core import formatting
from placement.core.decoding import decode, shown
from placement.core.machine import Machine, machine_from_json
from placement.core.placement import placement_from_json
from profiling.devices.local import is_local, load_machine, presets
from studio.project.edits import MAX_STEPS, Edit, History, fits, history_from_json
from studio.project.facts import Index, Named
from studio.project.files import read, read_json
from studio.project.placements import LISTS, machine_key
from studio.project.rules import MAX_RULES
from studio.project.store import LONGEST_NAME, Project, Settings

LONGEST_TEXT = 4_000
MOST_NAMES = 1_000


def label(value: str) -> str:
    """A name that is shown: cut where it is too long, with blanks for what cannot be shown."""
    return "".join(c if c.isprintable() else " " for c in value[:200])


def require_text(value: str, longest: int = LONGEST_TEXT) -> None:
    if len(value) > longest or not value.isprintable():
        raise ValueError(f"{shown(value)} in it is not a text of at most {longest} letters.")


def require_texts(content: object) -> None:
    """ValueError where a text in a JSON value, a name too, cannot be shown on a page."""
    waiting: list[object] = [content]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            require_text(value)
        elif isinstance(value, Mapping):
            waiting += [*value, *value.values()]
        elif isinstance(value, list | tuple):
            waiting += value


# What was typed into the forms of another computer's pages is no part of the work.
NOT_TAKEN = ("form", "touched")
LONGEST_PATTERN = 400
# What a project cannot be opened without; a default would be another project.
REQUIRED = ("model_kind", "model", "machine", "objective")
REMEDY = "export the project again"
MOST_PLACEMENTS = 4_000
MOST_SHOWN = 4
_FILE = re.compile(r"[A-Za-z0-9-][A-Za-z0-9._-]{0,200}")


class _Typed(Struct, frozen=True):
    form: Mapping[str, object] = {}


def settings(content: object, machines: Iterable[str]) -> Settings:
    """The settings of a project file that brings these machine files."""
    missing = [key for key in REQUIRED if isinstance(content, dict) and key not in content]
    try:
        if missing:
            raise ValueError(f"it has no {missing[0]!r}; {REMEDY}.")
        found = decode(content, Settings, remedy=REMEDY)
    except ValueError as error:
        raise ValueError(f"its settings are not understood: {error}") from None
    _check_model(found.model_kind, found.model)
    if not is_local(found.machine) and found.machine not in (*presets(), *machines):
        raise ValueError(
            f"it names the machine {shown(found.machine)}, which is not here nor inside."
        )
    name = label(found.name)[:LONGEST_NAME].strip() or "Imported"
    return structs.replace(found, name=name, form={}, touched=True)


def form(content: object) -> Mapping[str, object]:
    """What the settings of a project say of its forms."""
    return decode(content, _Typed, remedy=REMEDY).form


def _check_model(kind: str, model: str) -> None:
    require_text(model)
    if kind == "sample" and not any(s.name == model for s in loaders.samples()):
        raise ValueError(f"it is about the sample {shown(model)}, which is not here.")
    if kind == "file" and not _FILE.fullmatch(model):
        raise ValueError(f"its model is called {shown(model)}, which is no name of a file.")
    absolute = PurePosixPath(model).is_absolute() or PureWindowsPath(model).is_absolute()
    if kind == "path" and not absolute:
        raise ValueError(f"its model is at {shown(model)}, which is no full path.")


# A job stays behind, and so do claims of proof: nobody here has seen the proof.
NOT_TRUSTED = ("job", "problem", "proven_optimal")


class Item(Named, frozen=True):
    """A placement in the list of its shelf."""

    file: Annotated[str, Meta(pattern=rf"\A{_FILE.pattern}\Z")]

    def __post_init__(self) -> None:
        if not self.file.endswith(".json") or self.file == "index.json":
            raise ValueError(f"{shown(self.file)} is no file of a placement.")


class Listed(Struct, frozen=True):
    """The list of a shelf."""

    current: str
    items: Annotated[tuple[Item, ...], Meta(max_length=MOST_PLACEMENTS)]


def index(content: object, kind: type[Listed] = Listed) -> Index:
    """The list of a shelf's placements, by names that can be shown."""
    listed = decode(content, kind, remedy=REMEDY)
    items = tuple(_item(item) for item in listed.items)
    if len({i.name for i in items}) < len(items) or len({i.file for i in items}) < len(items):
        raise ValueError("two of its placements share a name or a file.")
    return Index(label(listed.current), items)


def _item(item: Item) -> Item:
    facts = structs.replace(item.facts, **dict.fromkeys(NOT_TRUSTED))
    require_texts(msgspec.to_builtins(facts, enc_hook=dict))
    name, made_by = label(item.name), label(item.made_by)
    return structs.replace(item, name=name, made_by=made_by, facts=facts)


def placement(content: object) -> object:
    return placement_from_json(content).to_json()


def history(content: object) -> object:
    """The steps of a placement; `check_shelves` sees whether they are about its ops."""
    found = history_from_json(content)
    if len(found.done) + len(found.undone) > MAX_STEPS:
        raise ValueError(f"it has more than {MAX_STEPS} steps.")
    done, undone = (
        tuple(replace(step, label=label(step.label)) for step in steps)
        for steps in (found.done, found.undone)
    )
    return History(done, undone).to_json()


def pins(content: object) -> dict[str, str]:
    """Devices by name of the op that is held there."""
    return decode(content, dict[str, str], remedy='pins are {"op": "device"}')


def sequences(content: object) -> dict[str, tuple[str, ...]]:
    """Ops in their order by name of the device where it holds."""
    return decode(content, dict[str, tuple[str, ...]], remedy='orders are {"device": ["op"]}')


class _Rule(Struct, frozen=True):
    """A rule before anybody has seen whether its expression takes too long to read."""

    pattern: Annotated[str, Meta(max_length=LONGEST_PATTERN)]
    device: Annotated[str, Meta(max_length=LONGEST_PATTERN)]


_Rules = Annotated[tuple[_Rule, ...], Meta(max_length=MAX_RULES)]


def rules(content: object) -> list[dict[str, str]]:
    """Rules by pattern; all regular expressions are tried out before, within one time limit."""
    rows = decode(content, _Rules, remedy=REMEDY)
    require_texts(content)
    patterns, devices = [row.pattern for row in rows], [row.device for row in rows]
    expressions = [p.removeprefix(REGEX) for p in patterns if p.startswith(REGEX)]
    for expression, tried in zip(expressions, search_names(expressions, ()), strict=True):
        if tried.too_slow or tried.error:
            why = tried.error or "it takes too long to read"
            raise ValueError(f"{shown(expression)} is not a regular expression: {why}.")
    found = [Rule(pattern, device) for pattern, device in zip(patterns, devices, strict=True)]
    return [{"pattern": rule.pattern, "device": rule.device} for rule in found]


def machine(content: object) -> object:
    return machine_from_json(content).to_json()


def known_machines(project: Path) -> list[Machine]:
    """Machines that a project can mean on every computer: presets, and its own files."""
    found = [load_machine(name) for name in presets()]
    files = sorted((project / "machines").glob("*.json"))
    return [*found, *(machine_from_json(read_json(path)) for path in files)]


def unseen(project: Project, machine: Machine) -> str:
    """What to say of placements for a computer that this one is not; empty where all show."""
    if not is_local(project.settings.machine):
        return ""
    known = {machine_key(each) for each in (machine, *known_machines(project.folder))}
    shelves = sorted((project.folder / "placements").glob("*"))
    strange = [s for s in shelves if s.name.rpartition("-")[2] not in known]
    placed = [read_json(p) for s in strange for p in s.glob("*.json") if p.name not in LISTS]
    devices = sorted({device for each in placed for device in each["device_of"].values()})
    if not placed:
        return ""
    number = formatting.counted(len(placed), "placement")
    named = ", ".join(devices[:MOST_SHOWN]) + (" and more" if len(devices) > MOST_SHOWN else "")
    return (
        f"{number} in it {'is' if len(placed) == 1 else 'are'} for"
        f" devices of the computer that it comes from ({named}) and"
        f" {'shows' if len(placed) == 1 else 'show'} only on one that has the same."
    )


def check_shelves(folder: Path, machines: Iterable[Machine]) -> None:
    """ValueError unless each shelf lists placements that are there, made for the shelf's graph.

    All of them, their steps and the pins are about the same ops. Devices are those of the shelf's
    machine, where that is one of `machines`; a machine of another computer is not known here.
    """
    devices_of = {machine_key(m): frozenset(m.index) for m in machines}
    for shelf in sorted(folder.glob("*")):
        listed = read(shelf / "index.json", Index)
        if listed is None:
            raise ValueError(f"the placements in {shelf.name!r} have no list.")
        for item in listed.items:
            stored = read_json(shelf / item.file)
            if stored is None:
                raise ValueError(f"the placement {shown(item.name)} is not inside.")
            if stored["graph"] != shelf.name.rpartition("-")[0]:
                raise ValueError(f"the placement {shown(item.name)} is for another model.")
        _check_names(shelf, listed.items, devices_of.get(shelf.name.rpartition("-")[2]))


def ops_and_devices(
    folder: Path, machines: Iterable[Machine]
) -> tuple[dict[str, AbstractSet[str]], dict[str, AbstractSet[str]]]:
    """By shelf the ops of its placements, and its devices where its machine is one of these."""
    devices_of = {machine_key(m): frozenset(m.index) for m in machines}
    ops: dict[str, AbstractSet[str]] = {}
    for shelf in sorted(folder.glob("*")):
        items = (read(shelf / "index.json", Index) or Index()).items
        placed = [read_json(shelf / item.file)["device_of"] for item in items[:1]]
        ops[shelf.name] = placed[0].keys() if placed else frozenset()
    keys = {name: name.rpartition("-")[2] for name in ops}
    return ops, {name: devices_of[key] for name, key in keys.items() if key in devices_of}


def _check_names(shelf: Path, items: Iterable[Named], devices: Container[str] | None) -> None:
    """ValueError where placements, steps or pins of a shelf are about other ops or devices."""
    placed = [placement_from_json(read_json(shelf / item.file)) for item in items]
    if not placed:
        return
    ops = placed[0].device_of.keys()
    pins = Edit("", pins=tuple((o, "", d) for o, d in read_json(shelf / "pins.json", {}).items()))
    held = {d: tuple(o) for d, o in read_json(shelf / "sequences.json", {}).items()}
    known = fits(pins, ops, devices) and fits(Edit("", sequences=(held, held)), ops, devices)
    for item, each in zip(items, placed, strict=True):
        steps = history_from_json(read_json((shelf / item.file).with_suffix(".history"), {}))
        stays = tuple((op, device, device) for op, device in each.device_of.items())
        whole = Edit("", stays, order=(each.order, each.order))
        known = known and each.device_of.keys() == ops
        known = known and all(fits(s, ops, devices) for s in (whole, *steps.done, *steps.undone))
        if not known:
            raise ValueError(f"the placement {shown(item.name)} names unknown ops or devices.")
