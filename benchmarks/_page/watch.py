"""What a browser shows, watched from outside: when a picture settles, how smoothly it pans.

Settled is decided by pixels, by one rule for every page. From the moment at which a page says that
it has drawn its graph (before, it may stand still because it still computes), Chromium sends each
frame that it composes. A frame counts as a change where at least one in two thousand pixels looks
different from the last frame that counted, so that a blinking caret does not. The picture has
settled with the last change after which nothing changed for a second and a half. Where the graph
has a part of the window, that part is looked at by itself, and the window as a whole beside it.
"""

import base64
import io
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

QUIET_S, PATIENCE_S = 1.5, 90.0
LEVELS, SHARE = 16, 1 / 2000
WIDTH, HEIGHT = 1440, 900
SCREENCAST = {"format": "jpeg", "quality": 80, "maxWidth": WIDTH // 2, "maxHeight": HEIGHT // 2}
STRETCH_MS = 500.0
COUNT_FRAMES = """(() => {
  const times = (globalThis.frameTimes = []);
  const tick = (at) => {
    times.push(at);
    if (globalThis.frameTimes === times) requestAnimationFrame(tick);
  };
  requestAnimationFrame(tick);
})()"""
COUNTED = "(() => { const times = frameTimes; globalThis.frameTimes = null; return times; })()"

Picture = NDArray[np.int16]


class NotDrawn(Exception):
    """A page did not show its graph in time."""


class Settled(NamedTuple):
    """Seconds from navigation to the settled picture of the graph, and of the whole page."""

    graph_s: float
    page_s: float


class Box(NamedTuple):
    """A part of the window, as shares of its width and height."""

    left: float
    top: float
    right: float
    bottom: float


WHOLE = Box(0.0, 0.0, 1.0, 1.0)


class Frames:
    """The frames of a page as they come, and when a part of it last changed, in seconds since the
    epoch."""

    def __init__(
        self, decode: "Callable[[bytes], Picture] | None" = None, part: Box = WHOLE
    ) -> None:
        self.changed_s = math.inf
        self.last = b""
        self._decode = decode or decoded
        self._part = part
        self._counted: Picture | None = None

    def add(self, at_s: float, image: bytes) -> None:
        """Compare a frame with the last that counted; the first one always counts."""
        if image == self.last:
            return
        self.last, picture = image, cut(self._decode(image), self._part)
        if self._counted is None or differs(self._counted, picture):
            self._counted, self.changed_s = picture, at_s

    def rest_at(self, now_s: float) -> bool:
        """Whether nothing has changed for long enough."""
        return now_s - self.changed_s >= QUIET_S


def differs(before: Picture, after: Picture) -> bool:
    """Whether enough pixels changed by enough to be seen."""
    if before.shape != after.shape:
        return True
    return bool(np.mean(np.abs(after - before) > LEVELS) >= SHARE)


def cut(picture: Picture, part: Box) -> Picture:
    """A part of a picture; a row of pixels has all of them in its height."""
    if part == WHOLE:
        return picture
    height, width = picture.shape
    rows = slice(math.ceil(part.top * height), math.floor(part.bottom * height))
    return picture[rows, math.ceil(part.left * width) : math.floor(part.right * width)]


def decoded(image: bytes) -> Picture:
    """Grey levels of an image."""
    from PIL import Image

    return np.asarray(Image.open(io.BytesIO(image)).convert("L"), dtype=np.int16)


class Seen(Protocol):
    """How a page says in JavaScript that it has drawn its graph (`seen`: for the eye, where that is
    earlier than for the hand), and where in the window that is; empty for all of it."""

    drawn: str
    seen: str
    stage: str


class Watched:
    """A page under watch, asked by the debugging protocol because pages may forbid `eval`."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.frames = Frames()
        self._watching: list[Frames] = []
        self.received: list[int] = []
        self._session = page.context.new_cdp_session(page)
        self._session.on("Page.screencastFrame", self._framed)
        page.on("websocket", lambda socket: socket.on("framereceived", self._heard))

    def ask(self, expression: str) -> Any:
        """The value of a JavaScript expression; None where it throws."""
        given = {"expression": expression, "returnByValue": True}
        return self._session.send("Runtime.evaluate", given)["result"].get("value")

    def settled(self, url: str, side: "Seen", patience_s: float = PATIENCE_S) -> Settled:
        """Go to a page and wait until nothing of it changes any more."""
        self.page.goto(url, wait_until="commit")
        end_s = time.monotonic() + patience_s
        self._wait_for(side.seen or side.drawn, end_s)
        graph = Frames(part=self._part(side.stage)) if side.stage else self.frames
        self._watching = [graph]
        self._session.send("Page.startScreencast", SCREENCAST)
        self._wait_for(side.drawn, end_s)
        if graph is not self.frames:
            # A screen on which nothing moves sends no frame, so the page is given the last one.
            self.frames.add(time.time(), graph.last) if graph.last else None
            self._watching.append(self.frames)
        while not all(frames.rest_at(time.time()) for frames in self._watching):
            if time.monotonic() > end_s:
                raise NotDrawn(f"no rest within {patience_s:.0f} s")
            self.page.wait_for_timeout(50)
        self._session.send("Page.stopScreencast")
        begun_s = self.ask("performance.timeOrigin") / 1000
        return Settled(graph.changed_s - begun_s, self.frames.changed_s - begun_s)

    def _wait_for(self, expression: str, end_s: float) -> None:
        while self.ask(expression) is not True:
            if time.monotonic() > end_s:
                raise NotDrawn("no graph in time")
            self.page.wait_for_timeout(20)

    def _part(self, stage: str) -> Box:
        """The part of the window that JavaScript tells as a rectangle in pixels."""
        box = self.ask(stage)
        right, bottom = box["left"] + box["width"], box["top"] + box["height"]
        return Box(box["left"] / WIDTH, box["top"] / HEIGHT, right / WIDTH, bottom / HEIGHT)

    def frames_per_s(self, grip: str, seconds: float) -> list[float]:
        """Frames per second in stretches of half a second, while the picture is dragged around by
        the point that `grip` gives."""
        x, y = self.ask(grip)
        mouse, end_s, angle = self.page.mouse, time.monotonic() + seconds, 0.0
        mouse.move(x, y)
        mouse.down()
        self.ask(COUNT_FRAMES)
        while time.monotonic() < end_s:
            angle += 0.12
            mouse.move(x + 120 * math.sin(angle), y + 90 * (1 - math.cos(angle)))
        times_ms = self.ask(COUNTED)
        mouse.up()
        return rates(times_ms)

    def _framed(self, event: dict[str, Any]) -> None:
        image = base64.b64decode(event["data"])
        for frames in self._watching:
            frames.add(event["metadata"]["timestamp"], image)
        self._session.send("Page.screencastFrameAck", {"sessionId": event["sessionId"]})

    def _heard(self, message: str | bytes) -> None:
        self.received.append(len(message))


def profile(browser: Any) -> Any:
    """A browser profile with nothing cached; what pages in it fetch stays in it."""
    return browser.new_context(viewport={"width": WIDTH, "height": HEIGHT})


@contextmanager
def watched(
    browser: Any, cookies: Sequence[dict[str, Any]] = (), used: Any = None
) -> Iterator[Watched]:
    """A page in a profile of its own, with nothing cached, or in one that was used before."""
    context = profile(browser) if used is None else used
    page = None
    try:
        context.add_cookies(list(cookies))
        page = context.new_page()
        yield Watched(page)
    finally:
        if used is None:
            context.close()
        elif page is not None:
            page.close()


def rates(times_ms: Sequence[float]) -> list[float]:
    """Frames per second of consecutive stretches; a rest that makes no stretch is left out."""
    found, first = [], 0
    for i, at in enumerate(times_ms):
        if at - times_ms[first] >= STRETCH_MS:
            found.append(1000 * (i - first) / (at - times_ms[first]))
            first = i
    return found or [0.0]
