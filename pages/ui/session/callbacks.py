"""What a person asks for is carried out to its end, and each callback of a widget is one change.

Streamlit lets the next message of a browser end whatever a session is at, callbacks included, at
any touch of the session's state: who clicks twice while the computer is busy would lose the first
click, or half of what it does. It has no hook around callbacks either. And a run that is to end
goes on beside the one that takes its place, on the same state, where each has a lock of its own.
All three are put right here, in the four places of Streamlit's where it can be.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from streamlit.runtime.scriptrunner.script_runner import ScriptRunner
from streamlit.runtime.state import SafeSessionState, SessionState

Run = Callable[[], None]

_at_work = threading.local()
_PATCHED = "is_carried_out"


@contextmanager
def uninterrupted() -> Iterator[None]:
    """What comes from the browser meanwhile waits; so does a page's own wish to start over."""
    before = getattr(_at_work, "now", False)
    _at_work.now = True
    try:
        yield
    finally:
        _at_work.now = before


def carry_out(whole: Callable[[Run], Run]) -> None:
    """From now on callbacks run as `whole` makes them, and until they have ended."""
    if hasattr(SafeSessionState, _PATCHED):
        return
    setattr(SafeSessionState, _PATCHED, True)
    before_script: Any = SafeSessionState.on_script_will_rerun
    interrupt: Any = ScriptRunner._maybe_handle_execution_control_request
    run_callback: Any = SessionState._run_callback_and_record_rerun

    def heed(state: SafeSessionState, *states: Any, **replayed: Any) -> None:
        """All callbacks of one message; what came meanwhile is looked at right afterwards."""
        with uninterrupted():
            before_script(state, *states, **replayed)

    def interrupt_unless_at_work(runner: ScriptRunner) -> None:
        if not getattr(_at_work, "now", False):
            interrupt(runner)

    def run_whole(state: SessionState, votes: Any, run: Run) -> None:
        run_callback(state, votes, whole(run))

    def keys(state: SessionState) -> set[str]:
        """As Streamlit lists them, of copies, which the other run adds nothing to meanwhile."""
        parts = (state._old_state, state._new_widget_state.states, state._new_session_state)
        return {state._get_widget_id(key) for part in parts for key in list(part)}

    for owner, name, made in (
        (SafeSessionState, "on_script_will_rerun", heed),
        (ScriptRunner, "_maybe_handle_execution_control_request", interrupt_unless_at_work),
        (SessionState, "_run_callback_and_record_rerun", run_whole),
        (SessionState, "_keys", keys),
    ):
        setattr(owner, name, made)
