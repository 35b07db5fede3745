"""Sliders for the links of a what-if machine: for all of them, and own ones where asked for."""

from collections.abc import Callable, Mapping

import streamlit as st

from pages.ui.session import choices
from pages.ui.what_if import link_groups, slider
from pages.ui.what_if.link_groups import LinkGroup
from placement.core.verb_options import option_of
from placement.costs.what_if import Conditions, Ends
from studio.snapshot import Studio

LINKS = (0.1, 0.15, 0.25, 0.35, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 7.0, 10.0)
OWN_HELP = (
    "Links that are to be faster or slower than the others: all between two kinds of devices, or"
    " single ones. Each of them gets sliders of its own."
)
ASKED = {what: option_of(Conditions, what) for what in ("bandwidth", "latency")}


def show(now: Studio, kept: Conditions, on_change: Callable[[], None]) -> None:
    if len(now.stated_machine.devices) < 2:
        st.caption("A single device has no links.")
        return
    calls = not now.problem.execution.uses_links
    own = own_groups(now)
    which = "all other links" if own else "all links"
    delays = bool(now.problem.costs.latency_s.any())
    for what, asked in ASKED.items():
        label = f"{asked.label} of {which}"
        if calls and what == "bandwidth":
            label = "Speed of moving tensors to and from accelerators"
        if what == "bandwidth" or delays:
            slider.draw(now, what, getattr(kept, what), LINKS, label, asked, on_change)
    if not delays:
        st.caption("Links have no delay in this file.")
    if calls or len(now.stated_machine.links) < 2:
        return
    _menu(now, on_change)
    for links in own:
        for what, asked in ASKED.items():
            if what == "bandwidth" or delays:
                start, label = _start(kept, what, links), f"{asked.label} of {links.name}"
                slider.draw(now, _what(what, links), start, LINKS, label, asked, on_change)


def known(now: Studio, factors: Mapping[Ends, float]) -> dict[Ends, float]:
    """Those factors that the sliders of this machine can show."""
    links = {(link.src, link.dst) for link in now.stated_machine.links}
    return {ends: f for ends, f in factors.items() if ends in links and f in LINKS}


def live(
    now: Studio, kept: Conditions, *, settled: bool = False
) -> tuple[dict[Ends, float], dict[Ends, float]]:
    """Bandwidth and latency of the links with sliders of their own, as these stand now."""
    found: dict[str, dict[Ends, float]] = {what: {} for what in ASKED}
    for links in own_groups(now):
        for what, factors in found.items():
            start = _start(kept, what, links)
            factor = slider.value(now, _what(what, links), start, settled=settled)
            factors |= dict.fromkeys(links.links, factor)
    return found["bandwidth"], found["latency"]


def put(now: Studio, wanted: Conditions) -> None:
    """Set the sliders of single links; from a callback only."""
    own = link_groups.covering(now.stated_machine, wanted)
    choices.put(slider.key(now, "own"), [links.name for links in own])
    for links in own:
        for what in ASKED:
            choices.put(slider.key(now, _what(what, links)), _start(wanted, what, links))


def own_groups(now: Studio) -> list[LinkGroup]:
    """The link groups with sliders of their own at this moment."""
    names = choices.typed(slider.key(now, "own"), _own_names(now))
    return link_groups.chosen(now.stated_machine, names)


def _own_names(now: Studio) -> list[str]:
    """Their names, as they were stored."""
    stored = choices.remembered(slider.name(now), {})
    names = stored.get("own", ()) if isinstance(stored, dict) else ()
    wanted = names if isinstance(names, list) else ()
    return [links.name for links in link_groups.chosen(now.stated_machine, wanted)]


def _menu(now: Studio, on_change: Callable[[], None]) -> None:
    choices.preset(slider.key(now, "own"), _own_names(now))
    st.multiselect(
        "Links with sliders of their own",
        [links.name for links in link_groups.offered(now.stated_machine)],
        key=slider.key(now, "own"),
        on_change=on_change,
        placeholder="none",
        help=OWN_HELP,
    )


def _what(what: str, links: LinkGroup) -> str:
    return f"{what} {links.name}"


def _start(kept: Conditions, what: str, links: LinkGroup) -> float:
    """Where a slider of a link group starts: where the one of all links is, until it is moved."""
    own: Mapping[Ends, float] = getattr(kept, f"link_{what}")
    return own.get(links.links[0], getattr(kept, what))
