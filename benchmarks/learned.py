"""Learned placers on every case: how far from the best known, and from what learns nothing?

    python -m benchmarks.learned --out FILE.jsonl [--cases TEXT,TEXT] [--placers NAME,NAME]
                                 [--seeds 0,1,2] [--set preset=paper] [--time-limit S]
                                 [--search-on WHERE]

Values are raw: a learner's own, without answers of other placers among its candidates. Beside each
run stand both controls, random search and mutation, with its seed and as many placements. Rows are
written to the file as they end, and a second start goes on from them. Cases where the best known is
less than 5 % below single, HEFT and PEFT stand apart and count for nothing.
"""

import argparse
import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, fields, replace
from pathlib import Path

import placement as pl
from benchmarks._learned.cases import Case, cases
from benchmarks._learned.summary import (
    CONTROLS,
    LISTS,
    Row,
    Standard,
    lines,
    standards,
    verdicts,
)
from benchmarks._shared.figures import numbers, parts, table
from placement.api.place import executor_of
from placement.core.amounts import in_unit
from placement.core.problem import Problem
from placement.core.verb_options import LOCAL, PlaceOptions
from placement.placers import names, placer_class
from placement.placers.base import Progress, build

# Seconds of a learner on the cases with most to gain, and on the others.
LONG_S, SHORT_S = 60.0, 10.0
LONGER_S = {"hsdag": 30.0, "list_policy": 30.0}
AUTO_S = 30.0
# Placements in a batch of the controls.
BATCH = 128
KNOWN = {
    "case": "{case}",
    "best known, ms": "{best:.5g}",
    "single, HEFT, PEFT": "{lists:.5g}",
    "to gain": "{gain:.1%}",
}
COLUMNS = {
    "case": "{case}",
    "placer": "{placer} {settings}",
    "s": "{seconds:.0f}",
    "evaluations": "{evaluations:.0f}",
    "median, ms": "{median:.5g}",
    "worst": "{worst:.5g}",
    "gap": "{median_gap:.1%}",
    "worst gap": "{worst_gap:.1%}",
    "with candidates": "{with_candidates:.5g}",
    "random": "{random_search:.5g}",
    "mutation": "{mutation:.5g}",
    "single, HEFT, PEFT": "{lists:.5g}",
    "seeds": "{num_seeds}",
}


def learners() -> list[str]:
    """The placers that take candidates beside what they find themselves, but for the controls."""
    fitting = [n for n in names() if "candidates" in {f.name for f in fields(placer_class(n))}]
    return [name for name in fitting if name not in CONTROLS]


def knows(name: str, problem: Problem) -> bool:
    placer = placer_class(name)
    return problem.execution in placer.executions and problem.objective in placer.objectives


def plan(case: Case, problem: Problem, options: argparse.Namespace) -> Iterator[Row]:
    """The runs of a case, without what they come to: what learns nothing, then the learners."""
    about = {"case": case.name, "num_units": problem.num_units, "num_devices": problem.num_devices}
    alone = [name for name in LISTS if knows(name, problem)] + ["manual"] * bool(case.rules)
    yield from (Row(placer=name, **about) for name in alone)
    yield Row(placer="auto", limit_s=options.time_limit or AUTO_S, **about)
    for name in options.placers or learners():
        if knows(name, problem):
            limit_s = LONGER_S.get(name, LONG_S) if case.is_long else SHORT_S
            for seed in options.seeds:
                yield Row(
                    placer=name,
                    settings=",".join(options.set),
                    seed=seed,
                    limit_s=options.time_limit or limit_s,
                    **about,
                )


def controls_of(run: Row) -> Iterator[Row]:
    """The controls that stand beside a run: of the same seed, with its evaluations."""
    if run.evaluations and not run.error:
        for name in CONTROLS:
            yield replace(run, placer=name, beside=run.placer)


def settings_of(case: Case, run: Row) -> dict[str, str]:
    """What a placer is asked for in a run."""
    if run.placer == "manual":
        return {"rules": case.rules}
    if run.beside:
        return {"candidates": "", "max_iterations": str(math.ceil(run.evaluations / BATCH))}
    if run.placer == "auto" or not (run.limit_s or run.settings):
        return {}
    return {"candidates": ""} | dict(pair.split("=", 1) for pair in run.settings.split(",") if pair)


