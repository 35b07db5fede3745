"""The command line: `python -m placement VERB ...`.

With --json a verb prints one JSON value on standard output and nothing else there. Exit 0 on
success, 1 when a check fails, 2 on bad input with one line on standard error, 143 when terminated.
"""

import argparse
import atexit
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

from placement import commands

_GRACE_S = 2.0


class _Parser(argparse.ArgumentParser):
    """A parser whose complaints are one line."""

    def error(self, message: str) -> NoReturn:
        _fail(f"{message[:1].upper()}{message[1:]}; see `{self.prog} --help`.")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb and return the exit status."""
    options = _parser().parse_args(arguments)
    try:
        with _terminable():
            return int(options.verb(options))
    except (ValueError, OSError, RuntimeError, MemoryError) as error:
        return _fail(str(error) or f"{type(error).__name__}: the computer could not do this.")
    except KeyboardInterrupt:
        return _fail("Stopped.")


def _fail(message: str) -> NoReturn:
    print(" ".join(message.split()), file=sys.stderr)
    raise SystemExit(2)


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not a time limit; use seconds above zero")
    return value


def _seed(text: str) -> int:
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text} is not a seed; use a whole number from zero")
    return value


@contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM end this process by the way on which temporary files are removed.

    The handler takes no lock: it writes a byte and raises. A thread that was there before makes
    sure of the end, for another one may be inside a call of a runtime that cannot be ended.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    reader, writer = os.pipe()

    def terminated(number: int, frame: object) -> NoReturn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.write(writer, bytes([number]))
        raise SystemExit(128 + number)

    threading.Thread(target=_see_to_the_end, args=(reader,), daemon=True).start()
    before = signal.signal(signal.SIGTERM, terminated)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGTERM) is terminated:
            signal.signal(signal.SIGTERM, before or signal.SIG_DFL)
        os.close(writer)


def _see_to_the_end(reader: int) -> None:
    """Once a signal's number arrives, leave after a grace period, having run the exit functions."""
    number = os.read(reader, 1)
    os.close(reader)
    if not number:
        return
    time.sleep(_GRACE_S)
    last = threading.Thread(target=atexit._run_exitfuncs, daemon=True)
    last.start()
    last.join(1.0)
    os._exit(128 + number[0])


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m placement", description="Place a network's ops on devices.")
    verbs = parser.add_subparsers(required=True, metavar="VERB", parser_class=_Parser)

    def verb(name: str, help: str) -> argparse.ArgumentParser:
        sub: argparse.ArgumentParser = verbs.add_parser(name, help=help, description=help)
        sub.set_defaults(verb=getattr(commands, name.replace("-", "_")))
        sub.add_argument(
            "--json", action="store_true", help="print one JSON value and nothing else"
        )
        return sub

    verb("samples", "list the bundled models")
    sub = verb("inspect", "say what a model holds")
    _add_input(sub)
    sub = verb("machine", "list the devices and links of a machine")
    sub.add_argument("--machine", default="local", help="local, a preset's name, or a JSON file")
    sub.add_argument("--lanes", type=int, help="split this computer's CPU into so many devices")
    sub.add_argument("--out", metavar="FILE", help="write the machine as JSON")
    verb("placers", "list the placement algorithms and their settings")

    sub = verb("profile", "measure every kernel on every device, and the links")
    _add_problem(sub, objective=False, profile=False)
    sub.add_argument("--refresh", action="store_true", help="measure again even if stored")
    sub.add_argument("--jsonl", action="store_true", help="print one event per line")
    sub.add_argument("--out", metavar="FILE", help="write the profile as JSON")

    sub = verb("place", "let an algorithm place every op")
    _add_problem(sub)
    sub.add_argument("--placer", default="heft", help="see the verb placers")
    _add_search(sub)
    _add_pins(sub)
    sub.add_argument(
        "--keep", metavar="FILE", help="a placement in which only the ops of --move may move"
    )
    sub.add_argument("--move", metavar="FILE", help="these ops, as a JSON list of names")
    _add_mend(sub)
    sub.add_argument("--out", metavar="FILE", help="write the placement as JSON")
    sub.add_argument("--split", metavar="FILE", help="write a workload's placement as node ids")
    sub.add_argument("--jsonl", action="store_true", help="print one event per line")

    sub = verb("simulate", "predict the step time of a placement")
    _add_problem(sub)
    sub.add_argument("--placement", required=True, metavar="FILE")
    _add_mend(sub)

    sub = verb("run", "run a placement live and measure it")
    _add_problem(sub)
    given = sub.add_mutually_exclusive_group(required=True)
    given.add_argument("--placement", metavar="FILE")
    given.add_argument("--placer", metavar="NAME")
    _add_mend(sub)
    sub.add_argument("--steps", type=int, default=20)
    sub.add_argument("--warmup", type=int, default=3)
    sub.add_argument("--depth", type=int, help="samples in flight of a throughput run")
    sub.add_argument("--seed", type=_seed, default=0, help="seed of inputs and of the placer")
    sub.add_argument("--inputs", metavar="FILE.npz", help="real inputs by name")
    sub.add_argument(
        "--timeout", type=_seconds, default=60.0, metavar="S", help="give up on a step after this"
    )
    sub.add_argument("--jsonl", action="store_true", help="print one event per line")

    sub = verb("compare", "run several placers on one problem")
    _add_problem(sub)
    sub.add_argument("--placers", required=True, metavar="A,B,C")
    sub.add_argument("--time-limit", type=_seconds, metavar="S")
    sub.add_argument("--seed", type=_seed, default=0)
    _add_pins(sub)
    _add_mend(sub)
    sub.add_argument("--live", action="store_true", help="measure each placement too")
    sub.add_argument("--jsonl", action="store_true", help="print one event per line")

    sub = verb("what-if", "predict a placement on a machine with faster, slower or smaller parts")
    _add_problem(sub)
    given = sub.add_mutually_exclusive_group(required=True)
    given.add_argument("--placement", metavar="FILE")
    given.add_argument("--placer", metavar="NAME", help="place for the changed machine")
    _add_pins(sub)
    _add_mend(sub)
    _add_conditions(sub)
    _add_search(sub)
    sub.add_argument("--jsonl", action="store_true", help="print one event per line")

    verb("exporters", "list the export formats")
    sub = verb("export", "write a placed model in another format")
    _add_problem(sub)
    sub.add_argument("--placement", required=True, metavar="FILE")
    _add_mend(sub)
    sub.add_argument("--format", required=True, metavar="F", help="see the verb exporters")
    sub.add_argument("--run", metavar="RESULT.json", help="what run --json printed, as measured")
    sub.add_argument(
        "--out",
        required=True,
        metavar="PATH",
        help="a file; for several files a folder, or one archive if it ends in .zip",
    )
    return parser


