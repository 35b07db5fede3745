"""Edits by hand: whole units move, and any number of steps goes back and forth."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.constraints.fusion import join_units
from studio.project import edits
from studio.project.edits import Edit, History, State
from tests.pages.problems import PAIRS, diamond, everywhere
from tests.thorough import either

PROBLEM = diamond()
OPS = [op.name for op in PROBLEM.graph.ops]
NUM_HISTORIES = either(35, 100)
START = State(dict(everywhere(PROBLEM).device_of), {})
steps = st.lists(
    st.tuples(st.sets(st.sampled_from(OPS), min_size=1), st.sampled_from(["cpu:0", "cpu:1"])),
    max_size=90,
)


def play(moves):
    """The state at the start and after each move that changed something, and the history."""
    states, history = [START], History()
    for ops, device in moves:
        move = edits.assign(PROBLEM, states[-1], ops, device)
        if move.changes:
            edit = Edit(edits.label_of(move, device), move.changes)
            states.append(edits.applied(states[-1], edit))
            history = history.add(edit)
    return states, history


@settings(max_examples=NUM_HISTORIES)
@given(steps)
def test_undo_and_redo_walk_through_every_state(moves):
    states, history = play(moves)
    now = states[-1]
    for number, expected in reversed(list(enumerate(states[:-1]))):
        now, history = edits.travel(now, history, number)
        assert now == expected
    assert edits.travel(now, history, -1) == (START, history)
    for number, expected in enumerate(states[1:], 1):
        now, history = edits.travel(now, history, number)
        assert now == expected
    assert edits.travel(now, history, len(states)) == (now, history)


@settings(max_examples=NUM_HISTORIES)
@given(steps, st.lists(st.integers(0, 90), max_size=8))
def test_any_state_is_reached_from_any_other(moves, stops):
    states, history = play(moves)
    now = states[-1]
    for stop in stops:
        now, history = edits.travel(now, history, stop)
        assert now == states[min(stop, len(states) - 1)]


@settings(max_examples=NUM_HISTORIES)
@given(steps)
def test_fused_ops_are_never_apart(moves):
    for state in play(moves)[0]:
        assert all(state.device_of[f"{p}_conv"] == state.device_of[f"{p}_relu"] for p in PAIRS)
        assert join_units(PROBLEM, state.device_of) == state.device_of


@settings(max_examples=NUM_HISTORIES)
@given(steps)
def test_a_history_survives_json(moves):
    history = play(moves)[1].add(Edit("pin", pins=(("a_conv", "", "cpu:0"),)))
    assert edits.history_from_json(history.to_json()) == history


def test_two_hundred_steps_can_be_undone():
    moves = [({"a_conv"}, f"cpu:{1 - i % 2}") for i in range(200)]
    states, history = play(moves)
    assert len(states) == 201
    now = states[-1]
    for number in reversed(range(200)):
        now, history = edits.travel(now, history, number)
    assert now == START and len(history.undone) == 200


def test_a_new_step_forgets_what_was_undone():
    states, history = play([({"a_conv"}, "cpu:1"), ({"b_conv"}, "cpu:1")])
    now, history = edits.travel(states[-1], history, 1)
    move = edits.assign(PROBLEM, now, ["c_relu"], "cpu:1")
    history = history.add(Edit(edits.label_of(move, "cpu:1"), move.changes))
    assert history.undone == () and [e.label for e in history.done] == [
        "2 ops to cpu:1",
        "2 ops to cpu:1",
    ]


def test_nothing_moves_to_where_it_is():
    assert edits.assign(PROBLEM, START, ["a_conv"], "cpu:0") == edits.Move(())
    assert edits.assign(PROBLEM, START, ["no such op"], "cpu:1") == edits.Move(())


def test_a_pinned_op_stays_with_its_unit_and_the_others_move():
    pinned = State(START.device_of, {"b_conv": "cpu:0"})
    move = edits.assign(PROBLEM, pinned, ["b_relu", "c_conv"], "cpu:1")
    assert move.changes == (("c_conv", "cpu:0", "cpu:1"), ("c_relu", "cpu:0", "cpu:1"))
    assert move.pinned == ("b_conv", "b_relu") and not move.unfit
    assert "2 ops are pinned and stayed; to move them" in edits.why_they_stay(move, "cpu:1")
    assert edits.assign(PROBLEM, pinned, ["b_relu"], "cpu:0") == edits.Move(())


def test_a_pinned_op_that_is_elsewhere_may_go_to_its_pin():
    stray = State(START.device_of, {"b_conv": "cpu:1"})
    assert len(edits.assign(PROBLEM, stray, ["b_relu"], "cpu:1").changes) == 2


def test_pinning_is_a_step_like_others():
    pin = Edit("pin", pins=(("a_conv", "", "cpu:0"), ("b_conv", "", "cpu:0")))
    moved = Edit("unpin one", pins=(("a_conv", "cpu:0", ""),))
    state, history = START, History()
    for step in (pin, moved):
        state, history = edits.applied(state, step), history.add(step)
    assert state == State(START.device_of, {"b_conv": "cpu:0"})
    state, history = edits.travel(state, history, 1)
    assert state.pins == {"a_conv": "cpu:0", "b_conv": "cpu:0"}
    assert edits.travel(state, history, 0)[0] == START


def test_a_device_without_the_kernel_refuses():
    move = edits.assign(diamond(runs_b=False), START, ["b_conv", "c_conv"], "cpu:1")
    assert move.unfit == ("b_conv", "b_relu") and len(move.changes) == 2
    assert edits.why_they_stay(move, "cpu:1") == "2 ops stayed: cpu:1 cannot run them."


def test_an_unknown_device_is_refused():
    with pytest.raises(ValueError, match="no device 'gpu'"):
        edits.assign(PROBLEM, START, ["a_conv"], "gpu")


def test_split_groups_join_where_most_of_them_are_and_may_be():
    split = {**START.device_of, "a_relu": "cpu:1", "b_conv": "cpu:1", "b_relu": "cpu:1"}
    joined = join_units(PROBLEM, split)
    assert joined["a_conv"] == joined["a_relu"] == "cpu:0"
    assert joined["b_conv"] == joined["b_relu"] == "cpu:1"
    assert join_units(diamond(runs_b=False), split)["b_conv"] == "cpu:0"


@pytest.mark.parametrize(
    "content", [None, 3, {}, {"done": [{"label": "x"}], "undone": []}, {"done": 1}]
)
def test_a_broken_history_is_an_empty_one(content):
    assert edits.history_from_json(content) == History()
