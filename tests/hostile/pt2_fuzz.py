"""Tries every listed operator with spoilt arguments, a few in a process that may crash alone.

    python -m tests.hostile.pt2_fuzz --cases 1000 --seed 1 [--only conv2d,pool]

A call goes through the checks that a file's calls go through, and then runs. It may be refused,
raise or give a value of the inferred shape; a signal, a call without an end, and a value of another
shape are faults. So is an operator without any valid call, for nothing would be tried of it.
"""

import argparse
import json
import mmap
import os
import random
import resource
import signal
import sys
import warnings
from collections import Counter

import torch
from torch.utils import _pytree as pytree

from placement.formats.torch.pt2.allowed import NAMES, is_allowed
from placement.formats.torch.pt2.archive import Refused
from placement.formats.torch.pt2.inferred import Inference
from tests.hostile.pt2_calls import spoilt, valid_call
from tests.hostile.pt2_tensors import built

MAX_BYTES = 3 * 2**30
MAX_CASE_S = 20
# Larger calls are allowed, but not made here.
MAX_MADE_BYTES = 2**28
NUM_SEEDS = 80
# Operators in one process: each process begins anew with what the library remembers of calls.
TOGETHER = 100


def targets():
    """Every listed operator, and its twin that writes into what it reads where that is allowed."""
    found = []
    for name in sorted(NAMES):
        packet, _, overload = name.partition(".")
        for each in (packet, f"{packet}_"):
            known = getattr(getattr(torch.ops.aten, each, None), overload, None)
            if known is not None and is_allowed(each, overload):
                found.append(known)
    return found


def outcome(target, call, rng):
    """What becomes of a call: refused, raised, large, value, or a fault."""
    inference = Inference()
    given = built(call, rng)
    fakes = pytree.tree_map(
        lambda v: inference.like(v) if isinstance(v, torch.Tensor) else v, given
    )
    try:
        inferred = inference.call(target, (), fakes)
    except Refused:
        return "refused"
    if inference.num_bytes > MAX_MADE_BYTES:
        return "large"
    torch.default_generator.manual_seed(0)
    try:
        with torch.no_grad():
            made = target(**given)
    except Exception:
        return "raised"
    return (
        "value" if shapes(made) == shapes(inferred) else f"{shapes(made)}, not {shapes(inferred)}"
    )


def shapes(values):
    leaves = pytree.tree_leaves(values)
    return [(tuple(v.shape), v.dtype) for v in leaves if isinstance(v, torch.Tensor)]


def base_call(target):
    for seed in range(NUM_SEEDS):
        call = valid_call(target, seed)
        if outcome(target, call, random.Random(0)) == "value":
            return call
    return None


def cases_of(target, number, seed):
    """The call that is tried under a number; the first is the valid one."""
    base = base_call(target)
    for i in range(number):
        rng = random.Random(f"{target} {seed} {i}")
        yield i, base if i == 0 or base is None else spoilt(base, rng), rng


def _tried(target, number, seed, first, told):
    """What became of an operator's spoilt cases from `first` on; told where it is before each."""
    counts, faults = Counter(), []
    for i, call, rng in cases_of(target, number, seed):
        if call is None:
            return {"counts": {}, "faults": [f"{target}: no valid call found"]}
        told(i)
        if i < first:
            continue
        if i == 0:  # made a moment ago, to find out that it is valid: what is counted is spoilt
            continue
        signal.alarm(MAX_CASE_S)
        what = outcome(target, call, rng)
        if what not in ("refused", "raised", "large", "value"):
            faults.append(f"{target} case {i} {call}: {what}")
        counts[what if what in ("refused", "raised", "large") else "value"] += 1
    return {"counts": counts, "faults": faults}


def fuzz(only, number, seed):
    """Counts of what became of spoilt calls, and the faults, of valid ones, too."""
    counts, faults = Counter(), []
    for begin in range(0, len(only), TOGETHER):
        left, first = only[begin : begin + TOGETHER], 0
        while left:
            found, at, status = _in_a_process(left, number, seed, first)
            for each in found:
                counts.update(each["counts"])
                faults += each["faults"]
            left, first = left[len(found) :], 0
            if left:
                target, first = left[0], at + 1
                why = os.WTERMSIG(status) if os.WIFSIGNALED(status) else "exit"
                faults.append(f"{target} case {at}: ended by {why}")
                print(faults[-1], file=sys.stderr, flush=True)
                if first >= number or sum(f.startswith(f"{target} ") for f in faults) > 3:
                    left, first = left[1:], 0
    return counts, faults


def _in_a_process(only, number, seed, first):
    """What a process found of each operator that it came to the end of, its case and its status.

    It begins with case `first` of the first operator.
    """
    progress = mmap.mmap(-1, 8)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        _child(only, number, seed, first, progress, writer)
    os.close(writer)
    with os.fdopen(reader) as stream:
        lines = [line for line in stream if line.endswith("\n")]
    _, status = os.waitpid(child, 0)
    return [json.loads(line) for line in lines], int.from_bytes(progress[:8], "little"), status


def _child(only, number, seed, first, progress, writer):
    def told(i):
        progress[:8] = i.to_bytes(8, "little")

    target = None
    try:
        resource.setrlimit(resource.RLIMIT_DATA, (MAX_BYTES, MAX_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with os.fdopen(writer, "w", buffering=1) as stream:
            for target in only:
                signal.alarm(MAX_CASE_S * 3)
                told(0)
                print(json.dumps(_tried(target, number, seed, first, told)), file=stream)
                first = 0
        os._exit(0)
    except BaseException as error:
        print(f"{target}: {error!r:.300}", file=sys.stderr, flush=True)
        os._exit(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="")
    parser.add_argument("--part", default="0/1")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    part, parts = map(int, options.part.split("/"))
    for target in (torch.ops.aten.addr.default, torch.ops.aten.lstm.input):
        base_call(target)  # so that no process imports what the library imports late
    chosen = [t for t in targets() if any(o in str(t) for o in options.only.split(","))][
        part::parts
    ]
    counts, faults = fuzz(chosen, options.cases, options.seed)
    json.dump({"operators": len(chosen), "counts": counts, "faults": faults}, sys.stdout, indent=1)
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
