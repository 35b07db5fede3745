"""Pins of a project: kept on disk, shared by its placements, undone like any other step."""

import json

import pytest

from pages.ui.session import cache
from pages.ui.session.current import snapshot
from placement.constraints import pins as pinning
from placement.core.placement import Placement
from placement.drawing.names import names_of
from studio import editing
from studio.project import pins
from studio.project.edits import Edit, History
from tests.pages.problems import diamond
from tests.thorough import either


def now(project):
    return snapshot(project)


def ops_on(project, device, number):
    placed = now(project).placement.device_of
    return [op for op, d in placed.items() if d == device][:number]


def other(project, device):
    return next(d.name for d in now(project).machine.devices if d.name != device)


def test_pins_are_on_disk_and_undone_without_a_copy_of_the_placement(project):
    made_by = now(project).named.made_by
    first = next(iter(now(project).placement.device_of))
    device = now(project).placement.device_of[first]
    assert now(project).pins == {}
    assert pins.pin(now(project), [first]) == ""
    assert now(project).pins == {first: device}
    content = json.loads((now(project).shelf.folder / "pins.json").read_text())
    assert content == {first: device}
    assert now(project).named.made_by == made_by
    before = now(project).placement
    editing.go_to(now(project), len(now(project).history.done) - 1)
    assert now(project).pins == {}
    editing.go_to(now(project), len(now(project).history.done) + 1)
    assert now(project).pins == {first: device}
    pins.unpin(now(project), [first])
    assert now(project).pins == {} and now(project).placement == before


def test_the_list_of_changes_calls_an_op_as_the_picture_does(project):
    names = names_of(now(project).model.graph)
    op = next(op for op in now(project).placement.device_of if names.is_made(op))
    elsewhere = other(project, now(project).placement.device_of[op])
    editing.edit(now(project), [op], elsewhere)
    pins.pin(now(project), [op])
    pins.unpin(now(project), [op])
    known = names.of(op)
    said = [editing.label(now(project), step) for step in now(project).history.done]
    assert said == [f"{known} to {elsewhere}", f"pin {known}", f"unpin {known}"]


def test_a_pinned_op_does_not_move_and_the_reason_says_what_to_do(project):
    first = next(iter(now(project).placement.device_of))
    elsewhere = other(project, now(project).placement.device_of[first])
    pins.pin(now(project), [first])
    with pytest.raises(ValueError, match="is pinned and stayed; to move it, select it and unpin"):
        editing.edit(now(project), [first], elsewhere)
    pins.unpin(now(project), [first])
    editing.edit(now(project), [first], elsewhere)
    assert now(project).placement.device_of[first] == elsewhere
    assert [e.label for e in now(project).history.done] == [
        f"pin {first}",
        f"unpin {first}",
        f"{first} to {elsewhere}",
    ]


def test_another_placement_shares_the_pins_and_tells_what_strays(project):
    first = next(iter(now(project).placement.device_of))
    device = now(project).placement.device_of[first]
    editing.edit(now(project), [first], other(project, device))
    pins.pin(now(project), [first])
    now(project).shelf.choose(now(project).shelf.items[0].name)
    assert now(project).placement.device_of[first] == device
    assert pins.strays(now(project)) == (first,)
    pins.return_strays(now(project))
    assert pins.strays(now(project)) == () and now(project).named.by_hand
    editing.go_to(now(project), len(now(project).history.done) - 1)
    assert pins.strays(now(project)) == (first,)


def test_pins_of_ops_that_turn_out_to_move_together_are_made_one():
    problem = diamond()
    given = {
        "a_conv": "cpu:1",
        "b_conv": "cpu:1",
        "b_relu": "cpu:0",
        "gone": "cpu:0",
        "c_conv": "x",
    }
    assert pinning.whole(problem, given) == {
        "a_conv": "cpu:1",
        "a_relu": "cpu:1",
        "b_conv": "cpu:0",
        "b_relu": "cpu:0",
    }


def test_all_but_some_ops_are_held_where_a_placement_has_them():
    problem = diamond()
    split = {op.name: "cpu:0" for op in problem.graph.ops} | {"d_conv": "cpu:1", "d_relu": "cpu:1"}
    placed = Placement(problem.graph.fingerprint, problem.machine.name, split)
    assert pinning.all_but(problem, placed, ["b_relu", "nothing"]) == {
        op: split[op] for op in split if op not in ("b_conv", "b_relu")
    }


@pytest.mark.parametrize("content", ["[", "[]", '{"a": 3}'])
def test_a_damaged_pins_file_holds_nothing(project, content):
    folder = now(project).shelf.folder
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pins.json").write_text(content)
    assert now(project).pins == {}


@pytest.mark.thorough
def test_many_steps_of_all_kinds_go_back_and_forth_and_are_on_disk(project):
    num_steps = either(24, 60)
    ops = list(now(project).placement.device_of)
    devices = [d.name for d in now(project).machine.devices]
    editing.edit(now(project), ops[-1:], other(project, now(project).placement.device_of[ops[-1]]))
    states = [now(project).state]
    for number in range(num_steps):
        op = ops[number]
        if number % 3 == 0:
            pins.pin(now(project), [op])
        elif number % 3 == 1:
            editing.edit(now(project), [op], other(project, now(project).placement.device_of[op]))
        else:
            pins.unpin(now(project), [ops[number - 2]])
        states.append(now(project).state)
    assert len(now(project).history.done) == num_steps + 1 and len(devices) == 2
    for expected in reversed(states[:-1]):
        editing.go_to(now(project), len(now(project).history.done) - 1)
        assert now(project).state == expected
    for expected in states[1:]:
        editing.go_to(now(project), len(now(project).history.done) + 1)
        assert now(project).state == expected
    third = num_steps // 3
    editing.go_to(now(project), third + 1)
    undone = now(project).history.undone
    assert now(project).state == states[third] and len(undone) == num_steps - third


def test_hints_leave_pinned_ops_where_they_are(project):
    project.change(model="onnx-squeezenet")
    editing.edit(now(project), list(now(project).placement.device_of), "null:0")
    found = cache.hints(now(project).pinned_problem, now(project).placement)
    assert found
    pins.pin(now(project), found[0].ops)
    later = cache.hints(now(project).pinned_problem, now(project).placement)
    assert all(not set(found[0].ops) & set(hint.ops) for hint in later)


def test_a_step_of_other_ops_or_devices_is_refused(project):
    op, device = next(iter(now(project).placement.device_of.items()))
    name = now(project).shelf.add("mine", now(project).placement, "hand")
    before = now(project).placement
    for change in (("zzz", device, device), (op, "", device), (op, "mars", device)):
        now(project).shelf.keep_history(name, History((Edit("odd", (change,)),)))
        with pytest.raises(ValueError, match="'odd'"):
            editing.go_to(now(project), 0)
        assert now(project).placement == before and len(now(project).history.done) == 1
