"""Split files: a workload's placement in the format of its authors, devices as lists of node ids.

    {"cpus": [{"nodes": [ids]}], "fpgas": [{"nodes": [ids]}]}

One list per device in declared order ("fpgas" are the accelerators); other keys are ignored. A
split of a training graph may give the forward part alone: nodes that it leaves out are where the
others of their colour class are.
"""

from collections.abc import Mapping
from typing import Any

from placement.core.graph import Graph
from placement.core.machine import Machine
from placement.core.placement import Placement
from placement.core.problem import Problem

LISTS = ("cpus", "fpgas")


def split_to_json(problem: Problem, placement: Placement) -> dict[str, Any]:
    """The split of a placement; a ValueError where the graph's ops have no ids."""
    number_of = {name: number for number, name in node_names(problem.graph).items()}
    nodes: dict[str, list[int]] = {d.name: [] for d in problem.machine.devices}
    for op in problem.graph.ops:
        nodes[placement.device_of[op.name]].append(number_of[op.name])
    return {
        key: [{"nodes": sorted(nodes[name])} for name in names]
        for key, names in _devices(problem.machine).items()
    }


def split_from_json(problem: Problem, content: Any) -> Placement:
    """The placement that a split file describes; a ValueError says what does not fit."""
    if not isinstance(content, Mapping) or not any(key in content for key in LISTS):
        raise ValueError(
            'A split file needs {"cpus": [{"nodes": [ids]}], "fpgas": [{"nodes": [ids]}]}; this one'
            " has neither list."
        )
    names = node_names(problem.graph)
    device_of: dict[str, str] = {}
    for key, devices in _devices(problem.machine).items():
        lists = _lists(content, key)
        if len(lists) > len(devices):
            raise ValueError(
                f"The split uses {len(lists)} {key}, the workload has {len(devices)}; use a split"
                " for this workload."
            )
        for device, numbers in zip(devices, lists, strict=False):
            for number in numbers:
                name = names.get(number) if type(number) is int else None
                if name is None:
                    raise ValueError(
                        f"The split names node {number!r:.40}, which the workload does not have;"
                        " use a split for this workload."
                    )
                if name in device_of:
                    raise ValueError(f"The split lists node {number} twice; list each node once.")
                device_of[name] = device
    _complete(problem.graph, device_of)
    missing = next((n for n, name in names.items() if name not in device_of), None)
    if missing is not None:
        raise ValueError(
            f"The split gives node {missing} no device, nor any other of its colour class; add it"
            " to one of the lists."
        )
    return Placement(problem.graph.fingerprint, problem.machine.name, device_of)


def _complete(graph: Graph, device_of: dict[str, str]) -> None:
    """Put ops without a device where the first of their colour class is that has one."""
    device_of_group: dict[str, str] = {}
    for op in graph.ops:
        if op.colocation_group is not None and op.name in device_of:
            device_of_group.setdefault(op.colocation_group, device_of[op.name])
    for op in graph.ops:
        group = op.colocation_group
        if op.name not in device_of and group in device_of_group:
            device_of[op.name] = device_of_group[group]


def node_names(graph: Graph) -> dict[int, str]:
    """Op name by node id, in declared order; a ValueError where an op has none."""
    names = {}
    for op in graph.ops:
        number = next((text for key, text in op.attributes if key == "id"), "")
        if not number.lstrip("-").isdecimal():
            raise ValueError(
                f"Op {op.name!r} has no node id, which split files list; only workload files have."
            )
        names[int(number)] = op.name
    return names


def _devices(machine: Machine) -> dict[str, list[str]]:
    """Device names by list of the format."""
    return {key: [d.name for d in machine.devices if d.on_host == (key == "cpus")] for key in LISTS}


def _lists(content: Mapping[str, Any], key: str) -> list[list[Any]]:
    rows = content.get(key, [])
    if not isinstance(rows, list) or not all(
        isinstance(row, Mapping) and isinstance(row.get("nodes"), list) for row in rows
    ):
        raise ValueError(f'The {key} of the split are not a list of {{"nodes": [ids]}}.')
    return [row["nodes"] for row in rows]
