"""The page beside Netron and Model Explorer, in one Chromium: the same files, turn by turn.

    python -m benchmarks.ui [--json] [--loads 5] [--files "3,000 ops"] [--shots FOLDER] [--alone]
    python -m benchmarks.ui --beside

Before these, ops are dragged over devices of the studio (`_page/consequences.py`), and servers of
it are started with a page that is asked for at once. With `--beside` only that is measured which
the page takes of the computer while a job goes on (`_page/beside.py`).

Every server is up and has shown one page before the first measured one. A measured load is of a
file that no server has met, to the settled picture of the graph, and for the studio also to that of
the whole page: in a profile without anything cached, and in one in which that side has
shown other files before ("used"); "again" is the studio's second load of the same project. When a
picture counts as settled is said in `watch.py`. The peers come from the package index into an
environment of their own, `.venv-peers`, which is made where it is missing (about 800 MB); without
it the studio is measured alone and the table says so. The browser reaches no address outside this
computer.
"""

import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks._page import beside, consequences, edits, files, shares, sides
from benchmarks._page.sides import Side
from benchmarks._page.table import DRAGGED, HUGE, LARGE, SMALL, STUDIO, Found, text, to_json
from benchmarks._page.watch import PATIENCE_S, NotDrawn, Settled, Watched, profile, watched
from benchmarks._shared.figures import parser

FLAGS = (*edits.FLAGS, "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")
EDITED = "3,000 ops"
AGAIN, HUGE_LOADS = 3, 3
PAN_S, NUM_EDITS, NUM_DRAGS, NUM_STARTS = 3.0, 20, 50, 3
# A slow computer makes fewer rounds than asked for.
MOST_S = 400.0
# The number of a copy that only warms the servers up, and of the first one in used profiles.
WARM, USED = 1000, 500


class Bench:
    """One run: the browser, the servers that are up, the files' folder and what was found."""

    def __init__(self, browser: Any, folder: Path, shots: Path | None) -> None:
        self.browser, self.folder, self.shots = browser, folder, shots
        self.sides: list[Side] = []
        self.used: dict[str, Any] = {}
        self.found = Found()

    def start(self, stack: ExitStack, alone: bool) -> None:
        """Start the servers and let each show a page; a peer that cannot be had is noted."""
        makers = [sides.studio]
        why = "left out" if alone else sides.install_peers()
        if why:
            self.found.missing["Netron and Model Explorer"] = why
        else:
            makers += [sides.netron, sides.model_explorer]
        warm = files.write("Inception v2", WARM, self.folder)
        for make in makers:
            try:
                side = make(stack)
                self.used[side.name] = profile(self.browser)
                # What is compiled on a computer's first use takes minutes, once.
                with self.shown(side, warm, used=True, patience_s=600.0):
                    self.sides.append(side)
            except (OSError, NotDrawn) as error:
                self.found.missing[make.__name__] = str(error)
        if not any(side.name == STUDIO for side in self.sides):
            raise SystemExit(f"The studio does not start: {self.found.missing['studio']}")

    @contextmanager
    def shown(
        self, side: Side, file: Path, *, used: bool = False, patience_s: float = PATIENCE_S
    ) -> Iterator[tuple[Watched, str, Settled]]:
        """A settled page of a file, its address, and the seconds it took."""
        before = self.used[side.name] if used else None
        with side.opened(file) as url, watched(self.browser, side.cookies(url), before) as page:
            took = page.settled(url, side, patience_s)
            if self.shots is not None:
                (self.shots / f"{file.stem}-{side.name}.jpg").write_bytes(page.frames.last)
            yield page, url, took

    def load(self, name: str, copy: int, sides: Sequence[Side]) -> None:
        """Each side opens one copy of a file, the first to begin being another every time."""
        file = files.write(name, copy, self.folder)
        another = files.write(name, USED + copy, self.folder)
        first = copy % len(sides)
        for side in (*sides[first:], *sides[:first]):
            try:
                with self.shown(side, file) as (page, url, took):
                    self.found.load(name, side.name, took)
                    if name == EDITED and not copy:
                        self.handle(side, page)
                    if side.name == STUDIO and copy < AGAIN and name != HUGE:
                        with watched(self.browser) as second:
                            again = self.found.again.setdefault(name, [])
                            again.append(second.settled(url, side).graph_s)
                with self.shown(side, another, used=True) as (_, _, took):
                    self.found.load(name, side.name, took, used=True)
            except (OSError, NotDrawn) as error:
                self.found.missing[f"{side.name}, {name}"] = str(error)
        self.say(f"{name}, {copy + 1}: ", name)

    def handle(self, side: Side, page: Watched) -> None:
        """What is done with a page once it is there: pan it, and edit the studio's."""
        self.found.pans[side.name] = page.frames_per_s(side.grip, PAN_S)
        if side.name == STUDIO:
            self.found.shares = shares.shares(page.page)
            totals: list[int] = []
            made = edits.edits(page.page, NUM_EDITS, lambda: totals.append(sum(page.received)))
            self.found.painted, self.found.confirmed = made.painted, made.confirmed
            self.found.held = made.held
            # The first edit starts a placement of its own, and the selection came before it.
            self.found.message_bytes = [b - a for a, b in pairwise(totals)]

    def drag(self) -> None:
        """How long the studio takes to show what a drop would do."""
        own = next(side for side in self.sides if side.name == STUDIO)
        file = files.write(DRAGGED, WARM, self.folder)
        try:
            with self.shown(own, file) as (page, _, _):
                self.found.ghosts = consequences.drags(page.page, NUM_DRAGS)
        except (OSError, NotDrawn) as error:
            self.found.missing[f"{STUDIO}, drags"] = str(error)

    def start_anew(self) -> None:
        """How long a new server takes from its start to the settled picture of a file."""
        for copy in range(NUM_STARTS):
            file = files.write("Inception v2", WARM + 1 + copy, self.folder)
            begun_s = time.time()
            try:
                with ExitStack() as stack, self.shown(sides.studio(stack), file) as (page, _, _):
                    self.found.started.append(page.frames.changed_s - begun_s)
            except (OSError, NotDrawn) as error:
                self.found.missing[f"{STUDIO}, starts"] = str(error)

    def say(self, what: str, name: str) -> None:
        loads = self.found.loads.get(name, {})
        told = ", ".join(f"{side} {values[-1]:.2f} s" for side, values in loads.items())
        print(f"{what}{told}", file=sys.stderr, flush=True)


