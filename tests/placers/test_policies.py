"""Policies of every learner by gradient: written, read, carried to other problems, refused."""

import functools

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

from placement.learning.checkpoint import BUNDLED, path_of, save_policy
from placement.placers import placer_class
from placement.placers._policies import PolicyFiles
from placement.search.feasible import final_s
from tests.instances import random_problem
from tests.thorough import either
from tests.workloads import problem_from_workload, random_workload

SMALL = {
    "hsdag": {"hidden": 16, "batch": 16},
    "group_pg": {"batch": 16, "hidden": 16},
    "hierarchical": {"batch": 16, "hidden": 16, "placing_hidden": 16},
    "rnn": {"batch": 16, "hidden": 16},
    "placeto": {"batch": 4},
}
MOST_BYTES = 5 * 2**20
# All tests of one learner follow each other, so that mostly one process trains it.
EACH = pytest.mark.parametrize("name", SMALL, scope="module")


def placer(name, **more):
    return placer_class(name)(
        **{**SMALL.get(name, {}), "candidates": "", "max_iterations": 3, **more}
    )


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The file of each learner's policy, trained once."""

    @functools.cache
    def written(name):
        path = tmp_path_factory.mktemp("trained") / f"{name}.safetensors"
        placer(name, save=str(path)).place(random_problem(1, num_ops=12, num_devices=3))
        return path

    return written


def heard(placer, problem):
    """The placement, and the last that was said of the search."""
    reports = []
    placement = placer.place(problem, lambda report: reports.append(report) or True)
    return placement, reports[-1].note


@pytest.fixture
def learned(monkeypatch):
    """What was learned, the newest last."""
    found, keeping = [], PolicyFiles.keeping

    def remembering(files, find):
        def found_by(*given):
            found.append(keeping(files, find)(*given))
            return found[-1]

        return found_by

    monkeypatch.setattr(PolicyFiles, "keeping", remembering)
    return found


@pytest.mark.parametrize("name", SMALL)
def test_a_network_begins_as_the_one_that_was_written(name, tmp_path, monkeypatch, learned):
    """One from memory and one from the file do the same with the same seed."""
    path = tmp_path / "policy.safetensors"
    problem = random_problem(1, num_ops=12, num_devices=3)
    placer(name, save=str(path)).place(problem)
    kept = {key: p.detach().clone() for key, p in learned[-1].carried.parameters.items()}

    def from_memory(files, carried):
        with torch.no_grad():
            for key, parameter in carried.parameters.items():
                parameter.copy_(kept[key])
        return ""

    once = placer(name, policy=str(path), seed=5)
    by_file = [once.place(problem), once.place(problem)]
    with monkeypatch.context() as patched:
        patched.setattr(PolicyFiles, "begin", from_memory)
        by_memory = once.place(problem)
    placer(name, seed=5).place(problem)
    first, again, from_kept, untrained = (found.curve for found in learned[1:])
    assert by_file == [by_memory, by_memory]
    assert first == again == from_kept
    assert first != untrained, "something was learned"


@pytest.mark.thorough
@EACH
def test_a_policy_carries_to_other_graphs_and_machines(name, trained, tmp_path):
    path, other = trained(name), tmp_path / "other.safetensors"
    before = load_file(path)
    for num_ops, num_devices in ((20, 2), (7, 1), (15, 5), *either((), ((12, 3),))):
        problem = random_problem(num_ops, num_ops=num_ops, num_devices=num_devices)
        one = placer(name, policy=str(path), save=str(other))
        placement, note = heard(one, problem)
        assert final_s(problem, placement) < float("inf")
        told = "the policy does not know 2 devices" in note
        assert told == (num_devices == 5), note
        after = load_file(other)
        assert {n: a.shape for n, a in after.items()} == {n: a.shape for n, a in before.items()}
    problem = problem_from_workload(random_workload(2, num_nodes=12), "random")
    placement = placer(name, policy=str(path)).place(problem)
    assert final_s(problem, placement) < float("inf")


@EACH
def test_what_belongs_to_single_units_is_not_written(name, trained):
    written = load_file(trained(name))
    assert all(12 not in array.shape for array in written.values())
    assert ("placing.table" in written) == (name in ("group_pg", "hierarchical"))


@EACH
def test_a_file_of_others_is_one_sentence(name, trained, tmp_path):
    path = tmp_path / "policy.safetensors"
    arrays = load_file(trained(name))
    problem = random_problem(1, num_ops=12, num_devices=3)
    save_policy(path, "other", {}, arrays)
    with pytest.raises(ValueError, match=f"it is for 'other', not '{name}'"):
        placer(name, policy=str(path)).place(problem)
    save_policy(path, name, {"hidden": 9}, arrays)
    with pytest.raises(ValueError, match="its network has the sizes"):
        placer(name, policy=str(path)).place(problem)
    with pytest.raises(ValueError, match="There is no file"):
        placer(name, policy=str(tmp_path / "missing")).place(problem)
    with pytest.raises(ValueError, match="There is no folder"):
        placer(name, save=str(tmp_path / "no" / "where")).place(problem)


@EACH
@pytest.mark.parametrize("number", [np.nan, 3e38])
def test_numbers_that_are_none_or_far_too_large_are_refused(name, number, trained, tmp_path):
    path = tmp_path / "policy.safetensors"
    content = bytearray(trained(name).read_bytes())
    content[-4:] = np.float32(number).tobytes()
    path.write_bytes(content)
    with pytest.raises(ValueError, match="numbers that are none or too large"):
        placer(name, policy=str(path)).place(random_problem(1, num_ops=12, num_devices=3))


@pytest.mark.parametrize("name", [*SMALL, "list_policy"])
def test_a_policy_that_cannot_be_written_in_the_end_costs_no_placement(name, tmp_path):
    """Whatever has become of the disk since the search began."""
    folder = tmp_path / "policies"
    folder.mkdir()
    one = placer(name, save=str(folder / "policy.safetensors"))
    notes = []

    def removed(progress):
        if folder.exists():
            folder.rmdir()
        notes.append(progress.note)
        return True

    problem = random_problem(1, num_ops=12, num_devices=3)
    assert final_s(problem, one.place(problem, removed)) < float("inf")
    assert "the policy was not saved" in notes[-1]


@pytest.mark.parametrize("name", SMALL)
def test_the_preset_of_the_paper_has_no_policies(name):
    problem = random_problem(1, num_ops=4, num_devices=2)
    with pytest.raises(ValueError, match="take the preset 'tuned'"):
        placer_class(name)(preset="paper", policy=BUNDLED).place(problem)


def test_the_bundled_policies_are_there_and_small_together():
    paths = [path_of(BUNDLED, name) for name in SMALL]
    assert sum(path.stat().st_size for path in paths) < MOST_BYTES


@pytest.mark.parametrize("name", SMALL)
def test_the_bundled_policy_places_what_it_never_saw(name):
    problem = random_problem(11, num_ops=14, num_devices=4)
    found = placer_class(name)(policy=BUNDLED, max_iterations=1, candidates="").place(problem)
    assert final_s(problem, found) < float("inf")
