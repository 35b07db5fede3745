"""A studio of its own on a free port, and a real Chromium; a missing browser fails the tests."""

import os
import re
import shutil
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Page

import placement as pl
from placement.api.machines import machine_for
from profiling.measuring.store import ProfileStore
from studio.project import store
from tests.browser.canvas_page import Canvas, Window
from tests.browser.serving import Server
from tests.browser.studio import PATIENCE_MS
from tests.lanes import profile_of
from tests.profiling.live import problem_of

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MAC_BROWSER = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-quic",
    "--disable-sync",
    "--no-first-run",
    # Pages live for seconds: optimising what they run takes longer than it saves.
    "--js-flags=--no-opt --no-maglev",
    # And what one process has compiled, its next page need not.
    "--process-per-site",
)
# What a page may ask for.
LOCAL = re.compile(r"(https?|wss?)://127\.0\.0\.1:|data:|blob:")


def pytest_collection_modifyitems(items):
    for item in items:
        if {"studio_url", "page", "harness_url"} & set(item.fixturenames):
            item.add_marker(pytest.mark.browser)


def find_browser() -> str | None:
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    return found or (MAC_BROWSER if os.access(MAC_BROWSER, os.X_OK) else None)


@pytest.fixture(scope="session")
def studio_log(tmp_path_factory) -> Path:
    log = tmp_path_factory.mktemp("studio") / "studio.log"
    log.touch()
    return log


@pytest.fixture(scope="session")
def studio(tmp_path_factory, studio_log):
    """A running studio, whose home folder was empty at the start."""
    server = Server(tmp_path_factory.mktemp("studio-home"), studio_log)
    try:
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="session")
def studio_url(studio):
    return studio.url


@pytest.fixture(scope="session")
def project_about(studio):
    """Make a project of the studio with some settings; its address on the Studio page.

    It takes less than to open a page and a model there, as the tests of opening do.
    """

    def made(**settings) -> str:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PLACEMENT_STUDIO_HOME", str(studio.home))
            project = store.create()
            project.change(touch=False, **settings)
        return f"?project={project.id}"

    return made


@pytest.fixture
def timed(studio, monkeypatch):
    """Give the kernels of a sample made-up times before its page is opened: who places or runs it
    would measure them first, for many seconds."""
    monkeypatch.setenv("PLACEMENT_STUDIO_HOME", str(studio.home))
    profiles, given = ProfileStore(), []

    def give(sample: str) -> None:
        model = pl.load(sample)
        profiles.put(profile_of(problem_of(model, machine_for(model, pl.machine()))))
        given.append(model.graph.fingerprint)

    yield give
    for fingerprint in given:
        profiles.clear(fingerprint)


@pytest.fixture
def restartable(tmp_path, studio_log):
    """A studio that a test may end and start again, on the same port and home."""
    server = Server(tmp_path, studio_log)
    yield server
    server.stop()


@pytest.fixture(scope="session")
def executable():
    """A real Chromium; tests that need one fail where there is none."""
    found = find_browser()
    if found is None:
        pytest.fail("There is no Chromium or Chrome on the path; install one to run these tests.")
    return found


@pytest.fixture(scope="session")
def playwright():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="session")
def chromium(playwright, executable):
    """A browser of which each test takes a window that nobody was in before."""
    browser = playwright.chromium.launch(executable_path=executable, args=list(FLAGS))
    yield browser
    browser.close()


@pytest.fixture(scope="session")
def visitor(playwright, executable, tmp_path_factory):
    """A person's browser, whose pages share what they have fetched: to load and compile the scripts
    of each anew takes a second."""
    context = playwright.chromium.launch_persistent_context(
        tmp_path_factory.mktemp("visitor"),
        executable_path=executable,
        args=list(FLAGS),
        viewport={"width": 1440, "height": 900},
        reduced_motion="reduce",
    )
    context.set_default_timeout(PATIENCE_MS)
    # While one page is open, others open in its window: a new window takes a second, too.
    context.new_page()
    yield context
    context.close()


