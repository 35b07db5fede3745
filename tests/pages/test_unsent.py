"""What a session has not sent yet when a part is drawn anew: a browser can still draw the rest."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import MagicMock

import pytest
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.runtime import Runtime
from streamlit.runtime.script_data import ScriptData
from streamlit.runtime.scriptrunner.script_cache import ScriptCache

from pages.ui.session import unsent

# Two elements, then what is inside; each part tells how often it was drawn.
SCRIPT = """
import streamlit as st

def times(part):
    st.session_state[part] = st.session_state.get(part, 0) + 1
    return f"{part} {st.session_state[part]}"

@st.fragment(key="inner")
def inner():
    st.text(times("inner"))
    st.text("long" * 10_000)

@st.fragment(key="outer")
def outer():
    st.text(times("outer"))
    if st.session_state.outer > 1:
        with st.container():
            st.text("before")
            st.text("beside")
            inner()

@st.fragment(key="other")
def other():
    st.text(times("other"))

outer()
other()
"""


# So large that a browser keeps it.
LONG = "long" * 10_000


class Browser:
    """What a page shows, by the rules of Streamlit's own: blocks keep what is in them.

    Nothing can be put behind a place that is empty, or into one where there is no block. What is
    large is kept, and need not be sent again.
    """

    def __init__(self, kept):
        self.root, self.kept = [[], [], [], []], dict(kept)

    def take(self, messages):
        for message in messages:
            if message.WhichOneof("type") == "delta":
                self._draw(list(message.metadata.delta_path), message.delta)
                if message.metadata.cacheable:
                    self.kept[message.hash] = message.delta
            elif message.WhichOneof("type") == "ref_hash":
                self._draw(list(message.metadata.delta_path), self.kept[message.ref_hash])

    def _draw(self, path, delta):
        inside = self.root
        for number in path[:-1]:
            assert number < len(inside) and isinstance(inside[number], list), path
            inside = inside[number]
        assert path[-1] <= len(inside), path
        if delta.WhichOneof("type") == "add_block":
            before = inside[path[-1]] if path[-1] < len(inside) else None
            made = before if isinstance(before, list) else []
        else:
            made = delta.new_element.text.body
        inside[path[-1] : path[-1] + 1] = [made]

    def texts(self, part=None):
        for each in self.root if part is None else part:
            yield from self.texts(each) if isinstance(each, list) else (each,)


class Session:
    """A session whose messages are sent when the test says so."""

    def __init__(self, script):
        self.ended = asyncio.Event()
        self.of_streamlit = AppSession(
            ScriptData(str(script)), MemoryUploadedFileManager(""), ScriptCache(), self._look, {}
        )

    def _look(self):
        """Each message that is put into the queue is told of here; which, is known to the queue."""
        last = self.of_streamlit._browser_queue._queue[-1]
        if last.WhichOneof("type") == "script_finished":
            self.ended.set()

    async def draw(self, *names, kept=()):
        """Draw some fragments as a press on a widget of each does; the page without a name."""
        fragments = self.of_streamlit._fragment_storage
        for name in names:
            name = fragments.resolve_target(name)[0]
            state = ClientState(fragment_id=name, cached_message_hashes=kept)
            await self._run(state)
        if not names:
            await self._run(None)

    async def _run(self, state):
        self.ended.clear()
        self.of_streamlit.request_rerun(state)
        await asyncio.wait_for(self.ended.wait(), 60)

    def sent(self):
        return self.of_streamlit.flush_browser_queue()

    async def end(self):
        # Its thread ends by itself a moment after the last run.
        while self.of_streamlit._scriptrunner is not None:
            await asyncio.sleep(0.01)
        self.of_streamlit.shutdown()


@pytest.fixture
def script(tmp_path, monkeypatch):
    # Of the server around it a session only tells when media are no longer shown.
    monkeypatch.setattr(Runtime, "_instance", MagicMock())
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return path


def shown(script, *presses, kept=()):
    """A browser that is sent the page at once, and all that the presses change together."""

    async def drawn():
        session, browser = Session(script), Browser(kept)
        for names in ((), presses):
            await session.draw(*names, kept=browser.kept)
            browser.take(session.sent())
        await session.end()
        return browser

    unsent.go_whole()
    # In this thread the loop of a browser may run, which an earlier test has opened.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, drawn()).result()


def test_what_is_inside_a_part_goes_with_it(script):
    texts = shown(script, "outer").texts()
    assert list(texts) == ["outer 2", "before", "beside", "inner 1", LONG, "other 1"]
    texts = shown(script, "outer", "outer").texts()
    assert list(texts) == ["outer 3", "before", "beside", "inner 2", LONG, "other 1"]


def test_what_is_outside_of_it_stays(script):
    texts = shown(script, "other", "outer", "outer", "other", "inner").texts()
    assert list(texts) == ["outer 3", "before", "beside", "inner 3", LONG, "other 3"]


def test_what_the_browser_has_kept_goes_with_the_part_it_is_in(script):
    kept = shown(script, "outer").kept
    assert [delta.new_element.text.body for delta in kept.values()] == [LONG]
    texts = shown(script, "outer", "outer", kept=kept).texts()
    assert list(texts) == ["outer 3", "before", "beside", "inner 2", LONG, "other 1"]
