"""What a project from elsewhere says, field by field: taken over where it is what it should be."""

import re
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from pages.ui.atomic import read_json
from pages.ui.edits import MAX_STEPS, Edit, History, fits, history_from_json
from pages.ui.projects import LONGEST_NAME, Settings
from pages.ui.rules import MAX_RULES
from pages.ui.shelf import machine_key
from placement import loaders
from placement.core.machine import Machine, machine_from_json
from placement.core.placement import placement_from_json
from placement.core.problem import UNIT_S
from placement.rules import REGEX, Rule
from profiling.devices import presets

# What was typed into the forms of another computer's pages is no part of the work.
NOT_TAKEN = ("form", "touched")
LONGEST_TEXT = 4_000
_FILE = re.compile(r"[A-Za-z0-9-][A-Za-z0-9._-]{0,200}")


def settings(content: Any, machines: Iterable[str]) -> Settings:
    """The settings of a project file that brings these machine files."""
    if not isinstance(content, Mapping):
        raise ValueError("its settings are no JSON object; export it again.")
    kind, model = _model(content.get("model_kind"), content.get("model"))
    machine, known = content.get("machine"), ("local", *presets(), *machines)
    if machine not in known:
        raise ValueError(f"it names the machine {_shown(machine)}, which is not here nor inside.")
    objective, lanes = content.get("objective"), content.get("lanes")
    if objective not in ("latency", "throughput"):
        raise ValueError(f"it has the goal {_shown(objective)}; latency and throughput are known.")
    if lanes is not None and not _is_whole(lanes, 1024):
        raise ValueError(f"it splits the CPU into {_shown(lanes)} lanes; 1 to 1024 are possible.")
    return Settings(
        name=_label(content.get("name"), "name")[:LONGEST_NAME].strip() or "Imported",
        created_at=_number(content.get("created_at"), "created_at"),
        model_kind=kind,
        model=model,
        dims=_dims(content.get("dims", {})),
        machine=str(machine),
        lanes=lanes,
        objective=str(objective),
        touched=True,
    )


def _model(kind: Any, model: Any) -> tuple[str, str]:
    model = _text(model, "model", LONGEST_TEXT)
    if kind == "sample" and not any(s.name == model for s in loaders.samples()):
        raise ValueError(f"it is about the sample {_shown(model)}, which is not here.")
    if kind == "file" and not _FILE.fullmatch(model):
        raise ValueError(f"its model is called {_shown(model)}, which is no name of a file.")
    absolute = PurePosixPath(model).is_absolute() or PureWindowsPath(model).is_absolute()
    if kind == "path" and not absolute:
        raise ValueError(f"its model is at {_shown(model)}, which is no full path.")
    if kind not in ("sample", "file", "path"):
        raise ValueError(f"its model is of the kind {_shown(kind)}, which is not known.")
    return str(kind), model


def _dims(content: Any) -> dict[str, int]:
    if not isinstance(content, Mapping) or len(content) > 1_000:
        raise ValueError("its open dimensions are no sizes by name.")
    for name, size in content.items():
        if not _is_whole(size, 2**31 - 1):
            raise ValueError(f"its dimension {_shown(name)} is {_shown(size)}; use 1 or more.")
    return dict(content)


def index(content: Any) -> dict[str, Any]:
    """The list of a shelf's placements."""
    items = [_item(item) for item in content["items"]]
    names, files = ([item[key] for item in items] for key in ("name", "file"))
    if len(set(names)) < len(names) or len(set(files)) < len(files):
        raise ValueError("two of its placements share a name or a file.")
    return {"current": _label(content["current"], "current placement"), "items": items}


def _item(content: Any) -> dict[str, Any]:
    file = _text(content["file"], "file", 210)
    if not file.endswith(".json") or not _FILE.fullmatch(file) or file == "index.json":
        raise ValueError(f"{_shown(file)} is no file of a placement.")
    return {
        "name": _label(content["name"], "name of a placement"),
        "file": file,
        "made_by": _label(content["made_by"], "method"),
        "facts": _facts(content["facts"]),
    }


def _facts(content: Mapping[str, Any]) -> dict[str, Any]:
    """What a method told about its placement, as far as it can be taken on trust."""
    facts = {
        name: read(content[name], name)
        for name, read in _FACTS.items()
        if content.get(name) is not None
    }
    if facts.get("unit", "s") not in UNIT_S:
        raise ValueError(f"it has times in {_shown(facts['unit'])}, which is no known unit.")
    return facts


def placement(content: Any) -> dict[str, Any]:
    return placement_from_json(content).to_json()


def history(content: Any) -> dict[str, Any]:
    """The steps of a placement; `check_shelves` sees whether they are about its ops."""
    found = history_from_json(content)
    if len(found.done) + len(found.undone) > MAX_STEPS:
        raise ValueError(f"it has more than {MAX_STEPS} steps.")
    done, undone = (
        tuple(replace(step, label=_label(step.label, "step")) for step in steps)
        for steps in (found.done, found.undone)
    )
    return History(done, undone).to_json()


