"""Tables as spreadsheets read them: complete, exact, and without a formula from a model's names."""

import csv
import dataclasses
import io

import numpy as np

from placement.core.model import Model
from placement.costs.op_times import op_seconds, placed_seconds
from placement.exporters import Export
from placement.exporters._rows import csv_text
from placement.loaders import load
from tests.exporters.exports import HOSTILE_NAMES, export_of, hostile_model, measured_like, written
from tests.pages.problems import diamond, everywhere


def rows_of(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_one_row_per_op_with_what_is_known_of_it(tmp_path):
    export = export_of(load("onnx-squeezenet"))
    graph, rows = export.model.graph, rows_of(written("csv", export, tmp_path))
    assert [row["op"] for row in rows] == [op.name for op in graph.ops]
    assert [row["device"] for row in rows] == list(export.placement.device_of.values())
    assert sum(int(row["weight_bytes"]) for row in rows) == graph.param_bytes
    assert sum(float(row["flops"]) for row in rows) == graph.flops
    spans = {s.segment: s for s in export.simulated.timeline.spans if s.kind == "compute"}
    schedule = export.simulated.schedule
    for row in rows:
        segment = schedule.segment_of[row["op"]]
        assert int(row["segment"]) == segment
        assert float(row["start_s"]) == spans[segment].start_s
        assert float(row["end_s"]) == spans[segment].end_s
    seconds = np.array([[float(row[f"seconds on cpu:{d}"]) for d in (0, 1)] for row in rows])
    np.testing.assert_array_equal(seconds, export.problem.costs.compute_s)


def test_ops_share_the_time_of_their_kernel_and_what_cannot_run_has_none(tmp_path):
    """Two ops a kernel, 10 ms for b and c; b does not run on cpu:1."""
    problem = diamond(runs_b=False)
    shares = op_seconds(problem)
    for kernel, ops in enumerate(problem.sources):
        np.testing.assert_allclose(shares[list(ops)].sum(axis=0), problem.costs.compute_s[kernel])
    export = Export(Model(problem.graph), problem, everywhere(problem))
    rows = {row["op"]: row for row in rows_of(written("csv", export, tmp_path))}
    assert rows["b_conv"]["seconds on cpu:0"] == "0.005" and rows["b_conv"]["critical"] == "yes"
    assert rows["b_relu"]["seconds on cpu:1"] == ""


def test_arithmetic_decides_the_shares_of_a_kernel_and_the_table_of_the_page_has_the_same(tmp_path):
    plain = diamond()
    flops = {"Conv": 3e6, "Relu": 1e6}
    ops = tuple(dataclasses.replace(op, flops=flops[op.kind]) for op in plain.graph.ops)
    problem = dataclasses.replace(plain, graph=dataclasses.replace(plain.graph, ops=ops))
    placed = everywhere(problem, b="cpu:1")
    export = Export(Model(problem.graph), problem, placed)
    on_page = placed_seconds(problem, placed)
    for row, of_page in zip(rows_of(written("csv", export, tmp_path)), on_page, strict=True):
        kernel_s = problem.costs.compute_s[problem.kernels.index[row["op"][0]]]
        share = 0.75 if row["kind"] == "Conv" else 0.25
        told = [float(row[f"seconds on cpu:{d}"]) for d in (0, 1)]
        np.testing.assert_allclose(told, share * kernel_s)
        assert of_page == told[int(row["device"][-1])]


def test_hostile_names_stay_text_in_one_cell(tmp_path):
    export = export_of(hostile_model())
    rows = rows_of(written("csv", export, tmp_path))
    for row, name in zip(rows, HOSTILE_NAMES, strict=True):
        assert row["op"].lstrip("'") == name.replace("\0", "\ufffd")
        assert not row["op"].startswith(("=", "+", "-", "@"))


def test_cells():
    text = csv_text(("a", "=b"), [(-1.5, "-1.5"), (None, True), (float("inf"), "x\r\ny")])
    assert list(csv.reader(io.StringIO(text, newline=""))) == [
        ["a", "'=b"],
        ["-1.5", "'-1.5"],
        ["", "yes"],
        ["", "x\r\ny"],
    ]


def test_the_timeline_table_holds_every_span(tmp_path):
    export = export_of(load("onnx-squeezenet"))
    export = dataclasses.replace(export, measured=measured_like(export))
    rows = rows_of(written("timeline-csv", export, tmp_path))
    spans = export.simulated.timeline.spans
    assert [row["timeline"] for row in rows] == ["predicted"] * len(spans) + ["measured"] * len(
        spans
    )
    for row, span in zip(rows, spans, strict=False):
        assert (row["kind"], row["where"], row["name"]) == (span.kind, span.device, span.name)
        assert (float(row["start_s"]), float(row["end_s"])) == (span.start_s, span.end_s)
        assert row["bytes"] == (str(span.num_bytes) if span.kind == "transfer" else "")