@pytest.fixture(scope="session")
def guest(visitor, studio_url):
    """The same, with a page of the studio's that stays, and with it the process of all others."""
    visitor.new_page().goto(f"{studio_url}/_stcore/health")
    return visitor


@pytest.fixture
def new_page(guest, studio_url, studio_log):
    """Open as many sessions of the studio as a test asks for; their errors fail the test.

    Each has a new project unless the path names one; a bare address would open the last one. It
    begins where models are opened. What `prepare` does to the page comes before it is loaded. None
    may ask for anything from outside.
    """
    with _sessions(guest, studio_url, studio_log) as open_page:
        yield open_page


@pytest.fixture(scope="module")
def lasting_page(guest, studio_url, studio_log):
    """The same for the tests of a file that leave a page as they found it."""
    with _sessions(guest, studio_url, studio_log) as open_page:
        yield open_page


@contextmanager
def _sessions(guest, studio_url, studio_log):
    pages, errors, asked = [], [], []
    logged = studio_log.stat().st_size

    def open_page(
        path: str = "model", *, bare: bool = False, prepare: Callable[[Page], object] | None = None
    ):
        page = guest.new_page()
        pages.append(page)
        page.on("pageerror", lambda error: errors.append(f"page error: {error}"))
        page.on("console", lambda message: errors.extend(_error_in(message)))
        page.on("request", lambda request: asked.append(request.url))
        page.on("websocket", lambda socket: asked.append(socket.url))
        if prepare is not None:
            prepare(page)
        chosen = path if "project=" in path or bare else f"{path}?project=new"
        page.goto(f"{studio_url}/{chosen}")
        return page

    yield open_page
    for page in (page for page in pages if not page.is_closed()):
        shown = page.locator('[data-testid="stException"]')
        errors += [f"shown on the page: {text}" for text in shown.all_inner_texts()]
        # What a browser remembers, as that a sidebar is folded, is not for the next test.
        page.evaluate("localStorage.clear()")
        page.close()
    with studio_log.open() as log:
        log.seek(logged)
        written = log.read()
    if "Traceback (most recent call last)" in written:
        errors.append(f"written by the studio: {written[-4000:]}")
    errors += [f"asked for outside: {url}" for url in asked if not LOCAL.match(url)]
    if pages and not asked:
        errors.append("nothing that a page asked for was seen")
    assert not errors, "\n".join(errors)


@pytest.fixture
def page(new_page):
    """One session of the studio, just opened."""
    return new_page()


@pytest.fixture
def studio_page(new_page):
    """The same on the Studio page, where its model is placed."""
    return new_page("")


@pytest.fixture(scope="session")
def harness_url(tmp_path_factory):
    """The address of a page with nothing but a canvas."""
    log = tmp_path_factory.mktemp("harness") / "log"
    home = tmp_path_factory.mktemp("harness-home")
    server = Server(home, log, app="tests/browser/harness_canvas.py")
    try:
        yield server.start()
        assert "Traceback" not in log.read_text(), log.read_text()
    finally:
        server.stop()


@pytest.fixture(scope="session")
def windows():
    """Where a window is left for the test after."""
    return []


@pytest.fixture
def opened(visitor, harness_url, windows, request):
    """Open the harness; errors and any request outside fail the test."""
    used, num_failed = [], request.session.testsfailed

    def open_canvas(query: str = "") -> Canvas:
        is_new = not windows
        used.append(Window(visitor, harness_url) if is_new else windows.pop())
        if query or not is_new:
            used[-1].begin_anew(query)
        canvas = Canvas(used[-1].page)
        canvas.settled()
        return canvas

    yield open_canvas
    for window in used:
        window.check()
        if request.session.testsfailed > num_failed or windows:
            window.page.close()
        else:
            windows.append(window)


def _error_in(message) -> tuple[str, ...]:
    """A console message that tells of a failure; a refused request outside is none of ours."""
    text = message.text
    failed = message.type == "error" and "Failed to load resource" not in text
    return (f"console: {text}",) if failed or "Traceback" in text or "Uncaught" in text else ()
