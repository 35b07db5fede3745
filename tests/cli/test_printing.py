"""Answers for a person: three digits and a unit, where JSON has all of them."""

import pytest

from placement.api.results.placing import CompareRow
from placement.cli.printing import lines_of, table_of
from placement.core.decoding import decode
from placement.core.graph import Graph, Op
from placement.core.model import Model


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
        ({"groups": tuple(range(203))}, "groups: 203 numbers, which --json lists"),
        ({"range": (30.1, 32.9), "unit": "ms"}, "range: 30.1 ms to 32.9 ms"),
        ({"predicted_range_s": [0.03, 0.033]}, "predicted_range_s: 30 ms to 33 ms"),
        ({"lower_bound": float("inf"), "unit": "s"}, "lower_bound: inf"),
    ],
)
def test_a_person_reads_units_and_three_digits(answer, line):
    assert list(lines_of(answer)) == [line]


def test_a_model_shows_itself_in_one_line():
    model = Model(Graph("small", (Op("a", "Conv"),), ()))
    assert repr(model) == "Model('small', num_ops=1)"


def test_a_comparison_says_how_loads_are_charged():
    rows = [compared(name, 0.03, rules="transfers overlap compute") for name in ("auto", "heft")]
    assert list(table_of(rows))[-1] == "rules: transfers overlap compute"


def compared(placer, value, **changes):
    """A row of a comparison, as `pipeline.compare` gives it."""
    row = {
        "placer": placer,
        "value": value,
        "unit": "s",
        "lower_bound": 0.0312,
        "gap": 0.25,
        "proven_optimal": False,
        "seconds": 0.00125,
        "costs": "analytic",
        "violations": [],
        "measured_s": None,
        "outputs_match": None,
        "error": "",
        "account": "",
    }
    return decode(row | changes, CompareRow)


def test_a_comparison_is_a_table_with_units():
    failed = CompareRow(placer="exact", value=None, unit="s", error="It does not fit.")
    best = compared("greedy_fill", 0.0312, gap=0.0, proven_optimal=True, account="single 39 ms")
    assert list(table_of([compared("heft", 0.039), best, failed])) == [
        "Placer       Predicted  Fastest ≥  Gap  Proven   Search",
        "heft             39 ms    31.2 ms  25%       –  1.25 ms",
        "greedy_fill    31.2 ms    31.2 ms   0%     yes  1.25 ms",
        "exact                –          –    –       –        –",
        "greedy_fill: single 39 ms",
        "exact: It does not fit.",
        "times: estimated by formula, not measured",
    ]


def test_rows_within_what_predictions_err_by_are_a_tie():
    best = compared("heft", 0.030, range=(0.029, 0.033))
    near, far = compared("peft", 0.032, range=(0.031, 0.036)), compared("single", 0.04)
    table = list(table_of([far, best, near]))
    assert "29 ms to 33 ms" in table[2] and table[0].split()[-1] == "Tie"
    assert [line.split()[-1] for line in table[1:4]] == ["–", "–", "best"]


def test_a_comparison_that_ran_tells_what_was_measured_and_what_is_not_allowed():
    row = compared("heft", 0.039, measured_s=0.042, outputs_match=False, violations=["op a: no"])
    table = list(table_of([row]))
    assert table[0].split()[-3:] == ["Measured", "Outputs", "Search"]
    assert table[1].split()[-5:] == ["42", "ms", "differ", "1.25", "ms"]
    assert table[2] == "heft: op a: no"
