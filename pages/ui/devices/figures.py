"""Figures of the device or the links that were picked in the picture, to read and to change."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import streamlit as st

from pages.ui.session import choices
from pages.ui.session.current import carry_out, studio
from pages.ui.shell import glossary
from placement.core import formatting
from placement.core.machine import Device, Link, Machine, Rate
from placement.drawing.machine_graph import MachineGraph, Rail, memory_in_words
from studio.project import machines
from studio.snapshot import Studio

GIB, TERA, GIGA, MICRO = 2.0**30, 1e12, 1e9, 1e-6
SPEEDS = (
    ("TFLOP per second in float32", "flops_per_s", TERA),
    ("GB per second from its memory", "memory_bytes_per_s", GIGA),
)
LINK_FIGURES = (("GB per second", "bytes_per_s", GIGA), ("Delay in µs", "latency_s", MICRO))
NO_LIMIT = "Empty where there is no limit to respect."
COPY = "Make a copy to change"
WHY_COPY = (
    "Machines that come with the studio, and this computer, keep their figures. Make a copy to"
    " change them."
)
MEASURED_LINKS = (
    "The links were measured. To count with figures of your own, forget the measurements below."
)
MEASURED_DEVICE = "Times were measured; arithmetic and bandwidth only serve estimates."
PICK = "Pick a device or a link in the picture to see its figures."


Change = Callable[[Machine, float | None], Machine]


@dataclass(frozen=True)
class Figure:
    """A number as a person reads it, in a `unit`; `change` makes it another one, None for none.

    `value` is None where there is no limit, or where the links that it is of differ.
    """

    label: str
    value: float | None
    unit: float
    change: Change
    placeholder: str | None = None
    help: str | None = None


def show(now: Studio, graph: MachineGraph, what: str) -> None:
    """What was picked, with its figures as fields where the machine is a file of the project."""
    machine, is_file = graph.machine, machines.own_file(now.project) is not None
    carried = now.model.problem is not None
    if not is_file and not carried:
        st.caption(WHY_COPY)
        st.button(COPY, on_click=carry_out, args=(take_copy,), disabled=not choices.may_write())
    if not what:
        st.caption(PICK)
        return
    measured = now.profile is not None
    locked = not is_file or carried or not choices.may_write()
    if what in graph.rails:
        rail = graph.rails[what]
        links = _which(rail)
        for figure in _of_links(links):
            _field(now, what, figure, locked=locked or measured)
        if measured:
            st.caption(MEASURED_LINKS)
        return
    device = machine.device(what)
    st.markdown(f"**{glossary.plain(device.name)}**: {glossary.plain(device.label or device.kind)}")
    if device.memory or device.streams_from:
        st.caption(glossary.plain(f"Memory: {memory_in_words(device)}."))
    if device.streams_from:
        return
    for figure in _of_device(device):
        _field(now, what, figure, locked=locked)
    if measured:
        st.caption(MEASURED_DEVICE)


def take_copy(now: Studio) -> None:
    name = machines.take_copy(now.project, now.stated_machine)
    # Its devices are the same, so what was placed on them stays at hand.
    copied = studio()
    number = copied.shelf.take_from(now.shelf, copied.machine.name)
    along = f" {formatting.counted(number, 'placement')} came along." if number else ""
    choices.say("success", f"The machine is the file {name} of this project from now on.{along}")


def _which(rail: Rail) -> Sequence[Link]:
    """All links of a rail, or the one that is chosen."""
    if len(rail.links) == 1:
        only = rail.links[0]
        st.markdown(f"**{glossary.plain(f'{only.src} → {only.dst}')}**")
        return rail.links
    chosen = st.selectbox(
        "Links",
        range(-1, len(rail.links)),
        format_func=lambda i: _name(rail, i),
        key=choices.own(f"figures-links-{rail.key}"),
    )
    return rail.links if chosen < 0 else rail.links[chosen : chosen + 1]


def _name(rail: Rail, number: int) -> str:
    if number < 0:
        return f"All {len(rail.links)} of this line"
    return f"{rail.links[number].src} → {rail.links[number].dst}"


def _of_device(device: Device) -> list[Figure]:
    name, found = device.name, []
    if not device.memory:
        change: Change = partial(_with_memory, name)
        limit = Figure("Memory in GiB", device.memory_bytes, GIB, change, "no limit", NO_LIMIT)
        found.append(limit)
    for label, field, unit in SPEEDS:
        value, change = getattr(device, field), partial(_with_speed, name, field)
        found.append(Figure(label, value or None, unit, change, "not stated"))
    for rate in device.rates:
        change = partial(_with_rate, name, rate.dtype)
        label = f"TFLOP per second in {rate.dtype}"
        found.append(Figure(label, rate.flops_per_s, TERA, change, "as in float32"))
    return found


def _of_links(links: Sequence[Link]) -> list[Figure]:
    found = []
    for label, field, unit in LINK_FIGURES:
        values = {getattr(link, field) for link in links}
        value = values.pop() if len(values) == 1 else None
        change = partial(_with_links, links, field)
        found.append(Figure(label, value, unit, change, "they differ"))
    return found


def _with_memory(name: str, machine: Machine, amount: float | None) -> Machine:
    limit = None if amount is None else round(amount)
    return machines.with_device(machine, replace(machine.device(name), memory_bytes=limit))


def _with_speed(name: str, field: str, machine: Machine, amount: float | None) -> Machine:
    if not amount:
        raise ValueError(f"Estimates need this figure of {name}; use more than zero.")
    figures: dict[str, Any] = {field: amount}
    return machines.with_device(machine, replace(machine.device(name), **figures))


def _with_rate(name: str, dtype: str, machine: Machine, amount: float | None) -> Machine:
    device = machine.device(name)
    others = tuple(rate for rate in device.rates if rate.dtype != dtype)
    if amount is None:
        return machines.with_device(machine, replace(device, rates=others))
    rates = tuple(Rate(dtype, amount) if r.dtype == dtype else r for r in device.rates)
    return machines.with_device(machine, replace(device, rates=rates))


def _with_links(
    links: Sequence[Link], field: str, machine: Machine, amount: float | None
) -> Machine:
    """Links as the file states them, or as they are shown where it leaves them open."""
    if amount is None:
        return machine
    stated = {(link.src, link.dst): link for link in machine.links}
    figures: dict[str, Any] = {field: amount}
    changed = [replace(stated.get((link.src, link.dst), link), **figures) for link in links]
    return machines.with_links(machine, changed)


def _field(now: Studio, what: str, figure: Figure, *, locked: bool) -> None:
    """A number of which every change is written to the machine's file at once."""
    drawn = None if figure.value is None else float(f"{figure.value / figure.unit:.6g}")
    key = f"figure-{now.project.id}-{what}-{figure.label}-{drawn}"
    st.number_input(
        figure.label,
        value=drawn,
        format="%g",
        key=key,
        placeholder=figure.placeholder,
        help=figure.help,
        disabled=locked,
        on_change=_change,
        args=(key, drawn, figure),
    )


def _change(key: str, drawn: float | None, figure: Figure) -> None:
    typed = choices.typed(key, drawn)
    if typed != drawn:
        carry_out(partial(_write, key=key, drawn=drawn, typed=typed, figure=figure))


def _write(
    now: Studio, *, key: str, drawn: float | None, typed: float | None, figure: Figure
) -> None:
    amount = None if typed is None else typed * figure.unit
    try:
        machines.change(now.project, lambda machine: figure.change(machine, amount))
    except ValueError as error:
        choices.say("warning", str(error))
        choices.put(key, drawn)
