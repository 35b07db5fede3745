"""Models read in threads: joined, forgotten, taken once, and what is wrong said to who waits."""

import threading
import time

import pytest

import placement as pl
from studio import model_reader

PATIENCE_S = 60


@pytest.fixture
def gate(monkeypatch):
    """Opening squeezenet waits until the gate is set."""
    opened, load = threading.Event(), pl.load

    def slow(source, **kwargs):
        if source == "onnx-squeezenet":
            assert opened.wait(PATIENCE_S)
        return load(source, **kwargs)

    monkeypatch.setattr(model_reader.pl, "load", slow)
    yield opened
    opened.set()


def key(name):
    # The stamp tells each test's key from that of models that are open already.
    return name, (), f"test {time.monotonic_ns()}"


def test_who_waits_gets_the_model_and_who_comes_later_joins(gate):
    wanted = key("onnx-squeezenet")
    first = model_reader.start(wanted)
    assert model_reader.start(wanted) is first and not first.done.is_set()
    gate.set()
    assert len(model_reader.take(wanted).graph.ops) == 66
    assert wanted not in model_reader._under_way


def test_what_nobody_waits_for_any_more_is_forgotten_once_it_is_there(gate):
    wanted = key("onnx-squeezenet")
    first = model_reader.start(wanted)
    model_reader.forget(wanted)
    gate.set()
    assert first.done.wait(PATIENCE_S) and first.result().graph.ops
    until(lambda: wanted not in model_reader._under_way)


def test_models_that_nobody_came_for_make_room_for_others():
    keys = [key("onnx-alexnet") for _ in range(model_reader.MOST_LEFT + 3)]
    for each in keys:
        assert model_reader.start(each).done.wait(PATIENCE_S)
    left = [each for each in keys if each in model_reader._under_way]
    assert left == keys[-len(left) :] and keys[-1] in left
    assert len(left) <= model_reader.MOST_LEFT + 1
    for each in left:
        model_reader.forget(each)


def test_whoever_wants_it_again_before_it_is_there_gets_it(gate):
    wanted = key("onnx-squeezenet")
    first = model_reader.start(wanted)
    model_reader.forget(wanted)
    assert model_reader.start(wanted) is first
    gate.set()
    assert model_reader.take(wanted) is first.result()


def test_what_is_wrong_with_a_model_is_said_where_somebody_waits():
    wanted = key("no-such-sample")
    model_reader.start(wanted)
    with pytest.raises(ValueError, match="neither a file nor a bundled sample"):
        model_reader.take(wanted)
    assert wanted not in model_reader._under_way


def until(condition):
    end_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end_s
        time.sleep(0.01)
