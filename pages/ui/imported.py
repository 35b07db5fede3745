"""What a project from elsewhere says, field by field: taken over where it is what it should be."""

import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from pages.ui.atomic import read_json
from pages.ui.edits import history_from_json
from pages.ui.projects import LONGEST_NAME, Settings
from pages.ui.rules import MAX_RULES
from placement import loaders
from placement.core.machine import machine_from_json
from placement.core.placement import placement_from_json
from placement.core.problem import UNIT_S
from placement.rules import REGEX, Rule
from profiling.devices import presets

# What was typed into the forms of another computer's pages is no part of the work.
NOT_TAKEN = ("form", "touched")
LONGEST_TEXT = 4_000
_FILE = re.compile(r"[A-Za-z0-9-][A-Za-z0-9._-]{0,200}")
_NUMBERS = ("value", "lower_bound", "seconds")
_TEXTS = ("account", "costs", "from", "objective", "unit")
# A job that stays behind, and claims of proof: nobody here has seen the proof.
_NO_FACTS = ("job", "problem", "proven_optimal")


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
    facts = {str(k): v for k, v in content.items() if k not in _NO_FACTS and _is_plain(v)}
    for name in _NUMBERS:
        if name in facts:
            facts[name] = _number(facts[name], name)
    for name in _TEXTS:
        if name in facts:
            facts[name] = _text(facts[name], name, LONGEST_TEXT)
    if facts.get("unit", "s") not in UNIT_S:
        raise ValueError(f"it has times in {_shown(facts['unit'])}, which is no known unit.")
    return facts


def _is_plain(value: Any) -> bool:
    """A text, a finite number or a truth, or a short list or table of them."""
    if isinstance(value, Mapping):
        return len(value) <= 1_000 and all(_is_scalar(v) for v in value.values())
    if isinstance(value, list):
        return len(value) <= 1_000 and all(_is_scalar(v) for v in value)
    return _is_scalar(value)


def _is_scalar(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, str):
        return len(value) <= LONGEST_TEXT
    return value is None or isinstance(value, int)


def placement(content: Any) -> dict[str, Any]:
    return placement_from_json(content).to_json()


def history(content: Any) -> dict[str, Any]:
    return history_from_json(content).to_json()


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


def check_shelves(folder: Path) -> None:
    """ValueError unless each shelf lists placements that are there, made for the shelf's graph."""
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


def _is_whole(value: Any, most: int) -> bool:
    return type(value) is int and 1 <= value <= most


def _shown(value: Any) -> str:
    return repr(value)[:80]
