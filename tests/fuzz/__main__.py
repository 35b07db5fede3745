"""Fuzzing: `python -m tests.fuzz` opens mutated files of every kind and reports what goes wrong.

Right is a file that opens, or one sentence that refuses it. Anything else is a fault: another
exception, a sentence of several lines, more time or memory than a case may take, a process that
died. The file of each fault is kept, and --kind with --case makes it anew from the same seed.
"""

import argparse
import secrets
import sys
import tempfile
from pathlib import Path

from tests.fuzz.cases import CASE_S, Fault, run_cases, shares


def main() -> int:
    options = _parser().parse_args()
    seed = options.seed or str(secrets.randbelow(10**9))
    folder = Path(options.keep or tempfile.mkdtemp(prefix="fuzz-"))
    folder.mkdir(parents=True, exist_ok=True)
    if options.case is not None:
        if len(options.kind) != 1:
            raise SystemExit("--case needs one --kind: cases are counted by kind.")
        cases = [(options.kind[0], options.case)]
    else:
        cases = shares(options.cases, options.kind)
    print(f"{len(cases)} cases, seed {seed}", flush=True)
    faults = run_cases(
        cases, seed, folder, told=lambda fault: print(_line(fault, seed), flush=True)
    )
    print(f"{len(faults)} of {len(cases)} cases went wrong; seed {seed}")
    if faults:
        print(f"their files: {folder}")
    return int(bool(faults))


def _line(fault: Fault, seed: str) -> str:
    again = f"python -m tests.fuzz --seed {seed} --kind {fault.kind} --case {fault.number}"
    return f"{fault.kind} {fault.number}: {fault.said}\n    {again}"


def _parser() -> argparse.ArgumentParser:
    from tests.fuzz.kinds import KINDS

    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=20_000, help="how many, over all kinds")
    parser.add_argument("--seed", default="", help="of all randomness; a fresh one is printed")
    parser.add_argument(
        "--kind", choices=sorted(KINDS), action="append", default=[], help="only files of this kind"
    )
    parser.add_argument("--case", type=int, help=f"only this one (it has {CASE_S:g} s)")
    parser.add_argument("--keep", metavar="FOLDER", help="where files that went wrong are kept")
    return parser


if __name__ == "__main__":
    sys.exit(main())
