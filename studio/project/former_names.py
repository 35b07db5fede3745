"""Project files from before a placer was renamed, read as if it always had its present name."""

from collections.abc import Mapping, Sequence
from typing import Any

from placement.placers import FORMER_NAMES, current_name


def in_record(content: Mapping[str, Any]) -> dict[str, Any]:
    """What is written down about a job, one of its events, or what a placer told.

    The placement that a job was about goes by its placer's name too, unless somebody named it.
    """
    found = dict(content)
    for key in ("placer", "placement", "from"):
        if isinstance(found.get(key), str):
            found[key] = current_name(found[key])
    if isinstance(found.get("placers"), list):
        found["placers"] = [current_name(name) for name in found["placers"]]
    return found


def in_index(content: Mapping[str, Any]) -> dict[str, Any]:
    """The list of a shelf; results that are called after their placer are called after it again."""
    entries = [item for key in ("items", "removed") for item in content.get(key, ())]
    if not any(item["made_by"] in FORMER_NAMES for item in entries):
        return dict(content)
    renamed: dict[str, str] = {}
    for item in entries:
        taken = {*renamed.values(), *(other["name"] for other in entries)}
        name = _renamed(item["name"], item["made_by"])
        if name not in taken:
            renamed[item["name"]] = name
    return {
        "current": renamed.get(content["current"], content["current"]),
        **{key: _entries(content.get(key, ()), renamed) for key in ("items", "removed")},
    }


def _renamed(name: str, made_by: str) -> str:
    """The name of a placement such as "cp_sat", "cp_sat 2" or "cp_sat on 3 ops"."""
    rest = name.removeprefix(made_by)
    return current_name(made_by) + rest if rest != name and rest[:1] in ("", " ", ",") else name


def _entries(
    entries: Sequence[Mapping[str, Any]], renamed: Mapping[str, str]
) -> list[dict[str, Any]]:
    found = []
    for item in entries:
        facts = in_record(item["facts"])
        if "from" in facts:
            facts["from"] = renamed.get(item["facts"]["from"], facts["from"])
        name, made_by = renamed.get(item["name"], item["name"]), current_name(item["made_by"])
        found.append({**item, "name": name, "made_by": made_by, "facts": facts})
    return found
