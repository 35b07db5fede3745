"""Profiles survive a restart, other processes, and a broken file."""

import json
import sqlite3
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from placement.core.graph import Graph, Op, Tensor
from placement.core.machine import Device, Machine
from placement.core.profile import Profile, Refinement, RefiningRun, profile_from_json
from placement.core.schedule import Schedule, Segment
from placement.core.timeline import Observed, PartTime
from placement.files.home import home
from placement.files.output import NotWritten
from profiling.measuring.store import ProfileStore, age_s, changes
from tests.thorough import either

names = st.text(min_size=1, max_size=8)
seconds = st.floats(0, 1e3, allow_nan=False)


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    """Profiles of chains of kernels on one to three devices."""
    num_kernels, num_devices = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    kinds = draw(st.lists(names, min_size=num_kernels, max_size=num_kernels))
    ops = tuple(
        Op(f"k{i}", kind, attributes=((kind, "value"),), flops=draw(seconds))
        for i, kind in enumerate(kinds)
    )
    tensors = tuple(
        Tensor(f"t{i}", f"k{i}", (f"k{i + 1}",), draw(st.integers(0, 1 << 40)), (1, i))
        for i in range(num_kernels - 1)
    )
    machine = Machine(
        draw(names), tuple(Device(f"d{i}", label=draw(names)) for i in range(num_devices))
    )
    row = st.tuples(*[st.none() | seconds] * num_devices)
    return Profile(
        graph=draw(names),
        machine=machine,
        kernels=Graph("kernels", ops, tensors),
        sources=tuple((kind,) for kind in kinds),
        compute_s=draw(st.tuples(*[row] * num_kernels)),
        spread=draw(st.tuples(*[st.tuples(*[seconds] * num_devices)] * num_kernels)),
        call_s=draw(st.tuples(*[seconds] * num_devices)),
        step_s=draw(row),
        all_cores_s=draw(st.none() | seconds),
        contention=draw(seconds),
        measured_at="2026-01-02T03:04:05+00:00",
    )


def refined() -> Profile:
    """A profile with a live run that refines it."""
    part = PartTime(1.0, 0.9, 1.2)
    seen = Observed(5, (part,), (part,), (0.5,))
    schedule = Schedule((Segment("a", ("k0",)),))
    run = RefiningRun("heft", "1234", "2026-01-02T03:04:05+00:00", 1.5, schedule, seen)
    return replace(small(), refined_by=Refinement((run,), 0.5))


def test_runs_that_refine_a_profile_are_kept_with_it(tmp_path):
    store, profile = ProfileStore(tmp_path / "p.sqlite"), refined()
    store.put(profile)
    assert store.get("g", profile.machine.fingerprint) == profile


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda run: run["schedule"]["segments"][0].update(kernels=["k1"]), "k1"),
        (lambda run: run["schedule"]["segments"][0].update(device="b"), "b"),
        (lambda run: run["schedule"]["segments"][0].update(kernels=["k0", "k0"]), "each kernel"),
        (lambda run: run.update(step_s=0), "step_s"),
        (lambda run: run["observed"].update(beside=[]), "do not match"),
        (lambda run: run["observed"].update(num_steps=0), "any step"),
        (lambda run: run["observed"]["computes"][0].update(median_s=-1), "median_s"),
        (lambda run: run["schedule"].update(segments=[]), "other parts"),
    ],
)
def test_a_run_that_does_not_fit_its_profile_is_refused(change, why):
    content = json.loads(json.dumps(refined().to_json()))
    change(content["refined_by"]["runs"][0])
    with pytest.raises(ValueError, match=why):
        profile_from_json(content)


def small(graph: str = "g", device: str = "a", version: str = "1.30") -> Profile:
    machine = Machine("m", (Device(device),), (), (("onnxruntime", version),))
    kernels = Graph("k", (Op("k0", "Relu"),), ())
    return Profile(
        graph, machine, kernels, (("relu",),), ((1.5,),), ((0.1,),), (1e-5,), (1.5,),
        measured_at="2026-01-02T03:04:05+00:00",
    )  # fmt: skip


