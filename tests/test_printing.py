"""Answers for a person: three digits and a unit, where JSON has all of them."""

import pytest

from placement.core.graph import Graph, Op
from placement.core.model import Model
from placement.printing import lines_of


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        ({"value": 0.030492124923993242, "unit": "s"}, "value: 30.5 ms"),
        ({"value": 68.25, "unit": "ms"}, "value: 68.25 ms"),
        ({"step_s": {"cpu:0": 0.06108, "cpu:1": None}}, "step_s: cpu:0 61.1 ms, cpu:1 unknown"),
        ({"error": -0.738}, "error: -73.8%"),
        ({"error": "It does not fit."}, "error: It does not fit."),
        ({"peak_bytes": {"cpu:0": 2**20}}, "peak_bytes: cpu:0 1 MiB"),
        ({"samples_per_s": 3.14159265}, "samples_per_s: 3.14159"),
        ({"violations": []}, "violations: none"),
        ({"outputs_match": True}, "outputs_match: yes"),
        ({"inputs": [{"name": "x", "shape": [1, 8]}]}, "inputs: name x, shape [1, 8]"),
        ({"critical_path": [{"name": "n"}] * 57}, "critical_path: 57 rows, which --json lists"),
        ({"lower_bound": float("inf"), "unit": "s"}, "lower_bound: inf"),
    ],
)
def test_a_person_reads_units_and_three_digits(answer, line):
    assert list(lines_of(answer)) == [line]


def test_a_model_shows_itself_in_one_line():
    model = Model(Graph("small", (Op("a", "Conv"),), ()))
    assert repr(model) == "Model('small', num_ops=1)"
