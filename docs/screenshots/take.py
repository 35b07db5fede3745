"""Pictures of pages and tabs, in two sizes, light and dark: `python -m docs.screenshots.take`.

A studio of its own with an empty home is started, a sample is placed and run in it as a person
would, and then each page is photographed once it has come to rest. Pages are found by their files.
"""

import argparse
import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, expect, sync_playwright

from docs.screenshots import workloads
from tests.browser.conftest import FLAGS, find_browser
from tests.browser.serving import Server
from tests.browser.studio import PATIENCE_MS, drawn, metric, page_names, project_of, settled
from tests.hosts.two_nodes import nodes

HERE = Path(__file__).parent
SIZES = ((1440, 900), (1024, 768))
# What 1440 x 900 comes to in a browser at 150 %.
ZOOMED = {"width": 960, "height": 600}
SCHEMES = ("light", "dark")
# Addresses that show what the Studio page shows at first.
ALIKE = ("place", "timeline")
NUM_COLOURS = 256
REST_MS = 700
RUN_MS, HOSTS_MS = 45_000, 120_000
MOST_LOOKS = 12
# Along the critical path, before the presenter's view is photographed.
STEPS = 3


def prepare(browser: Browser, url: str) -> str:
    """Place the default sample with `auto` and run it; the project's id."""
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto(url)
    drawn(page)
    page.get_by_role("button", name="Place", exact=True).click()
    told = page.get_by_text(re.compile("Placed by auto")).first
    expect(told).to_be_visible(timeout=2 * PATIENCE_MS)
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_role("button", name="Run", exact=True)).to_be_disabled()
    project = project_of(page)
    # A page that draws the steps as they come takes the cores that are being measured.
    page.goto("about:blank")
    page.wait_for_timeout(RUN_MS)
    page.goto(f"{url}/run?project={project}")
    expect(metric(page, "Measured step time").last).to_be_visible(timeout=PATIENCE_MS)
    page.close()
    return project


def at_rest(page: Page) -> bytes:
    """The picture of a page once nothing on it changes any more."""
    settled(page)
    before, now = b"", page.screenshot()
    for _ in range(MOST_LOOKS):
        if now == before:
            break
        page.wait_for_timeout(REST_MS)
        before, now = now, page.screenshot()
    return now


def small(picture: bytes) -> bytes:
    """The same picture with a palette of its own colours: a third of the size, to the eye alike."""
    image = Image.open(BytesIO(picture)).convert("RGB")
    few = image.quantize(NUM_COLOURS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    packed = BytesIO()
    few.save(packed, "PNG", optimize=True)
    return packed.getvalue()


def pictures(browser: Browser, url: str, project: str) -> Iterator[tuple[str, bytes]]:
    """File name and content of each picture."""
    for width, height in SIZES:
        for scheme in SCHEMES:
            page = browser.new_page(
                viewport={"width": width, "height": height}, color_scheme=scheme
            )
            for name in (name for name in page_names() if name not in ALIKE):
                page.goto(f"{url}/{name}?project={project}")
                yield f"{name or 'studio'}-{width}-{scheme}.png", small(at_rest(page))
            page.close()
    page = browser.new_page(viewport=ZOOMED, device_scale_factor=1.5)
    page.goto(f"{url}/?project={project}")
    yield "studio-zoomed-light.png", small(at_rest(page))
    page.goto(f"{url}/?project={project}&present")
    yield "present-zoomed-light.png", small(presenting(page))
    page.close()
    for (width, height), scheme in zip((*SIZES, SIZES[0]), ("light", "light", "dark"), strict=True):
        page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
        page.goto(f"{url}/?project={project}&present")
        yield f"present-{width}-{scheme}.png", small(presenting(page))
        page.close()


def hosts_taken(browser: Browser, url: str) -> bytes:
    """The Devices page that has taken over the hosts of a Ray cluster."""
    page = browser.new_page(viewport={"width": SIZES[0][0], "height": SIZES[0][1]})
    page.goto(url)
    drawn(page)
    page.goto(f"{url}/devices?project={project_of(page)}")
    page.get_by_role("button", name="Take the hosts of a Ray cluster").click()
    # A process of its own asks them.
    device = page.get_by_role("button", name="beta/cpu:0,")
    expect(device).to_be_visible(timeout=HOSTS_MS)
    # What the button says of itself covers the machine's name.
    page.mouse.move(*SIZES[0])
    expect(page.get_by_role("tooltip")).to_be_hidden()
    picture = small(at_rest(page))
    page.close()
    return picture


def presenting(page: Page) -> bytes:
    """The presenter's view some steps along the critical path."""
    at_rest(page)
    for _ in range(STEPS):
        page.keyboard.press("PageDown")
    return at_rest(page)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=HERE, help="folder for the pictures")
    parser.add_argument(
        "--hosts",
        action="store_true",
        help="only the Devices page with two Ray nodes of this computer (make setup-hosts)",
    )
    parser.add_argument(
        "--workloads", action="store_true", help="only what can be set for workload files"
    )
    options = parser.parse_args()
    out = options.out
    out.mkdir(parents=True, exist_ok=True)
    began, total = time.monotonic(), 0
    with ExitStack() as stack:
        if options.hosts:
            # Before the server, which learns from them by which address they are reached.
            stack.enter_context(nodes())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        playwright = stack.enter_context(sync_playwright())
        server = Server(folder / "home", folder / "studio.log")
        stack.callback(server.stop)
        browser = playwright.chromium.launch(executable_path=find_browser(), args=list(FLAGS))
        stack.callback(browser.close)
        url = server.start()
        if options.hosts:
            found = iter([("devices-hosts-1440-light.png", hosts_taken(browser, url))])
        elif options.workloads:
            shown = workloads.pages(browser, server, folder)
            found = ((name, small(at_rest(page))) for name, page in shown)
        else:
            found = pictures(browser, url, prepare(browser, url))
        for name, content in found:
            (out / name).write_bytes(content)
            total += len(content)
            print(f"{out / name}: {len(content) // 1024} kB")
    print(f"{total / 2**20:.1f} MiB in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
