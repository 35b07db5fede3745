"""A page with nothing but a canvas, and what a person does to it."""

import json
import re

# Asking at every frame keeps a core busy.
LOOK_EVERY_MS = 50
PROBE = "() => globalThis.__placementCanvas?.probe?.() ?? null"

SIZE = {"width": 1280, "height": 860}


class Window:
    """A window on the page with nothing but a canvas; what goes wrong in it is collected.

    Loading the page takes seconds, so what leaves the window as it was lets the next test begin in
    it anew.
    """

    def __init__(self, visitor, url: str):
        self.wrong: list[str] = []
        self.page = page = visitor.new_page()
        page.set_viewport_size(SIZE)
        page.on("pageerror", lambda e: self.wrong.append(f"page error: {e}"))
        page.on("dialog", lambda d: (self.wrong.append("a dialog: code was executed"), d.dismiss()))
        page.on("console", lambda m: self._heard(m.text))
        page.on("request", lambda r: self._asked_for(r.url))
        page.goto(url)

    def begin_anew(self, query: str = ""):
        """By a page that forgets everything, and by letting go what the browser has kept; `query`
        is what the canvas is to be like."""
        self.page.set_viewport_size(SIZE)
        self.page.emulate_media(color_scheme="light")
        self.page.mouse.move(0, 0)
        self.page.get_by_role("link", name="Anew").click()
        if query:
            asked = self.page.get_by_label("The next canvas")
            asked.fill(query)
            asked.press("Enter")
        self.page.get_by_text(f"next is: {query or 'as usual'}").wait_for()
        self.page.wait_for_function("!globalThis.__placementCanvas.alive.size")
        self.page.evaluate("globalThis.__placementCanvas.saved.clear()")
        self.page.get_by_role("link", name="Main", exact=True).click()

    def check(self):
        probe = self.page.evaluate(PROBE)
        assert probe is None or probe["error"] is None, probe["error"]
        assert self.page.locator('[data-testid="stException"]').count() == 0
        assert not self.wrong, self.wrong

    def _heard(self, text: str):
        if "graph canvas:" in text:
            self.wrong.append(text)

    def _asked_for(self, url: str):
        if re.match(r"(https?|wss?)://", url) and "//127.0.0.1:" not in url:
            self.wrong.append(url)


class Canvas:
    """A page with a canvas, and what a person does to it."""

    def __init__(self, page):
        self.page = page

    def probe(self):
        return self.page.evaluate(PROBE)

    def wait(self, condition: str):
        """Until a JavaScript expression over the probe `p` holds."""
        self.page.wait_for_function(
            f"() => {{ const p = ({PROBE})(); return p && ({condition}); }}", polling=LOOK_EVERY_MS
        )
        return self.probe()

    def settled(self):
        """Until Python has answered everything."""
        return self.wait("p.pending === 0 && !p.busy && p.drawn === p.view")

    def node(self, label: str):
        return next(n for n in self.probe()["nodes"] if n["label"] == label)

    def click(self, node, **options):
        self.page.mouse.click(node["x"], node["y"], **options)

    def drag(self, start, end, *, key: str | None = None):
        if key:
            self.page.keyboard.down(key)
        self.page.mouse.move(*start)
        self.page.mouse.down()
        for step in range(1, 9):
            self.page.mouse.move(
                start[0] + (end[0] - start[0]) * step / 8, start[1] + (end[1] - start[1]) * step / 8
            )
        self.page.mouse.up()
        if key:
            self.page.keyboard.up(key)

    def held(self):
        """What Python holds, once it agrees with the picture and rests; its text may come later."""
        self.settled()
        code = self.page.locator('[data-testid="stCode"]')
        text, before = code.inner_text(), None
        while text != before:
            self.page.wait_for_timeout(250)
            text, before = code.inner_text(), text
        return json.loads(text)
