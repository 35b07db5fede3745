"""The studio and its peers as servers: how each is started, and how it says that it has drawn."""

import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from studio.project.files import write_json
from studio.project.store import Settings

ROOT = Path(__file__).resolve().parents[2]
PEERS = ROOT / ".venv-peers"
# Model Explorer reads ONNX files through the adapter that its own pages name.
PACKAGES = ("netron==9.3.3", "ai-edge-model-explorer==0.1.34", "model-explorer-onnx==0.4.2")
START_S = 120.0

PROBE = "globalThis.__placementCanvas?.probe?.('canvas')"
DRAWN = f"(() => {{ const p = {PROBE}; return !!p && p.drawn === p.view && !p.busy; }})()"
# A point of the studio's canvas with no node and no frame's header near it.
GROUND = """(() => {
  const { stage, nodes, boxes } = PROBE;
  const near = (item, x, y) =>
    Math.abs(item.x - x) < item.w / 2 + 8 && Math.abs(item.y - y) < item.h / 2 + 8;
  const header = (box) => ({ x: box.x + box.w / 2, y: box.y, w: box.w, h: 80 });
  const things = [...nodes, ...boxes.map(header)];
  for (let y = stage.top + 0.3 * stage.height; y < stage.top + 0.9 * stage.height; y += 7)
    for (let x = stage.left + 0.3 * stage.width; x < stage.left + 0.85 * stage.width; x += 7)
      if (!things.some((thing) => near(thing, x, y))) return [x, y];
})()""".replace("PROBE", PROBE)


@dataclass(frozen=True)
class Side:
    """A running server. `opened` gives the address that shows a model file; `drawn` is JavaScript
    that is true once the graph is there, `grip` gives a point [x, y] to drag the picture by. Where
    the eye has the graph before the hand has, `seen` is true, in the part `stage` of the window."""

    name: str
    opened: Callable[[Path], AbstractContextManager[str]]
    drawn: str
    grip: str
    cookies: Callable[[str], Sequence[dict[str, Any]]] = lambda url: ()
    seen: str = ""
    stage: str = ""


def studio_server(stack: ExitStack) -> tuple[str, Path]:
    """The address of a studio and its home folder, which is empty."""
    home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    port = _free_port()
    command = (
        *(sys.executable, "-m", "streamlit", "run", "app.py"),
        *("--server.headless", "true", "--server.port", str(port)),
    )
    url = f"http://127.0.0.1:{port}"
    server = served(command, f"{url}/_stcore/health", {"PLACEMENT_STUDIO_HOME": str(home)})
    stack.enter_context(server)
    return url, home


def new_project(home: Path, settings: Settings) -> Path:
    """The folder of a new project with these settings."""
    folder = home / "projects" / secrets.token_hex(5)
    write_json(folder / "project.json", msgspec.to_builtins(settings))
    return folder


def studio(stack: ExitStack) -> Side:
    """The studio; a file becomes the model of a new project."""
    url, home = studio_server(stack)

    def opened(file: Path) -> AbstractContextManager[str]:
        made = Settings(file.stem, time.time(), model_kind="path", model=str(file))
        return nullcontext(f"{url}/?project={new_project(home, made).name}")

    early = "globalThis.__placementCanvas?.probe?.('canvas', true)"
    seen = f"(() => {{ const p = {early}; return !!p && p.drawn === p.view; }})()"
    stage = f"{early}.stage"
    return Side("Placement Studio", opened, DRAWN, GROUND, seen=seen, stage=stage)


def netron(stack: ExitStack) -> Side:
    """Netron, which serves one file; without the cookie it would first ask for consent.

    Its port stays the same, or a browser would know nothing of it from the file before.
    """
    port = _free_port()

    @contextmanager
    def opened(file: Path) -> Iterator[str]:
        url = f"http://127.0.0.1:{port}/"
        command = (str(PEERS / "bin" / "netron"), str(file), "--host", "127.0.0.1")
        with served((*command, "--port", str(port)), url):
            yield url

    return Side(
        "Netron",
        opened,
        "document.body.classList.contains('default') && !!document.querySelector('svg .node')",
        "[720, 450]",
        lambda url: [{"name": "consent", "value": str(round(time.time() * 1000)), "url": url}],
    )


def model_explorer(stack: ExitStack) -> Side:
    port = _free_port()
    command = (
        *(str(PEERS / "bin" / "model-explorer"), "--extensions=model_explorer_onnx"),
        *("--no_open_in_browser", "--host=127.0.0.1", f"--port={port}"),
    )
    url = f"http://127.0.0.1:{port}/"
    stack.enter_context(served(command, url))

    def opened(file: Path) -> AbstractContextManager[str]:
        return nullcontext(f"{url}?data={quote(json.dumps({'models': [{'url': str(file)}]}))}")

    return Side(
        "Model Explorer",
        opened,
        "!!document.querySelector('webgl-renderer canvas')",
        "[300, 250]",
    )


def install_peers() -> str:
    """An environment with the peers, made where it is missing; what went wrong, if anything."""
    done = PEERS / "installed.txt"
    if done.is_file() and done.read_text().split() == list(PACKAGES):
        return ""
    pip = (str(PEERS / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--quiet")
    for command in ((sys.executable, "-m", "venv", str(PEERS)), (*pip, "install", *PACKAGES)):
        made = subprocess.run(command, capture_output=True, text=True, check=False)
        if made.returncode:
            return (made.stderr.strip().splitlines() or ["no reason was given"])[-1]
    done.write_text("\n".join(PACKAGES))
    return ""


@contextmanager
def served(
    command: Sequence[str], answers: str, extra: Mapping[str, str] | None = None
) -> Iterator[None]:
    """A server that runs until the end of the block; it is ready when the address answers."""
    quiet = subprocess.DEVNULL
    environment = {**os.environ, **(extra or {})}
    server = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=quiet, stderr=quiet)
    try:
        _wait_until_up(server, Path(command[0]).name, answers)
        yield
    finally:
        server.terminate()
        try:
            server.wait(10)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _wait_until_up(server: "subprocess.Popen[bytes]", name: str, answers: str) -> None:
    end_s = time.monotonic() + START_S
    while time.monotonic() < end_s:
        if server.poll() is not None:
            raise OSError(f"{name} ended with status {server.returncode}")
        try:
            urllib.request.urlopen(answers, timeout=5).close()
            return
        except OSError:
            time.sleep(0.05)
    raise OSError(f"{name} did not answer within {START_S:.0f} s")


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
