"""A window without a browser's bars: pywebview's where it is installed, else a browser's for apps.

Browsers made of Chromium show an address in such a window (`--app`). With a profile of its own the
browser's process lasts as long as its windows, so that the server can end with the last one.
"""

import importlib
import importlib.util
import shutil
import subprocess
import time
from collections.abc import Sequence
from enum import Enum
from typing import Any

from placement.files.home import home

TITLE, SIZE = "Placement Studio", (1440, 900)
# A browser that ends sooner has shown nothing, or another one of its profile shows it.
QUICK_S = 3.0
_NAMES = (
    *("google-chrome", "google-chrome-stable", "microsoft-edge", "microsoft-edge-stable"),
    *("brave-browser", "chromium", "chromium-browser", "chrome"),
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)


class Shown(Enum):
    """What became of the windows: closed by now, still open elsewhere, or never there."""

    CLOSED = "closed"
    ELSEWHERE = "elsewhere"
    NOWHERE = "nowhere"


def show_until_closed(addresses: Sequence[str]) -> Shown:
    """Show a window for each address until all are closed; why there is none is said."""
    if importlib.util.find_spec("webview") is not None:
        _show_in_webview(addresses)
        return Shown.CLOSED
    browser = next(filter(None, map(shutil.which, _NAMES)), None)
    if browser is None:
        said = "For a window of its own install pywebview, Chrome, Chromium or Edge"
        print(f"{said}; this is the browser.", flush=True)
        return Shown.NOWHERE
    status, lasted_s = _show_in_browser(browser, addresses)
    if lasted_s >= QUICK_S:
        return Shown.CLOSED
    if status == 0:
        return Shown.ELSEWHERE
    print(f"{browser} opened no window (status {status}); this is the browser.", flush=True)
    return Shown.NOWHERE


def _show_in_webview(addresses: Sequence[str]) -> None:
    webview: Any = importlib.import_module("webview")
    webview.settings["ALLOW_DOWNLOADS"] = True
    for address in addresses:
        webview.create_window(TITLE, address, width=SIZE[0], height=SIZE[1], text_select=True)
    webview.start(private_mode=False)


def _show_in_browser(browser: str, addresses: Sequence[str]) -> tuple[int, float]:
    """The browser's exit status, once its last window is closed, and for how long it lasted."""
    profile = home() / "window"
    profile.mkdir(parents=True, exist_ok=True)
    command = (
        *(browser, f"--user-data-dir={profile}", "--no-first-run", "--no-default-browser-check"),
        f"--window-size={SIZE[0]},{SIZE[1]}",
    )
    begun_s = time.monotonic()
    # The first one's process has the windows of the others, too, which only ask it for them.
    started = [subprocess.Popen((*command, f"--app={address}")) for address in addresses]
    for each in started[1:]:
        each.wait()
    return started[0].wait(), time.monotonic() - begun_s