def measure(files: Sequence[str], loads: int, shots: Path | None, alone: bool) -> Found:
    from playwright.sync_api import sync_playwright

    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        playwright = stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(executable_path=edits.chromium(), args=list(FLAGS))
        bench = Bench(browser, folder, shots)
        bench.start(stack, alone)
        own = [side for side in bench.sides if side.name == STUDIO]
        bench.drag()
        bench.start_anew()
        begun_s = time.monotonic()
        for copy in range(loads):
            # The longest round is the first, in which pages are panned and edited too.
            if copy and (time.monotonic() - begun_s) * (copy + 1) / copy > MOST_S:
                bench.found.missing[f"Rounds {copy + 1} to {loads}"] = "no time was left for them"
                break
            for name in files:
                if name != HUGE:
                    bench.load(name, copy, bench.sides)
                elif copy < HUGE_LOADS:
                    bench.load(name, copy, own)
        browser.close()
    return bench.found


def measure_beside() -> dict[str, dict[str, float]]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=edits.chromium(), args=list(FLAGS))
        return beside.cores(browser)


def main() -> None:
    every = (*SMALL, LARGE, HUGE)
    made = parser(__doc__, loads=5)
    made.add_argument("--files", nargs="+", default=every, choices=every)
    made.add_argument("--shots", type=Path, help="keep a picture of each settled page here")
    made.add_argument("--alone", action="store_true", help="without the peers")
    made.add_argument("--beside", action="store_true", help="cores taken beside jobs, nothing else")
    given = made.parse_args()
    if given.beside:
        print(json.dumps(measure_beside(), indent=1))
        return
    if given.shots is not None:
        given.shots.mkdir(parents=True, exist_ok=True)
    found = measure(given.files, given.loads, given.shots, given.alone)
    print(json.dumps(to_json(found)) if given.json else text(found))


if __name__ == "__main__":
    main()
