"""What hostile files cost: seconds, memory, the sentence, and how the server goes on meanwhile.

    python -m benchmarks.hostile [FILE ...]

Without files those of tests/hostile are opened, each by the command that its test uses; files that
are named are inspected. Then a server is started, and while its pages open each model file and
show a project of slow expressions, its health check is asked every tenth of a second. The longest
answer is printed.
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
PATIENCE_MS = 180_000
# A hundred expressions that take exponential time.
SLOW_PROJECT = FOLDER / "redos100.zip"
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
    """Ask a server how it is while a page opens the files, one after the other."""
    from playwright.sync_api import expect, sync_playwright

    from tests.browser.conftest import FLAGS, find_browser
    from tests.browser.studio import settled

    server = Server(folder / "home", folder / "log.txt")
    try:
        url = server.start()
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=find_browser(), args=list(FLAGS))
            page = browser.new_page()
            page.goto(url)
            field = page.get_by_role("textbox", name="Path on this computer")
            field.wait_for(timeout=PATIENCE_MS)
            with asked(f"{url}/_stcore/health") as answers_s:
                for path in paths:
                    settled(page)
                    field.fill(str(path.absolute()))
                    field.press("Enter")
                    told = page.get_by_text(path.stem).first
                    expect(told).to_be_visible(timeout=PATIENCE_MS)
                page.goto(f"{url}/projects")
                page.get_by_role("button", name="Import a project").click()
                uploads = page.locator('[data-testid="stPopoverBody"] input[type="file"]')
                uploads.set_input_files(SLOW_PROJECT)
                expect(page.get_by_text("Imported ").first).to_be_visible(timeout=PATIENCE_MS)
                page.get_by_role("link", name="Place", exact=True).first.click()
                page.get_by_text("Rules by op type, block or name").click()
                slow = page.get_by_text("takes too long to match").first
                expect(slow).to_be_visible(timeout=PATIENCE_MS)
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
