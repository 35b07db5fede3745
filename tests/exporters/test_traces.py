"""Traces as their readers see them: the Trace Event Format, and Perfetto's own messages."""

import dataclasses
import json
import math
from collections import defaultdict

import pytest
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

from placement.core.timeline import Span, Timeline
from placement.exporters._trace.protobuf import Fixed64, message, varint
from placement.exporters._trace.tracks import steps
from placement.loaders import load
from tests.exporters.exports import dealt, export_of, hostile_model, measured_like, written

MODELS = {"squeezenet": lambda: load("onnx-squeezenet"), "hostile": hostile_model}


@pytest.fixture(params=MODELS)
def export(request):
    model = MODELS[request.param]()
    made = export_of(model, dealt(model.graph, 2), label="mine")
    return dataclasses.replace(made, measured=measured_like(made))


def chrome(export, folder):
    return json.loads(written("chrome-trace", export, folder).read_text(encoding="utf-8"))


def perfetto(export, folder):
    trace = Trace()
    trace.ParseFromString(written("perfetto-trace", export, folder).read_bytes())
    return trace


def test_chrome_events_are_the_spans_of_both_timelines(export, tmp_path):
    content = chrome(export, tmp_path)
    events = content["traceEvents"]
    assert content["displayTimeUnit"] == "ms" and content["otherData"]["placement"] == "mine"
    named = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    slices = [e for e in events if e["ph"] == "X"]
    for pid, timeline in enumerate((export.simulated.timeline, export.measured), 1):
        found = sorted(
            (named[pid, e["tid"]], e["name"], e["ts"], e["ts"] + e["dur"])
            for e in slices
            if e["pid"] == pid
        )
        expected = sorted((s.device, s.name, s.start_s, s.end_s) for s in timeline.spans)
        assert len(found) == len(expected)
        for (row, name, start, end), (device, its, start_s, end_s) in zip(
            found, expected, strict=True
        ):
            assert (row, name) == (device, its)
            assert math.isclose(start, start_s * 1e6, abs_tol=1e-3)
            assert math.isclose(end, end_s * 1e6, abs_tol=2e-3)


def test_chrome_events_have_what_the_format_asks_for(export, tmp_path):
    events = chrome(export, tmp_path)["traceEvents"]
    for event in events:
        assert {"name", "ph", "pid", "tid", "ts"} <= set(event), event
        assert event["ph"] in "XMsf"
        if event["ph"] == "X":
            assert event["dur"] >= 0 and event["cat"] in ("computing", "sending")
    starts = {(e["pid"], e["id"]): e for e in events if e["ph"] == "s"}
    ends = {(e["pid"], e["id"]): e for e in events if e["ph"] == "f"}
    assert set(starts) == set(ends)
    assert all(ends[key]["ts"] >= starts[key]["ts"] for key in starts)


def test_perfetto_reads_the_same_slices(export, tmp_path):
    trace = perfetto(export, tmp_path)
    tracks = {p.track_descriptor.uuid: p.track_descriptor for p in trace.packet if
              p.HasField("track_descriptor")}  # fmt: skip
    roots = [t for t in tracks.values() if not t.HasField("parent_uuid")]
    assert [t.name.split()[0] for t in roots] == ["Predicted", "Measured"]
    assert trace.packet[0].sequence_flags == 1
    assert all(p.trusted_packet_sequence_id for p in trace.packet)
    open_slices, found = {}, defaultdict(list)
    last_ns = 0
    for packet in trace.packet:
        if not packet.HasField("track_event"):
            continue
        event, at = packet.track_event, packet.timestamp
        assert at >= last_ns
        last_ns = at
        if event.type == TrackEvent.TYPE_SLICE_BEGIN:
            assert event.track_uuid not in open_slices, "slices of a track do not overlap"
            open_slices[event.track_uuid] = (event.name, at)
        else:
            name, start = open_slices.pop(event.track_uuid)
            track = tracks[event.track_uuid]
            found[track.parent_uuid].append((track.name, name, start, at))
    assert not open_slices
    for root, step in zip(roots, steps(export), strict=True):
        expected = [
            (t.name, s.name.encode("utf-8", "replace").decode(), s.start_ns, s.end_ns)
            for t in step.tracks
            for s in t.slices
        ]
        assert sorted(found[root.uuid]) == sorted(expected)


def test_perfetto_flows_join_what_waited_with_what_it_waited_for(export, tmp_path):
    events = [p.track_event for p in perfetto(export, tmp_path).packet if p.HasField("track_event")]
    starts = sorted(flow for event in events for flow in event.flow_ids)
    ends = sorted(flow for event in events for flow in event.terminating_flow_ids)
    assert starts == ends == sorted(set(starts))
    assert len(starts) == sum(len(step.arrows) for step in steps(export))


def test_what_overlaps_on_one_device_gets_tracks_of_its_own():
    """Three calls at once on a CPU of any width, then one when all have ended."""
    export = export_of(load("onnx-squeezenet"))
    times = ((0.0, 3.0), (1.0, 2.0), (1.5, 4.0), (4.0, 5.0))
    spans = tuple(Span("compute", f"c{i}", "cpu:0", a, b) for i, (a, b) in enumerate(times))
    step = steps(dataclasses.replace(export, measured=Timeline(spans, 5.0, "measured")))[1]
    rows = {t.name: [s.name for s in t.slices] for t in step.tracks if t.name.startswith("cpu:0")}
    assert rows == {"cpu:0": ["c0", "c3"], "cpu:0 (2)": ["c1"], "cpu:0 (3)": ["c2"]}


def test_the_wire_format():
    """The examples of the protocol buffers' documentation, and each kind of value."""
    assert varint(150) == bytes([0x96, 0x01]) and varint(0) == b"\0"
    assert message([(1, 150)]) == bytes([0x08, 0x96, 0x01])
    assert message([(2, "testing")]) == b"\x12\x07testing"
    assert message([(3, message([(1, 150)]))]) == b"\x1a\x03\x08\x96\x01"
    assert message([(47, Fixed64(1))]) == b"\xf9\x02\x01\0\0\0\0\0\0\0"
    assert varint(-1) == b"\xff" * 9 + b"\x01"
