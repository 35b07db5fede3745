"""What hostile files cost: seconds, memory, the sentence, and how the server goes on meanwhile.

    python -m benchmarks.hostile [FILE ...]

Without files those of tests/hostile are opened, each by the command that its test uses; files that
are named are inspected. Then a server is started, and while it opens each model file for a session
of its own, its health check is asked every tenth of a second. The longest answer is printed.
"""

import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.browser.serving import Server
from tests.hostile.test_every_file import COMMANDS, FOLDER, watched

POLL_S = 0.1
OPENING_MS = 8000
MODELS = (".onnx", ".pt2", ".json")


def main(arguments: Sequence[str]) -> None:
    given = [Path(argument) for argument in arguments]
    paths = given or [FOLDER / name for name in COMMANDS]
    print(f"{'file':28} {'status':>6} {'seconds':>8} {'MB':>6}  sentence")
    with tempfile.TemporaryDirectory() as folder:
        placed = str(Path(folder) / "placed.json")
        watched("place", "onnx-squeezenet", "--placer", "single", "--analytic", "--out", placed)
        for path in paths:
            command = COMMANDS.get(path.name, ("inspect", "{}"))
            words = [word.format(path, placement=placed, folder=folder) for word in command]
            began_s = time.perf_counter()
            status, _, errors, num_bytes = watched(*words)
            took_s = time.perf_counter() - began_s
            megabytes = num_bytes / 1e6
            print(f"{path.name:28} {status:6} {took_s:8.1f} {megabytes:6.0f}  {errors.strip()}")
        print_health([p for p in paths if p.suffix in MODELS], Path(folder))


def print_health(paths: Sequence[Path], folder: Path) -> None:
    """Ask a server how it is while pages open the files, one after the other."""
    from playwright.sync_api import sync_playwright

    from tests.browser.conftest import FLAGS, find_browser

    server = Server(folder / "home", folder / "log.txt")
    try:
        url = server.start()
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=find_browser(), args=list(FLAGS))
            page = browser.new_page()
            page.goto(url)
            path_field = page.get_by_label("Path on this computer")
            path_field.wait_for(timeout=120_000)
            with asked(f"{url}/_stcore/health") as answers_s:
                for path in paths:
                    path_field.fill(str(path.absolute()))
                    path_field.press("Enter")
                    page.wait_for_timeout(OPENING_MS)
            print(f"health check asked {len(answers_s)} times: longest {max(answers_s):.3f} s")
    finally:
        server.stop()


@contextmanager
def asked(url: str) -> Iterator[list[float]]:
    """Seconds that an address took to answer, asked again and again meanwhile."""
    answers_s: list[float] = []
    over = threading.Event()

    def ask() -> None:
        while not over.wait(POLL_S):
            began_s = time.perf_counter()
            urllib.request.urlopen(url, timeout=60).read()
            answers_s.append(time.perf_counter() - began_s)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        yield answers_s
    finally:
        over.set()
        asking.join()


if __name__ == "__main__":
    main(sys.argv[1:])
