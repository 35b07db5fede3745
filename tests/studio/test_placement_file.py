"""Placements from files: what was exported comes back, and what does not fit is refused by name."""

import dataclasses
import json
import random
from pathlib import Path

import numpy as np
import pytest

import placement as pl
from pages.ui.session.current import snapshot
from placement.core.machine import machine_to_text
from placement.core.placement import placement_to_text
from placement.formats.split_json import split_from_json, split_to_json
from studio import editing, standings
from studio.project import edits, pins
from studio.project.facts import FILE, HAND
from studio.project.placements import LISTS
from studio.transfer import placement_file
from studio.transfer.archive import pack, unpack
from studio.transfer.placement_file import name_of, open_file, placement_in
from tests.fuzz import mutation
from tests.fuzz.worker import LONGEST_SENTENCE
from tests.instances import canonical_file
from tests.thorough import either
from tests.workloads import diamond, shared_file

HOSTILE = (
    "../../../etc/passwd.json",
    "..\\..\\windows\\system.json",
    "/root/.ssh/keys.json",
    "C:evil.json",
    ".json",
    "..",
    "",
    "<img src=x onerror=alert(1)>.json",
    "**[a](javascript:alert(1))** $x^2$ :red[b].json",
    "a\nb\u202ec\x00.json",
    "\ud800.json",
    "é" * 300 + ".json",
    *LISTS,
    "INDEX.JSON",
    "heft.json",
)


def of_file(project, content, name="model.json", **settings):
    """The project with a model of its own."""
    project.keep_upload(name, json.dumps(content).encode())
    project.change(model_kind="file", model=name, **settings)
    return snapshot(project)


@pytest.fixture
def canonical(project):
    return of_file(project, canonical_file())


@pytest.fixture
def workload(project):
    return of_file(project, diamond())


def again(now):
    return snapshot(now.project)


def exported(now, tmp_path, placement):
    path = tmp_path / "placed.json"
    pl.export(now.model, now.problem, placement, "json", path)
    return path.read_bytes()


def changed(placement, **fields):
    """A placement's file with other fields."""
    return json.dumps({**placement.to_json(), **fields}).encode()


def refused(now, content, *said):
    """A refusal is one short sentence, and leaves the shelf as it was."""
    before = now.shelf.items, now.shelf.screen
    with pytest.raises(ValueError) as error:
        open_file(now, "a.json", content)
    text = str(error.value)
    assert all(part in text for part in said), text
    assert text.isprintable() and len(text) <= LONGEST_SENTENCE, text
    assert (again(now).shelf.items, again(now).shelf.screen) == before


@pytest.mark.parametrize("placer", ["heft", "round_robin", "single"])
def test_what_is_exported_is_opened_again_as_it_was(canonical, tmp_path, placer):
    placed = pl.place(canonical.problem, placer).placement
    told = open_file(canonical, "mine.json", exported(canonical, tmp_path, placed))
    now = again(canonical)
    assert (now.named.name, now.named.made_by) == ("mine", FILE)
    assert now.placement == placed == now.shelf.read("mine")
    value_s = pl.simulate(now.problem, placed).value
    assert now.simulated.value == value_s and f"{value_s:g}" in told
    assert "another device" not in told and "not allowed" not in told


def test_it_stands_beside_what_was_there_and_editing_it_starts_a_copy(canonical):
    first, name = canonical.placement, canonical.named.name
    content = changed(editing.all_on(canonical, "P2"))
    open_file(canonical, f"{name}.json", content)
    now = again(canonical)
    assert [i.name for i in now.shelf.items] == [name, f"{name} 2"]
    assert now.named.name == f"{name} 2" and now.shelf.read(name) == first
    assert standings.standings(now)[-1].notes == ("from a file",)
    given = now.placement
    editing.edit(now, ["n1"], "P3")
    now = again(now)
    assert now.named.by_hand and now.shelf.read(f"{name} 2") == given
    now.shelf.remove(f"{name} 2")
    assert name in [i.name for i in again(now).shelf.items]


