"""What the placement on the screen asks of each device: work, memory and number of ops."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import streamlit as st

from pages.ui.canvas import colour_switch
from placement.core import formatting
from placement.costs.offload import streamed_bytes
from placement.drawing.colours.palette import hatching
from placement.schedule.simulated import busy_of
from studio.snapshot import Studio

# Room for seven devices.
MOST_HEIGHT = 430
TRACK = "40%"
BUSY_HELP = (
    "Predicted time that the device works in a step, and its share of the step. In a pipeline: per"
    " sample, with sending and receiving; the busiest device sets the pace. Copies are accelerators"
    " that hold the same ops and take samples in turn, so each works a share of them;"
    " calls are how often a step calls an accelerator."
)
MEMORY_HELP = (
    "Most memory that is taken at one time: weights, working space and values that wait to be"
    " read. Grey is what the device has; all bars of memory are on one scale. Devices without a"
    " limit show only what is taken."
)


@dataclass(frozen=True)
class Load:
    """A device's part of a placement; shares are 0 to 1 and more, None where there is no limit.

    So many copies of the part share its samples, itself among them, and a step calls it so often.
    `pattern` is the device's hatch, empty for none.
    """

    device: str
    colour: str
    num_ops: int
    busy_s: float
    busy_share: float
    memory_bytes: float
    limit_bytes: float | None
    streams: bool = False
    num_copies: int = 1
    num_calls: int = 1
    pattern: str = ""

    @property
    def memory_share(self) -> float | None:
        if self.limit_bytes is None:
            return None
        return self.memory_bytes / self.limit_bytes if self.limit_bytes else float("inf")


def loads_of(now: Studio) -> tuple[Load, ...]:
    """The predicted load of every device, in the machine's order."""
    predicted, counts = now.simulated, now.placement.ops_per_device()
    busy_s = busy_of(now.problem, predicted, now.placement)
    streamed = streamed_bytes(now.problem, now.placement)
    replicas, calls = now.placement.replicas or {}, now.placement.calls or {}
    loads = []
    for device, key in zip(now.machine.devices, colour_switch.devices(now), strict=True):
        seconds = busy_s.get(device.name, 0.0)
        loads.append(
            Load(
                device=device.name,
                colour=key.colour,
                num_ops=counts.get(device.name, 0),
                busy_s=seconds,
                busy_share=seconds / predicted.value if predicted.value else 0.0,
                memory_bytes=streamed.get(device.engine, 0)
                if device.streams_from
                else predicted.peak_bytes.get(device.name, 0),
                limit_bytes=device.memory_bytes,
                streams=bool(device.streams_from),
                num_copies=replicas.get(device.name, 1),
                num_calls=calls.get(device.name, 1),
                pattern=key.pattern,
            )
        )
    return tuple(loads)


def show(now: Studio) -> None:
    """Draw the loads; few lines for each device, in its colour and hatch."""
    loads = loads_of(now)
    st.caption("Predicted load of each device", help=f"{BUSY_HELP} {MEMORY_HELP}")
    st.html(html(loads, now.problem.unit, hatched=colour_switch.is_hatched()))


def html(loads: Sequence[Load], unit: str, *, hatched: bool = False) -> str:
    """The loads as HTML; names come from files, so they are escaped."""
    known = [load.limit_bytes for load in loads if load.limit_bytes is not None]
    most_bytes = max([*known, *(load.memory_bytes for load in loads)], default=0.0)
    rows = "".join(_row(load, unit, most_bytes, hatched) for load in loads)
    return f'<div style="max-height:{MOST_HEIGHT}px;overflow-y:auto">{rows}</div>'


def _row(load: Load, unit: str, most_bytes: float, hatched: bool) -> str:
    number = formatting.counted(load.num_ops, "op")
    number += f", {load.num_copies} copies" if load.num_copies > 1 else ""
    number += f", {load.num_calls} calls" if load.num_calls > 1 else ""
    busy = f"{formatting.seconds(load.busy_s, unit)} busy ({formatting.percent(load.busy_share)})"
    memory, share = formatting.num_bytes(load.memory_bytes), load.memory_share
    if share is not None:
        memory += f" of {formatting.num_bytes(load.limit_bytes)}"
    memory += " of weights sent in every step" if load.streams else ""
    over = ' <b style="color:#c62828">too much</b>' if share is not None and share > 1 else ""
    ground = load.colour + (hatching(load.colour, load.pattern) if hatched else "")
    head = (
        '<div style="display:flex;justify-content:space-between;gap:8px">'
        f'<span style="overflow:hidden;text-overflow:ellipsis;white-space:nowrap">'
        f'<span style="{_dot(ground)}"></span><b>{escape(load.device)}</b></span>'
        f'<span style="white-space:nowrap">{number}</span></div>'
    )
    of_most = 1.0 / most_bytes if most_bytes else 0.0
    room = None if share is None else (load.limit_bytes or 0.0) * of_most
    held = 0.0 if share is None else load.memory_bytes * of_most
    lines = _bar(load.busy_share, 1.0, ground, busy, "")
    # Where nothing has any size and nothing a limit, nobody said how large anything is.
    lines += _bar(held, room, ground, memory, over) if most_bytes else ""
    return f'<div style="font-size:13px;line-height:1.35;margin:0 0 8px">{head}{lines}</div>'


def _dot(ground: str) -> str:
    return (
        "display:inline-block;width:10px;height:10px;border-radius:3px;margin-right:6px;"
        f"background:{ground}"
    )


def _bar(share: float, room: float | None, ground: str, text: str, more: str) -> str:
    """A bar with its figure beside it, and grey behind it what there is, where that is known.

    Of all rows the shares are of one whole, so that lengths compare from device to device.
    """
    back = 0.0 if room is None else 100 * min(1.0, room)
    grey = f"linear-gradient(rgba(128,128,128,.25) 0 0) no-repeat;background-size:{back:.1f}% 100%"
    shape = "height:7px;border-radius:4px"
    return (
        '<div style="display:flex;align-items:center;gap:8px">'
        f'<div class="track" style="flex:0 0 {TRACK};{shape};background:{grey}">'
        f'<div style="width:{100 * min(1.0, share):.1f}%;{shape};background:{ground}"></div></div>'
        f'<span style="flex:1 1 0;text-align:right">{escape(text)}{more}</span></div>'
    )