def pins(content: Any) -> dict[str, str]:
    """Devices by name of the op that is held there."""
    if not all(isinstance(device, str) for device in content.values()):
        raise ValueError("a pin names no device.")
    return dict(content)


def rules(content: Any) -> list[dict[str, str]]:
    """Rules by pattern. Regular expressions stay behind: a mean one can take years to search."""
    found = [Rule(_label(r["pattern"], "pattern"), _label(r["device"], "device")) for r in content]
    if len(found) > MAX_RULES:
        raise ValueError(f"it has more than {MAX_RULES} rules.")
    kept = [rule for rule in found if not rule.pattern.startswith(REGEX)]
    return [{"pattern": rule.pattern, "device": rule.device} for rule in kept]


def machine(content: Any) -> dict[str, Any]:
    return machine_from_json(content).to_json()


def check_shelves(folder: Path, machines: Iterable[Machine]) -> None:
    """ValueError unless each shelf lists placements that are there, made for the shelf's graph.

    All of them, their steps and the pins are about the same ops. Devices are those of the shelf's
    machine, where that is one of `machines`; a machine of another computer is not known here.
    """
    devices_of = {machine_key(m): frozenset(m.index) for m in machines}
    for shelf in sorted(folder.glob("*")):
        listed = read_json(shelf / "index.json")
        if listed is None:
            raise ValueError(f"the placements in {shelf.name!r} have no list.")
        for item in listed["items"]:
            stored = read_json(shelf / item["file"])
            if stored is None:
                raise ValueError(f"the placement {_shown(item['name'])} is not inside.")
            if stored["graph"] != shelf.name.rpartition("-")[0]:
                raise ValueError(f"the placement {_shown(item['name'])} is for another model.")
        _check_names(shelf, listed["items"], devices_of.get(shelf.name.rpartition("-")[2]))


def _check_names(
    shelf: Path, items: Iterable[Mapping[str, Any]], devices: Container[str] | None
) -> None:
    """ValueError where placements, steps or pins of a shelf are about other ops or devices."""
    placed = [read_json(shelf / item["file"])["device_of"] for item in items]
    if not placed:
        return
    ops = placed[0].keys()
    pins = Edit("", pins=tuple((o, "", d) for o, d in read_json(shelf / "pins.json", {}).items()))
    known = fits(pins, ops, devices)
    for item, device_of in zip(items, placed, strict=True):
        steps = history_from_json(read_json((shelf / item["file"]).with_suffix(".history"), {}))
        whole = Edit("", tuple((op, device, device) for op, device in device_of.items()))
        known = known and device_of.keys() == ops
        known = known and all(fits(s, ops, devices) for s in (whole, *steps.done, *steps.undone))
        if not known:
            raise ValueError(f"the placement {_shown(item['name'])} names unknown ops or devices.")


def _label(value: Any, what: str) -> str:
    """A name that is shown: cut where it is too long, with blanks for what cannot be shown."""
    if not isinstance(value, str):
        raise ValueError(f"its {what} is {_shown(value)}, not a text.")
    return "".join(c if c.isprintable() else " " for c in value[:200])


def _text(value: Any, what: str, longest: int) -> str:
    if not isinstance(value, str) or len(value) > longest or not value.isprintable():
        raise ValueError(f"its {what} is {_shown(value)}, not a text of at most {longest} letters.")
    return value


def _number(value: Any, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e300:
        raise ValueError(f"its {what} is {_shown(value)}, not a number.")
    return value


def _count(value: Any, what: str) -> int:
    if type(value) is not int or not 0 <= value <= 2**53:
        raise ValueError(f"its {what} is {_shown(value)}, not a whole number.")
    return value


def _truth(value: Any, what: str) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"its {what} is {_shown(value)}, not true or false.")
    return value


def _texts(value: Any, what: str) -> list[str]:
    if not isinstance(value, list) or len(value) > 1_000:
        raise ValueError(f"its {what} are no short list of texts.")
    return [_label(text, what) for text in value]


def _counts(value: Any, what: str) -> dict[str, int]:
    if not isinstance(value, Mapping) or len(value) > 1_000:
        raise ValueError(f"its {what} are no short table of numbers.")
    return {_label(name, what): _count(number, what) for name, number in value.items()}


def _long_text(value: Any, what: str) -> str:
    return _text(value, what, LONGEST_TEXT)


def _is_whole(value: Any, most: int) -> bool:
    return type(value) is int and 1 <= value <= most


def _shown(value: Any) -> str:
    return repr(value)[:80]


# What is kept of a method's report. A job stays behind, and so do claims of proof: nobody here has
# seen the proof.
_FACTS: dict[str, Callable[[Any, str], Any]] = {
    **dict.fromkeys(("value", "lower_bound", "seconds", "gap", "measured_s"), _number),
    **dict.fromkeys(("num_selected", "num_pinned", "num_segments"), _count),
    **dict.fromkeys(("account", "costs", "from", "objective", "unit"), _long_text),
    **dict.fromkeys(("made_for", "placer"), _label),
    **dict.fromkeys(("cancelled", "outputs_match", "simulated"), _truth),
    "violations": _texts,
    "ops_per_device": _counts,
}