def _add_input(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("input", metavar="INPUT", help="a model or problem file, or a sample's name")
    sub.add_argument(
        "--dim", action="append", default=[], metavar="NAME=N", help="set a symbolic dimension"
    )


def _add_problem(
    sub: argparse.ArgumentParser, *, objective: bool = True, profile: bool = True
) -> None:
    _add_input(sub)
    sub.add_argument("--machine", default="local", help="local, a preset's name, or a JSON file")
    sub.add_argument("--lanes", type=int, help="split this computer's CPU into so many devices")
    if objective:
        sub.add_argument("--objective", default="latency", choices=("latency", "throughput"))
    if profile:
        sub.add_argument("--profile", metavar="FILE", help="costs from a profile file")
        sub.add_argument(
            "--analytic", action="store_true", help="costs by formula: do not measure anything"
        )


def _add_pins(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "--pin", action="append", default=[], metavar="OP=DEVICE", help="keep an op on a device"
    )
    sub.add_argument("--pins", metavar="FILE", help='pins of many ops, as JSON {"op": "device"}')


def _add_mend(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "--mend",
        action="store_true",
        help="put ops that run as one kernel on the device most of them are on, instead of"
        " refusing a placement, or pins, that split them",
    )


def _add_conditions(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "--speed",
        action="append",
        default=[],
        metavar="DEVICE=F",
        help="a device is F times as fast (0.5: half as fast)",
    )
    sub.add_argument("--bandwidth", type=float, default=1.0, metavar="F", help="the same of links")
    sub.add_argument(
        "--latency", type=float, default=1.0, metavar="F", help="the delay of links is F times"
    )
    sub.add_argument(
        "--memory",
        action="append",
        default=[],
        metavar="DEVICE=BYTES",
        help="another memory limit, or none",
    )


def _add_search(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--time-limit", type=_seconds, metavar="S")
    sub.add_argument("--seed", type=_seed, default=0)
    sub.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of the placer"
    )


if __name__ == "__main__":
    sys.exit(main())
