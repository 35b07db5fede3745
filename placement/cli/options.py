"""What the command line understands: its verbs, and the options of each.

A verb is a row of `_VERBS`, a function here that adds its options, and one in `verbs.py`. The
options that a verb has in Python and on the pages too stand in `placement/core/verb_options.py`.
"""

import argparse
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, get_args

import placement
from placement.core.objective import CallRules, Objective
from placement.core.verb_options import (
    CompareOptions,
    ExportOptions,
    Option,
    PlaceOptions,
    ProblemOptions,
    ProfileOptions,
    RefineOptions,
    ResumeOptions,
    RunOptions,
    StepsOptions,
    StreamOptions,
    TrainOptions,
    options_of,
)
from placement.costs.what_if import Conditions


class OneLineParser(argparse.ArgumentParser):
    """A parser whose complaints are one line."""

    def error(self, message: str) -> NoReturn:
        fail(f"{message[:1].upper()}{message[1:]}; see `{self.prog} --help`.")


def _program() -> str:
    """How this program was called: an installed command, or a module of Python."""
    called = os.path.basename(sys.argv[0])
    return called if called == "placement" else "python -m placement"


def fail(message: str) -> NoReturn:
    """End with the exit status of bad input and one line that says what is wrong with it."""
    clear_line()
    print(" ".join(message.split()), file=sys.stderr)
    raise SystemExit(2)


def clear_line() -> None:
    """Take away what was told of progress on a person's terminal; what comes next begins there."""
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def make_parser() -> argparse.ArgumentParser:
    """The parser of all verbs; what it returns holds the name of the verb as `verb`."""
    parser = OneLineParser(prog=_program(), description="Place a network's ops on devices.")
    parser.add_argument(
        "--version", action="version", version=f"placement-studio {placement.__version__}"
    )
    verbs = parser.add_subparsers(
        required=True, metavar="VERB", dest="verb", parser_class=OneLineParser
    )
    for name, summary, add_options in _VERBS:
        sub = verbs.add_parser(name, help=summary, description=summary)
        sub.add_argument(
            "--json", action="store_true", help="print one JSON value and nothing else"
        )
        add_options(sub)
    return parser


def _none(sub: argparse.ArgumentParser) -> None:
    """A verb without options of its own."""


def _machine(sub: argparse.ArgumentParser) -> None:
    _add_machine(sub)
    sub.add_argument("--out", metavar="FILE", help="write the machine as JSON")
    sub.add_argument(
        "--preset", metavar="FILE", help="the same for any computer like it, named as the file"
    )


def _profile(sub: argparse.ArgumentParser) -> None:
    _add_input(sub)
    _add_machine(sub)
    _add_options(sub, ProfileOptions, without=("--timeout",))
    _add_jsonl(sub)
    sub.add_argument("--out", metavar="FILE", help="write the profile as JSON")


def _place(sub: argparse.ArgumentParser) -> None:
    _add_problem(sub)
    _add_options(sub, PlaceOptions)
    _add_pins(sub)
    sub.add_argument(
        "--keep", metavar="FILE", help="a placement in which only the ops of --move may move"
    )
    sub.add_argument("--move", metavar="FILE", help="these ops, as a JSON list of names")
    sub.add_argument(
        "--beside",
        action="append",
        default=[],
        metavar="NAME=FILE",
        help="with --live: a placement that is measured beside the finalists, too",
    )
    _add_mend(sub)
    sub.add_argument("--out", metavar="FILE", help="write the placement as JSON")
    sub.add_argument("--split", metavar="FILE", help="write a workload's placement as node ids")
    _add_jsonl(sub)


def _steps(sub: argparse.ArgumentParser) -> None:
    _add_problem(sub)
    _add_options(sub, StepsOptions)
    _add_pins(sub)
    _add_mend(sub)
    sub.add_argument("--out", metavar="FILE", help="write the placement of the last step as JSON")


def _simulate(sub: argparse.ArgumentParser) -> None:
    _add_problem(sub)
    sub.add_argument("--placement", required=True, metavar="FILE")
    _add_mend(sub)


def _add_options(sub: argparse.ArgumentParser, *kinds: type, without: Sequence[str] = ()) -> None:
    """The options of verbs; a flag that several of them have stands once, as the first says it."""
    seen = set(without)
    for found in (found for kind in kinds for found in options_of(kind) if found.flag):
        if found.flag not in seen:
            seen.add(found.flag)
            _add_option(sub, found)


def _add_option(sub: argparse.ArgumentParser, found: Option) -> None:
    about: dict[str, Any] = {"help": found.help.replace("%", "%%") or None}
    if found.type is bool:
        about["action"] = argparse.BooleanOptionalAction if found.default else "store_true"
        about["default"] = found.default
    elif isinstance(found.default, Mapping):
        about |= {"action": "append", "default": [], "metavar": found.metavar}
    else:
        about |= {"type": _reader(found), "metavar": found.metavar}
        about |= {"required": True} if found.is_required else {"default": found.default}
    sub.add_argument(found.flag, **about)


def _reader(found: Option) -> Callable[[str], Any]:
    """What makes a value of an option's text."""
    if found.name.endswith("_s"):
        return _seconds
    if found.name == "seed":
        return _seed
    kinds = get_args(found.type) or (found.type,)
    return next((kind for kind in (int, float) if kind in kinds), str)


# Of the placer's options those that a verb has not which places on its way to something else.
PLACED = ("--placer", "--live", "--live-placements", "--live-limit")


