"""Hostile JSON: every file of it is refused in one sentence that names file, place and remedy."""

import fnmatch
import io
import json
import re
import zipfile
from pathlib import Path

import pytest

import placement as pl
from placement.cli import reading
from placement.core.machine import MAX_DEVICES
from placement.core.profile import profile_from_json
from placement.core.timeline import timeline_of_run
from placement.costs.what_if import conditions_from_json
from placement.files.input import read_value
from placement.loaders import load
from studio.transfer import archive as project_file
from tests.command import refused
from tests.fuzz.kinds import seeds_of
from tests.instances import canonical_file
from tests.workloads import edges, node, workload

HERE = Path(__file__).parent
MODEL = "onnx-squeezenet"
# The place of a value in a JSON file, such as ops[3].times_s[1].
PLACE = r"[\w.]+(\[\d+\]|\.\w+)"


@pytest.mark.parametrize("name", ["p_int", "n_attr2", "n_idnone"])
def test_graphs_that_broke_the_studio(name):
    said = refused("place", HERE / f"{name}.json", "--placer", "heft")
    assert f"{name}.json" in said
    assert re.search(rf"{PLACE}|line 1", said), said


@pytest.mark.parametrize("name", ["356-profile", "776-profile"])
def test_profiles_that_broke_the_studio(name):
    said = refused(
        *("place", MODEL, "--placer", "heft", "--profile", HERE / f"{name}.json"),
        *("--machine", "two-lanes"),
    )
    assert f"{name}.json" in said and re.search(PLACE, said) and "measure it again" in said


@pytest.fixture(scope="module")
def placed(tmp_path_factory):
    path = tmp_path_factory.mktemp("placed") / "placement.json"
    problem = pl.make_problem(load(MODEL), pl.machine("two-lanes"))
    path.write_text(json.dumps(pl.place(problem, "single").placement.to_json()))
    return path


@pytest.mark.parametrize("name", ["58-run", "80-run", "575-run", "801-run"])
def test_runs_that_broke_the_studio(name, placed, tmp_path):
    said = refused(
        *("export", MODEL, "--machine", "two-lanes", "--analytic", "--placement", placed),
        *("--format", "chrome_trace", "--out", tmp_path / "x.json"),
        *("--run", HERE / f"{name}.json"),
    )
    assert f"{name}.json" in said and re.search(rf"timeline\.{PLACE}", said), said
    assert not (tmp_path / "x.json").exists()


READERS = {
    "problem": lambda path: load(str(path)),
    "workload": lambda path: load(str(path)),
    "networkx": lambda path: load(str(path)),
    "machine": lambda path: pl.machine(str(path)),
    "placement": lambda path: reading.read_placement(str(path)),
    "profile": lambda path: read_value(path, "profile", profile_from_json),
    "run": lambda path: reading.read_timeline(str(path)),
    "pins": lambda path: reading.read_pins(str(path)),
    "names": lambda path: reading.read_names(str(path)),
}


def sentence(kind, path):
    """The one sentence by which a reader refuses a file."""
    with pytest.raises(ValueError, match=re.escape(path.name)) as caught:
        READERS[kind](path)
    said = str(caught.value)
    assert type(caught.value) is ValueError and said.isprintable() and len(said) < 1_000, said
    return said


def written(path, content):
    path.write_text(json.dumps(content))
    return path


def right(kind):
    return json.loads(seeds_of(kind)[0])


def test_the_right_files_are_read(tmp_path):
    for kind, read in READERS.items():
        assert read(written(tmp_path / f"{kind}.json", right(kind))) is not None, kind


BROKEN = {
    "not JSON": b'{"a": ',
    "no text": b"\xff\xfe\xfa",
    "deep": b"[" * 100_000,
    "long number": b'{\n"a": ' + b"9" * 5_000 + b"}",
    "half a character": b'{"format": "placement-problem", "a": "\\ud800"}',
    "empty": b"",
    "a number": b"7",
    "null": b"null",
}


@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize("content", BROKEN.values(), ids=list(BROKEN))
def test_what_is_no_file_of_the_kind(kind, content, tmp_path):
    path = tmp_path / "odd.json"
    path.write_bytes(content)
    sentence(kind, path)


def test_a_long_number_is_found_by_its_line(tmp_path):
    path = tmp_path / "long.json"
    path.write_bytes(BROKEN["long number"])
    assert "line 2" in sentence("profile", path)


def changed(content, place, value):
    """A copy of a JSON value with another value at a place, given by its keys."""
    content = json.loads(json.dumps(content))
    holder = content
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = value
    return content


def name_of(place):
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in place)[1:]


