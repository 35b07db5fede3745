"""What the command line refuses: exit status 2 and one line that says what is wrong."""

import json

import pytest

from placement.loaders import load
from tests.command import canonical, refused
from tests.instances import canonical_file

assert canonical


def test_compare_refuses_a_placer_that_is_for_something_else(canonical):
    for names, word in (("heft,nobody", "nobody"), ("heft,linear_dp", "linear_dp")):
        assert word in refused("compare", canonical, "--placers", names)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("inspect", "no-such-model"), "no-such-model"),
        (("inspect", "onnx-resnet51"), "onnx-resnet50"),
        (("inspect", "README.md"), "README.md"),
        (("nonsense",), "nonsense"),
        (("place", "onnx-squeezenet", "--placer", "magic", "--analytic"), "heft"),
        (("place", "onnx-squeezenet", "--analytic", "--set", "x=1"), "no setting 'x'"),
        (("place", "onnx-squeezenet", "--analytic", "--pin", "nope"), "OP=DEVICE"),
        (("place", "onnx-squeezenet", "--analytic", "--pin", "nope=cpu:0"), "'nope'"),
        (("place", "onnx-squeezenet", "--machine", "mars"), "mars"),
        (("inspect", "onnx-squeezenet", "--dim", "batch=x"), "batch=x"),
        (("inspect", "onnx-squeezenet", "--dim", "batch=2"), "batch"),
        (("simulate", "onnx-squeezenet", "--analytic", "--placement", "gone.json"), "gone.json"),
        (("run", "onnx-squeezenet", "--placer", "heft", "--machine", "nvlink-8gpu"), "not on this"),
        (("machine", "--lanes", "999"), "999"),
    ],
)
def test_bad_input_gets_one_line(arguments, words):
    assert words in refused(*arguments)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--machine", "pcie-4gpu"), "its own machine"),
        (("--lanes", "2"), "its own machine"),
        (("--time-limit", "nan"), "time limit"),
        (("--time-limit", "-3"), "time limit"),
        (("--seed", "-5"), "seed"),
    ],
)
def test_options_that_would_do_nothing_are_refused(canonical, arguments, words):
    assert words in refused("place", canonical, *arguments)


HUGE = 10**400


def op(**fields):
    return {"ops": [{"name": "a", "times_s": [1, 1, 1], **fields}], "tensors": []}


def tensor(**fields):
    return {"tensors": [{"producer": "n1", "consumers": ["n2"], "bytes": 1, **fields}]}


def link(**fields):
    return {"links": [{"src": "P1", "dst": "P2", "latency_s": 0, "bytes_per_s": 1, **fields}]}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (op(times_s=[HUGE, 1, 1]), "ops[0].times_s[0]"),
        (op(memory_bytes=HUGE), "ops[0]: memory_bytes"),
        (tensor(bytes=HUGE), "tensors[0]: bytes"),
        (tensor(consumers=[["n2"]]), "tensors[0].consumers[0]: expected a text"),
        (tensor(producer={}), "tensors[0].producer: expected a text"),
        ({"devices": [{"name": f"P{i}", "memory_bytes": HUGE} for i in (1, 2, 3)]}, "memory_bytes"),
        (link(latency_s=HUGE), "links[0].latency_s"),
        (link(bytes_per_s=1e-320), "Link 'P1' to 'P2' has bytes_per_s 1e-320"),
    ],
)
def test_absurd_numbers_in_a_problem_file_get_one_line(canonical, change, words):
    """In the words of the loader, which the command line prints as they are."""
    canonical.write_text(json.dumps({**canonical_file(), **change}))
    with pytest.raises(ValueError) as error:
        load(str(canonical))
    assert words in str(error.value) and "\n" not in str(error.value)


def test_what_a_loader_refuses_is_what_is_printed(canonical):
    canonical.write_text(json.dumps({**canonical_file(), **tensor(bytes=HUGE)}))
    with pytest.raises(ValueError) as error:
        load(str(canonical))
    assert str(error.value) in refused("place", canonical)


@pytest.mark.parametrize("field", ["memory_bytes", "flops_per_s", "memory_bytes_per_s"])
def test_absurd_numbers_in_a_machine_file_get_one_line(tmp_path, field):
    path = tmp_path / "m.json"
    path.write_text(json.dumps({"name": "m", "devices": [{"name": "d", field: HUGE}]}))
    said = refused("place", "onnx-squeezenet", "--machine", path)
    assert f"devices[0].{field}" in said or f"Device 'd' has {field}" in said


def test_a_profile_of_something_else_is_refused(tmp_path):
    import placement as pl
    from placement.core.profile import Profile

    model, machine = pl.load("onnx-squeezenet"), pl.machine("null-2")
    graph = model.graph
    profile = Profile(
        graph=graph.fingerprint,
        machine=machine,
        kernels=graph,
        sources=(("zzz",),) * len(graph.ops),
        compute_s=((1.0, 1.0),) * len(graph.ops),
        spread=((0.0, 0.0),) * len(graph.ops),
        call_s=(0.0, 0.0),
        step_s=(None, None),
    )
    path = tmp_path / "p.json"
    path.write_text(json.dumps(profile.to_json()))
    arguments = ("place", "onnx-squeezenet", "--machine", "null-2", "--profile", path)
    assert "'zzz'" in refused(*arguments)
    content = {**profile.to_json(), "graph": "other"}
    path.write_text(json.dumps(content))
    assert "another graph" in refused(*arguments)


def test_export_refuses_a_placement_of_another_graph(canonical, tmp_path):
    other = tmp_path / "p.json"
    other.write_text(json.dumps({"graph": "feed", "device_of": {"n1": "P1"}}))
    out = tmp_path / "out.json"
    arguments = ("--placement", other, "--format", "networkx", "--out", out)
    assert "another graph" in refused("export", canonical, *arguments)
    assert not out.exists()


def test_the_canonical_example_cannot_run_live(canonical):
    assert "executable" in refused("run", canonical, "--placer", "heft")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--keep", "{here}/base.json"), "belong together"),
        (("--pins", "{here}/move.json"), "expected an object, got a list"),
        (("--pins", "{here}/gone.json"), "no file"),
        (("--pin=nowhere=P1", "--mend"), "'nowhere' is pinned but not in"),
        (
            ("--keep", "{here}/base.json", "--move", "{here}/base.json"),
            "expected a list, got an object",
        ),
        (("--keep", "{here}/odd.json", "--move", "{here}/move.json"), "no device 'P9'"),
    ],
)
def test_what_cannot_be_held_is_said_in_one_line(canonical, tmp_path, options, said):
    names = {f"n{i}": "P1" for i in range(1, 11)}
    (tmp_path / "base.json").write_text(json.dumps({"device_of": names}))
    (tmp_path / "odd.json").write_text(json.dumps({"device_of": {**names, "n3": "P9"}}))
    (tmp_path / "move.json").write_text(json.dumps(["n1"]))
    given = [option.format(here=tmp_path) for option in options]
    assert said in refused("place", canonical, *given)
