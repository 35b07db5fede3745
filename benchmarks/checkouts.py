"""Is one checkout of this project as fast as another? The same script in both, turn by turn.

    python -m benchmarks.checkouts OLD NEW [--turns 8] [--keep REGEX] [--old-module MODULE]
                                   -- benchmarks.schedulers ...

What stands behind the two dashes is a module of this folder with its options; `--json` is added. In
each turn a process of either checkout runs it, the other one first in every second turn. Every time
that both print is compared, and every ratio of two times: the median of the new ones over that of
the old ones. `--old-module` is what the old checkout calls the script, where that differs.
"""

import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from benchmarks._shared.figures import parser, ratio_of, show_figures

# Numbers that are times, or ratios of two, by their name or by the unit beside them.
TIMES = r"_ns$|_us$|_ms$|_s$|median_(ns|us|ms|s)$|^ratio$"
# Numbers that say what was timed.
SAYING = ("threads", "segments")
UNITS = ("ns", "us", "ms", "s")


def times(found: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, float]]:
    """Times of a script's answer, each with the words that lead to it."""
    if isinstance(found, list):
        for number, item in enumerate(found):
            named = isinstance(item, dict) and any(isinstance(x, str) for x in item.values())
            yield from times(item, path if named else (*path, str(number)))
        return
    if not isinstance(found, dict):
        return
    said = (x for k, x in found.items() if isinstance(x, str) and k not in ("wanted", *SAYING))
    words = (*path, *said, *(f"{k} {found[k]}" for k in SAYING if k in found))
    for key, value in found.items():
        if isinstance(value, dict | list):
            yield from times(value, (*words, key))
        elif isinstance(value, int | float) and not isinstance(value, bool):
            median = key == "median" and found.get("unit") in UNITS
            if value > 0 and (median or re.search(TIMES, key)):
                yield " ".join((*words, key)), float(value)


def answer(folder: str, command: list[str]) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-m", *command, "--json"], cwd=folder, capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(f"{folder}: {done.stderr[-2000:]}")
    return dict(times(json.loads(done.stdout.splitlines()[-1])))


def main() -> None:
    made = parser(__doc__, turns=8, keep="", old_module="")
    made.add_argument("old", help="folder of the one checkout")
    made.add_argument("new", help="folder of the other")
    made.add_argument("command", nargs="+", metavar="-- MODULE", help="module and its options")
    given = made.parse_args()
    sides = {"old": given.old, "new": given.new}
    module, *options = given.command
    commands = {"old": [given.old_module or module, *options], "new": given.command}
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: {side: [] for side in sides})
    for turn in range(given.turns):
        for side in sorted(sides, reverse=bool(turn % 2)):
            for what, seconds in answer(sides[side], commands[side]).items():
                found[what][side].append(seconds)
    ratios = (
        ratio_of(what, by_side["new"], by_side["old"], "1.05 reached")
        for what, by_side in found.items()
        if re.search(given.keep, what) and all(by_side.values())
    )
    show_figures(given.json, ratios)


if __name__ == "__main__":
    main()
