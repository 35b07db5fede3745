"""Order belongs to the placement: edits keep it, and undo brings back all that they changed."""

import json
from dataclasses import replace

import pytest

import placement as pl
from pages.ui.session.current import snapshot
from placement.core.placement import placement_from_json
from placement.schedule.order import kernel_order, moved, order_of_ops
from placement.simulator.call_costs import loads_s
from studio import editing
from studio.project import edits, store
from studio.project.edits import Edit, History, State
from studio.project.facts import Facts
from studio.transfer import archive
from tests.command import answer
from tests.instances import canonical_file, random_problem
from tests.placers.test_placers import PLACERS, placer_class
from tests.thorough import either
from tests.towers import save_towers
from tests.workloads import diamond, problem_from_workload, random_workload


@pytest.fixture(autouse=True, scope="module")
def own_home(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLACEMENT_STUDIO_HOME", str(tmp_path_factory.mktemp("home")))
        yield


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A folder for the files of models: one that is there is opened from what is remembered."""
    return tmp_path_factory.mktemp("models")


def project_of(kind, folder, objective):
    """A new project about the four towers, the canonical graph, or a workload of calls."""
    project = store.create()
    path = folder / f"{kind}{'.onnx' if kind == 'towers' else '.json'}"
    if kind == "towers":
        project.change(machine="laptop-gpu")
    if not path.exists():
        if kind == "towers":
            save_towers(path)
        else:
            path.write_text(json.dumps(canonical_file() if kind == "canonical" else diamond()))
    project.change(model_kind="path", model=str(path), objective=objective)
    return project


def again(project):
    return snapshot(project)


def put(project, placement, made_by):
    now = again(project)
    now.shelf.add(made_by, placement, made_by)
    now.shelf.choose(made_by)
    return again(project)


def running_order(now):
    device = now.problem.kernel_devices(now.placement)
    return kernel_order(now.problem, now.placement, device)


def a_move(now):
    """The first op that may go elsewhere, and where to."""
    problem = now.problem
    for unit in range(problem.num_units // 2, problem.num_units):
        op = problem.graph.ops[problem.ops_of_unit[unit][0]].name
        for d, device in enumerate(problem.machine.devices):
            if problem.allowed[unit, d] and now.placement.device_of[op] != device.name:
                return op, device.name
    raise AssertionError("no op may move")


KINDS = [
    (name, kind, objective)
    for kind, execution in (("towers", "segment"), ("canonical", "op"), ("workload", "call"))
    for name in PLACERS
    for objective in ("latency", "throughput")
    if execution in placer_class(name).executions and objective in placer_class(name).objectives
]


def by_turns(kinds):
    """Every method once, with the kinds of problems and the objectives that it knows by turns.

    An edit sees of a method nothing but its placement, with an order, counts of calls or neither.
    """
    known = {}
    for name, *problem in kinds:
        known.setdefault(name, []).append(problem)
    return [(name, *each[number % len(each)]) for number, (name, each) in enumerate(known.items())]


def test_every_kind_of_problem_and_objective_has_its_turn():
    known, tried = (list(zip(*kinds, strict=True)) for kinds in (KINDS, by_turns(KINDS)))
    for every, some in zip(known, tried, strict=True):
        assert set(some) == set(every)


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "kind", "objective"), either(by_turns(KINDS), KINDS))
def test_a_move_and_its_undo_leave_the_placement_as_it_was(name, kind, objective, models):
    project = project_of(kind, models, objective)
    now = again(project)
    # Any answer will do, so the first is as good as the best.
    limit = 0.05 if placer_class(name).all_cores or placer_class(name).exact else None
    brief = {"max_iterations": 1} if placer_class(name).followed_with else None
    host = next((d.name for d in now.machine.devices if d.on_host), now.machine.devices[0].name)
    settings = {"rules": f"*={host}"} if name == "manual" else brief
    found = pl.place(now.problem, name, settings=settings, time_limit_s=limit).placement
    before = put(project, found, name)
    order, value_s = running_order(before), before.simulated.value
    op, device = a_move(before)
    editing.edit(before, [op], device)

    after = again(project)
    assert after.named.by_hand and after.named.name != name
    assert after.placement.device_of[op] == device, name
    if kind != "workload":
        assert running_order(after) == order, name
    assert after.placement.calls == found.calls, name
    after.simulated  # noqa: B018 - that it can be predicted is part of the promise
    editing.go_to(after, len(after.history.done) - 1)
    undone = again(project)
    assert undone.placement.to_json() == found.to_json(), name
    assert undone.simulated.value == value_s, name
    editing.go_to(undone, len(undone.history.done) + 1)
    assert again(project).placement.to_json() == after.placement.to_json(), name


def test_the_towers_need_the_order_that_their_method_chose(models):
    """The case that the rule is for: without its order the placement takes a fifth longer."""
    project = project_of("towers", models, "latency")
    found = pl.place(again(project).problem, "cpop").placement
    now = put(project, found, "cpop")
    plain = pl.simulate(now.problem, replace(found, order=())).value
    assert now.simulated.value < 0.9 * plain
    op, device = a_move(now)
    editing.edit(now, [op], device)
    stored = json.loads(again(project).shelf.path("manual").read_text())
    assert stored["order"] == list(found.order), "the file of an edited placement carries it"
    editing.edit(again(project), [op], found.device_of[op])
    back = again(project)
    assert back.placement.device_of == found.device_of
    assert back.simulated.value == now.simulated.value


def test_any_step_is_reached_from_any_other_bit_for_bit(models):
    project = project_of("towers", models, "latency")
    problem = again(project).problem
    found = problem.placement_of([1] * problem.num_units)
    now = put(project, found, "single")
    host = now.machine.devices[0].name
    editing.edit(now, [op.name for op in now.model.graph.ops[:3]], host)
    states = [found.to_json(), again(project).placement.to_json()]
    for op in again(project).model.graph.ops[5:8]:
        editing.edit(again(project), [op.name], host)
        states.append(again(project).placement.to_json())
    assert states[1]["order"] and "order" not in states[0]
    for number in (0, 3, 1, 4, 0, 2, 4):
        editing.go_to(again(project), number)
        assert again(project).placement.to_json() == states[number]


@pytest.mark.parametrize("seed", range(20))
def test_a_move_writes_the_order_down_that_was_left_open(seed):
    problem = random_problem(seed, num_ops=15, num_devices=3, with_groups=seed % 2 == 1)
    placement = problem.placement_of([0] * problem.num_units)
    device = problem.kernel_devices(placement)
    open_order = kernel_order(problem, placement, device)
    assert order_of_ops(problem, placement) == tuple(
        problem.kernels.ops[k].name for k in open_order
    )
    unit = problem.ops_of_unit[seed % problem.num_units]
    after = moved(problem, placement, {problem.graph.ops[i].name: "d2" for i in unit})
    assert kernel_order(problem, after, problem.kernel_devices(after)) == open_order


def test_replicas_stay_as_long_as_devices_are_idle():
    """Of four accelerators two share a stage; what moves to an idle one may take its place."""
    content = random_workload(4, num_nodes=8)
    problem = replace(problem_from_workload(content, "random"), objective="throughput")
    accelerators = [d.name for d in problem.machine.devices if not d.on_host]
    assert len(accelerators) >= 2
    ops = [op.name for op in problem.graph.ops]
    whole = problem.placement_of([problem.machine.index[accelerators[0]]] * problem.num_units)
    shared = replace(whole, replicas={accelerators[0]: len(accelerators)})
    unit = problem.ops_of_unit[0]
    after = moved(problem, shared, {ops[i]: accelerators[1] for i in unit})
    left = len(accelerators) - 1
    assert after.replicas == ({accelerators[0]: left} if left > 1 else None)
    loads_s(problem, problem.kernel_devices(after), after.replicas)
    host = next(d.name for d in problem.machine.devices if d.on_host)
    assert moved(problem, shared, {ops[i]: host for i in unit}).replicas == shared.replicas


def test_steps_of_earlier_versions_say_nothing_of_order():
    old = {"label": "op to cpu", "moves": [["gpu", "cpu", ["a"]]], "pins": []}
    history = edits.history_from_json({"done": [old], "undone": []})
    assert history.done == (Edit("op to cpu", (("a", "gpu", "cpu"),)),)
    state = State({"a": "cpu"}, {}, ("a",), None)
    assert edits.travel(state, history, 0)[0] == State({"a": "gpu"}, {}, ("a",), None)


def test_a_project_of_an_earlier_version_is_edited_and_undone(models):
    """It has steps without order, of an edit that had dropped its method's order."""
    project = project_of("towers", models, "latency")
    found = pl.place(again(project).problem, "cpop").placement
    now = put(project, found, "cpop")
    op, device = a_move(now)
    old = replace(found, device_of={**found.device_of, op: device}, order=())
    now.shelf.add("manual", old, "hand", Facts(start="cpop"))
    step = {"label": f"{op} to {device}", "moves": [[found.device_of[op], device, [op]]]}
    history = json.dumps({"done": [{**step, "pins": []}], "undone": []})
    (now.shelf.folder / "manual.history").write_text(history)
    other = again(project).model.graph.ops[0].name
    target = next(d.name for d in now.machine.devices if d.name != old.device_of[other])
    editing.edit(again(project), [other], target)
    assert len(again(project).history.done) == 2 and again(project).placement.order
    editing.go_to(again(project), len(again(project).history.done) - 1)
    assert again(project).placement == old
    editing.go_to(again(project), len(again(project).history.done) - 1)
    assert again(project).placement == replace(found, order=())


def test_a_project_file_carries_order_and_steps(models):
    project = project_of("towers", models, "latency")
    found = pl.place(again(project).problem, "cpop").placement
    now = put(project, found, "cpop")
    editing.edit(now, [a_move(now)[0]], a_move(now)[1])
    whole = replace(again(project).placement, device_of=found.device_of, order=())
    put(project, whole, "single")
    editing.edit(again(project), [a_move(now)[0]], a_move(now)[1])
    edited = again(project)
    assert edited.history.done[-1].order == ((), edited.placement.order)
    there = again(archive.unpack(archive.pack(project), lambda path, dims: edited.model))
    assert there.placement == edited.placement and there.history == edited.history
    editing.go_to(there, len(there.history.done) - 1)
    assert again(there.project).placement == whole


def test_a_step_with_order_and_replicas_survives_json():
    step = Edit("x", (("a", "g", "c"),), (), ((), ("a", "b")), ({"g": 2}, None))
    history = History((step,), ())
    assert edits.history_from_json(history.to_json()) == history
    assert edits.fits(step, {"a", "b"}, {"g", "c"})
    assert not edits.fits(step, {"a"}, {"g", "c"}), "it orders an op that is not here"
    assert not edits.fits(replace(step, order=((), ("a", "a"))), {"a", "b"}, None)
    assert not edits.fits(replace(step, replicas=({"h": 2}, None)), {"a", "b"}, {"g", "c"})


def test_placing_a_selection_keeps_the_order_of_all(tmp_path):
    save_towers(tmp_path / "towers.onnx")
    where = [str(tmp_path / "towers.onnx"), "--machine", "laptop-gpu", "--analytic"]
    kept, found = tmp_path / "cpop.json", tmp_path / "found.json"
    answer("place", *where, "--placer", "cpop", "--out", str(kept))
    before = placement_from_json(json.loads(kept.read_text()))
    some = list(before.device_of)[8:14]
    (tmp_path / "ops.json").write_text(json.dumps(some))
    held = ["--keep", str(kept), "--move", str(tmp_path / "ops.json"), "--mend"]
    answer("place", *where, "--placer", "heft", *held, "--out", str(found))
    after = placement_from_json(json.loads(found.read_text()))
    assert before.order and after.order == before.order
    others = set(before.device_of) - set(some)
    assert all(after.device_of[op] == before.device_of[op] for op in others)
