"""What is lost when processes of a Ray cluster are killed, and how long nothing is said.

    python -m benchmarks.live.kills [--json] [--rounds N] [--rows FILE]

Starts two nodes on this computer. An actor or a node is killed (kill -9) at a moment by chance of a
run and of a training. Each second time these go on without it, and the training must reach the
losses and the state of one that nobody disturbed, to the bit; else they end with one sentence. The
head is killed under commands, which must end with one sentence, too. Each kill is a row of a file;
where it is there already it is not done again.
"""

import json
import random
import tempfile
from collections.abc import Iterable, Iterator, Sequence
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
    "until it is told, s": "{silence}",
    "until it goes on, s": "{goes_on}",
}
FILE, ROUNDS = Path(__file__).parents[1] / "rows" / "kills.jsonl", 30
Row = dict[str, Any]


def rows(nodes: Nodes, what: str, rounds: range) -> Iterator[Row]:
    """An actor or a node is killed, in a run and in a training for each round; each second time
    these are to end with it, else to go on.
    """
    training, expected = trainings.opened(), trainings.alone()
    with tempfile.TemporaryDirectory() as folder:
        model = diamond(Path(folder))
        for number in rounds:
            resume, chance = number % 2 == 0, random.Random(number)
            told = kills.during_a_run(nodes, what, model, chance, resume=resume)
            yield _row(what, "run", number, told, None)
            chance = random.Random(number)
            told, reached = kills.during_a_training(nodes, what, training, chance, resume=resume)
            whole = None if reached is None else trainings.is_same(reached, expected)
            yield _row(what, "training", number, told, whole)


def _row(what: str, during: str, number: int, told: kills.Told, whole: bool | None) -> Row:
    """A row; `whole` is whether nothing was lost, None where it was to end."""
    return {
        "what": what,
        "during": during,
        "round": number,
        "sentence": told.words.count(".") == 1 and "'beta'" in told.words,
        "whole": whole,
        "silence_s": told.silence_s,
        # None: it was to end.
        "goes_on_s": told.goes_on_s or None,
    }


def heads(rounds: range) -> Iterator[Row]:
    """All processes of the head are killed under a run and a training at once, for each round."""
    for number in rounds:
        with nodes() as own:
            ended = kills.of_a_head(own, random.Random(number))
        for during, told in zip(("run", "training"), ended, strict=True):
            sentence = told.words.count("\n") == 1 and "The head of the Ray" in told.words
            yield {
                "what": "head",
                "during": during,
                "round": number,
                "sentence": sentence and told.status == 2,
                "whole": None,
                "silence_s": told.silence_s,
                "goes_on_s": None,
            }


def summary(rows: Sequence[Row]) -> list[Row]:
    """A line for each kind of kill."""
    kinds = dict.fromkeys((row["what"], row["during"]) for row in rows)
    return [
        _summed(*kind, [row for row in rows if (row["what"], row["during"]) == kind])
        for kind in kinds
    ]


def _summed(what: str, during: str, rows: Sequence[Row]) -> Row:
    return {
        "what": what,
        "during": during,
        "times": len(rows),
        "sentences": _counted(row["sentence"] for row in rows),
        "whole": _counted(row["whole"] for row in rows),
        "silence": _timed(row["silence_s"] for row in rows),
        "goes_on": _timed(row["goes_on_s"] for row in rows),
    }


def _timed(found: Iterable[float | None]) -> str:
    """Median and most of the seconds that there are."""
    known = [each for each in found if each is not None]
    return f"{median(known):.1f} (at most {max(known):.1f})" if known else "-"


def _counted(found: Iterable[bool | None]) -> str:
    """How often something was so, of the times that it could have been otherwise."""
    known = [each for each in found if each is not None]
    return f"{sum(known)} of {len(known)}" if known else "-"


def count(path: Path, rounds: int, *, as_json: bool) -> None:
    """Kill until so many rounds of every kind are in a file, and show what came of them."""
    done = [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []

    def keep(found: Iterable[Row]) -> None:
        for row in found:
            done.append(row)
            with path.open("a") as file:
                file.write(f"{json.dumps(row)}\n")

    def left(what: str) -> range:
        """The rounds of which the last row is not there."""
        return range(sum(r["what"] == what and r["during"] == "training" for r in done), rounds)

    if left("actor") or left("node"):
        with nodes() as started:
            # Not before the nodes have said by which address they are reached.
            import ray

            try:
                for what in ("actor", "node"):
                    keep(rows(started, what, left(what)))
            finally:
                ray.shutdown()
    keep(heads(left("head")))
    show(as_json, COLUMNS, summary(done))


def main() -> None:
    options = parser(__doc__, rounds=ROUNDS, rows=str(FILE)).parse_args()
    count(Path(options.rows), options.rounds, as_json=options.json)


if __name__ == "__main__":
    main()