def test_the_same_file_opened_twice_is_there_once(canonical):
    content = changed(editing.all_on(canonical, "P2"))
    for _ in range(2):
        open_file(canonical, "mine.json", content)
        assert again(canonical).named.name == "mine"
        again(canonical).shelf.choose("heft")
    assert [i.name for i in again(canonical).shelf.items] == ["heft", "mine"]
    open_file(canonical, "mine.json", changed(editing.all_on(canonical, "P3")))
    assert [i.name for i in again(canonical).shelf.items] == ["heft", "mine", "mine 2"]
    # Neither is one whose name was taken there again and again.
    for _ in range(2):
        open_file(canonical, "mine.json", changed(editing.all_on(canonical, "P3")))
        open_file(canonical, "heft.json", changed(editing.all_on(canonical, "P1")))
    assert [i.name for i in again(canonical).shelf.items] == ["heft", "mine", "mine 2", "heft 2"]


def test_opening_is_a_step_that_undo_takes_back_and_redo_makes_again(canonical, tmp_path):
    """A walk over two placements and a copy: every state on it is reached again, both ways."""
    project = canonical.project

    def seen():
        now = again(canonical)
        return now.named.name, now.placement, len(now.history.done)

    def go(change):
        change(snapshot(project))
        return seen()

    canonical.shelf.choose(canonical.shelf.add("own", canonical.placement, HAND))
    states = [seen()]
    states.append(go(lambda now: editing.edit(now, ["n1"], "P2")))
    content = changed(editing.all_on(canonical, "P2"))
    states.append(go(lambda now: open_file(now, "mine.json", content)))
    states.append(go(lambda now: editing.edit(now, ["n2"], "P1")))
    assert [name for name, _, _ in states] == ["own", "own", "mine", "manual"]
    # What an edit makes of a file's placement is a copy, and undone that copy is as the file.
    of_file = ("manual", *states[2][1:])
    back = [of_file, states[1], states[0]]
    assert [go(editing.undo) for _ in back] == back
    forth = [states[1], of_file, states[3]]
    assert [go(editing.redo) for _ in forth] == forth
    assert go(editing.redo) == states[3]
    assert [i.name for i in again(canonical).shelf.items][-3:] == ["own", "mine", "manual"]
    # A list of changes goes no further than to what is beside it.
    assert again(canonical).history.reach == (1, 2)
    assert go(lambda now: editing.go_to(now, 0)) == states[1]
    assert again(canonical).history.reach == (0, 1)
    assert go(lambda now: editing.go_to(now, 2)) == of_file
    # A project file takes it along.
    copied = unpack(pack(project), lambda source, dims: None)
    assert snapshot(copied).history == again(canonical).history


def test_what_was_opened_is_forgotten_by_a_new_edit_and_missed_where_it_is_deleted(canonical):
    def opened():
        open_file(again(canonical), "mine.json", changed(editing.all_on(canonical, "P2")))
        return again(canonical)

    first = canonical.named.name
    for _ in range(2):
        editing.undo(opened())
        assert again(canonical).named.name == first
        assert len(again(canonical).history.undone) == 1
    again(canonical).shelf.remove("mine")
    with pytest.raises(ValueError, match=r"'mine' was deleted.* bring it back"):
        editing.redo(again(canonical))
    assert again(canonical).named.name == first
    # A project file takes nothing along that was deleted, so there is nothing to bring back.
    copied = unpack(pack(canonical.project), lambda source, dims: None)
    with pytest.raises(ValueError, match=r"deleted for good.* choose another"):
        editing.redo(snapshot(copied))
    again(canonical).shelf.restore(again(canonical).shelf.removed[-1].file)
    editing.undo(again(canonical))
    editing.edit(again(canonical), ["n1"], "P2")
    assert not again(canonical).history.undone
    # What is on the screen already is not opened in its own place.
    before = opened().history
    assert opened().history == before