@pytest.mark.thorough
@given(profile=profiles())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=either(20, 40))
def test_a_profile_comes_back_as_it_was_after_a_restart(tmp_path, profile):
    path = tmp_path / "p.sqlite"
    ProfileStore(path).put(profile)
    assert ProfileStore(path).get(profile.graph, profile.machine.fingerprint) == profile


def test_both_fingerprints_are_the_key(tmp_path):
    store = ProfileStore(tmp_path / "deep" / "p.sqlite")
    a, b = small("g", "a"), small("h", "a")
    store.put(a)
    store.put(b)
    assert store.get("g", a.machine.fingerprint) == a
    assert store.get("h", a.machine.fingerprint) == b
    assert store.get("g", "another") is None
    store.put(replace(a, all_cores_s=9.0))
    assert store.get("g", a.machine.fingerprint).all_cores_s == 9.0


def test_other_machines_warn_and_do_not_answer(tmp_path):
    store = ProfileStore(tmp_path / "p.sqlite")
    old, new = small(version="1.30"), small(version="1.31")
    store.put(old)
    assert store.get("g", new.machine.fingerprint) is None
    (other,) = store.others("g", new.machine.fingerprint)
    assert changes(other.machine, new.machine) == ("onnxruntime 1.30 -> 1.31",)
    assert store.others("g", old.machine.fingerprint) == ()
    newer = replace(small(device="b"), measured_at="2026-05-02T03:04:05+00:00")
    store.put(newer)
    assert store.others("g", "") == (newer, old)


def test_changes_name_devices_too():
    one = Machine("m", (Device("a", cores=4, label="X"),))
    two = Machine("m", (Device("a", cores=8, label="X"), Device("b", "gpu")))
    assert changes(one, two) == ("a: X, 4 cores -> X, 8 cores", "b: absent -> gpu, 1 core")
    assert changes(one, one) == ()


def test_clear(tmp_path):
    store = ProfileStore(tmp_path / "p.sqlite")
    for graph in ("g", "h", "i"):
        store.put(small(graph))
    assert store.clear("g") == 1
    assert store.get("g", small().machine.fingerprint) is None
    assert store.get("h", small().machine.fingerprint) is not None
    assert store.clear() == 2
    assert store.clear() == 0


@pytest.mark.parametrize(
    "garbage", [b"this is no database " * 100, b"SQLite format 3\0" + b"x" * 4096]
)
def test_a_broken_file_is_moved_aside(tmp_path, garbage):
    path = tmp_path / "p.sqlite"
    path.write_bytes(garbage)
    warned = []
    store = ProfileStore(path, warn=warned.append)
    assert store.get("g", "m") is None
    store.put(small())
    assert store.get("g", small().machine.fingerprint) == small()
    assert len(warned) == 1 and "moved to" in warned[0]
    assert (tmp_path / "p.sqlite.broken-1").read_bytes() == garbage


def test_a_damaged_or_foreign_row_counts_as_missing(tmp_path):
    path = tmp_path / "p.sqlite"
    warned = []
    store = ProfileStore(path, warn=warned.append)
    store.put(small())
    with sqlite3.connect(path) as db:
        db.execute("UPDATE profiles SET content = ?", (b"not compressed",))
    db.close()
    assert store.get("g", small().machine.fingerprint) is None
    assert store.others("g", "") == ()
    assert all("measure it again" in w for w in warned) and len(warned) == 2


