"""Machines: this computer's, the presets, files, and why a device is not here."""

import json
import os
import re
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.core.machine import Device, Machine, link_arrays, machine_to_text
from profiling.backends import onnxruntime
from profiling.devices import local
from profiling.devices.cores import cpu_quota, host_memory_bytes, split, usable_cores
from profiling.devices.local import load_machine, local_machine, missing_devices, presets

NAMES = tuple(presets())


@given(cores=st.lists(st.integers(0, 500), min_size=1, unique=True), data=st.data())
def test_split_deals_all_cores_evenly(cores, data):
    lanes = data.draw(st.integers(1, len(cores)))
    parts = split(tuple(cores), lanes)
    assert [core for part in parts for core in part] == cores
    sizes = [len(part) for part in parts]
    assert len(parts) == lanes and max(sizes) - min(sizes) <= 1 and min(sizes) >= 1


def test_this_computer_whole_and_in_lanes():
    whole = local_machine(1)
    assert whole.devices[0].name == "cpu:0"
    assert whole.devices[0].cores == len(usable_cores())
    assert whole.devices[0].core_ids == ()
    if len(usable_cores()) >= 2:
        halves = [d for d in local_machine(2).devices if d.name.startswith("cpu:")]
        assert [d.name for d in halves] == ["cpu:0", "cpu:1"]
        assert sum(d.cores for d in halves) == len(usable_cores())
        assert not set(halves[0].core_ids) & set(halves[1].core_ids)
        assert sum(d.memory_bytes for d in halves) <= host_memory_bytes()


def test_every_pair_is_linked():
    machine = local_machine(min(2, len(usable_cores())))
    names = [d.name for d in machine.devices]
    assert {(link.src, link.dst) for link in machine.links} == set(permutations(names, 2))
    latency_s, s_per_byte = link_arrays(machine)
    assert ((latency_s > 0) & (s_per_byte > 0)).sum() == len(machine.links)


def test_the_default_shows_two_lanes_where_there_is_only_a_cpu(monkeypatch):
    monkeypatch.setattr(onnxruntime, "providers", lambda: ())
    monkeypatch.setattr(local, "usable_cores", lambda: tuple(range(8)))
    assert [d.core_ids for d in local_machine().devices] == [(0, 1, 2, 3), (4, 5, 6, 7)]
    monkeypatch.setattr(local, "usable_cores", lambda: (3,))
    assert [d.name for d in local_machine().devices] == ["cpu:0"]
    gpu = Device("cuda:0", "gpu", "onnxruntime", "CUDAExecutionProvider")
    monkeypatch.setattr(onnxruntime, "providers", lambda: (gpu,))
    monkeypatch.setattr(local, "usable_cores", lambda: tuple(range(8)))
    assert [(d.name, d.cores) for d in local_machine().devices] == [("cpu:0", 8), ("cuda:0", 1)]


@pytest.mark.parametrize("lanes", [0, -1, 10_000])
def test_impossible_lanes_are_refused(lanes):
    with pytest.raises(ValueError, match="Cannot split the CPU"):
        local_machine(lanes)


def test_affinity_is_respected():
    if not hasattr(os, "sched_setaffinity") or len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two cores that this process may choose among")
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {max(allowed)})
        assert usable_cores() == (max(allowed),)
        with pytest.raises(ValueError, match="1 core can be used"):
            local_machine(2)
    finally:
        os.sched_setaffinity(0, allowed)


