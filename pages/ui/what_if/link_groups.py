"""Which links of a machine may have what-if sliders of their own: kinds of links, and each link."""

from collections.abc import Collection
from dataclasses import dataclass

from placement.core.machine import Machine
from placement.costs.what_if import Conditions, Ends


@dataclass(frozen=True)
class LinkGroup:
    """Links that share sliders; `name` is unique within a machine."""

    name: str
    links: tuple[Ends, ...]


def offered(machine: Machine) -> list[LinkGroup]:
    """Links between devices of two kinds together, where that is not all of them; then each."""
    every = tuple((link.src, link.dst) for link in machine.links)
    kinds: dict[tuple[str, str], list[Ends]] = {}
    for src, dst in every:
        kinds.setdefault((machine.device(src).kind, machine.device(dst).kind), []).append(
            (src, dst)
        )
    alike = [
        LinkGroup(f"every {src} → {dst}", tuple(links))
        for (src, dst), links in kinds.items()
        if 1 < len(links) < len(every)
    ]
    return [*alike, *(LinkGroup(name_of(ends), (ends,)) for ends in every)]


def name_of(ends: Ends) -> str:
    """A link as it is written on the pages."""
    return f"{ends[0]} → {ends[1]}"


def covering(machine: Machine, conditions: Conditions) -> list[LinkGroup]:
    """Groups whose sliders can say what the conditions say of single links."""
    left = set(conditions.own_links)
    found = []
    for group in offered(machine):
        if left & set(group.links) and len({_own(conditions, e) for e in group.links}) == 1:
            found.append(group)
            left -= set(group.links)
    return found


def chosen(machine: Machine, names: Collection[str]) -> list[LinkGroup]:
    """The groups of these names; those of single links come last, because they say it exactly."""
    return [group for group in offered(machine) if group.name in names]


def _own(conditions: Conditions, ends: Ends) -> tuple[float, float]:
    return (
        conditions.link_bandwidth.get(ends, conditions.bandwidth),
        conditions.link_latency.get(ends, conditions.latency),
    )
