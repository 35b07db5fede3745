"""What-if answers of a project from elsewhere: placements, with the machine that they are for.

What an answer says is read like the rest of a project file (`imported.py`); the page needs all of
it, so an answer that lacks a part is refused.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from placement.costs.what_if import conditions_from_json
from studio.jobs import outcomes
from studio.project.files import read_json
from studio.transfer import fields, schema
from studio.transfer.fields import shown

FOLDER = "what_if"
_NEEDED = ("value", "unit", "objective")


def index(content: Any) -> dict[str, Any]:
    """The list of answers for one graph and one set of devices."""
    listed = schema.index(content)
    for item, given in zip(listed["items"], content["items"], strict=True):
        item["facts"] |= _facts(given["facts"], item["facts"])
    return listed


def _facts(given: Mapping[str, Any], taken: Mapping[str, Any]) -> dict[str, Any]:
    missing = [name for name in _NEEDED if name not in taken]
    if missing:
        raise ValueError(f"an answer does not tell its {missing[0]}.")
    if taken["objective"] not in outcomes.GOALS:
        raise ValueError(f"an answer has the goal {shown(taken['objective'])}, which is unknown.")
    given = fields.row(given, "facts of an answer", "unchanged_value", "what_if")
    unchanged = fields.number(given["unchanged_value"], "value on the machine as it is")
    return {"unchanged_value": unchanged, "what_if": _conditions(given["what_if"])}


def _conditions(content: Any) -> dict[str, Any]:
    """The sliders, where they name no more than a machine may have, by names that can be shown."""
    found = conditions_from_json(content)
    ends = [name for link in found.own_links for name in link]
    names = {*found.speed, *found.memory_bytes, *ends}
    if len(names) > fields.MOST_NAMES:
        raise ValueError("an answer is for a machine with too many devices.")
    for name in names:
        fields.text(name, "device", 200)
    return found.to_json()


def check(project: Path) -> None:
    """ValueError unless answers are about the ops of the placements that they stand beside."""
    ops, _ = schema.ops_and_devices(project / "placements", ())
    for shelf in sorted((project / FOLDER).glob("*")):
        for item in read_json(shelf / "index.json")["items"]:
            placed = read_json(shelf / item["file"])["device_of"]
            if placed.keys() != ops.get(shelf.name):
                raise ValueError(f"the answer {shown(item['name'])} names unknown ops.")
