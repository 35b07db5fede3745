"""Exercises: what each level's target is, when one is beaten, and lines for the timeline."""

import json

import pytest

from pages.ui.session.current import snapshot
from placement.schedule.order import moved
from placement.schedule.simulated import simulate
from studio import editing, exercise
from studio.exercise import LEVEL, Level, Target
from studio.project.facts import HAND
from tests.instances import canonical_file

# The step of the canonical example on each processor alone, and HEFT's.
ALONE, HEFT = (127.0, 130.0, 143.0), 80.0


@pytest.fixture
def canonical(project):
    """A project of the canonical example, with HEFT's placement on its shelf."""
    project.keep_upload("canonical.json", json.dumps(canonical_file()).encode())
    project.change(model_kind="file", model="canonical.json")
    assert snapshot(project).named.name == "heft"
    return project


def begun(project, level):
    project.change(form={LEVEL: level})
    return snapshot(project)


def test_the_levels_are_a_device_a_quick_method_and_the_best_so_far(canonical):
    for level, by, target_s in (
        (Level.DEVICE, "all on P1", min(ALONE)),
        (Level.QUICK, "heft", HEFT),
        (Level.BEST, "heft", HEFT),
    ):
        found = exercise.of(begun(canonical, level))
        assert (found.by, found.target_s) == (by, target_s)
    now = snapshot(canonical)
    better = {"n5": "P2", "n6": "P3"}
    now.shelf.add("search", moved(now.problem, now.placement, better), "local_search", show=False)
    assert exercise.of(snapshot(canonical)).target_s == 76.0


def test_only_an_own_placement_beats_a_method(canonical):
    now = begun(canonical, Level.DEVICE)
    assert not exercise.of(now).own and not exercise.of(now).is_beaten
    editing.edit(now, ["n5"], "P2")
    found = exercise.of(snapshot(canonical))
    assert found.own and found.is_beaten and found.num_moved == 1
    begun(canonical, Level.QUICK)
    assert not exercise.of(snapshot(canonical)).is_beaten, "one of the two moves is not enough"
    editing.edit(snapshot(canonical), ["n6"], "P3")
    found = exercise.of(snapshot(canonical))
    assert (found.is_beaten, found.value_s, found.num_moved) == (True, 76.0, 2)
    editing.undo(snapshot(canonical))
    assert exercise.of(snapshot(canonical)).num_moved == 1


def test_targets_are_told_with_the_bound_and_only_where_a_step_counts(canonical):
    assert exercise.targets(snapshot(canonical)) == ()
    now = begun(canonical, Level.QUICK)
    assert exercise.targets(now) == (
        Target(80.0, "heft: 80 s"),
        Target(pytest.approx(54.0), "bound: 54 s"),
    )
    canonical.change(objective="throughput")
    assert exercise.targets(snapshot(canonical)) == ()


def test_nothing_is_a_target_without_methods(canonical):
    now = begun(canonical, Level.BEST)
    placement = now.placement
    now.shelf.add("mine", placement, HAND)
    now.shelf.remove("heft")
    assert exercise.of(snapshot(canonical)) is None
    assert simulate(now.problem, placement).value == HEFT
    assert exercise.of(begun(canonical, "nonsense")) is None
