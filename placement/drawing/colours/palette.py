"""Colours and hatches: one fixed order, safe for colour-blind eyes, the same on every page."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from placement.files import program

ASSETS = program.ASSETS / "canvas"


@dataclass(frozen=True)
class DeviceKey:
    """One entry of the legend: device name, what to show for it, its colour (#rrggbb) and hatch.

    `busy` and `memory` say in words how long it computes and how much it holds; empty if unknown.
    """

    name: str
    label: str
    colour: str
    pattern: str = ""
    busy: str = ""
    memory: str = ""


@cache
def _content() -> dict[str, Any]:
    content: dict[str, Any] = json.loads((ASSETS / "palette.json").read_text(encoding="utf-8"))
    return content


def colours(name: str) -> tuple[str, ...]:
    """The colours under one name of the palette: "devices", "kinds", "scale", "path"."""
    return tuple(_content()[name])


def lone_colour(name: str) -> str:
    """A colour that stands alone: "rest" for all other categories, "same" for no difference."""
    return str(_content()[name])


def device_colour(index: int) -> str:
    """Colour of the device with this index; they repeat after the sixteenth."""
    found = colours("devices")
    return found[index % len(found)]


def device_pattern(index: int) -> str:
    """Hatch of a device, as an SVG path to stroke on an 8 x 8 tile; the first is plain."""
    found = colours("patterns")
    return found[index % len(found)]


def device_keys(
    names: Sequence[str],
    labels: Sequence[str] | None = None,
    busy: Sequence[str] = (),
    memory: Sequence[str] = (),
) -> list[DeviceKey]:
    """Legend entries of devices in their declared order."""
    shown = names if labels is None else labels
    return [
        DeviceKey(
            name,
            label,
            device_colour(i),
            device_pattern(i),
            busy[i] if busy else "",
            memory[i] if memory else "",
        )
        for i, (name, label) in enumerate(zip(names, shown, strict=True))
    ]
