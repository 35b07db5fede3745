"""What runs before what on a device, changed by hand: a step like any other, or one sentence."""

import itertools
import json

import pytest

from pages.ui.session.current import snapshot
from placement.core.machine import Device, Link, Machine, machine_to_text
from placement.core.placement import Placement
from placement.schedule.order import order_of_ops
from studio import editing
from studio.project import pins
from tests.instances import canonical_file
from tests.towers import save_towers
from tests.workloads import diamond

# In the canonical graph n3 and n4 read n1 alone, and n7 reads n3.
ON_P1 = ("n1", "n3", "n4", "n7")


@pytest.fixture
def now(project, tmp_path):
    """The studio on the canonical graph, with four ops on P1 in a method's result."""
    path = tmp_path / "canonical.json"
    path.write_text(json.dumps(canonical_file()))
    project.change(model_kind="path", model=str(path))
    first = snapshot(project)
    devices = {op.name: "P1" if op.name in ON_P1 else "P2" for op in first.model.graph.ops}
    placed = Placement(first.model.graph.fingerprint, first.machine.name, devices)
    first.shelf.add("heft", placed, "heft")
    first.shelf.choose("heft")
    return lambda: snapshot(project)


def on_p1(now):
    return [op for op in order_of_ops(now().problem, now().placement) if op in ON_P1]


def test_a_new_order_is_a_step_of_a_copy_and_undo_takes_it_back(now):
    before, first = on_p1(now), now().placement
    assert before.index("n7") > before.index("n3")
    swapped = [{"n3": "n4", "n4": "n3"}.get(op, op) for op in before]
    ahead, behind = (op for op in swapped if op in ("n3", "n4"))
    told = editing.reorder(now(), (ahead,), (behind,))
    assert "new placement, 'manual'" in told and now().named.by_hand
    changed = on_p1(now)
    assert changed.index(ahead) < changed.index(behind)
    assert now().history.done[-1].label == f"{ahead} before {behind}"
    assert now().placement.device_of == first.device_of
    editing.undo(now())
    assert on_p1(now) == before and now().placement.order == first.order
    editing.redo(now())
    assert on_p1(now) == changed
    assert editing.reorder(now(), (ahead,), (behind,)) == "" and len(now().history.done) == 1


def test_on_one_device_ops_move_to_where_ranks_would_have_them(project, tmp_path):
    """There an open order is the model's own, not the one that a first move writes down."""
    path = tmp_path / "towers.onnx"
    save_towers(path)
    project.change(machine="laptop-gpu", model_kind="path", model=str(path))
    first = snapshot(project)
    problem = first.problem
    placed = problem.placement_of([0] * problem.num_units)
    first.shelf.add("single", placed, "single")
    first.shelf.choose("single")

    def running():
        segments = snapshot(project).simulated.schedule.segments
        return [kernel for segment in segments for kernel in segment.kernels]

    declared, ranked = running(), order_of_ops(problem, placed)
    sources = problem.sources
    of_op = {problem.graph.ops[i].name: k for k, ops in enumerate(sources) for i in ops}
    kernel_at = {name: at for at, name in enumerate(declared)}
    names = [op.name for op in problem.kernels.ops]
    runs_at = {op: kernel_at[names[of_op[op]]] for op in ranked if op in of_op}
    a, b = next(
        (a, b) for a, b in itertools.pairwise(ranked) if runs_at.get(a, 0) > runs_at.get(b, 9e9)
    )
    editing.reorder(snapshot(project), (a,), (b,))
    after = running()
    assert after.index(names[of_op[a]]) < after.index(names[of_op[b]])
    assert editing.reorder(snapshot(project), (a,), (b,)) == ""


def refused(now, ops, before, match):
    was, steps = now().placement, now().history
    with pytest.raises(ValueError, match=match) as caught:
        editing.reorder(now(), ops, before)
    assert now().placement == was and now().history == steps
    assert str(caught.value).count(".") == str(caught.value).rstrip().endswith(".")


def test_an_op_cannot_run_before_what_it_reads(now):
    refused(now, ("n7",), ("n3",), r"'n7' cannot run before 'n3': it needs what that computes\.$")
    refused(now, ("n3",), (), "'n7' cannot run before 'n3'")


def test_a_pinned_op_stays_where_it_is_in_its_order_too(now):
    pins.pin(now(), ("n4",))
    refused(now, ("n4",), (), "'n4' is pinned")


def test_for_throughput_and_where_a_device_makes_one_call_there_is_no_order(now, tmp_path):
    now().project.change(objective="throughput")
    refused(now, ("n4",), (), "samples overlap")
    path = tmp_path / "calls.json"
    path.write_text(json.dumps(diamond()))
    now().project.change(model=str(path), objective="latency")
    refused(now, (now().model.graph.ops[0].name,), (), "one call")


def test_a_drop_that_no_memory_holds_changes_nothing(project):
    speeds = {"flops_per_s": 1e9, "memory_bytes_per_s": 1e9}
    tiny = Device("cuda:0", "gpu", "null", memory_bytes=1000, **speeds)
    links = (Link("cpu:0", "cuda:0", 1e-5, 1e9), Link("cuda:0", "cpu:0", 1e-5, 1e9))
    folder = project.folder / "machines"
    folder.mkdir()
    machine = Machine("tiny", (Device("cpu:0", **speeds), tiny), links)
    (folder / "tiny.json").write_text(machine_to_text(machine))
    project.change(machine="tiny.json", model="onnx-squeezenet")
    ops = [op.name for op in snapshot(project).model.graph.ops]
    with pytest.raises(ValueError, match=r"^Nothing was changed.*'cuda:0' needs"):
        editing.edit(snapshot(project), ops, "cuda:0", within_rules=True)
    assert "cuda:0" not in snapshot(project).placement.device_of.values()
    editing.edit(snapshot(project), ops, "cuda:0")
    assert set(snapshot(project).placement.device_of.values()) == {"cuda:0"}
