"""The machine as a Streamlit component: devices and links to look at, and to pick one of."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

import streamlit as st

from pages.ui.session import choices, outbox
from pages.ui.session.outbox import Message
from placement.core import formatting
from placement.drawing.machine_graph import MachineGraph

ASSETS = Path(__file__).resolve().parents[3] / "assets"
SCRIPTS = ("canvas/outbox.js", "timeline/elements.js", "devices/picture.js")
KEY = "machine-picture"
HELP = "Click a device or a link, or go to it with Tab and Enter, to see its figures."


class Pick(Message, frozen=True, tag="pick"):
    """A click on a device, by its name, or on a line of links, by its key."""

    what: str


def draw(graph: MachineGraph) -> None:
    """Draw the machine with what was picked of it last."""
    machine, num_links = graph.machine, sum(rail.numbers.size for rail in graph.rails.values())
    data = {
        "label": f"{machine.name}: {formatting.counted(len(machine.devices), 'device')},"
        f" {formatting.counted(num_links, 'link')}",
        "help": HELP,
        **graph.to_data(picked(graph)),
        **outbox.state(KEY),
    }
    # Streamlit sends `str(data)` without an error where JSON fails; fail here instead.
    json.dumps(data, allow_nan=False)
    _component()(key=KEY, data=data, on_picks_change=_on_pick)


def picked(graph: MachineGraph) -> str:
    """The name of the device or the key of the rail that was picked last; empty for none."""
    what = picked_name()
    return what if what in graph.machine.index or what in graph.rails else ""


def picked_name() -> str:
    """What was picked last, on whatever machine."""
    return str(choices.kept(KEY, ""))


def _on_pick() -> None:
    for pick in outbox.unread(KEY, (Pick,), box="picks"):
        choices.keep(KEY, pick.what)
        outbox.applied(KEY, pick)


@cache
def _component() -> Callable[..., object]:
    html, css = (
        (ASSETS / f"devices/picture.{kind}").read_text("utf-8") for kind in ("html", "css")
    )
    js = "\n".join((ASSETS / name).read_text("utf-8") for name in SCRIPTS)
    return st.components.v2.component("placement_machine", html=html, css=css, js=js)
