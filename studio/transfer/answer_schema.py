"""What-if answers of a project from elsewhere: placements, with the machine that they are for.

What an answer says is read like the rest of a project file (`schema.py`); the page needs all of
it, so an answer that lacks a part is refused.
"""

from pathlib import Path
from typing import Annotated

from msgspec import Meta

from placement.api.results.value import Number, Text
from placement.core.decoding import shown
from placement.core.objective import Objective
from placement.costs.what_if import ConditionRows
from studio.project.facts import Facts, Index
from studio.project.files import read, read_json
from studio.transfer import schema

FOLDER = "what_if"


class AnswerFacts(Facts, frozen=True, kw_only=True, omit_defaults=True):
    """What a method told, and the machine that it was asked about."""

    value: Number
    unit: Text
    objective: Objective
    unchanged_value: Number
    what_if: ConditionRows

    def __post_init__(self) -> None:
        super().__post_init__()
        links = [name for link in self.what_if.links for name in (link.src, link.dst)]
        if len({*self.what_if.speed, *self.what_if.memory_bytes, *links}) > schema.MOST_NAMES:
            raise ValueError("an answer is for a machine with too many devices.")


class Item(schema.Item, frozen=True):
    """An answer in the list of them."""

    facts: AnswerFacts


class Listed(schema.Listed, frozen=True):
    """The list of answers for one graph and one set of devices."""

    items: Annotated[tuple[Item, ...], Meta(max_length=schema.MOST_PLACEMENTS)]


def index(content: object) -> Index:
    """The list of answers for one graph and one set of devices."""
    return schema.index(content, Listed)


def check(project: Path) -> None:
    """ValueError unless answers are about the ops of the placements that they stand beside."""
    ops, _ = schema.ops_and_devices(project / "placements", ())
    for shelf in sorted((project / FOLDER).glob("*")):
        for item in (read(shelf / "index.json", Index) or Index()).items:
            placed = read_json(shelf / item.file)["device_of"]
            if placed.keys() != ops.get(shelf.name):
                raise ValueError(f"the answer {shown(item.name)} names unknown ops.")
