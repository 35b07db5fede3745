"""Colours and hatches: one fixed order, safe for colour-blind eyes, the same on every page."""

import base64
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


def hatching(colour: str, pattern: str) -> str:
    """A device's hatch on its colour, as a part of a CSS background; empty for the plain one."""
    if not pattern:
        return ""
    drawn = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="8" height="8"><path fill="none"'
        f' stroke="{_ink_on(colour)}" stroke-opacity=".6" stroke-width="1.5"'
        f' stroke-linecap="round" d="{pattern}"/></svg>'
    )
    return f" url(data:image/svg+xml;base64,{base64.b64encode(drawn.encode()).decode()}) 0 0/8px"


def _ink_on(colour: str) -> str:
    """Black or white, whichever is the plainer on a colour (WCAG 2.1, as in colours.js)."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels
    )
    return "#14181f" if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.19 else "#ffffff"


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
