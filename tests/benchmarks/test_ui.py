"""The rules of the benchmark of the page: when a picture is settled, and what the figures say."""

import json

import numpy as np
import onnx
import pytest

from benchmarks._page import files, sides, table, watch
from benchmarks._page.table import Found
from benchmarks._page.watch import Box, Settled
from placement.loaders import load

STUDIO = table.STUDIO


def frames():
    """Frames whose images are single letters: a letter's place in the alphabet is the share of
    pixels, in thousandths, that are black and not white."""

    def decode(image):
        picture = np.full(10_000, 255, np.int16)
        picture[: (image[0] - ord("a")) * 10] = 0
        return picture

    return watch.Frames(decode)


def test_a_picture_rests_after_its_last_change():
    seen = frames()
    assert not seen.rest_at(1e9)
    seen.add(10.0, b"a")
    seen.add(11.0, b"c")
    seen.add(12.0, b"c")
    assert seen.changed_s == 11.0
    assert not seen.rest_at(11.0 + watch.QUIET_S - 0.01)
    assert seen.rest_at(11.0 + watch.QUIET_S)
    assert seen.last == b"c"


def test_small_changes_count_once_they_add_up():
    one, few = np.zeros(10_000, np.int16), np.zeros(10_000, np.int16)
    few[:4] = 255
    assert not watch.differs(one, few)
    few[:5] = 255
    assert watch.differs(one, few)
    assert not watch.differs(one, one + watch.LEVELS)
    assert watch.differs(one, one[:100])
    seen = watch.Frames(lambda image: np.where(np.arange(10_000) < image[0], 255, 0))
    for second, num_white in enumerate((0, 3, 6, 9)):
        seen.add(float(second), bytes([num_white]))
    assert seen.changed_s == 2.0


def test_a_part_of_the_window_is_looked_at_by_itself():
    seen = watch.Frames(lambda image: np.full((8, 8), image[0]), Box(0.3, 0.5, 0.9, 1.0))
    outside, inside = np.zeros((8, 8)), np.zeros((8, 8))
    outside[:4, :], outside[:, :3], outside[:, 7] = 255, 255, 255
    inside[4, 3] = 255
    seen._decode = {b"0": np.zeros((8, 8)), b"1": outside, b"2": inside}.get
    for second, image in enumerate((b"0", b"1", b"2", b"1")):
        seen.add(float(second), image)
        assert seen.changed_s == (0.0, 0.0, 2.0, 3.0)[second]


def test_frame_rates_by_stretch():
    steady = [i * 20.0 for i in range(101)]
    assert watch.rates(steady) == pytest.approx([50.0] * 4)
    assert watch.rates([0.0, 100.0, 600.0, 700.0]) == pytest.approx([2000 / 600])
    assert watch.rates([0.0]) == [0.0]


def found(**seconds):
    """Loads of Inception v2 and of 10,000 ops by side."""
    made = Found()
    for file in ("Inception v2", "10,000 ops"):
        for side, values in seconds.items():
            for value in values:
                made.load(file, STUDIO if side == "studio" else side, Settled(value, value + 1.0))
    return made


def test_the_faster_peer_counts_in_empty_and_in_used_profiles():
    made = found(studio=[2.0, 2.4, 9.0], netron=[2.5, 2.5], explorer=[3.0])
    for side, seconds in ((STUDIO, 1.2), ("netron", 1.1), ("explorer", 1.0)):
        made.load("Inception v2", side, Settled(seconds, seconds), used=True)
    assert [(row.what, row.met) for row in table.wishes(made)] == [
        ("Inception v2, opened", True),  # 2.4 against 2.5
        ("10,000 ops, opened", True),
        ("Inception v2, opened, used profile", False),  # 1.2 against 1.0
    ]
    assert "| Inception v2, used profile | 1.2" in table.text(made)


def test_shares_of_the_window_are_held_against_what_is_wanted():
    made = Found(shares={"dock open": 0.41, "dock and inspector folded": 0.69})
    rows = table.wishes(made)
    assert [(row.values, row.met) for row in rows] == [((0.41,), True), ((0.69,), False)]


def test_without_a_peer_there_is_nothing_to_meet():
    alone = found(studio=[2.0])
    alone.missing["Netron"] = "did not start"
    assert {row.met for row in table.wishes(alone)} == {None}
    assert "Netron: did not start." in table.text(alone)
    refused = found(netron=[1.0])
    assert {row.met for row in table.wishes(refused)} == {None}


def test_limits_of_the_studio_alone():
    made = Found(
        confirmed=[0.1, 0.19, 0.5],
        painted=[0.01],
        message_bytes=[90_000, 120_000, 130_000],
        ghosts=[0.05, 0.14, 0.3],
        started=[3.8, 4.1, 4.3],
        pans={STUDIO: [29.0, 31.0, 60.0], "Netron": [60.0]},
    )
    made.load("30,000 ops", STUDIO, Settled(8.1, 9.0))
    met = {row.what: row.met for row in table.wishes(made)}
    assert met == {
        "30,000 ops, opened": False,
        "3,000 ops, key to Python's repaint": True,
        "3,000 ops, key to first repaint": None,
        "3,000 ops, of that the key was down": None,
        "received per edit": False,
        "1,000 ops, entering a device to the ghost of the timeline": True,
        "Inception v2, start of the server to the settled picture": False,
        "3,000 ops, panning": True,
    }
    told = table.text(made)
    assert "120,000 (90,000 to 130,000) bytes" in told
    assert "**no**" in told
    assert json.loads(json.dumps(table.to_json(made)))["wishes"][0]["met"] is False


@pytest.mark.parametrize("num_ops", [12, 100, 1_000])
def test_made_up_models_are_valid_and_have_that_many_ops(num_ops, tmp_path):
    model = files.made_up(num_ops)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, tmp_path / "model.onnx")
    graph = load(str(tmp_path / "model.onnx"), {}).graph
    assert len(graph.ops) == num_ops
    assert all(tensor.shape is not None for tensor in graph.tensors)


@pytest.mark.parametrize("name", [*files.LIGHT, "1,000 ops"])
def test_copies_of_a_file_are_alike_but_not_the_same_graph(name, tmp_path):
    paths = [files.write(name, copy, tmp_path) for copy in (0, 1)]
    first = paths[0].read_bytes()
    assert files.write(name, 0, tmp_path).read_bytes() == first
    graphs = [load(str(path), {}).graph for path in paths]
    assert graphs[0].fingerprint != graphs[1].fingerprint
    assert [op.scope for op in graphs[0].ops] == [op.scope for op in graphs[1].ops]


def test_a_server_that_ends_at_once_is_told_apart_from_a_slow_one(tmp_path):
    with (
        pytest.raises(OSError, match="false ended with status 1"),
        sides.served(("false",), "http://127.0.0.1:9/"),
    ):
        pass
