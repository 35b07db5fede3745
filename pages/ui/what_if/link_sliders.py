"""Sliders for the links of a what-if machine: for all of them, and own ones where asked for."""

from collections.abc import Callable, Mapping

import streamlit as st

from pages.ui.session import choices
from pages.ui.what_if import link_groups, slider
from pages.ui.what_if.link_groups import LinkGroup
from placement.costs.what_if import Conditions, Ends
from studio.snapshot import Studio

LINKS = (0.1, 0.15, 0.25, 0.35, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 7.0, 10.0)
BANDWIDTH_HELP = "How many bytes per second a link carries: ×2 sends a tensor in half the time."
DELAY_HELP = "The time before the first byte of a tensor arrives over a link."
OWN_HELP = (
    "Links that are to be faster or slower than the others: all between two kinds of devices, or"
    " single ones. Each of them gets sliders of its own."
)
TITLES = {"bandwidth": ("Bandwidth", BANDWIDTH_HELP), "latency": ("Delay", DELAY_HELP)}


def show(now: Studio, kept: Conditions, on_change: Callable[[], None]) -> None:
    if len(now.machine.devices) < 2:
        st.caption("A single device has no links.")
        return
    calls = not now.problem.execution.uses_links
    own = own_groups(now)
    which = "all other links" if own else "all links"
    delays = bool(now.problem.costs.latency_s.any())
    label = f"Bandwidth of {which}"
    if calls:
        label = "Speed of moving tensors to and from accelerators"
    slider.draw(now, "bandwidth", kept.bandwidth, LINKS, label, BANDWIDTH_HELP, on_change)
    if delays:
        label = f"Delay of {which}"
        slider.draw(now, "latency", kept.latency, LINKS, label, DELAY_HELP, on_change)
    else:
        st.caption("Links have no delay in this file.")
    if calls or len(now.machine.links) < 2:
        return
    _menu(now, on_change)
    for links in own:
        for what, (title, help) in TITLES.items():
            if what == "bandwidth" or delays:
                start, label = _start(kept, what, links), f"{title} of {links.name}"
                slider.draw(now, _what(what, links), start, LINKS, label, help, on_change)


def known(now: Studio, factors: Mapping[Ends, float]) -> dict[Ends, float]:
    """Those factors that the sliders of this machine can show."""
    links = {(link.src, link.dst) for link in now.machine.links}
    return {ends: f for ends, f in factors.items() if ends in links and f in LINKS}


def live(
    now: Studio, kept: Conditions, *, settled: bool = False
) -> tuple[dict[Ends, float], dict[Ends, float]]:
    """Bandwidth and latency of the links with sliders of their own, as these stand now."""
    found: dict[str, dict[Ends, float]] = {what: {} for what in TITLES}
    for links in own_groups(now):
        for what, factors in found.items():
            start = _start(kept, what, links)
            factor = slider.value(now, _what(what, links), start, settled=settled)
            factors |= dict.fromkeys(links.links, factor)
    return found["bandwidth"], found["latency"]


def put(now: Studio, wanted: Conditions) -> None:
    """Set the sliders of single links; from a callback only."""
    own = link_groups.covering(now.machine, wanted)
    choices.put(slider.key(now, "own"), [links.name for links in own])
    for links in own:
        for what in TITLES:
            choices.put(slider.key(now, _what(what, links)), _start(wanted, what, links))


def own_groups(now: Studio) -> list[LinkGroup]:
    """The link groups with sliders of their own at this moment."""
    names = choices.typed(slider.key(now, "own"), _own_names(now))
    return link_groups.chosen(now.machine, names)


def _own_names(now: Studio) -> list[str]:
    """Their names, as they were stored."""
    stored = choices.remembered(slider.name(now), {})
    names = stored.get("own", ()) if isinstance(stored, dict) else ()
    wanted = names if isinstance(names, list) else ()
    return [links.name for links in link_groups.chosen(now.machine, wanted)]


def _menu(now: Studio, on_change: Callable[[], None]) -> None:
    choices.preset(slider.key(now, "own"), _own_names(now))
    st.multiselect(
        "Links with sliders of their own",
        [links.name for links in link_groups.offered(now.machine)],
        key=slider.key(now, "own"),
        on_change=on_change,
        placeholder="none",
        help=OWN_HELP,
    )


def _what(what: str, links: LinkGroup) -> str:
    return f"{what} {links.name}"


def _start(kept: Conditions, what: str, links: LinkGroup) -> float:
    """Where a slider of a link group starts: where the one of all links is, until it is moved."""
    usual, own = (
        (kept.bandwidth, kept.link_bandwidth)
        if what == "bandwidth"
        else (kept.latency, kept.link_latency)
    )
    return own.get(links.links[0], usual)