def test_a_jump_to_what_was_deleted_undoes_and_redoes_nothing(canonical):
    def state():
        now = again(canonical)
        return now.named.name, now.state, now.history

    content = changed(editing.all_on(canonical, "P2"))
    canonical.shelf.choose(canonical.shelf.add("own", canonical.placement, HAND))
    editing.edit(again(canonical), ["n1"], "P2")
    open_file(again(canonical), "mine.json", content)
    for op in ("n1", "n2"):
        pins.pin(again(canonical), [op])
    again(canonical).shelf.remove("own")
    again(canonical).shelf.choose("mine")
    before = state()
    with pytest.raises(ValueError, match="nothing was undone or redone"):
        editing.go_to(again(canonical), 0)
    assert state() == before
    # The same the other way, with a step to redo before what was opened.
    again(canonical).shelf.restore(again(canonical).shelf.removed[-1].file)
    again(canonical).shelf.choose("mine")
    for _ in range(4):
        editing.undo(again(canonical))
    again(canonical).shelf.remove("mine")
    again(canonical).shelf.choose("own")
    before = state()
    assert (len(before[2].done), len(before[2].undone)) == (0, 2)
    with pytest.raises(ValueError, match="nothing was undone or redone"):
        editing.go_to(again(canonical), 2)
    assert state() == before


def test_what_was_done_to_a_placement_can_be_undone_after_its_file_is_opened_again(canonical):
    first = canonical.named.name
    content = changed(editing.all_on(canonical, "P2"))
    open_file(canonical, "mine.json", content)
    pins.pin(again(canonical), ["n1"])
    steps = again(canonical).history
    for _ in range(2):
        again(canonical).shelf.choose(first)
        open_file(again(canonical), "mine.json", content)
        assert again(canonical).history == steps
    editing.undo(again(canonical))
    assert (again(canonical).named.name, again(canonical).pins) == ("mine", {})
    editing.undo(again(canonical))
    assert again(canonical).named.name == first
    # Opened in the place of another it leads back to that one.
    again(canonical).shelf.choose(again(canonical).shelf.add("own", canonical.placement, HAND))
    open_file(again(canonical), "mine.json", content)
    editing.undo(again(canonical))
    assert again(canonical).named.name == "own"


def test_opened_in_the_place_of_another_it_buries_no_step(canonical):
    """What was done to a placement is undone before its opening, whichever came between."""

    def seen():
        now = again(canonical)
        return now.named.name, sorted(now.pins), len(now.history.done)

    first = canonical.named.name
    content = changed(editing.all_on(canonical, "P2"))
    open_file(canonical, "mine.json", content)
    for op in ("n1", "n2"):
        pins.pin(again(canonical), [op])
    states = [seen()]
    again(canonical).shelf.choose(again(canonical).shelf.add("own", canonical.placement, HAND))
    for _ in range(2):
        open_file(again(canonical), "mine.json", content)
        assert seen() == states[0]
    back = [("mine", ["n1"], 2), ("mine", [], 1), ("own", [], 0)]
    for state in back:
        editing.undo(again(canonical))
        assert seen() == state
    for state in (*back[1::-1], states[0]):
        editing.redo(again(canonical))
        assert seen() == state
    # What redo has opened leads back to where redo was pressed.
    again(canonical).shelf.choose(first)
    open_file(again(canonical), "mine.json", content)
    editing.go_to(again(canonical), 1)
    editing.undo(again(canonical))
    assert seen()[0] == first
    again(canonical).shelf.choose("own")
    open_file(again(canonical), "mine.json", content)
    again(canonical).shelf.choose(first)
    editing.redo(again(canonical))
    assert seen() == ("mine", [], 1)
    editing.undo(again(canonical))
    assert seen()[0] == first


def test_a_history_of_before_gives_back_the_steps_that_an_opening_had_buried():
    pin, opened = edits.Edit("n1 pinned", pins=(("n1", "", "P1"),)), edits.Edit("mine opened")
    old, new = (dataclasses.replace(opened, opened=(former, "mine")) for former in ("a", "b"))
    assert edits.History((old, pin, new, pin), (pin,)).opened_by(old).done == (old, pin, pin)
    for num_undone in (0, 3, edits.MAX_STEPS):
        full = edits.History((pin,) * (edits.MAX_STEPS - num_undone), (pin,) * num_undone)
        history = full.opened_by(new)
        assert history.done[0] == new
        assert len(history.done) + len(history.undone) == edits.MAX_STEPS


