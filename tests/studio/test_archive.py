"""A project as one file: comes back as it was, and a hostile one is refused in one sentence."""

import dataclasses
import io
import json
import re
import stat
import struct
import zipfile

import pytest

from pages.ui.what_if import ask_method
from placement.core.decoding import decode
from placement.costs.what_if import Conditions
from studio.jobs import outcomes
from studio.project import store
from studio.project.edits import MAX_STEPS, Edit, History
from studio.project.facts import Facts
from studio.project.files import read_json, write_json
from studio.project.placements import HAND, Shelf, machine_key
from studio.transfer import archive as project_file
from studio.transfer import schema
from studio.transfer.archive import NOTE, pack, unpack
from studio.transfer.safe_zip import Archive, Kind
from tests.pages.problems import MACHINE, diamond, everywhere

SHELF = f"placements/{diamond().graph.fingerprint}-00000000"

TOLD = {"value": 1.5, "unit": "s"}
UNSEEN = {"job": "17", "problem": "0" * 16, "proven_optimal": True}


@pytest.fixture(autouse=True)
def own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("PLACEMENT_STUDIO_HOME", str(tmp_path))


def any_model(path, dims):
    pass


def shelf_of(project):
    return Shelf.of(project.folder, diamond().graph, MACHINE)


def worked_on():
    """A project with a model, a machine, placements by a method and by hand, and a pin."""
    project = store.create("mine")
    name = project.keep_upload("net.onnx", b"no model really")
    write_json(project.folder / "machines" / "box.json", MACHINE.to_json())
    project.change(
        model_kind="file", model=name, machine="box.json", dims={"batch": 4}, form={"steps": 7}
    )
    shelf, problem = shelf_of(project), diamond()
    shelf.add("heft", everywhere(problem), "heft", Facts(**TOLD, **UNSEEN))
    shelf.add("manual", everywhere(problem, b="cpu:1"), HAND, Facts(start="heft"))
    shelf.keep_history("manual", History().add(Edit("b", (("b_conv", "cpu:0", "cpu:1"),))))
    write_json(shelf.folder / "pins.json", {"a_conv": "cpu:0"})
    rules = [{"pattern": p, "device": "cpu:1"} for p in ("Conv", "regex:(a+)+$")]
    write_json(project.folder / "rules.json", rules)
    write_json(project.folder / "jobs" / "1" / "job.json", {"pid": 1})
    return project


def test_what_is_exported_comes_back_as_a_project_of_its_own():
    project = worked_on()
    twin = unpack(pack(project), any_model)
    before, after = project.settings, twin.settings
    assert twin.id != project.id and after.touched
    for name in ("name", "model_kind", "model", "dims", "machine", "lanes", "objective"):
        assert getattr(after, name) == getattr(before, name), name
    old, new = shelf_of(project), shelf_of(twin)
    assert [i.name for i in new.items] == ["heft", "manual"] and new.current.name == "manual"
    assert all(new.read(i.name) == old.read(i.name) for i in old.items)
    assert new.history("manual") == old.history("manual") and new.pins == old.pins
    assert (twin.folder / "model" / "net.onnx").read_bytes() == b"no model really"
    assert read_json(twin.folder / "machines" / "box.json") == json.loads(
        json.dumps(MACHINE.to_json())
    )


def test_rules_come_along_but_forms_owners_and_jobs_stay_behind():
    project = worked_on()
    twin = unpack(pack(project), any_model)
    assert read_json(twin.folder / "rules.json") == read_json(project.folder / "rules.json")
    assert not (twin.folder / "jobs").exists() and not (twin.folder / "owner.json").exists()
    assert dict(twin.settings.form) == {}
    assert shelf_of(twin).items[0].facts == Facts(**TOLD)


def test_removed_placements_stay_behind():
    project = worked_on()
    shelf = shelf_of(project)
    shelf.remove("manual")
    assert (shelf.folder / "manual.json").exists()
    archive = zipfile.ZipFile(io.BytesIO(pack(project)))
    inside = [n for n in archive.namelist() if n.startswith("placements/")]
    assert inside == [f"{own_shelf()}/{n}.json" for n in ("heft", "index", "pins")]
    assert b"manual" not in archive.read(f"{own_shelf()}/index.json")
    said = project_file.contents(project)
    assert "1 placement with its" in said


