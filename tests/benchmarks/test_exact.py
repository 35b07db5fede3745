"""The stand-ins of the benchmark of the exact method, on a chain worked out by hand."""

from benchmarks.exact import mirrored


def node(number, seconds):
    times = {"fpgaLatency": seconds, "cpuLatency": 10 * seconds, "isBackwardNode": False}
    return {"id": number, "size": 8.0, "supportedOnFpga": True, **times}


def test_a_mirrored_graph_trains_what_has_inputs_or_work():
    """A weight feeds an op, and that one another: the weight gets no gradient of its own."""
    edges = [
        {"sourceId": 0, "destId": 1, "cost": 3.0},
        {"sourceId": 1, "destId": 2, "cost": 5.0},
    ]
    content = mirrored({"nodes": [node(0, 0.0), node(1, 2.0), node(2, 1.0)], "edges": edges})
    backward = {n["id"]: n for n in content["nodes"] if n["isBackwardNode"]}
    assert sorted(backward) == [4, 5]
    assert backward[4]["fpgaLatency"] == 4.0
    assert backward[4]["size"] == 0
    classes = {n["id"]: n["colorClass"] for n in content["nodes"]}
    assert classes[1] == classes[4] != classes[2] == classes[5]
    added = [(e["sourceId"], e["destId"], e["cost"]) for e in content["edges"][2:]]
    assert added == [(0, 4, 3.0), (1, 5, 5.0), (5, 4, 5.0)]
