"""Project files from before a placer was renamed, read as if it always had its present name."""

from collections.abc import Mapping

from msgspec.structs import replace

from placement.placers import FORMER_NAMES, current_name
from studio.project.facts import Index, Named


def in_record(content: Mapping[str, object]) -> dict[str, object]:
    """What is written down about a job, one of its events, or what a placer told.

    The placement that a job was about goes by its placer's name too, unless somebody named it.
    """
    found = dict(content)
    for key in ("placer", "placement", "from"):
        if isinstance(name := found.get(key), str):
            found[key] = current_name(name)
    if isinstance(names := found.get("placers"), list):
        found["placers"] = [current_name(name) for name in names]
    return found


def in_index(index: Index) -> Index:
    """The list of a shelf; results that are called after their placer are called after it again."""
    entries = (*index.items, *index.removed)
    if not any(item.made_by in FORMER_NAMES for item in entries):
        return index
    renamed: dict[str, str] = {}
    for item in entries:
        taken = {*renamed.values(), *(other.name for other in entries)}
        name = _renamed(item.name, item.made_by)
        if name not in taken:
            renamed[item.name] = name
    items, removed = (
        tuple(_entry(item, renamed) for item in listed) for listed in (index.items, index.removed)
    )
    return Index(renamed.get(index.current, index.current), items, removed)


def _renamed(name: str, made_by: str) -> str:
    """The name of a placement such as "cp_sat", "cp_sat 2" or "cp_sat on 3 ops"."""
    rest = name.removeprefix(made_by)
    return current_name(made_by) + rest if rest != name and rest[:1] in ("", " ", ",") else name


def _entry(item: Named, renamed: Mapping[str, str]) -> Named:
    placer, start = item.facts.placer, item.facts.start
    facts = replace(
        item.facts,
        placer=placer and current_name(placer),
        start=start and renamed.get(start, current_name(start)),
    )
    name = renamed.get(item.name, item.name)
    return replace(item, name=name, made_by=current_name(item.made_by), facts=facts)
