"""What is lost when processes of a Ray cluster are killed, and how long nothing is said.

    python -m benchmarks.live.kills [--json] [--rounds N] [--rows FILE]

Starts two nodes on this computer. An actor or a node is killed (kill -9) at a moment by chance of a
run and of a training, which go on without it: the training must reach the losses and the state of
one that nobody disturbed, to the bit. The head is killed under a command, which must end with one
sentence. A round that was over before counts for none of that. Each kill is a row of a file; where
it is there already it is not done again.
"""

import json
import random
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from math import nan
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks._shared.figures import parser, show
from tests.hosts import kills, trainings
from tests.hosts.two_nodes import Nodes, nodes
from tests.profiling.live import diamond

COLUMNS = {
    "killed": "{what}",
    "in a": "{during}",
    "times": "{times}",
    "one sentence": "{sentences}",
    "nothing lost": "{whole}",
    "until it is told, s": "{silence_s:.1f} (at most {most_s:.1f})",
    "until it goes on, s": "{goes_on_s:.1f} (at most {most_on_s:.1f})",
}
ROWS = Path(__file__).parents[1] / "rows" / "kills.jsonl"
Row = dict[str, Any]


def rows(nodes: Nodes, what: str, rounds: range) -> Iterator[Row]:
    """An actor or a node is killed, in a run and in a training for each round."""
    training = trainings.opened()
    expected = trainings.alone(training)
    with tempfile.TemporaryDirectory() as folder:
        model = diamond(Path(folder))
        for number in rounds:
            told = kills.during_a_run(nodes, what, model, random.Random(number))
            yield _row(what, "run", number, told, None)
            chance = random.Random(number)
            told, reached = kills.during_a_training(nodes, what, training, chance)
            whole = trainings.is_same(reached, expected) if told.words else None
            yield _row(what, "training", number, told, whole)


def _row(what: str, during: str, number: int, told: kills.Told, whole: bool | None) -> Row:
    """A row; `whole` is whether nothing was lost, None where nothing could be."""
    sentence = told.words.count(".") == 1 and "'beta'" in told.words
    return {
        "what": what,
        "during": during,
        "round": number,
        # None: all was over before somebody noticed.
        "sentence": sentence if told.words else None,
        "whole": whole,
        "silence_s": max(0.0, told.silence_s),
        "goes_on_s": max(0.0, told.goes_on_s),
    }


def heads(rounds: range) -> Iterator[Row]:
    """All processes of the head are killed under a run and under a training for each round."""
    for number in rounds:
        for verb, during in (("run", "run"), ("train", "training")):
            with nodes() as own, kills.running(verb) as process:
                time.sleep(random.Random(number).uniform(0.0, 1.0))
                status, words, silence_s = kills.killed(process, *own.processes("alpha"))
            sentence = words.count("\n") == 1 and "--machine local" in words
            yield {
                "what": "head",
                "during": during,
                "round": number,
                "sentence": sentence and status == 2,
                "whole": None,
                "silence_s": silence_s,
                "goes_on_s": 0.0,
            }


def summary(rows: Sequence[Row]) -> list[Row]:
    """A line for each kind of kill."""
    kinds = dict.fromkeys((row["what"], row["during"]) for row in rows)
    return [
        _summed(*kind, [row for row in rows if (row["what"], row["during"]) == kind])
        for kind in kinds
    ]


def _summed(what: str, during: str, rows: Sequence[Row]) -> Row:
    told = [row for row in rows if row["sentence"] is not None]
    silence_s, goes_on_s = (
        [row[key] for row in told] or [nan] for key in ("silence_s", "goes_on_s")
    )
    return {
        "what": what,
        "during": during,
        "times": len(rows),
        "sentences": _counted(row["sentence"] for row in rows),
        "whole": _counted(row["whole"] for row in rows),
        "silence_s": median(silence_s),
        "most_s": max(silence_s),
        "goes_on_s": median(goes_on_s),
        "most_on_s": max(goes_on_s),
    }


def _counted(found: Iterable[bool | None]) -> str:
    """How often something was so, of the times that it could have been otherwise."""
    known = [each for each in found if each is not None]
    return f"{sum(known)} of {len(known)}" if known else "-"


def main() -> None:
    options = parser(__doc__, rounds=30, rows=str(ROWS)).parse_args()
    path = Path(options.rows)
    done = [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []

    def keep(found: Iterable[Row]) -> None:
        for row in found:
            done.append(row)
            with path.open("a") as file:
                file.write(f"{json.dumps(row)}\n")

    def left(what: str) -> range:
        """The rounds of which the last row is not there."""
        return range(sum(r["what"] == what and r["during"] == "training" for r in done), rounds)

    rounds = options.rounds
    if left("actor") or left("node"):
        with nodes() as started:
            for what in ("actor", "node"):
                keep(rows(started, what, left(what)))
    keep(heads(left("head")))
    show(options.json, COLUMNS, summary(done))


if __name__ == "__main__":
    main()
