"""Sliders for a what-if machine: speed of devices, bandwidth and delay of links, memory limits."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import streamlit as st

from pages.ui.session import choices
from pages.ui.session.current import studio
from pages.ui.what_if import held_slider as held
from pages.ui.what_if import link_groups, link_sliders, slider
from pages.ui.what_if.slider import key as _key
from pages.ui.what_if.slider import times
from placement.core import formatting
from placement.core.machine import Device
from placement.core.verb_options import option_of
from placement.costs.what_if import UNCHANGED, Conditions, Ends, changes, conditions_from_json
from studio.snapshot import Studio

K = TypeVar("K")
T = TypeVar("T")
SPEEDS = (0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0)
# A slider each up to so many devices, then one for all devices of a kind.
MOST_SLIDERS = 9
# What a memory slider says for "as it is" and for no limit; bytes are never below zero.
AS_IT_IS, NO_LIMIT = -1, -2


@dataclass(frozen=True)
class Group:
    """Devices that share a slider."""

    label: str
    names: tuple[str, ...]


def groups(devices: Sequence[Device]) -> list[Group]:
    """Each device by itself while there are few, else those of the same kind together."""
    if len(devices) <= MOST_SLIDERS:
        return [Group(d.name, (d.name,)) for d in devices]
    alike: dict[tuple[str, str], list[str]] = {}
    for device in devices:
        alike.setdefault((device.kind, device.label), []).append(device.name)
    return [
        Group(f"{names[0]} to {names[-1]}" if len(names) > 1 else names[0], tuple(names))
        for names in alike.values()
    ]


def stored(now: Studio) -> Conditions:
    """The conditions that were last set in this project for these devices."""
    try:
        kept = conditions_from_json(choices.remembered(slider.name(now), {}))
    except ValueError:
        return UNCHANGED
    known = now.stated_machine.index
    limited = {d.name for d in now.stated_machine.devices if d.memory_bytes is not None}
    return Conditions(
        {d: f for d, f in kept.speed.items() if d in known and f in SPEEDS},
        kept.bandwidth if kept.bandwidth in link_sliders.LINKS else 1.0,
        kept.latency if kept.latency in link_sliders.LINKS else 1.0,
        # No limit is as it is where there is none.
        {d: n for d, n in kept.memory_bytes.items() if d in (known if n is not None else limited)},
        link_sliders.known(now, kept.link_bandwidth),
        link_sliders.known(now, kept.link_latency),
    )


def sliders(now: Studio) -> Conditions:
    """Draw the sliders; the conditions that they stand for."""
    kept = stored(now)
    speed, links, memory = st.tabs(["Speed", "Links", "Memory"])
    with speed:
        for group in groups(now.stated_machine.devices):
            asked, what = option_of(Conditions, "speed"), f"speed {group.label}"
            factor, label = kept.speed.get(group.names[0], 1.0), f"{asked.label} of {group.label}"
            slider.draw(now, what, factor, SPEEDS, label, asked, _keep)
    with links:
        link_sliders.show(now, kept, _keep)
    with memory:
        for group in groups(now.stated_machine.devices):
            _limit(now, group, kept)
    held.watch()
    return live(now)


def live(now: Studio, *, settled: bool = False) -> Conditions:
    """What the sliders stand for at this moment, or did when they were last let go."""
    kept = stored(now)
    speed: dict[str, float] = {}
    memory: dict[str, int | None] = {}
    for group in groups(now.stated_machine.devices):
        first = group.names[0]
        usual, limited = kept.speed.get(first, 1.0), _drawn_limit(kept, first)
        factor = slider.value(now, f"speed {group.label}", usual, settled=settled)
        limit = slider.value(now, f"memory {group.label}", limited, settled=settled)
        speed |= dict.fromkeys(group.names, factor)
        if limit != AS_IT_IS:
            chosen = None if limit == NO_LIMIT else int(limit)
            memory |= dict.fromkeys(group.names, chosen)
    bandwidth = slider.value(now, "bandwidth", kept.bandwidth, settled=settled)
    latency = slider.value(now, "latency", kept.latency, settled=settled)
    own = link_sliders.live(now, kept, settled=settled)
    set_now = Conditions(speed, bandwidth, latency, memory, *own)
    return changes(now.stated_machine, set_now)


def put(now: Studio, wanted: Conditions) -> None:
    """Set all sliders; from a callback only.

    They are drawn anew under other keys, because a browser may still send the value of a slider
    that it has just been told to set.
    """
    own = [links.name for links in link_groups.covering(now.stated_machine, wanted)]
    stored = {**wanted.to_json(), "round": slider.round_of(now) + 1, "own": own}
    choices.store(slider.name(now), stored)
    if choices.may_write():
        return
    for group in groups(now.stated_machine.devices):
        first = group.names[0]
        choices.put(_key(now, f"speed {group.label}"), wanted.speed.get(first, 1.0))
        choices.put(_key(now, f"memory {group.label}"), _drawn_limit(wanted, first))
    choices.put(_key(now, "bandwidth"), wanted.bandwidth)
    choices.put(_key(now, "latency"), wanted.latency)
    link_sliders.put(now, wanted)


def in_words(conditions: Conditions) -> str:
    """What differs from the machine as it is, devices of the same factor together."""
    said = [f"{_listed(names)} at {times(f)} speed" for f, names in _by(conditions.speed)]
    other = "other " if conditions.own_links else ""
    if conditions.bandwidth != 1.0:
        said.append(f"{other}links at {times(conditions.bandwidth)} bandwidth")
    if conditions.latency != 1.0:
        said.append(f"{other}links with {times(conditions.latency)} delay")
    for f, links in _by(conditions.link_bandwidth):
        said.append(f"{_listed_links(links)} at {times(f)} bandwidth")
    for f, links in _by(conditions.link_latency):
        said.append(f"{_listed_links(links)} with {times(f)} delay")
    for limit, names in _by(conditions.memory_bytes):
        size = "without a memory limit" if limit is None else f"with {formatting.num_bytes(limit)}"
        said.append(f"{_listed(names)} {size}")
    return ", ".join(said) or "as it is"


def _by(values: Mapping[K, T]) -> list[tuple[T, list[K]]]:
    """Names by their value, in the order in which values come first."""
    names: dict[T, list[K]] = {}
    for name, value in values.items():
        names.setdefault(value, []).append(name)
    return list(names.items())


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) < 4 else f"{names[0]} to {names[-1]}"


def _listed_links(links: Sequence[Ends]) -> str:
    if len(links) > 3:
        return formatting.counted(len(links), "link")
    return ", ".join(map(link_groups.name_of, links))


def _keep() -> None:
    now = studio()
    own = [links.name for links in link_sliders.own_groups(now)]
    stored = {**live(now, settled=True).to_json(), "round": slider.round_of(now), "own": own}
    choices.store(slider.name(now), stored)


def _limit(now: Studio, group: Group, kept: Conditions) -> None:
    device = now.problem.machine.device(group.names[0])
    needed = max(now.simulated.peak_bytes.values(), default=0)
    # What the slider holds stays among its stops when the placement, and so its range, changes.
    held = int(choices.typed(_key(now, f"memory {group.label}"), _drawn_limit(kept, device.name)))
    options = limits(device.memory_bytes, needed, held if held >= 0 else None)
    as_it_is = f"as it is: {formatting.num_bytes(device.memory_bytes)}"

    def shown(limit: float) -> str:
        if limit == AS_IT_IS:
            return as_it_is
        return formatting.num_bytes(None if limit == NO_LIMIT else limit)

    asked = option_of(Conditions, "memory_bytes")
    what, label = f"memory {group.label}", f"{asked.label} of {group.label}"
    slider.draw(now, what, _drawn_limit(kept, device.name), options, label, asked, _keep, shown)


def _drawn_limit(kept: Conditions, name: str) -> int:
    if name not in kept.memory_bytes:
        return AS_IT_IS
    limit = kept.memory_bytes[name]
    return NO_LIMIT if limit is None else limit


def limits(now_bytes: int | None, needed: float, kept: int | None) -> list[int]:
    """Stops of a memory slider, growing: powers of two around what is needed and what there is.

    The limit as it is stands in its place among them; no limit is the last.
    """
    low = max(0, math.floor(math.log2(max(needed, 8.0))) - 4)
    high = math.ceil(math.log2(max(needed, now_bytes or 0, 8.0))) + 2
    sizes = {float(2**power): 2**power for power in range(low, high + 1)}
    if kept is not None:
        sizes[float(kept)] = kept
    if now_bytes is not None:
        sizes[float(now_bytes)] = AS_IT_IS
    stops = [sizes[size] for size in sorted(sizes)]
    return [*stops, NO_LIMIT if now_bytes is not None else AS_IT_IS]
