"""A studio in a process of its own: for browser tests, and for pictures of it."""

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
START_S = 120
STOP_S = 30


class Server:
    """The studio on a port and a home folder of its own; it can be ended and started again."""

    def __init__(
        self,
        home: Path,
        log: Path,
        app: str = "app.py",
        *,
        options: Sequence[str] = (),
        folder: Path = ROOT,
    ) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.home, self.log, self.app = home, log, app
        self.options, self.folder = options, folder
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self, program: tuple[str, ...] = ("-m", "streamlit")) -> str:
        """Start it, once more if need be, and wait until it answers; its address."""
        self.stop()
        command = (
            *(sys.executable, *program, "run", str(ROOT / self.app)),
            *("--server.headless", "true", "--server.port", str(self.port)),
            *self.options,
        )
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                command,
                cwd=self.folder,
                env={**os.environ, "PLACEMENT_STUDIO_HOME": str(self.home)},
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self._wait_until_up()
        return self.url

    def kill(self) -> None:
        """End it on the spot, as a crash or `kill -9` would."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()
        self.process = None

    def stop(self) -> None:
        if self.process is None:
            return
        self.process.terminate()
        try:
            self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None

    def _wait_until_up(self) -> None:
        end_s = time.monotonic() + START_S
        while time.monotonic() < end_s:
            code = self.process.poll() if self.process else None
            if code is not None:
                raise RuntimeError(f"The studio ended with status {code}:\n{self.log.read_text()}")
            try:
                with urllib.request.urlopen(f"{self.url}/_stcore/health", timeout=5) as answer:
                    if answer.status == 200:
                        return
            except (urllib.error.URLError, OSError):
                time.sleep(0.1)
        raise RuntimeError(f"The studio did not answer:\n{self.log.read_text()}")