@pytest.mark.parametrize("num_undone", [0, 3])
def test_a_project_with_as_many_steps_as_there_may_be_can_be_taken_along(canonical, num_undone):
    shelf, moved = canonical.shelf, edits.Edit("n1 pinned", pins=(("n1", "", "P1"),))
    num_done = edits.MAX_STEPS - num_undone
    full = edits.History((moved,) * num_done, (moved,) * num_undone)
    shelf.keep_history(canonical.named.name, full)
    open_file(again(canonical), "mine.json", changed(editing.all_on(canonical, "P2")))
    editing.undo(again(canonical))
    history = again(canonical).history
    assert len(history.done) + len(history.undone) == edits.MAX_STEPS
    copied = unpack(pack(canonical.project), lambda source, dims: None)
    assert snapshot(copied).history == history
    editing.redo(snapshot(copied))
    assert snapshot(copied).named.name == "mine"


def test_a_copy_of_the_model_under_another_name_takes_the_placement(canonical, tmp_path):
    placed = pl.place(canonical.problem, "heft").placement
    content = exported(canonical, tmp_path, placed)
    now = of_file(canonical.project, canonical_file(), "renamed.json")
    assert now.model.graph.name != canonical.model.graph.name
    told = open_file(now, "mine.json", content)
    assert dict(again(now).placement.device_of) == dict(placed.device_of)
    assert again(now).placement.machine == now.machine.name
    assert ("It was made on" in told) == (now.machine.name != canonical.machine.name)


def test_a_copy_whose_ops_have_other_names_does_not(canonical):
    content = canonical_file()
    for op in content["ops"]:
        op["name"] = f"own_{op['name']}"
    for tensor in content["tensors"]:
        tensor["producer"] = f"own_{tensor['producer']}"
        tensor["consumers"] = [f"own_{name}" for name in tensor["consumers"]]
    given = changed(canonical.placement)
    now = of_file(canonical.project, content, "renamed.json")
    refused(
        now, given, "ops 'n1', 'n2', 'n3' and 7 more", "'renamed' does not have", "open the model"
    )


