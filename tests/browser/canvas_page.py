"""A page with nothing but a canvas, and what a person does to it."""

import json

# Asking at every frame keeps a core busy.
LOOK_EVERY_MS = 50
PROBE = "() => globalThis.__placementCanvas?.probe?.() ?? null"


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
