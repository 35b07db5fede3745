"""A message that comes while a callback is at work ends no part of it."""

from types import SimpleNamespace

import pytest
from streamlit.runtime.scriptrunner.script_runner import ScriptRunner
from streamlit.runtime.state import SafeSessionState, SessionState
from streamlit.testing.v1 import AppTest

from pages.ui.session import choices, fragments, saving


def script():
    import streamlit as st
    from streamlit.runtime.scriptrunner import RerunData, get_script_run_ctx

    from pages.ui.session import saving

    assert saving

    def twice():
        st.session_state.first = True
        get_script_run_ctx().script_requests.request_rerun(RerunData())
        st.session_state.second = True

    st.button("Do both", on_click=twice)
    st.checkbox("Beside it", key="beside")


def test_what_comes_meanwhile_waits_for_the_callback():
    app = AppTest.from_function(script, default_timeout=60).run()
    app.button[0].click().run()
    assert not app.exception
    assert app.session_state["first"] and app.session_state["second"]


def test_what_comes_before_the_callback_waits_for_it(monkeypatch):
    """A message may also come after the one before was taken up, ahead of its callbacks."""
    from streamlit.runtime.scriptrunner import RerunData

    app = AppTest.from_function(script, default_timeout=60).run()
    prepare = SafeSessionState.on_script_will_rerun

    def interrupted(state, *states, **replayed):
        runner = state._yield_callback.__self__
        runner._requests.request_rerun(RerunData(widget_states=None))
        prepare(state, *states, **replayed)

    monkeypatch.setattr(SafeSessionState, "on_script_will_rerun", interrupted)
    app.button[0].click().run()
    assert app.session_state["first"] and app.session_state["second"]


def uploading():
    import streamlit as st
    from streamlit.runtime.scriptrunner import RerunData, get_script_run_ctx

    from pages.ui.session import callbacks

    if not st.session_state.get("seen"):
        st.session_state.seen = True
        with callbacks.uninterrupted():
            get_script_run_ctx().script_requests.request_rerun(RerunData())
            st.session_state.taken_over = True
        st.write("not reached, for a message waits")
        st.session_state.went_on = True


def test_what_a_page_takes_over_is_taken_over_whole():
    state = AppTest.from_function(uploading, default_timeout=60).run().session_state
    assert state["taken_over"] and "went_on" not in state


def test_a_page_is_still_interrupted():
    """Else a slow page would be drawn to its end although nobody waits for it any more."""
    drawn = AppTest.from_function(slow_page, default_timeout=60).run().session_state["drawn"]
    assert drawn == ["first", "second", "end"]


def slow_page():
    import streamlit as st
    from streamlit.runtime.scriptrunner import RerunData, get_script_run_ctx

    from pages.ui.session import saving

    assert saving
    drawn = st.session_state.setdefault("drawn", [])
    drawn.append("second" if drawn else "first")
    if len(drawn) == 1:
        get_script_run_ctx().script_requests.request_rerun(RerunData())
    st.write("seen once")
    drawn.append("end")


@pytest.mark.parametrize("owner", [SafeSessionState, ScriptRunner])
def test_streamlit_is_changed_once(owner):
    from pages.ui.session import callbacks, saving

    assert saving, "it has changed Streamlit before"
    before = dict(vars(owner))
    callbacks.carry_out(lambda run: run)
    assert dict(vars(owner)) == before


def reruns(monkeypatch, asked_for, own, *names):
    """What `only` asks Streamlit to draw in a run for some fragments, called by one of them."""
    context = SimpleNamespace(
        fragment_storage=SimpleNamespace(resolve_target=lambda name: [f"id of {name}"]),
        fragment_ids_this_run=[f"id of {name}" for name in asked_for] or None,
    )
    thread = SimpleNamespace(get=lambda: SimpleNamespace(fragment_id=f"id of {own}"))
    asked = []
    for module in (fragments, choices):
        monkeypatch.setattr(module, "get_script_run_ctx", lambda: context)
    monkeypatch.setattr(fragments, "ThreadState", thread)
    monkeypatch.setattr(fragments.st, "rerun", asked.append)
    fragments.only(*names)
    return asked


def test_fragments_alone_never_take_the_place_of_the_whole_page(monkeypatch):
    """A message that became part of a rerun of the page: the page is what was asked for."""
    names = ("canvas", "side", "timeline")
    assert reruns(monkeypatch, ["canvas"], "canvas", *names) == [names]
    assert reruns(monkeypatch, [], "canvas", *names) == []


def test_a_press_on_a_tab_that_came_with_a_pick_in_a_table_is_drawn_too(monkeypatch):
    """Both waited for a page to be drawn; the pick alone says what it wants drawn anew."""
    picked = reruns(monkeypatch, ["dock", "table"], "table", "canvas", "side")
    assert picked == [("canvas", "side", "dock")]
    edited = reruns(monkeypatch, ["dock", "canvas"], "canvas", *fragments.EDITED)
    assert edited == [fragments.EDITED], "it is among them anyway"


def test_keys_are_listed_while_the_run_that_is_to_end_adds_some(monkeypatch):
    """Both runs of a session are at its state, each with a lock of its own."""
    assert saving
    state = SessionState()
    state["first"] = state["second"] = True
    state._compact_state()

    def adding(state, key):
        state._old_state[f"{key}, later"] = True
        return key

    monkeypatch.setattr(SessionState, "_get_widget_id", adding)
    assert state._keys() == {"first", "second"}