def _add_live(sub: argparse.ArgumentParser, *kinds: type) -> None:
    """What goes on live: a placement or who finds one, the verb's options, and on what inputs."""
    _add_problem(sub)
    _add_placed(sub, "place first, by this method")
    _add_mend(sub)
    _add_options(sub, *kinds, PlaceOptions, without=PLACED)
    sub.add_argument("--inputs", metavar="FILE.npz", help="real inputs by name")
    _add_jsonl(sub)


def _run(sub: argparse.ArgumentParser) -> None:
    _add_live(sub, RunOptions, StreamOptions, RefineOptions, ResumeOptions)


def _train(sub: argparse.ArgumentParser) -> None:
    _add_live(sub, TrainOptions)


def _compare(sub: argparse.ArgumentParser) -> None:
    _add_problem(sub)
    _add_options(sub, CompareOptions)
    _add_pins(sub)
    _add_mend(sub)
    _add_jsonl(sub)


def _what_if(sub: argparse.ArgumentParser) -> None:
    _add_problem(sub)
    _add_placed(sub, "place for the changed machine")
    _add_pins(sub)
    _add_mend(sub)
    _add_options(sub, Conditions, PlaceOptions, without=PLACED)
    _add_jsonl(sub)


def _export(sub: argparse.ArgumentParser) -> None:
    _add_problem(sub)
    sub.add_argument("--placement", required=True, metavar="FILE")
    _add_mend(sub)
    _add_options(sub, ExportOptions)


def _lesson(sub: argparse.ArgumentParser) -> None:
    _add_lesson(sub)
    sub.add_argument("--answer", metavar="FILE", help="say what an answer to it is worth")


def _grade(sub: argparse.ArgumentParser) -> None:
    _add_lesson(sub)
    sub.add_argument("answers", metavar="ANSWER.json", nargs="+", help="files that were handed in")
    sub.add_argument("--csv", action="store_true", help="print a table for a spreadsheet")


def _add_lesson(sub: argparse.ArgumentParser) -> None:
    said = "a lesson by its name or number, or a file of your own"
    sub.add_argument("lesson", metavar="LESSON", help=said)


def _add_placed(sub: argparse.ArgumentParser, help: str) -> None:
    """A placement, or who finds one."""
    given = sub.add_mutually_exclusive_group(required=True)
    given.add_argument("--placement", metavar="FILE")
    given.add_argument("--placer", metavar="NAME", help=help)


def _add_input(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("input", metavar="INPUT", help="a model or problem file, or a sample's name")
    sub.add_argument(
        "--dim", action="append", default=[], metavar="NAME=N", help="set a symbolic dimension"
    )
    said = "what a step of a configuration is: inference, prefill, decode or training"
    sub.add_argument("--task", help=said)
    sub.add_argument("--dtype", help="type of a configuration's numbers: bfloat16, int8, ...")
    said = "how the cache of prefill and decode lies in memory: contiguous or paged"
    sub.add_argument("--cache", help=said)


def _hosts(sub: argparse.ArgumentParser) -> None:
    said = "ray for the cluster that runs here, or ray://HOST:PORT"
    sub.add_argument("--machine", default="ray", help=said)


def _add_machine(sub: argparse.ArgumentParser) -> None:
    known = (
        "local, local:LANES, local:RUNTIME, ray, ray:LANES, ray://HOST:PORT, a preset, or a file"
    )
    sub.add_argument("--machine", default="local", help=known)
    sub.add_argument("--lanes", type=int, help="split this computer's CPU into so many devices")


def _add_problem(sub: argparse.ArgumentParser) -> None:
    _add_input(sub)
    _add_machine(sub)
    sub.add_argument("--objective", default=Objective.LATENCY, choices=tuple(Objective))
    sub.add_argument("--profile", metavar="FILE", help="costs from a profile file")
    sub.add_argument(
        "--analytic", action="store_true", help="costs by formula: do not measure anything"
    )
    _add_options(sub, ProblemOptions, CallRules)


def _add_jsonl(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--jsonl", action="store_true", help="print one event per line")


def _add_pins(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "--pin", action="append", default=[], metavar="OP=DEVICE", help="keep an op on a device"
    )
    sub.add_argument("--pins", metavar="FILE", help='pins of many ops, as JSON {"op": "device"}')
    sub.add_argument(
        "--sequences",
        metavar="FILE",
        help="the order of ops on a device, of those that are there, as JSON"
        ' {"device": ["op", "op"]}',
    )


def _add_mend(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "--mend",
        action="store_true",
        help="put ops that run as one kernel on the device most of them are on, instead of"
        " refusing a placement, or pins, that split them",
    )


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


_VERBS: tuple[tuple[str, str, Callable[[argparse.ArgumentParser], None]], ...] = (
    ("samples", "list the bundled models", _none),
    ("inspect", "say what a model holds", _add_input),
    ("machine", "list the devices and links of a machine", _machine),
    ("hosts", "list the hosts of a Ray cluster, with their versions and devices", _hosts),
    ("placers", "list the placement algorithms and their settings", _none),
    ("profile", "measure every kernel on every device, and the links", _profile),
    ("place", "let an algorithm place every op", _place),
    ("steps", "show what an algorithm works out on its way to a placement", _steps),
    ("simulate", "predict the step time of a placement", _simulate),
    ("run", "run a placement live and measure it", _run),
    ("train", "train, and place anew when a device becomes slower or faster", _train),
    ("compare", "run several placers on one problem", _compare),
    ("what-if", "predict a placement on a machine with faster, slower or smaller parts", _what_if),
    ("exporters", "list the export formats", _none),
    ("export", "write a placed model in another format", _export),
    ("lessons", "list the lessons", _none),
    ("lesson", "check a lesson file, and an answer to it", _lesson),
    ("grade", "grade answers to a lesson, each simulated anew", _grade),
)