OPS, KERNEL = ("ops", 3), ("kernels", "ops", 2)
SPAN = ("timeline", "spans", 1)
WRONG = [
    ("problem", (*OPS, "times_s", 1), "3"),
    ("problem", (*OPS, "times_s", 1), True),
    ("problem", (*OPS, "times_s", 1), -1),
    ("problem", (*OPS, "times_s", 1), 1e300),
    ("problem", (*OPS, "times_s", 1), 10**400),
    ("problem", (*OPS, "times_s", 1), float("nan")),
    ("problem", (*OPS, "times_s", 1), float("inf")),
    ("problem", (*OPS, "memory_bytes"), 10**30),
    ("problem", (*OPS, "name"), None),
    ("problem", (*OPS, "group"), [1]),
    ("problem", ("devices", 0, "memory_bytes"), "1"),
    ("problem", ("links", 2, "src"), 7),
    ("problem", ("links", 2, "bytes_per_s"), 0),
    ("problem", ("tensors", 1, "consumers"), "n1"),
    ("problem", ("tensors", 1, "bytes"), float("nan")),
    ("problem", ("tensors", 1, "producer"), "nobody"),
    ("problem", ("link_contention",), 1),
    ("networkx", ("nodes", 1, "id"), None),
    ("networkx", ("nodes", 1, "id"), True),
    ("networkx", ("edges", 0, "target"), "nobody"),
    ("networkx", ("graph",), [1]),
    ("machine", ("devices", 1, "cores"), True),
    ("machine", ("devices", 1, "cores"), 0),
    ("machine", ("devices", 1, "memory_bytes"), "1.5"),
    ("machine", ("devices", 1, "flops_per_s"), float("nan")),
    ("machine", ("devices", 1, "core_ids"), "12"),
    ("machine", ("devices", 1, "core_ids"), [-1]),
    ("machine", ("devices", 1, "colour"), "red"),
    ("machine", ("libraries",), [["a"]]),
    ("machine", ("libraries",), [["a", "b", "c"]]),
    ("machine", ("links", 0, "latency_s"), None),
    ("profile", ("sources", 0, 0), 3),
    ("profile", (*KERNEL, "flops"), "many"),
    ("profile", (*KERNEL, "attributes"), [["a", "b", "c"]]),
    ("profile", (*KERNEL, "name"), None),
    ("profile", ("compute_s", 0, 1), "1"),
    ("profile", ("compute_s", 0), 1.0),
    ("profile", ("machine", "devices", 0, "cores"), "two"),
    ("profile", ("call_s",), {}),
    ("run", (*SPAN, "segment"), "1"),
    ("run", (*SPAN, "start_s"), float("nan")),
    ("run", (*SPAN, "end_s"), float("inf")),
    ("run", (*SPAN, "num_bytes"), True),
    ("run", (*SPAN, "after"), "01"),
    ("run", (*SPAN, "kind"), "coffee"),
    ("run", ("timeline", "step_s"), None),
    ("run", ("timeline", "peak_bytes"), [1]),
    ("names", (1,), 7),
]


@pytest.mark.parametrize(("kind", "place", "value"), WRONG)
def test_the_sentence_names_the_place(kind, place, value, tmp_path):
    said = sentence(kind, written(tmp_path / "wrong.json", changed(right(kind), place, value)))
    # A class refuses its own field by name, behind its own place.
    ends = range(1, len(place))
    halves = [(name_of(place[:end]), name_of(place[end:])) for end in ends if place[end] != 0]
    whole = name_of(place)
    assert whole in said or any(a in said and b in said for a, b in halves), said
    assert ";" in said, "there is no remedy"


def test_what_only_the_whole_file_shows(tmp_path):
    def said_of(kind, place, value):
        return sentence(kind, written(tmp_path / "w.json", changed(right(kind), place, value)))

    assert "twice" in said_of("problem", ("ops", 4, "name"), "n1")
    assert "spread" in said_of("profile", ("spread", 0, 0), -1)
    assert "contention" in said_of("profile", ("contention",), 1e300)
    assert "origin" in said_of("profile", ("origin",), "a dream")
    assert "waits for span 99" in said_of("run", (*SPAN, "after"), [99])
    assert "wait for each other" in said_of("run", (*SPAN, "after"), [1])
    assert "a_conv" in said_of("placement", ("device_of", "a_conv"), 3)
    assert "device_of" in said_of("placement", ("device_of",), ["a"])
    assert "graph" in said_of("placement", ("graph",), ["a"])
    assert "calls" in said_of("placement", ("calls",), {"cpu:0": True})
    assert "pins" in said_of("pins", ("a_conv",), 1)
    assert "one id" in said_of("networkx", ("nodes", 1, "id"), right("networkx")["nodes"][0]["id"])


def many_devices(num_devices):
    devices = [{"name": f"d{i}"} for i in range(num_devices)]
    ops = [{"name": "a", "times_s": [1.0] * num_devices}]
    return {"format": "placement-problem", "devices": devices, "ops": ops}


