"""`placement-studio`: the studio for the person at this desk, in the browser or in its own window.

The server is a process of its own. It is started in the program's folder, whose settings are
Streamlit's for this server then, and not those of whatever folder somebody stands in: that may be
one of downloads.
"""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.parse
import webbrowser
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import placement
from placement import loaders
from placement.cli import window
from placement.cli.options import OneLineParser, fail
from placement.cli.window import Shown
from placement.files import named
from placement.files.input import regular_file
from placement.files.program import program_folder

NAME = "placement-studio"
FIRST_PORT, NUM_PORTS = 8501, 20
START_S, END_S, LOOK_EVERY_S = 120.0, 10.0, 0.05
_EVERYWHERE = ("0.0.0.0", "::", "")
_LOOPBACK = "127.0.0.1"
T = TypeVar("T", str, int | None)


def main(arguments: Sequence[str] | None = None) -> int:
    """Open the studio, and wait until somebody ends it; the exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    cut = given.index("--") if "--" in given else len(given)
    options = _parser().parse_args(given[:cut])
    try:
        for model in options.models:
            if not loaders.is_sample(model):
                loaders.require_file(str(named.expanded(model)))
        if options.placement:
            if len(options.models) != 1:
                raise ValueError("--placement is of one model; name that one beside it.")
            regular_file(named.expanded(options.placement))
        with _serving(options, given[cut + 1 :]) as (server, addresses):
            shown = window.show_until_closed(addresses) if options.window else Shown.NOWHERE
            if shown is Shown.CLOSED:
                return 0
            if shown is Shown.NOWHERE:
                _show_in_browser(() if options.no_browser else addresses, addresses)
            elif shown is Shown.ELSEWHERE:
                # A window that was open already has taken it, and does not say when it is closed.
                _show_in_browser((), addresses)
            return server.wait()
    except (ValueError, OSError) as error:
        return fail(str(error))
    except KeyboardInterrupt:
        pass
    return 0


def _parser() -> ArgumentParser:
    parser = OneLineParser(
        prog=NAME,
        description="Open the studio in the browser.",
        epilog="What follows -- are options of the server: "
        f"{NAME} -- --server.address 0.0.0.0 --server.allowedHosts lab7",
    )
    parser.add_argument("models", nargs="*", metavar="MODEL", help="a model file or a sample")
    parser.add_argument(
        "--placement", default="", metavar="FILE", help="a placement of the model, opened with it"
    )
    parser.add_argument("--window", action="store_true", help="in a window of its own")
    parser.add_argument("--no-browser", action="store_true", help="open nothing, only serve")
    parser.add_argument("--port", type=int, help=f"the server's port, {FIRST_PORT} if it is free")
    parser.add_argument("--version", action="version", version=f"{NAME} {placement.__version__}")
    return parser


@contextmanager
def _serving(
    options: Namespace, further: Sequence[str]
) -> Iterator[tuple[subprocess.Popen[bytes], tuple[str, ...]]]:
    """The server's process, once it answers, and an address for each model; it ends with this."""
    host = _host(further)
    port = _port(host, _given(further, "--server.port", options.port))
    folder = program_folder()
    words, variables = named.variables(options.models, Path.cwd(), options.placement)
    # `streamlit run app.py` in that folder, as `make run` does it.
    command = (
        *(sys.executable, "-m", "streamlit", "run", str(folder / "app.py")),
        *("--server.headless", "true", *further, "--server.port", str(port)),
    )
    server = subprocess.Popen(command, cwd=folder, env={**os.environ, **variables})
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        url = _url(host, port, further)
        _wait_until_up(server, host, port)
        asked = [urllib.parse.urlencode({"project": "new", named.QUERY: word}) for word in words]
        yield server, tuple(f"{url}?{query}" for query in asked) or (url,)
    finally:
        signal.signal(signal.SIGTERM, before)
        _end(server)


def _given(further: Sequence[str], option: str, default: T) -> str | T:
    """What the options of the server say of one of them."""
    text = " ".join(further).replace("=", " ").split()
    after = text[text.index(option) + 1 :] if option in text else []
    return after[0] if after else default


def _host(further: Sequence[str]) -> str:
    """Where this computer reaches the server, whatever address it listens at."""
    given = _given(further, "--server.address", _LOOPBACK)
    return _LOOPBACK if given in _EVERYWHERE else given


def _url(host: str, port: int, further: Sequence[str]) -> str:
    scheme = "https" if _given(further, "--server.sslCertFile", "") else "http"
    base = _given(further, "--server.baseUrlPath", "").strip("/")
    shown = f"[{host}]" if ":" in host else host
    return f"{scheme}://{shown}:{port}/{base}" + "/" * bool(base)


def _port(host: str, chosen: int | str | None) -> int:
    """The port that was chosen, or else the first one that is free; ValueError if it is taken."""
    try:
        family = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][0]
        candidates = (int(chosen),) if chosen else (*range(FIRST_PORT, FIRST_PORT + NUM_PORTS), 0)
    except OSError:
        raise ValueError(f"This computer has no address {host!r}; give another one.") from None
    except ValueError:
        raise ValueError(f"The port {chosen!r} is not a number; choose another one.") from None
    for port in candidates:
        with socket.socket(family) as free, suppress(OSError, OverflowError):
            # A server that has just ended leaves its port in waiting, which is free to take.
            free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            free.bind((host, port))
            return int(free.getsockname()[1])
    which = f"The port {chosen}" if chosen else f"A port of {host}"
    raise ValueError(f"{which} cannot be had here; choose another address or port.")


def _wait_until_up(server: subprocess.Popen[bytes], host: str, port: int) -> None:
    end_s = time.monotonic() + START_S
    while time.monotonic() < end_s:
        if server.poll() is not None:
            raise ValueError("The studio's server did not start; the lines above say why.")
        with suppress(OSError), socket.create_connection((host, port), timeout=5):
            return
        time.sleep(LOOK_EVERY_S)
    raise ValueError(f"The studio's server did not answer within {START_S:.0f} s; try again.")


def _show_in_browser(wanted: Sequence[str], addresses: Sequence[str]) -> None:
    """Open what is wanted, and say of all else where it is."""
    shown = {address for address in wanted if webbrowser.open(address)}
    if len(shown) < len(wanted):
        print("No browser was found here.", flush=True)
    for address in (each for each in addresses if each not in shown):
        print(f"The studio is at {address} (Ctrl-C ends it).", flush=True)


def _end(server: subprocess.Popen[bytes]) -> None:
    if server.poll() is None:
        server.terminate()
        try:
            server.wait(END_S)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


if __name__ == "__main__":
    sys.exit(main())
