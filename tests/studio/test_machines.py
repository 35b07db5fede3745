"""Machine files of a project: copies, and figures that somebody changes."""

import json
from dataclasses import replace

import pytest

from pages.ui.devices import figures
from pages.ui.session.current import snapshot
from placement.core.machine import Device, Link, Machine
from profiling.devices.local import load_machine, local_machine
from studio import editing
from studio.project import machines, pins


def test_a_copy_of_a_preset_is_the_machine_from_then_on_and_can_be_changed(project):
    preset = load_machine("pcie-4gpu")
    project.change(machine="pcie-4gpu")
    assert machines.own_file(project) is None
    with pytest.raises(ValueError, match="make a copy"):
        machines.change(project, lambda machine: machine)
    assert machines.take_copy(project, preset) == "pcie-4gpu.json"
    assert load_machine(project.machine_spec) == preset
    smaller = replace(preset.device("cuda:1"), memory_bytes=2**30)
    machines.change(project, lambda machine: machines.with_device(machine, smaller))
    changed = load_machine(project.machine_spec)
    assert changed.device("cuda:1") == smaller
    assert replace(changed, devices=preset.devices) == preset
    assert machines.take_copy(project, preset) == "pcie-4gpu-2.json"


def test_a_copy_of_this_computer_is_not_taken_for_this_computer(project):
    name = machines.take_copy(project, local_machine(1))
    assert name == "this-computer.json" and machines.own_file(project).name == name
    assert load_machine(project.machine_spec).name == "this-computer"


def test_placements_come_along_to_a_copy_with_the_same_devices(project, monkeypatch):
    """As when a person wants other figures: what was made by hand is there, with its history."""
    project.change(model="onnx-squeezenet", machine="local", lanes=2)
    monkeypatch.setattr(figures, "studio", lambda: snapshot(project))
    monkeypatch.setattr(figures.choices, "say", lambda kind, text: said.append(text))
    said = []
    now = snapshot(project)
    op = now.model.graph.ops[0].name
    other = next(d.name for d in now.machine.devices if d.name != now.placement.device_of[op])
    editing.edit(now, (op,), other)
    before = snapshot(project)
    pins.pin(before, (op,))
    before = snapshot(project)
    figures.take_copy(before)
    after = snapshot(project)
    assert after.machine.name == "this-computer" != before.machine.name
    assert [i.name for i in after.shelf.items] == [i.name for i in before.shelf.items]
    assert after.named == before.named and after.history == before.history
    assert after.placement.device_of == before.placement.device_of
    assert after.placement.machine == after.machine.name and after.pins == before.pins
    assert said[-1].endswith("2 placements came along.")
    # Another copy finds its own.
    figures.take_copy(after)
    assert len(snapshot(project).shelf.items) == 2


def test_links_change_in_their_place_and_those_left_open_are_added():
    before = Machine("m", (Device("a"), Device("b"), Device("c")), (Link("a", "b", 1e-6, 1e9),))
    fast, new = Link("a", "b", 1e-6, 2e9), Link("b", "a", 1e-6, 3e9)
    assert machines.with_links(before, (new, fast)).links == (fast, new)


def test_what_no_machine_can_have_is_refused_and_the_file_stays(project):
    machines.take_copy(project, load_machine("pcie-4gpu"))
    path = machines.own_file(project)
    before = path.read_text()
    link = json.loads(before)["links"][0]
    with pytest.raises(ValueError, match="more than zero"):
        machines.change(
            project,
            lambda machine: machines.with_links(
                machine, (replace(machine.links[0], bytes_per_s=0.0),)
            ),
        )
    assert path.read_text() == before and link["src"] == "cpu:0"
