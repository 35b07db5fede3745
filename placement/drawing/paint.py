"""What the formats with a picture paint on a view of the graph: devices and their colours."""

from collections.abc import Callable, Sequence

from placement.core.machine import Machine
from placement.drawing.colours.palette import device_colour
from placement.drawing.views import View

Mix = tuple[tuple[int, int], ...]


def mixes(view: View, device_of_op: Sequence[int]) -> list[Mix]:
    """Per node (device, number of ops) pairs, the largest share first, ties by device."""
    counts: list[dict[int, int]] = [{} for _ in view.nodes]
    for node, device in zip(view.node_of_op, device_of_op, strict=True):
        counts[node][device] = counts[node].get(device, 0) + 1
    return [tuple(sorted(row.items(), key=lambda pair: (-pair[1], pair[0]))) for row in counts]


def colours(machine: Machine) -> list[str]:
    """The colour (#rrggbb) of each device, the same as everywhere in the studio."""
    return [device_colour(i) for i in range(len(machine.devices))]


def no_view(view: Callable[[], View] | None) -> str:
    """Why a format with a picture cannot be written, empty if it can."""
    return "" if view is not None else "There is no picture of the graph to export; give a view."