def test_container_limits_are_respected(tmp_path):
    (tmp_path / "cpu.max").write_text("250000 100000\n")
    (tmp_path / "memory.max").write_text("1073741824\n")
    assert cpu_quota(tmp_path) == 2
    assert host_memory_bytes(tmp_path) == 1 << 30
    (tmp_path / "cpu.max").write_text("50000 100000\n")
    assert cpu_quota(tmp_path) == 1
    (tmp_path / "cpu.max").write_text("max 100000\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert cpu_quota(tmp_path) > 10_000
    assert host_memory_bytes(tmp_path) > 1 << 20
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text("300000")
    (tmp_path / "cpu" / "cpu.cfs_period_us").write_text("100000")
    assert cpu_quota(tmp_path) == 3


def test_presets_load_and_say_what_they_are():
    older = {"laptop-gpu", "null-2", "nvlink-8gpu", "pcie-4gpu", "two-lanes"}
    desktops = {"desktop-24gb", "desktop-2x24gb", "apple-unified"}
    assert older | desktops | {"two-sockets", "two-hosts-16gpu"} <= set(NAMES)
    assert all(note.endswith(".") for note in presets().values())
    for name in NAMES:
        if name == "two-lanes" and len(usable_cores()) < 2:
            continue
        machine = load_machine(name)
        assert machine.name == name
        link_arrays(machine)
        assert all(d.flops_per_s > 0 and d.memory_bytes_per_s > 0 for d in machine.devices), name
        # What a preset does not say where it has it from, it says to be assumed or invented.
        words = ("assumed", "invented", "of this computer")
        assert machine.sources or any(word in machine.note for word in words), name


@pytest.mark.parametrize("name", NAMES)
def test_what_a_preset_is_says_nothing_twice(name):
    sentences = re.split(r"[.;:] ", presets()[name].removesuffix("."))
    assert len(set(sentences)) == len(sentences)


def test_presets_are_machines_that_people_have():
    apple = load_machine("apple-unified")
    assert apple.places.weights.tolist() == [0, 0]
    assert apple.limit_bytes.tolist() == [192 * 2**30] * 2
    for name, num_gpus, num_hosts in (("nvlink-8gpu", 8, 1), ("two-hosts-16gpu", 16, 2)):
        machine = load_machine(name)
        gpus = [d for d in machine.devices if not d.on_host]
        assert (len(gpus), len(machine.devices)) == (num_gpus, num_gpus + num_hosts)
        assert all(d.memory_bytes == 80 * 2**30 for d in gpus)
        assert all(d.flops_per_s_in("bfloat16") > 10 * d.flops_per_s for d in gpus)
    links = {(i.src, i.dst): i.bytes_per_s for i in load_machine("two-hosts-16gpu").links}
    assert links["cuda:0", "cuda:7"] > links["cuda:0", "cuda:8"] == links["cpu:0", "cpu:1"]
    assert len(load_machine("desktop-2x24gb").devices) == 3
    assert [d.on_host for d in load_machine("two-sockets").devices] == [True, True]


@pytest.mark.parametrize("source", ["javascript:alert(1)", "https://a.example/)[x](y", "", "x"])
def test_sources_are_addresses_and_nothing_else(source):
    with pytest.raises(ValueError, match="no address of a page"):
        Machine("m", (Device("cpu:0"),), sources=(source,))


def test_only_what_is_here_can_run():
    assert missing_devices(load_machine("null-2")) == ()
    assert missing_devices(local_machine(1)) == ()
    missing = dict(missing_devices(load_machine("laptop-gpu")))
    assert list(missing) == ["cpu:0", "cuda:0"]
    assert "8-core laptop CPU" in missing["cpu:0"]


@pytest.mark.skipif(len(usable_cores()) < 2, reason="needs two cores")
def test_two_lanes_are_this_computers():
    machine = load_machine("two-lanes")
    assert [d.cores for d in machine.devices] == [1, 1]
    assert machine.devices[0].core_ids != machine.devices[1].core_ids or not hasattr(
        os, "sched_setaffinity"
    )
    assert machine.devices[0].label and missing_devices(machine) == ()


def test_a_written_machine_comes_back_and_can_run(tmp_path):
    path = tmp_path / "mine.json"
    machine = local_machine()
    path.write_text(machine_to_text(machine))
    again = load_machine(str(path))
    assert again == machine
    assert again.fingerprint == machine.fingerprint
    assert missing_devices(again) == ()


@pytest.mark.parametrize(
    ("device", "reason"),
    [
        (Device("a", runtime="vax"), "runtime 'vax'"),
        (Device("cuda:9", "gpu", "onnxruntime", "NoSuchProvider"), "no NoSuchProvider"),
        (Device("a", "cpu", "onnxruntime", "CPUExecutionProvider", cores=9999), "9999 cores"),
        (
            Device("a", "cpu", "onnxruntime", "CPUExecutionProvider", core_ids=(99999,)),
            "core 99999",
        ),
        (Device("a", "cpu", "onnxruntime", "CPUExecutionProvider", label="Z80"), "not Z80"),
    ],
)
def test_reasons_name_the_cause(device, reason):
    ((name, why),) = missing_devices(Machine("m", (device,)))
    assert name == device.name
    assert reason in why


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no json",
        "[]",
        "{}",
        '{"devices": []}',
        '{"devices": [{"nome": "a"}]}',
        '{"devices": [{"name": 3}]}',
        '{"devices": [{"name": "a", "cores": "many"}]}',
        '{"devices": [{"name": "a", "cores": true}]}',
        '{"devices": [{"name": "a", "core_ids": ["x"]}]}',
        '{"devices": [{"name": "a", "flops_per_s": NaN}]}',
        '{"devices": [{"name": "a", "memory_bytes": -1}]}',
        '{"devices": [{"name": "a"}], "links": [{"src": "a"}]}',
        '{"devices": [{"name": "a"}], "links": 3}',
        "[" * 100_000,
        "\x00\xff",
    ],
)
def test_bad_files_are_refused_in_one_sentence(tmp_path, text):
    path = tmp_path / "bad.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=r"bad\.json") as caught:
        load_machine(str(path))
    assert "\n" not in str(caught.value)


def test_a_file_too_large_is_not_read(tmp_path):
    path = tmp_path / "large.json"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(ValueError, match="more than"):
        load_machine(str(path))


def test_unknown_names_list_the_presets():
    with pytest.raises(ValueError, match="two-lanes"):
        load_machine("no-such-machine")
    with pytest.raises(ValueError, match="number of lanes"):
        load_machine("local:many")
    found = [d.name for d in load_machine("local:1").devices if d.runtime == "onnxruntime"]
    assert found == [d.name for d in onnxruntime.BACKEND.devices()]


def test_a_machine_without_onnxruntime_still_has_a_cpu(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime", None)
    machine = local_machine(1)
    assert [d.name for d in machine.devices] == ["cpu:0"]
    assert machine.libraries == ()
    assert "pip install onnxruntime" in missing_devices(machine)[0][1]


def test_preset_files_hold_what_machines_write():
    folder = Path(local.__file__).parents[2] / "assets" / "machines"
    for path in sorted(folder.glob("*.json")):
        content = json.loads(path.read_text())
        assert content["name"] == path.stem
        said = set(content) - {"sources"}
        assert said == {"name", "devices", "links", "libraries", "note"}, path.name
        if path.stem != "two-lanes":
            written = json.loads(machine_to_text(load_machine(path.stem)))
            assert {**content, "sources": content.get("sources") or None} == {
                **written,
                "sources": written.get("sources"),
            }
