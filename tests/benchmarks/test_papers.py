"""The tables of the papers' comparisons: on files as small as can be checked by hand."""

import json
import math
from dataclasses import replace

import numpy as np

from benchmarks import papers
from placement import place
from tests.instances import random_problem
from tests.workloads import diamond


def test_methods_stand_beside_each_other_for_each_file(tmp_path, monkeypatch):
    monkeypatch.setattr(papers, "WORKLOADS", tmp_path)
    for objective in ("throughput", "latency"):
        (tmp_path / objective).mkdir()
        (tmp_path / objective / "diamond.json").write_text(json.dumps(diamond()))
        (row,) = papers.splits(objective, 1.0)
        best = float(row["any split"])
        assert row["file"] == "diamond" and row["expert"] == papers.NONE
        assert float(row["bound"]) <= best * (1 + 1e-6)
        methods = papers.THROUGHPUT if objective == "throughput" else papers.LATENCY
        assert all(best <= float(row[told]) for told in methods)


def test_a_slower_device_is_the_one_that_computes_most():
    problem = random_problem(3, num_ops=20, num_devices=3)
    placement = place(problem, "ceft_pbqp").placement
    row = papers._adjusted(problem, {papers.PAPER: placement, "HEFT": placement})
    on = problem.kernel_devices(placement)
    work_s = [problem.costs.compute_s[on == d, d].sum() for d in range(3)]
    assert row["slower"] == problem.machine.devices[int(np.argmax(work_s))].name
    assert float(row["adjusted"]) <= float(row["CEFT + PBQP stays"])
    assert row["HEFT stays"] == row["CEFT + PBQP stays"]


def test_what_finds_nothing_is_a_dash():
    assert papers._number(math.inf) == papers.NONE
    tight = random_problem(2, num_ops=24, num_devices=2)
    devices = tuple(replace(d, memory_bytes=3) for d in tight.machine.devices)
    tight = replace(tight, machine=replace(tight.machine, devices=devices))
    assert papers._ms(tight, papers._placement(tight, "round_robin", {})) == papers.NONE
