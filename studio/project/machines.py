"""Machine files of a project: which one is used, a copy to change, and changed figures of it."""

import re
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path

from placement.core.machine import Device, Link, Machine, machine_from_json, machine_to_text
from placement.files.input import read_value
from studio.project.files import write_text
from studio.project.store import Project

# What the loader takes for this computer, whose devices it would look for anew.
LOCAL = "local"
LOCAL_COPY = "this-computer"


def own_file(project: Project) -> Path | None:
    """The file of the project that its machine is read from; None where it is a preset or local."""
    path = Path(project.machine_spec)
    return path if path.parent == project.folder / "machines" else None


def take_copy(project: Project, machine: Machine) -> str:
    """Use a file with this machine from now on; its name in the project.

    Presets keep their name, and with it the placements that were made on them.
    """
    name = LOCAL_COPY if machine.name == LOCAL else machine.name
    stem = re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_")[:60] or "machine"
    folder, number = project.folder / "machines", 1
    while (folder / (file := f"{stem}{f'-{number}' if number > 1 else ''}.json")).exists():
        number += 1
    write_text(folder / file, machine_to_text(replace(machine, name=name)))
    project.change(machine=file)
    return file


def change(project: Project, edit: Callable[[Machine], Machine]) -> None:
    """Write the project's machine file anew, changed; ValueError where there is no such machine."""
    path = own_file(project)
    if path is None:
        raise ValueError("This machine is no file of the project; make a copy to change it.")
    machine = edit(read_value(path, "machine file", machine_from_json))
    write_text(path, machine_to_text(machine))
    project.change()


def with_device(machine: Machine, device: Device) -> Machine:
    """The machine with other figures for the device of this name."""
    at = machine.index[machine.device(device.name).name]
    devices = (*machine.devices[:at], device, *machine.devices[at + 1 :])
    return replace(machine, devices=devices)


def with_links(machine: Machine, links: Collection[Link]) -> Machine:
    """The machine with other figures for the links of these ends, also of those it left open."""
    changed = {(link.src, link.dst): link for link in links}
    kept = tuple(changed.pop((link.src, link.dst), link) for link in machine.links)
    return replace(machine, links=(*kept, *changed.values()))
