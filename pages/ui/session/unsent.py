"""What a browser has not been sent yet of a part that is drawn anew goes with all that is in it.

Where a fragment begins again, Streamlit takes out of the session's queue what the fragment had
drawn before, but not what fragments inside it had: the browser would be sent these without the
containers that they stand in, and gives the page up ("Bad delta path index", Streamlit 1.67). On a
quiet computer the queue is empty by then. Which fragments are inside is asked where the run begins,
for it may end, and forget some of them, before the queue's thread hears of it.
"""

from collections.abc import Sequence
from typing import Any

from streamlit.runtime.app_session import AppSession
from streamlit.runtime.fragment import MemoryFragmentStorage

_PATCHED = "goes_whole"


def go_whole() -> None:
    """From now on, for sessions that begin; there is no hook, so it is put right in the session."""
    if hasattr(AppSession, _PATCHED):
        return
    setattr(AppSession, _PATCHED, True)
    hear: Any = AppSession._on_scriptrunner_event

    def hear_whole(session: Any, *told: Any, **more: Any) -> None:
        """Streamlit tells the fragments of a run, where it begins, for its queue alone."""
        drawn = more.get("fragment_ids_this_run")
        if drawn:
            more["fragment_ids_this_run"] = with_inside(session._fragment_storage, drawn)
        hear(session, *told, **more)

    setattr(AppSession, "_on_scriptrunner_event", hear_whole)  # noqa: B010


def with_inside(fragments: MemoryFragmentStorage, drawn: Sequence[str]) -> list[str]:
    """The ids of fragments that are drawn anew, and of all that stand inside one of them."""
    inside = (i for i in list(fragments._fragments) if fragments.has_ancestor_in(i, drawn))
    return list(dict.fromkeys((*drawn, *inside)))