def test_a_path_that_is_no_folder(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(NotWritten, match="use another folder"):
        ProfileStore(tmp_path / "file" / "p.sqlite").clear()


def test_a_change_begins_anew_where_another_came_between(tmp_path):
    store, profile = ProfileStore(tmp_path / "p.sqlite"), small()
    store.put(profile)
    key, seen = ("g", profile.machine.fingerprint), []

    def slower(stored):
        seen.append(stored.all_cores_s)
        if len(seen) < 3:
            store.put(replace(stored, all_cores_s=float(len(seen))))
        return replace(stored, contention=0.5)

    changed = store.change(*key, slower)
    assert seen == [None, 1.0, 2.0]
    assert changed == store.get(*key) == replace(profile, all_cores_s=2.0, contention=0.5)


def test_what_is_forgotten_meanwhile_is_not_changed(tmp_path):
    store, profile = ProfileStore(tmp_path / "p.sqlite"), small()
    key = ("g", profile.machine.fingerprint)
    assert store.change(*key, lambda stored: stored) is None
    store.put(profile)

    def forgotten(stored):
        store.clear()
        return replace(stored, contention=0.5)

    assert store.change(*key, forgotten) is None and store.get(*key) is None


COUNT_UP = """
import sys
from dataclasses import replace
from profiling.measuring.store import ProfileStore
store = ProfileStore(sys.argv[1])
for _ in range(15):
    store.change("g", sys.argv[2], lambda p: replace(p, all_cores_s=(p.all_cores_s or 0.0) + 1.0))
"""


def test_processes_lose_no_change(tmp_path):
    store, profile = ProfileStore(tmp_path / "p.sqlite"), small()
    store.put(profile)
    key = ("g", profile.machine.fingerprint)
    argv = [sys.executable, "-c", COUNT_UP, str(store.path), key[1]]
    workers = [subprocess.Popen(argv, cwd=Path(__file__).parents[3]) for _ in range(3)]
    assert [worker.wait() for worker in workers] == [0] * 3
    assert store.get(*key).all_cores_s == 45.0


# All begin with a new file at once, again and again.
PUT_MANY = """
import json, sys, time
from dataclasses import replace
from pathlib import Path
from placement.core.profile import profile_from_json
from placement.files.output import NotWritten
from profiling.measuring.store import ProfileStore
folder, who, number = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
profile = profile_from_json(json.load(sys.stdin))
lost = 0
for file in range(10):
    (folder / f"{file}-{who}").touch()
    while len(list(folder.glob(f"{file}-*"))) < number:
        time.sleep(0.001)
    store = ProfileStore(folder / f"{file}.sqlite")
    for i in range(4):
        try:
            store.put(replace(profile, graph=f"{who}-{i}"))
            lost += store.get(f"{who}-{i}", profile.machine.fingerprint) is None
        except NotWritten as error:
            print(error, file=sys.stderr)
            lost += 1
sys.exit(lost)
"""


def test_processes_share_a_store(tmp_path):
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", PUT_MANY, str(tmp_path), str(who), "3"],
            stdin=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[3],
        )
        for who in range(3)
    ]
    for worker in workers:
        worker.stdin.write(json.dumps(small().to_json()))
        worker.stdin.close()
    assert [worker.wait() for worker in workers] == [0] * 3
    assert [ProfileStore(tmp_path / f"{file}.sqlite").clear() for file in range(10)] == [12] * 10


def test_age():
    now = datetime(2026, 1, 2, 4, 4, 5, tzinfo=UTC)
    assert age_s(small(), now) == 3600.0
    assert age_s(replace(small(), measured_at=""), now) is None
    assert age_s(replace(small(), measured_at="2026-01-02T04:04:00"), now) == 5.0


def test_the_home_folder_can_be_chosen(tmp_path, monkeypatch):
    monkeypatch.setenv("PLACEMENT_STUDIO_HOME", str(tmp_path / "mine"))
    assert home() == tmp_path / "mine"
    ProfileStore().put(small())
    assert (tmp_path / "mine" / "profiles.sqlite").exists()
    monkeypatch.delenv("PLACEMENT_STUDIO_HOME")
    assert home().name == "placement-studio"