def test_an_order_and_counts_come_along(workload):
    ops = [op.name for op in workload.model.graph.ops]
    given = dataclasses.replace(
        editing.all_on(workload, "acc:0"), order=tuple(ops), calls={"acc:0": 2}
    )
    open_file(workload, "mine.json", changed(given))
    assert again(workload).placement == given


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "it is empty"),
        (b" \n", "it is empty"),
        (b"PK\x03\x04", "not valid JSON"),
        (b"\xff\xfe\x00", "not Unicode"),
        (b"[1, 2]", 'needs {"device_of"'),
        (b"{}", 'needs {"device_of"'),
        (b'{"device_of": ["n1"]}', 'needs {"device_of"'),
        (b'{"devices": [{"name": "P1"}], "links": []}', 'needs {"device_of"'),
        (b'{"device_of": {"n1": 3}}', "the device 3; use a device name"),
        (b'{"device_of": {"n1": "P1"}, "colour": 1}', "unknown field 'colour'"),
        (b"[" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_no_placement_is_refused(canonical, content, said):
    refused(canonical, content, said)


def test_what_is_too_large_is_not_read(canonical, monkeypatch, tmp_path):
    monkeypatch.setattr(placement_file, "MOST_BYTES", 100)
    monkeypatch.setattr(placement_file, "json_value", None)
    refused(canonical, b"1" * 101, "at most 100 B")
    path = tmp_path / "large.json"
    path.write_bytes(b"1" * 101)
    with pytest.raises(ValueError, match="at most 100 B"):
        placement_file.content_of(path)
    for wrong in (tmp_path, tmp_path / "nothing.json"):
        with pytest.raises(ValueError, match=r"folder|no file"):
            placement_file.content_of(wrong)

    def denied(self):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(placement_file, "MOST_BYTES", 200)
    monkeypatch.setattr(Path, "read_bytes", denied)
    with pytest.raises(ValueError, match="Permission denied"):
        placement_file.content_of(path)


def test_what_is_of_another_model_or_machine_is_refused_by_name(canonical):
    here = canonical.placement
    others = {**here.device_of, "<b>x</b>": "P1", "y": "P1"}
    refused(canonical, changed(here, device_of=others), "ops '<b>x</b>', 'y', which 'model'")
    few = {op: device for op, device in here.device_of.items() if op != "n7"}
    refused(canonical, changed(here, device_of=few), "gives op 'n7' of 'model' no device")
    refused(
        canonical, changed(here, graph="0" * 16), "same names", canonical.model.graph.fingerprint
    )
    away = {**here.device_of, "n1": "cuda:0", "n2": "cuda:1"}
    refused(
        canonical, changed(here, device_of=away), "devices 'cuda:0', 'cuda:1'", "its own machine"
    )
    refused(canonical, changed(here, calls={"P9": 1}), "device 'P9'")
    refused(canonical, changed(here, replicas={"P9": 2}), "device 'P9'")
    refused(canonical, changed(here, order=["n1", "n1"]), "twice")
    refused(canonical, changed(here, order=["n1", "nobody"]), "not there")
    refused(canonical, changed(here, calls={"P1": 0}), "calls")


def test_without_a_fingerprint_the_names_of_ops_decide(canonical):
    content = {"device_of": dict(canonical.placement.device_of)}
    open_file(canonical, "mine.json", json.dumps(content).encode())
    assert again(canonical).placement == dataclasses.replace(canonical.placement, order=())


def test_the_machine_that_a_placement_was_made_on_is_named(project):
    project.change(model="onnx-squeezenet")
    now = snapshot(project)
    here = now.placement
    away = dict.fromkeys(here.device_of, "cuda:0")
    named = changed(here, device_of=away, machine="two-hosts-16gpu")
    refused(
        now, named, "device 'cuda:0'", "'two-hosts-16gpu', which it was made on", "page Devices"
    )
    refused(now, changed(here, device_of=away, machine=""), "a machine that has them")
    streamed = dict.fromkeys(here.device_of, "cuda:0-streamed")
    refused(now, changed(here, device_of=streamed), "turn on")
    told = open_file(now, "mine.json", changed(here, machine="theirs"))
    assert "It was made on 'theirs'" in told
    assert again(now).placement == here, "it is one of the machine here from now on"


def test_what_splits_a_group_is_put_together_and_told(project):
    content = canonical_file()
    for op in content["ops"][1:3]:
        op["group"] = "together"
    now = of_file(project, content)
    apart = {**dict.fromkeys(now.placement.device_of, "P1"), "n3": "P2"}
    told = open_file(now, "mine.json", changed(now.placement, device_of=apart, order=[]))
    assert "1 op went to another device than in the file" in told
    assert set(again(now).placement.device_of.values()) == {"P1"}


def test_what_a_device_cannot_run_goes_where_it_can_and_is_told(project):
    content = canonical_file()
    content["ops"][3]["times_s"][0] = None
    now = of_file(project, content)
    everything = dict.fromkeys(now.placement.device_of, "P1")
    told = open_file(now, "mine.json", changed(now.placement, device_of=everything, order=[]))
    assert "1 op went to another device" in told
    placed = again(now).placement
    assert [op for op, device in placed.device_of.items() if device != "P1"] == ["n4"]
    assert np.isfinite(again(now).simulated.value)


def test_what_is_not_allowed_is_opened_and_says_so(project):
    content = diamond()
    content["maxSizePerFPGA"] = 2.0
    now = of_file(project, content)
    given = dataclasses.replace(
        now.placement, device_of=dict.fromkeys(now.placement.device_of, "acc:0")
    )
    told = open_file(now, "mine.json", changed(given))
    assert "It is not allowed: Device 'acc:0' needs" in told
    assert again(now).named.name == "mine"


def test_replicas_that_nobody_can_hold_are_refused(project):
    now = of_file(project, diamond(), objective="throughput")
    refused(now, changed(editing.all_on(now, "acc:0"), replicas={"acc:0": 9}), "replicate less")


def test_a_split_is_opened_like_a_placement(workload):
    devices = zip(workload.model.graph.index, ("acc:0", "cpu:0", "acc:1", "acc:0"), strict=True)
    placed = dataclasses.replace(workload.placement, device_of=dict(devices), order=(), calls=None)
    split = split_to_json(workload.problem, placed)
    open_file(workload, "split.json", json.dumps(split).encode())
    assert again(workload).placement == placed
    for content, said in (
        ({"cpus": [], "fpgas": [{"nodes": [1, 2, 3, 4]}] * 9}, "uses 9 fpgas, the workload has 2"),
        ({"cpus": [], "fpgas": [{"nodes": [1, 2, 3, 77]}]}, "names node 77"),
        ({"fpgas": [{"nodes": [1, 2, 3]}]}, "gives node 4 no device"),
        ({"fpgas": [{"nodes": [1, 1]}]}, "node 1 twice"),
        ({"fpgas": 3}, "not a list"),
    ):
        refused(workload, json.dumps(content).encode(), said)


def test_a_split_for_a_model_without_node_ids_is_refused(canonical):
    refused(canonical, b'{"fpgas": [{"nodes": [1]}], "cpus": []}', "no node id")


@pytest.mark.parametrize("name", ["bert24_inference", "bert24_training", "gnmt_inference"])
def test_the_splits_of_experts_are_opened(project, name):
    given = shared_file("experts", f"{name}_expert").read_bytes()
    model = json.loads(shared_file("throughput", f"layer_{name}").read_text())
    now = of_file(project, model, objective="throughput")
    open_file(now, f"{name}_expert.json", given)
    assert again(now).named.name == f"{name}_expert"
    assert again(now).placement == split_from_json(now.problem, json.loads(given))


@pytest.mark.parametrize("file_name", HOSTILE)
def test_a_name_leads_nowhere_and_takes_nothings_place(canonical, file_name):
    folder, first = canonical.shelf.folder, canonical.placement
    outside = set(canonical.project.folder.parent.parent.rglob("*"))
    content = changed(editing.all_on(canonical, "P2"))
    open_file(canonical, file_name, content)
    now = again(canonical)
    name = now.named.name
    assert name != "heft" and name.isprintable() and 1 <= len(name) <= 62
    assert not {"/", "\\"} & set(name)
    assert now.shelf.read("heft") == first and now.placement != first
    new = set(canonical.project.folder.parent.parent.rglob("*")) - outside
    file = folder / now.named.file
    assert new == {file, file.with_suffix(".history")}
    assert [i.name for i in now.shelf.items] == ["heft", name]
    assert now.pins == {} and now.sequences == {}


def test_names_are_those_of_files_without_folders_and_endings():
    assert name_of("mine.json") == name_of("a/b/mine.JSON") == name_of(r"a\b\mine.json") == "mine"
    assert name_of("my best one.v2.json") == "my best one.v2"
    assert name_of(".json") == name_of("") == name_of("..") == "placement"


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(either(2, 4)))
def test_mutated_files_are_opened_or_refused_in_one_sentence(workload, seed):
    placed = editing.all_on(workload, "acc:0")
    ordered = dataclasses.replace(placed, order=tuple(placed.device_of), calls={"acc:0": 1})
    seeds = [
        placement_to_text(placed).encode(),
        placement_to_text(ordered).encode(),
        json.dumps(split_to_json(workload.problem, placed)).encode(),
    ]
    rng, num_opened = random.Random(seed), 0
    for _ in range(60):
        content = mutation.mutated(rng, seeds, mutation.by_json)
        try:
            found = placement_in(workload, content)
        except ValueError as error:
            said = str(error)
            assert said and said.isprintable() and len(said) <= LONGEST_SENTENCE, said
        else:
            num_opened += 1
            assert found.device_of.keys() == workload.model.graph.index.keys()
            assert set(found.device_of.values()) <= set(workload.machine.index)
    assert 0 < num_opened < 60


def test_a_file_of_a_machine_is_no_placement(canonical):
    refused(canonical, machine_to_text(pl.machine("null-2")).encode(), 'needs {"device_of"')