def answered(case: Case, problem: Problem, run: Row, search_on: str = LOCAL) -> Row:
    """The run with what it comes to."""
    from placement.advice.warming import warm_up
    from placement.core.violations import violations

    tried = 0

    def hear(progress: Progress) -> bool:
        nonlocal tried
        tried = max(tried, progress.evaluations)
        return True

    options = PlaceOptions(
        placer=run.placer,
        settings=settings_of(case, run),
        time_limit_s=run.limit_s if run.limit_s and not run.beside else None,
        seed=run.seed,
    )
    try:
        placer = build(placer_class(run.placer), options, executor_of(search_on, problem, print))
        warm_up(placer, problem)
        begun_s = time.perf_counter()
        placement = placer.place(problem, hear)
        seconds = time.perf_counter() - begun_s
        predicted = pl.simulate(problem, placement)
        broken = violations(problem, predicted.schedule, placement.calls)
    except ValueError as error:
        return replace(run, value_ms=math.inf, error=str(error))
    if broken:
        return replace(run, value_ms=math.inf, error=broken[0])
    value_ms = in_unit(predicted.value, "ms")
    return replace(run, value_ms=value_ms, seconds=seconds, evaluations=tried, error="")


def run(options: argparse.Namespace, known: Sequence[Row]) -> Iterator[Row]:
    """Rows that are not known yet, each as it ends."""
    done = {row.key: row for row in known}
    for case in cases():
        if options.cases and not any(part in case.name for part in options.cases):
            continue
        problem = case.problem()
        for planned in plan(case, problem, options):
            found = done.get(planned.key)
            if found is None:
                yield (found := answered(case, problem, planned, options.search_on))
            for control in controls_of(found):
                if control.key not in done:
                    yield answered(case, problem, control, options.search_on)


def load(out: Path) -> list[Row]:
    """The rows of a file; a last line that was cut short is left out."""
    if not out.exists():
        return []
    found = []
    for line in out.read_text(encoding="utf-8").splitlines():
        with suppress(json.JSONDecodeError):
            content = json.loads(line)
            value_ms = math.inf if content["value_ms"] is None else content["value_ms"]
            found.append(Row(**content | {"value_ms": value_ms}))
    return found


def line_of(row: Row) -> str:
    value_ms = None if math.isinf(row.value_ms) else row.value_ms
    return json.dumps(asdict(row) | {"value_ms": value_ms}, allow_nan=False) + "\n"


def summary(rows: Sequence[Row], published_ms: Mapping[str, float]) -> str:
    """The cases that count, those that do not, what is known of each, and what it comes to."""
    known = standards(rows, published_ms)
    found = lines(rows, known)
    told = table(KNOWN, ({"case": case} | _of(standard) for case, standard in known.items()))
    text = [told, ""]
    for counts, heading in ((True, ""), (False, "Less than 5 % to gain, counts for nothing:\n\n")):
        chosen = [line for line in found if known[line.case].counts is counts]
        if chosen:
            text += [heading + table(COLUMNS, map(asdict, chosen)), ""]
    return "\n".join([*text, *verdicts(found, known)])


def _of(standard: Standard) -> dict[str, float]:
    return asdict(standard) | {"gain": standard.gain}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="keep the rows here, a line each")
    parser.add_argument("--cases", type=parts, default=[], help="those that hold one of the texts")
    parser.add_argument("--placers", type=parts, default=[], help="names; all learners without it")
    parser.add_argument(
        "--seeds", type=numbers, default=[0, 1, 2], help="numbers; 0,1,2 without it"
    )
    parser.add_argument(
        "--set", action="append", default=[], help="a setting, such as preset=paper"
    )
    parser.add_argument("--search-on", default=LOCAL, help="local, ray, or ray://HOST:PORT")
    parser.add_argument("--time-limit", type=float, default=0.0, help="seconds, whatever the case")
    options = parser.parse_args()
    rows = load(options.out)
    cut_short = options.out.exists() and not options.out.read_bytes().endswith(b"\n")
    with options.out.open("a", encoding="utf-8") as file:
        file.write("\n" if cut_short else "")
        for row in run(options, rows):
            rows.append(row)
            file.write(line_of(row))
            file.flush()
            who = f"{row.placer} beside {row.beside}" if row.beside else row.placer
            print(f"{row.case:28} {who:32} {row.seed} {row.value_ms:10.5g} {row.error}", flush=True)
    print(f"\n{summary(rows, {case.name: case.best_known_ms for case in cases()})}")


if __name__ == "__main__":
    main()
