"""What all results share: they are frozen, checked where they are read, and told in JSON.

msgspec decodes them (`core/decoding.py`) from what a worker printed, from the files of a project
and from files of strangers alike, so limits stand in the types. Fields that older files lack have
defaults. `to_json` is the way back; its keys are those of the command line.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, ClassVar

from msgspec import Meta, Struct
from msgspec.structs import force_setattr

from placement.core.amounts import MOST, UNIT_S
from placement.core.decoding import shown
from placement.core.machine import MAX_DEVICES
from placement.core.timeline import Span
from placement.search.steps import Column, Question, Table

MOST_STEPS, MOST_SPANS, MOST_ROWS = 1_000_000, 200_000, 10_000
# Devices and links that a step keeps busy.
MOST_PARTS = 100_000
LONGEST_TEXT = 4_000
REMEDY = "run it again"
Number = Annotated[float, Meta(ge=-MOST, le=MOST)]
Amount = Annotated[float, Meta(ge=0, le=MOST)]
Positive = Annotated[float, Meta(gt=0, le=MOST)]
Count = Annotated[int, Meta(ge=0, le=2**53)]
Text = Annotated[str, Meta(max_length=LONGEST_TEXT)]
Texts = Annotated[tuple[Text, ...], Meta(max_length=MOST_ROWS)]
Groups = Annotated[tuple[Count, ...], Meta(max_length=MOST_STEPS)]
Range = tuple[Amount, Amount]
Amounts = Annotated[tuple[Amount, ...], Meta(max_length=MOST_STEPS)]
ByDevice = Meta(max_length=MAX_DEVICES)
ByPart = Annotated[Mapping[str, Amount], Meta(max_length=MOST_PARTS)]
Counts = Annotated[Mapping[str, Count], ByDevice]
AmountOf = Annotated[Mapping[str, Amount], ByDevice]
Names = Annotated[Mapping[str, Text | None], ByDevice]
Path = Annotated[tuple[Span, ...], Meta(max_length=MOST_SPANS)]
# What is told of steps of generating text, and of estimates, alone.
RATES = frozenset({"tokens_per_s", "first_token_s", "waits_s"})


class Value(Struct, frozen=True, kw_only=True):
    """A value that is told in JSON; `UNLESS_TOLD` names fields that stand there only if they say
    something."""

    UNLESS_TOLD: ClassVar[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if type(value) is dict:
                force_setattr(self, name, MappingProxyType(value))

    def to_json(self) -> dict[str, Any]:
        pairs = zip(self.__struct_fields__, self.__struct_encode_fields__, strict=True)
        told = {key: getattr(self, name) for name, key in pairs if self._is_told(name)}
        return {key: to_json(value) for key, value in told.items()}

    def _is_told(self, name: str) -> bool:
        value = getattr(self, name)
        return name not in self.UNLESS_TOLD or not (value is None or value is False)


class Spread(Value, frozen=True, kw_only=True):
    """Seconds of many steps: the middle, and what nine in ten are between."""

    median: Amount
    p5: Amount
    p95: Amount


def require_unit(unit: str) -> None:
    if unit not in UNIT_S:
        raise ValueError(f"Times are in {shown(unit)}; use one of {', '.join(UNIT_S)}.")


def to_json(value: Any) -> Any:
    """A value, or a field of one, as a JSON object."""
    if isinstance(value, Span):
        # Timelines write their spans whole; on a path they say where and when.
        return {key: getattr(value, key) for key in _STEP_OF_PATH}
    if hasattr(value, "to_json"):
        return value.to_json()
    if isinstance(value, Table | Column | Question):
        return {key: to_json(each) for key, each in vars(value).items()}
    if isinstance(value, Mapping):
        return {key: to_json(each) for key, each in value.items()}
    return [to_json(each) for each in value] if isinstance(value, list | tuple) else value


_STEP_OF_PATH = ("kind", "name", "device", "start_s", "end_s")