def test_a_machine_has_so_many_devices_at_most(tmp_path):
    for content, kind in (
        (many_devices(20_000), "problem"),
        ({"devices": [{"name": f"d{i}"} for i in range(20_000)]}, "machine"),
    ):
        said = sentence(kind, written(tmp_path / "many.json", content))
        assert "20000 devices" in said and str(MAX_DEVICES) in said and "link" in said
    whole = load(str(written(tmp_path / "most.json", many_devices(MAX_DEVICES)))).problem
    assert pl.place(whole, "heft").value == 1.0


def test_long_lists_of_names_are_cut(tmp_path):
    devices = [{"name": f"d{i}"} for i in range(1_000)]
    wrong = {"devices": devices, "links": [{"src": "d0", "dst": "x", "latency_s": 0}]}
    wrong["links"][0]["bytes_per_s"] = 1
    assert "d7 and 992 more" in sentence("machine", written(tmp_path / "m.json", wrong))
    twice = {"devices": [*devices, {"name": "d500"}]}
    assert "'d500' twice" in sentence("machine", written(tmp_path / "m.json", twice))
    problem = canonical_file()
    problem["tensors"] = [{"producer": "a" * 1_000_000, "consumers": [], "bytes": 1}]
    assert "tensors[0]" in sentence("problem", written(tmp_path / "p.json", problem))


def test_workloads_of_other_types(tmp_path):
    nodes = [node(i, 3.0, 1.0) for i in range(3)]
    whole = workload(nodes, edges((0, 1, 0.5), (1, 2, 0.5)))
    for place, value, words in (
        (("nodes", 1, "id"), None, "node 1"),
        (("nodes", 1, "id"), 2, "id 2"),
        (("nodes", 1, "cpuLatency"), True, "node 1"),
        (("nodes", 1, "size"), float("nan"), "node 1"),
        (("edges", 1, "cost"), "a\nb", "edge 1"),
        (("edges", 1, "destId"), 77, "edge 1"),
        (("maxFPGAs",), 20_000, "devices"),
        (("maxCPUs",), 10**400, "maxCPUs"),
        (("maxCPUs",), "a\nb", "maxCPUs"),
    ):
        path = written(tmp_path / "w.json", changed(whole, place, value))
        assert words in sentence("workload", path)


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ([], "expected an object"),
        ({"speed": {"cpu:0": "2"}}, "speed"),
        ({"speed": {"cpu:0": True}}, "speed"),
        ({"bandwidth": float("nan")}, "bandwidth"),
        ({"memory_bytes": {"cpu:0": 10**400}}, "memory limit of 'cpu:0'"),
        ({"links": [{"src": "a"}]}, "links[0]"),
        ({"links": {"a": 1}}, "links"),
    ],
)
def test_what_if_conditions_of_other_types(content, place):
    with pytest.raises(ValueError, match=re.escape(place)) as caught:
        conditions_from_json(content)
    assert len(str(caught.value)) < 300


def test_timelines_of_pages_are_checked_alike():
    with pytest.raises(ValueError, match=r"spans\[0\]\.after"):
        timeline_of_run(
            {"timeline": {"spans": [{**right("run")["timeline"]["spans"][0], "after": None}]}}
        )


def project_with(name, content):
    """A project file with another content in the member of this name (or folder*ending)."""
    source = zipfile.ZipFile(io.BytesIO(seeds_of("project")[0]))
    members = {n: source.read(n) for n in source.namelist()}
    (member,) = fnmatch.filter(members, name)
    members[member] = content if isinstance(content, bytes) else json.dumps(content).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for each, data in members.items():
            archive.writestr(each, data)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "name",
    [
        "project.json",
        "machines/box.json",
        "rules.json",
        "placements/*index.json",
        "placements/*heft.json",
        "placements/*heft.history",
        "placements/*pins.json",
        "what_if/*index.json",
        "runs/1-abcd.json",
    ],
)
@pytest.mark.parametrize(
    "content",
    [
        [],
        {},
        7,
        None,
        [None],
        {"items": 3, "current": ""},
        b"[" * 100_000,
        b"9" * 5_000,
        b'"\\ud800"',
    ],
    ids=["list", "object", "number", "null", "nulls", "items", "deep", "digits", "half"],
)
def test_members_of_a_project(name, content, tmp_path, monkeypatch):
    """Each is refused in our words or taken for empty; nothing of Python's own gets through."""
    monkeypatch.setenv("PLACEMENT_STUDIO_HOME", str(tmp_path))
    try:
        project_file.unpack(project_with(name, content), lambda path, dims: None)
    except ValueError as error:
        said = str(error)
        assert type(error) is ValueError and said.isprintable() and len(said) < 400
        assert not re.search(r"object is not|indices must|has no attribute|unpack|^'\w+'$", said), (
            said
        )
