"""A studio of its own on a free port, and a real Chromium; a missing browser fails the tests."""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
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
)
START_S = 120


def pytest_collection_modifyitems(items):
    for item in items:
        if "studio_url" in item.fixturenames or "page" in item.fixturenames:
            item.add_marker(pytest.mark.browser)


def find_browser() -> str | None:
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    return found or (MAC_BROWSER if os.access(MAC_BROWSER, os.X_OK) else None)


@pytest.fixture(scope="session")
def studio_log(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("studio") / "studio.log"


@pytest.fixture(scope="session")
def studio_url(tmp_path_factory, studio_log):
    """The address of a running studio with an empty home folder."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    home = tmp_path_factory.mktemp("studio-home")
    command = (
        *(sys.executable, "-m", "streamlit", "run", "app.py"),
        *("--server.headless", "true", "--server.port", str(port)),
    )
    with studio_log.open("w") as log:
        server = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, "PLACEMENT_STUDIO_HOME": str(home)},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_until_up(url, server, studio_log)
        yield url
    finally:
        server.terminate()
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


@pytest.fixture(scope="session")
def chromium():
    """A real Chromium; tests that need one fail where there is none."""
    executable = find_browser()
    if executable is None:
        pytest.fail("There is no Chromium or Chrome on the path; install one to run these tests.")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture
def new_page(chromium, studio_url, studio_log):
    """Open as many sessions of the studio as a test asks for; their errors fail the test."""
    contexts, errors = [], []
    logged = studio_log.stat().st_size

    def open_page(path: str = "", **options):
        context = chromium.new_context(viewport={"width": 1440, "height": 900}, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(f"page error: {error}"))
        page.on("console", lambda message: errors.extend(_error_in(message)))
        page.goto(f"{studio_url}/{path}")
        return page

    yield open_page
    for context in contexts:
        for page in context.pages:
            shown = page.locator('[data-testid="stException"]')
            errors += [f"shown on the page: {text}" for text in shown.all_inner_texts()]
        context.close()
    with studio_log.open() as log:
        log.seek(logged)
        written = log.read()
    if "Traceback (most recent call last)" in written:
        errors.append(f"written by the studio: {written[-4000:]}")
    assert not errors, "\n".join(errors)


@pytest.fixture
def page(new_page):
    """One session of the studio, just opened."""
    return new_page()


def _error_in(message) -> tuple[str, ...]:
    """A console message that tells of a failure; a refused request outside is none of ours."""
    text = message.text
    failed = message.type == "error" and "Failed to load resource" not in text
    return (f"console: {text}",) if failed or "Traceback" in text or "Uncaught" in text else ()


def _wait_until_up(url: str, server: subprocess.Popen, log: Path) -> None:
    end_s = time.monotonic() + START_S
    while time.monotonic() < end_s:
        if server.poll() is not None:
            pytest.fail(f"The studio ended with status {server.returncode}:\n{log.read_text()}")
        try:
            with urllib.request.urlopen(f"{url}/_stcore/health", timeout=5) as answer:
                if answer.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    pytest.fail(f"The studio did not answer within {START_S} s:\n{log.read_text()}")
