"""Sliders that are held: what the browser tells in between counts until the slider is let go."""

import pytest

from pages.ui.what_if import held_slider

STOPS = (0.25, 0.5, 1.0, 2.0)
KEY, CLASS = "what-if-speed cpu:0", "st-key-what-if-speed-cpu-0"


@pytest.fixture
def session(monkeypatch):
    """What the session holds: the slider at 1.0, and nothing told."""
    state = {KEY: 1.0}
    monkeypatch.setattr("pages.ui.session.choices.typed", state.get)
    monkeypatch.setattr("pages.ui.session.choices.kept", lambda name, default: STOPS)
    return state


def test_where_a_slider_stands_while_it_is_held(session):
    assert held_slider.value(KEY, 2.0) == 1.0
    session[held_slider.KEY] = {"held": {CLASS: [2, 0]}}
    assert held_slider.value(KEY, 2.0) == 0.25
    assert held_slider.value("another", 2.0) == 2.0


def test_what_streamlit_says_later_counts_more(session):
    session[held_slider.KEY] = {"held": {CLASS: [2, 0]}}
    session[KEY] = 0.5
    assert held_slider.value(KEY, 2.0) == 0.5


@pytest.mark.parametrize(
    "told", [None, [], [2], [2, 9], [2, -1], [2, "0"], "20", {"n": 1}, [2, 0.5]]
)
def test_what_is_no_stop_is_passed_over(session, told):
    session[held_slider.KEY] = {"held": {CLASS: told}}
    assert held_slider.value(KEY, 2.0) == 1.0
    session[held_slider.KEY] = told
    assert held_slider.value(KEY, 2.0) == 1.0