def test_what_if_answers_without_placements_beside_them_stay_behind():
    project, shelf = asked()
    for name in [item.name for item in shelf_of(project).items]:
        shelf_of(project).remove(name)
    twin = unpack(pack(project), any_model)
    assert not (twin.folder / "what_if").exists() and shelf.items


ANSWER = {
    **TOLD,
    "objective": "latency",
    "unchanged_value": 2.0,
    "what_if": Conditions({"cpu:1": 0.5}, 4.0, 1.0, {"cpu:0": None}).to_json(),
}


def asked():
    """A project with one what-if answer."""
    project = worked_on()
    shelf = outcomes.what_if_shelf(project.folder, shelf_of(project).folder.name)
    facts = decode({**ANSWER, **UNSEEN}, Facts)
    shelf.add("heft what-if 1", everywhere(diamond(), b="cpu:1"), "heft", facts)
    return project, shelf


def test_what_if_answers_come_along_with_their_sliders():
    project, old = asked()
    assert "2 rules, 1 what-if answer, the model" in project_file.contents(project)
    twin = unpack(pack(project), any_model)
    (answer,) = outcomes.what_if_shelf(twin.folder, old.folder.name).items
    assert answer.name == "heft what-if 1" and answer.facts == decode(ANSWER, Facts)
    assert ask_method.conditions_of(answer) == Conditions({"cpu:1": 0.5}, 4.0, 1.0, {"cpu:0": None})
    new = outcomes.what_if_shelf(twin.folder, old.folder.name)
    assert new.read(answer.name) == old.read(answer.name)


@pytest.mark.parametrize(
    "changes, said",
    [
        ({"what_if": {"speed": {"cpu:1": -1.0}}}, "use more than zero"),
        ({"what_if": {"speed": {"\n<b>": 2.0}}}, "not a text of"),
        ({"what_if": {"speed": {f"d{i}": 2.0 for i in range(2_000)}}}, "too many devices"),
        ({"what_if": 7}, "what_if: expected an object"),
        ({"unchanged_value": "soon"}, "expected a number"),
        ({"objective": "glory"}, "objective: invalid enum value 'glory'"),
        ({"value": None}, "value: expected a number, got null"),
    ],
)
def test_what_if_answers_that_are_none_are_refused(changes, said):
    project, _ = asked()
    source = zipfile.ZipFile(io.BytesIO(pack(project)))
    files = {name: source.read(name) for name in source.namelist()}
    (path,) = (n for n in files if n.startswith("what_if/") and n.endswith("index.json"))
    index = json.loads(files[path])
    index["items"][0]["facts"] |= changes
    with pytest.raises(ValueError, match=said):
        unpack(zipped({**files, path: json.dumps(index)}), any_model)


def test_a_what_if_answer_about_other_ops_is_refused():
    project, shelf = asked()
    path = shelf.path("heft what-if 1")
    stored = read_json(path)
    stored["device_of"]["intruder"] = "cpu:0"
    write_json(path, stored)
    with pytest.raises(ValueError, match="names unknown ops"):
        unpack(pack(project), any_model)


def test_the_model_can_stay_behind_and_the_account_says_so():
    project = worked_on()
    assert "2 placements with their history, 1 machine file, 2 rules, the model (15 B)" in (
        project_file.contents(project)
    )
    assert "not the model" in project_file.contents(project, with_model=False)
    twin = unpack(pack(project, with_model=False), any_model)
    assert not (twin.folder / "model").exists() and twin.settings.model == "net.onnx"


def test_a_model_by_path_is_named_and_not_taken_along(tmp_path):
    project = store.create()
    project.change(model_kind="path", model=str(tmp_path / "big.onnx"))
    assert "the path of the model but not the model itself" in project_file.contents(project)
    twin = unpack(pack(project), any_model)
    assert twin.settings.model == str(tmp_path / "big.onnx")


