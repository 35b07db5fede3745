"""Edits by hand: whole units move, and any number of steps goes back and forth."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pages.ui import edits
from pages.ui.edits import History
from placement.mend import join_units
from tests.pages.problems import PAIRS, diamond, everywhere

PROBLEM = diamond()
OPS = [op.name for op in PROBLEM.graph.ops]
START = dict(everywhere(PROBLEM).device_of)
steps = st.lists(
    st.tuples(st.sets(st.sampled_from(OPS), min_size=1), st.sampled_from(["cpu:0", "cpu:1"])),
    max_size=90,
)


def play(moves):
    """Devices at the start and after each move that changed something, and the history."""
    states, history = [START], History()
    for ops, device in moves:
        edit = edits.assign(PROBLEM, states[-1], ops, device)
        if edit is not None:
            states.append(edits.applied(states[-1], edit))
            history = history.add(edit)
    return states, history


@given(steps)
def test_undo_and_redo_walk_through_every_state(moves):
    states, history = play(moves)
    now = states[-1]
    for expected in reversed(states[:-1]):
        now, history = edits.undo(now, history)
        assert now == expected
    assert edits.undo(now, history) == (START, history)
    for expected in states[1:]:
        now, history = edits.redo(now, history)
        assert now == expected
    assert edits.redo(now, history) == (now, history)


@given(steps)
def test_fused_ops_are_never_apart(moves):
    for state in play(moves)[0]:
        assert all(state[f"{p}_conv"] == state[f"{p}_relu"] for p in PAIRS)
        assert join_units(PROBLEM, state) == state


@given(steps)
def test_a_history_survives_json(moves):
    history = play(moves)[1]
    assert edits.history_from_json(history.to_json()) == history


def test_two_hundred_steps_can_be_undone():
    moves = [({"a_conv"}, f"cpu:{1 - i % 2}") for i in range(200)]
    states, history = play(moves)
    assert len(states) == 201
    now = states[-1]
    for _ in range(200):
        now, history = edits.undo(now, history)
    assert now == START and len(history.undone) == 200


def test_a_new_step_forgets_what_was_undone():
    states, history = play([({"a_conv"}, "cpu:1"), ({"b_conv"}, "cpu:1")])
    now, history = edits.undo(states[-1], history)
    edit = edits.assign(PROBLEM, now, ["c_relu"], "cpu:1")
    history = history.add(edit)
    assert history.undone == () and [e.label for e in history.done] == [
        "2 ops to cpu:1",
        "2 ops to cpu:1",
    ]


def test_nothing_moves_to_where_it_is():
    assert edits.assign(PROBLEM, START, ["a_conv"], "cpu:0") is None
    assert edits.assign(PROBLEM, START, ["no such op"], "cpu:1") is None


def test_a_pinned_op_stays_and_says_so():
    pinned = diamond(pins=(("b_conv", "cpu:0"),))
    with pytest.raises(ValueError, match=r"'b_conv' stays where it is: it is pinned"):
        edits.assign(pinned, START, ["b_relu", "b_conv"], "cpu:1")


def test_a_device_without_the_kernel_refuses():
    with pytest.raises(ValueError, match="cpu:1 cannot run it"):
        edits.assign(diamond(runs_b=False), START, ["b_conv"], "cpu:1")


def test_an_unknown_device_is_refused():
    with pytest.raises(ValueError, match="no device 'gpu'"):
        edits.assign(PROBLEM, START, ["a_conv"], "gpu")


def test_split_groups_join_where_most_of_them_are_and_may_be():
    split = {**START, "a_relu": "cpu:1", "b_conv": "cpu:1", "b_relu": "cpu:1"}
    joined = join_units(PROBLEM, split)
    assert joined["a_conv"] == joined["a_relu"] == "cpu:0"
    assert joined["b_conv"] == joined["b_relu"] == "cpu:1"
    assert join_units(diamond(runs_b=False), split)["b_conv"] == "cpu:0"


@pytest.mark.parametrize("content", [None, 3, {}, {"done": [{"label": "x"}], "undone": []}])
def test_a_broken_history_is_an_empty_one(content):
    assert edits.history_from_json(content) == History()
