"""Colours of devices: one fixed order, safe for colour-blind eyes, the same on every page."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ASSETS = Path(__file__).resolve().parents[3] / "assets" / "canvas"


@dataclass(frozen=True)
class DeviceKey:
    """One entry of the legend: device name, what to show for it, and its colour (#rrggbb)."""

    name: str
    label: str
    colour: str


@cache
def device_colours() -> tuple[str, ...]:
    """Colours in the order of the devices."""
    content = json.loads((ASSETS / "palette.json").read_text(encoding="utf-8"))
    return tuple(content["devices"])


def device_colour(index: int) -> str:
    """Colour of the device with this index; they repeat after the sixteenth."""
    colours = device_colours()
    return colours[index % len(colours)]


def device_keys(names: Sequence[str], labels: Sequence[str] | None = None) -> list[DeviceKey]:
    """Legend entries of devices in their declared order."""
    shown = names if labels is None else labels
    return [
        DeviceKey(name, label, device_colour(i))
        for i, (name, label) in enumerate(zip(names, shown, strict=True))
    ]
