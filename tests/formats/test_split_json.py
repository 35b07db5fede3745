"""Split files: written by --split, read by the placer expert, refused where they do not fit."""

import json
from dataclasses import replace

import pytest

from placement import place
from placement.formats.split_json import node_names, split_from_json, split_to_json
from placement.loaders.workload import problem_from_workload
from tests.command import answer
from tests.instances import random_devices, random_problem
from tests.workloads import diamond, random_workload_problem, shared_file, shared_problem


@pytest.fixture
def problem():
    return problem_from_workload(diamond(), "diamond")


def test_lists_follow_the_devices(problem):
    placement = problem.placement_of([1, 2, 1, 2])
    split = {"cpus": [{"nodes": [2, 4]}], "fpgas": [{"nodes": []}, {"nodes": [1, 3]}]}
    assert split_to_json(problem, placement) == split
    assert split_from_json(problem, split).device_of == placement.device_of


def test_reading_gives_back_what_was_written():
    for seed in range(30):
        problem = random_workload_problem(seed, training=seed % 2 == 1)
        placement = problem.placement_of(random_devices(problem, seed))
        split = json.loads(json.dumps(split_to_json(problem, placement)))
        assert split_from_json(problem, split) == placement, seed


def test_a_forward_part_completes_itself_by_colour_class():
    whole = 0
    for seed in range(40):
        problem = random_workload_problem(seed, training=True)
        placement = problem.placement_of(random_devices(problem, seed))
        graph = problem.graph
        forward = {op.colocation_group for op in graph.ops if op.phase == "forward"} - {None}
        left = {
            number
            for number, name in node_names(graph).items()
            for op in [graph.ops[graph.index[name]]]
            if op.phase == "backward" and op.colocation_group in forward
        }
        split = {
            key: [{"nodes": [n for n in row["nodes"] if n not in left]} for row in rows]
            for key, rows in split_to_json(problem, placement).items()
        }
        assert split_from_json(problem, split) == placement, seed
        whole += len(left) > 1
    assert whole > 20


@pytest.mark.parametrize(
    ("expert", "file", "value_ms"),
    [
        ("bert24_inference", "layer_bert24_training", 49.405),
        ("gnmt_inference", "layer_gnmt_training", 137.154),
    ],
)
def test_experts_for_inference_are_experts_for_training(expert, file, value_ms):
    """As the authors' own program completes them; the values are theirs."""
    problem = replace(shared_problem("throughput", file), objective="throughput")
    settings = {"split": str(shared_file("experts", f"{expert}_expert"))}
    placed = place(problem, "expert", settings=settings)
    assert placed.value * 1e3 == pytest.approx(value_ms, rel=1e-4)


@pytest.mark.parametrize(
    ("split", "part"),
    [
        ([], "neither list"),
        ({"nodes": []}, "neither list"),
        ({"fpgas": [1]}, "not a list"),
        ({"fpgas": [{"nodes": 1}]}, "not a list"),
        ({"fpgas": [{"nodes": []}] * 3}, "3 fpgas, the workload has 2"),
        ({"cpus": [{"nodes": [1, 2, 3, 99]}]}, "node 99"),
        ({"cpus": [{"nodes": [1, 2, 3, "4"]}]}, "node '4'"),
        ({"cpus": [{"nodes": [1, 2]}], "fpgas": [{"nodes": [2, 3, 4]}]}, "node 2 twice"),
        ({"cpus": [{"nodes": [1, 2]}], "fpgas": [{"nodes": [4]}]}, "node 3 no device"),
    ],
)
def test_splits_that_do_not_fit(problem, split, part, tmp_path):
    path = tmp_path / "split.json"
    path.write_text(json.dumps(split))
    with pytest.raises(ValueError, match=part) as error:
        place(problem, "expert", settings={"split": str(path)})
    assert "split.json" in str(error.value) and str(error.value).endswith(".")


def test_only_workloads_have_node_ids():
    problem = random_problem(1)
    placement = problem.placement_of([0] * problem.num_units)
    with pytest.raises(ValueError, match="'op0' has no node id"):
        split_to_json(problem, placement)


def test_the_expert_needs_a_file(problem):
    with pytest.raises(ValueError, match="needs a split file"):
        place(problem, "expert")
    with pytest.raises(ValueError, match=r"no file 'nowhere\.json'"):
        place(problem, "expert", settings={"split": "nowhere.json"})


def test_the_command_line_writes_and_reads_splits_and_prints_milliseconds(tmp_path):
    workload, split, out = (tmp_path / name for name in ("w.json", "split.json", "out.json"))
    workload.write_text(json.dumps(diamond()))
    placed = answer(
        *("place", workload, "--placer", "manual", "--set", "default=acc:1"),
        *("--objective", "throughput", "--split", split, "--out", out),
    )
    assert (placed["value"], placed["unit"]) == (pytest.approx(10.0), "ms")
    assert 0 < placed["lower_bound"] <= placed["value"]
    written = json.loads(split.read_text())
    assert written == {"cpus": [{"nodes": []}], "fpgas": [{"nodes": []}, {"nodes": [1, 2, 3, 4]}]}
    simulated = answer("simulate", workload, "--placement", out)
    assert (simulated["value"], simulated["unit"]) == (pytest.approx(10.0), "ms")
    assert simulated["critical_path"][-1]["end_s"] == pytest.approx(0.010)
    compared = answer("compare", workload, "--placers", "manual,single")
    assert {row["unit"] for row in compared} == {"ms"}
    assert compared[0]["value"] == pytest.approx(10.0)


def test_an_experts_file_by_command():
    workload = shared_file("throughput", "layer_gnmt_inference")
    expert = shared_file("experts", "gnmt_inference_expert")
    placed = answer(
        *("place", workload, "--placer", "expert", "--set", f"split={expert}"),
        *("--objective", "throughput"),
    )
    assert placed["value"] == pytest.approx(46.209, rel=1e-4) and placed["violations"] == []
