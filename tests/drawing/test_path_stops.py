"""The walk along a critical path: it covers the path, in its order, in stops worth a look."""

import math

import pytest

import placement as pl
from placement.drawing import path_stops
from placement.drawing.path_stops import stops
from tests.pages.problems import diamond, everywhere


def walked(**away):
    """The stops of a diamond with these pairs on the other device, and the path they are of."""
    problem = diamond()
    placement = everywhere(problem, **away)
    predicted = pl.simulate(problem, placement)
    path = predicted.critical_path
    return stops(problem, placement, predicted.schedule, path), path, placement


@pytest.mark.parametrize("away", [{}, {"b": "cpu:1"}, {"b": "cpu:1", "d": "cpu:1"}])
def test_stops_add_up_to_the_path_and_keep_its_order(away):
    found, path, placement = walked(**away)
    total_s = sum(span.duration_s for span in path)
    assert math.fsum(stop.duration_s for stop in found) == pytest.approx(total_s)
    places = [span.device for span in path]
    at = -1
    for stop in found:
        at = next(i for i in range(max(at, 0), len(places)) if places[i] == stop.place)
        if stop.kind == "compute":
            assert {placement.device_of[op] for op in stop.ops} == {stop.place}


def test_what_takes_too_little_is_told_with_what_comes_next(monkeypatch):
    found, path, _ = walked()
    assert [span.kind for span in path] == ["compute"], "one device runs all of it as one segment"
    assert found[0].ops == ("a_conv", "a_relu", "b_conv", "b_relu")
    monkeypatch.setattr(path_stops, "LEAST_SHARE", 0.0)
    alone, _, _ = walked()
    assert [stop.ops[0][0] for stop in alone] == ["a", "b", "c", "d"]
    assert [stop.duration_s for stop in alone] == pytest.approx([0.001, 0.01, 0.01, 0.001])


def test_a_tensor_on_its_way_is_a_stop_with_its_ends():
    found, _, _ = walked(b="cpu:1")
    sent = [stop for stop in found if stop.kind == "transfer"]
    assert sent and all("->" in stop.place and stop.num_bytes == 1_000_000 for stop in sent)
    assert sent[0].ops[0][0] in "ab" and len(sent[0].ops) >= 2