def test_a_model_inside_must_open():
    def refuse(path, dims):
        assert dims == (("batch", 4),)
        raise ValueError("the model is broken.")

    with pytest.raises(ValueError, match="the model is broken"):
        unpack(pack(worked_on()), refuse)
    assert len(store.recent()) == 1 and not list(store.folder().glob(".draft*"))


def changed(name, content):
    """A project file in which one file is another: bytes, JSON, or None for left out."""
    source = zipfile.ZipFile(io.BytesIO(pack(worked_on())))
    files = {n: source.read(n) for n in source.namelist()}
    files[name] = content if isinstance(content, bytes) else json.dumps(content).encode()
    if content is None:
        del files[name]
    return zipped(files)


def zipped(files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def with_settings(**values):
    kept = json.loads(zipfile.ZipFile(io.BytesIO(pack(worked_on()))).read("project.json"))
    return changed("project.json", {**kept, **values})


def with_item(**values):
    item = {"name": "x", "file": "x.json", "made_by": "heft", "facts": {}, **values}
    listed = {"current": "x", "items": [item]}
    return zipped({**minimal(), f"{SHELF}/index.json": json.dumps(listed)})


def minimal():
    source = zipfile.ZipFile(io.BytesIO(pack(store.create())))
    return {n: source.read(n) for n in source.namelist()}


def with_rules(content):
    return changed("rules.json", content)


def with_history(*done, **changes):
    """The file of `worked_on` with other steps of the placement made by hand."""
    steps = [{"label": "x", "moves": list(done), "pins": [], **changes}]
    return changed(f"{own_shelf()}/manual.history", {"done": steps, "undone": []})


def own_shelf():
    return f"placements/{diamond().graph.fingerprint}-{machine_key(MACHINE)}"


def with_placement(**device_of):
    placed = everywhere(diamond()).to_json()
    placed["device_of"] = {
        op: device
        for op, device in {**placed["device_of"], **device_of}.items()
        if device is not None
    }
    return changed(f"{own_shelf()}/manual.json", placed)


def long_history():
    step = {"label": "x", "moves": [], "pins": []}
    content = {"done": [step] * MAX_STEPS, "undone": [step]}
    return changed(f"{own_shelf()}/manual.history", content)


def a_link():
    buffer = io.BytesIO(zipped(minimal()))
    with zipfile.ZipFile(buffer, "a") as archive:
        link = zipfile.ZipInfo("model/net.onnx")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
    return buffer.getvalue()


def twice():
    buffer = io.BytesIO(zipped(minimal()))
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr("project.json", "{}")
    return buffer.getvalue()


def encrypted():
    content = bytearray(zipped(minimal()))
    for signature, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = content.find(signature)
        content[at + flags] |= 1
    return bytes(content)


def lying():
    """The table of contents claims ten bytes where there are many."""
    content = bytearray(zipped({**minimal(), "machines/m.json": b" " * 5_000}))
    at = content.rfind(b"PK\x01\x02")
    struct.pack_into("<I", content, at + 24, 10)
    return bytes(content)


def bomb():
    return zipped({**minimal(), "machines/m.json": b" " * (project_file.MOST_JSON_BYTES + 1)})


def many_files():
    number = project_file.MOST_FILES + 1
    return zipped({**minimal(), **{f"machines/m{i}.json": b"{}" for i in range(number)}})


HOSTILE = {
    "empty": (lambda: b"", "no zip file"),
    "letter": (lambda: b"Dear friend, this is a letter.\n" * 9, "no zip file"),
    "cut": (lambda: pack(worked_on())[:-30], "no zip file"),
    "other zip": (lambda: zipped({"project.json": "{}"}), "no project of this studio"),
    "no settings": (lambda: changed("project.json", None), "no project of this studio"),
    "other format": (lambda: changed(NOTE, {"format": "x"}), "no project of this studio"),
    "later": (lambda: changed(NOTE, {"format": project_file.FORMAT, "version": 9}), "version"),
    "list note": (lambda: changed(NOTE, []), "no project of this studio"),
    "up": (lambda: zipped({**minimal(), "model/../../x.onnx": "x"}), "no part of a project"),
    "absolute": (lambda: zipped({**minimal(), "/etc/cron.d/x": "x"}), "no part of a project"),
    "windows": (lambda: zipped({**minimal(), "model\\..\\x": "x"}), "no part of a project"),
    "job": (lambda: zipped({**minimal(), "jobs/1/job.json": "{}"}), "no part of a project"),
    "owner": (lambda: zipped({**minimal(), "owner.json": "{}"}), "no part of a project"),
    "hidden": (lambda: zipped({**minimal(), "model/.x": "x"}), "no part of a project"),
    "second model": (lambda: zipped({**minimal(), "model/x.onnx": "x"}), "not the model"),
    "link": (a_link, "no plain file"),
    "twice": (twice, "twice"),
    "encrypted": (encrypted, "encrypted"),
    "lying": (lying, "damaged"),
    "bomb": (bomb, "more than 64 MiB"),
    "many files": (many_files, "more than 4000 files"),
    "no JSON": (lambda: changed("project.json", b"{"), "not valid JSON"),
    "deep": (lambda: changed("project.json", b"[" * 100_000), "nested too deeply"),
    "number": (lambda: changed("project.json", b"7"), "expected an object"),
    "kind": (lambda: with_settings(model_kind="pickle"), "invalid enum value 'pickle'"),
    "sample": (lambda: with_settings(model_kind="sample", model="x"), "which is not here"),
    "model name": (lambda: with_settings(model="../../x"), "no name of a file"),
    "model list": (lambda: with_settings(model=["x"]), "model: expected a text"),
    "relative": (lambda: with_settings(model_kind="path", model="x/y.onnx"), "no full path"),
    "NUL": (lambda: with_settings(model_kind="path", model="/x\0y"), "not a text"),
    "machine": (lambda: with_settings(machine="../../m.json"), "nor inside"),
    "machine list": (lambda: with_settings(machine=["local"]), "machine: expected a text"),
    "lanes": (lambda: with_settings(lanes="2"), "lanes: expected a whole number"),
    "true lanes": (lambda: with_settings(lanes=True), "lanes: expected a whole number"),
    "goal": (lambda: with_settings(objective="fame"), "objective: invalid enum value 'fame'"),
    "little": (lambda: changed("project.json", {"name": "a", "created_at": 1.0}), "'model_kind'"),
    "dims": (lambda: with_settings(dims={"batch": 0}), ">= 1"),
    "dims list": (lambda: with_settings(dims=[1]), "dims: expected an object"),
    "name": (lambda: with_settings(name=7), "name: expected a text"),
    "date": (lambda: with_settings(created_at="now"), "expected a number"),
    "long date": (lambda: with_settings(created_at=10**400), "number out of range"),
    "machine file": (lambda: changed("machines/box.json", {"devices": [7]}), "not understood"),
    "pins": (lambda: changed(f"{SHELF}/pins.json", ["a"]), "not understood"),
    "no list": (lambda: changed(f"{SHELF}/x.json", {"device_of": {}}), "have no list"),
    "item file": (lambda: with_item(file="../x.json"), "not understood"),
    "own list": (lambda: with_item(file="index.json"), "not understood"),
    "gone": (lambda: with_item(), "is not inside"),
    "facts": (lambda: with_item(facts={"seconds": "x"}), "expected a number or null"),
    "count": (lambda: with_item(facts={"num_selected": ["a"]}), "expected a whole number or null"),
    "text count": (
        lambda: with_item(facts={"num_selected": "x"}),
        "expected a whole number or null",
    ),
    "truth": (lambda: with_item(facts={"cancelled": "no"}), "expected true or false or null"),
    "step's op": (lambda: with_history(["cpu:0", "cpu:1", ["zzz"]]), "unknown ops"),
    "step's device": (lambda: with_history(["mars", "cpu:1", ["b_conv"]]), "unknown ops"),
    "step to nowhere": (lambda: with_history(["", "cpu:1", ["b_conv"]]), "unknown ops"),
    "step's pin": (lambda: with_history(pins=[["", "mars", ["b_conv"]]]), "unknown ops"),
    "many steps": (long_history, "more than 500 steps"),
    "missing op": (lambda: with_placement(b_conv=None), "unknown ops"),
    "other op": (lambda: with_placement(zzz="cpu:0"), "unknown ops"),
    "other device": (lambda: with_placement(b_conv="mars"), "unknown ops"),
    "pin of nothing": (lambda: changed(f"{own_shelf()}/pins.json", {"z": "cpu:0"}), "unknown ops"),
    "unit": (lambda: with_item(facts={"unit": ["ms"]}), "expected a text or null"),
    "bell": (lambda: with_item(facts={"violations": ["\a"]}), "not a text of"),
    "no unit": (lambda: with_item(facts={"unit": "years"}), "Times are in 'years'"),
    "rules": (lambda: changed("rules.json", [{"pattern": "x"}]), "not understood"),
    "many rules": (lambda: with_rules([{"pattern": "x", "device": "d"}] * 101), "length <= 100"),
    "long rule": (lambda: with_rules([{"pattern": "x" * 401, "device": "d"}]), "length <= 400"),
    "number rule": (lambda: with_rules([{"pattern": 7, "device": "d"}]), "expected a text"),
    "no expression": (lambda: with_rules([{"pattern": "regex:(", "device": "d"}]), "expression"),
    "semicolon": (lambda: with_rules([{"pattern": "x;y", "device": "d"}]), "semicolon"),
    "empty rule": (lambda: changed("rules.json", [{"pattern": " ", "device": "d"}]), "PATTERN"),
    "placement": (lambda: changed(f"{SHELF}/x.json", {"device_of": {"a": 1}}), "device name"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_one_sentence_and_leaves_nothing(name):
    build, said = HOSTILE[name]
    content = build()
    before = sorted(store.folder().iterdir()) if store.folder().is_dir() else []
    with pytest.raises(ValueError) as error:
        unpack(content, any_model)
    text = str(error.value)
    assert said in text and "\n" not in text and len(text) < 300, text
    after = sorted(store.folder().iterdir()) if store.folder().is_dir() else []
    assert after == before


def test_many_small_bombs_are_one_large_one():
    kinds = (Kind(re.compile("m[0-9]"), 2**20),)
    content = zipped({f"m{i}": b" " * 2**20 for i in range(4)})
    Archive(content, kinds, most_files=4, most_bytes=4 * 2**20)
    with pytest.raises(ValueError, match="unpacked it would have more than 3 MiB"):
        Archive(content, kinds, most_files=4, most_bytes=3 * 2**20)
    with pytest.raises(ValueError, match="more than 3 files"):
        Archive(content, kinds, most_files=3, most_bytes=4 * 2**20)


def test_a_placement_of_another_graph_is_refused():
    project = worked_on()
    index = shelf_of(project).folder / "index.json"
    file = read_json(index)["items"][0]["file"]
    write_json(index.parent / file, {**read_json(index.parent / file), "graph": "0" * 16})
    with pytest.raises(ValueError, match="for another model"):
        unpack(pack(project), any_model)


def test_a_history_that_is_not_understood_is_left_out():
    project = worked_on()
    path = shelf_of(project).folder / "manual.history"
    write_json(path, {"done": [{"label": "x", "changes": [1]}], "undone": []})
    assert shelf_of(unpack(pack(project), any_model)).history("manual") == History()


def test_placements_for_another_computer_are_told_of():
    project = worked_on()
    assert schema.unseen(project, MACHINE) == "", "its machine is in the project"
    project.change(machine="local")
    (project.folder / "machines" / "box.json").unlink()
    here = dataclasses.replace(MACHINE, name="local")
    said = schema.unseen(project, here)
    assert said.startswith("2 placements in it are for devices of the computer that it comes from")
    assert "(cpu:0, cpu:1)" in said
    assert schema.unseen(project, MACHINE) == "", "this computer has the same devices"
