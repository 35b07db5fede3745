"""What recorded launches save on a GPU: steps replayed and begun op by op, turn by turn.

    python -m benchmarks.live.gpu_replays [--json] [--rounds N] [NETWORK ...]

Each PyTorch network runs alone on the first accelerator that PyTorch finds, twice in one process:
as the studio runs it, and with every op begun from Python. Their outputs are compared with each
other. Where there is no accelerator the script says so.
"""

import json
import statistics
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

import placement as pl
from benchmarks._shared.figures import named
from benchmarks._shared.turns import running, turn_by_turn
from profiling import backends
from profiling.measuring.lock import measuring
from profiling.measuring.outputs import compare
from profiling.measuring.timing import ratio_interval

NETWORKS = ("resnet50", "bert_base", "resnet50:training", "bert_base:training", "nmt:training")
HEAD = "| network | replayed ms | op by op ms | replayed / op by op (95 %) | largest difference |"


def main() -> None:
    options = named(__doc__, NETWORKS, rounds=15)
    if all(d.on_host for d in backends.get("torch").devices()):
        print("Nothing was measured: PyTorch finds no accelerator here.")
        return
    with measuring("gpu_replays"):
        rows = (row_of(name, options.rounds) for name in options.names)
        if options.json:
            print(json.dumps(list(rows)))
            return
        for line in table(rows):
            print(line, flush=True)


def row_of(name: str, rounds: int) -> dict[str, Any]:
    model = pl.load(name)
    machine = pl.machine_for(model, pl.machine("local:1"))
    gpu = next(d for d in machine.devices if not d.on_host)
    compiled = backends.compiled(model, machine)
    feeds = compiled.feeds(0, {})
    replayed = compiled.unplaced(gpu, feeds)
    op_by_op = compiled.in_python().unplaced(gpu, feeds)
    with running("replayed", replayed, gpu) as one, running("op by op", op_by_op, gpu) as other:
        times_s = turn_by_turn({**one, **other}, rounds)
        note = replayed.lanes_note
        compared = compare(op_by_op.outputs(), replayed.outputs(), replayed.tolerance)
    ratio, low, high = ratio_interval(times_s["replayed"], times_s["op by op"], 0)
    return {
        "network": name,
        "replayed_ms": 1e3 * statistics.median(times_s["replayed"]),
        "op_by_op_ms": 1e3 * statistics.median(times_s["op by op"]),
        "ratio": ratio,
        "low": low,
        "high": high,
        "was_replayed": bool(note),
        "same": bool(compared.match),
        "max_abs_diff": float(np.nan_to_num(compared.max_abs_diff, nan=np.inf)),
    }


def table(rows: Iterable[dict[str, Any]]) -> Iterator[str]:
    yield HEAD
    yield "|---|---|---|---|---|"
    for row in rows:
        name = row["network"] if row["was_replayed"] else f"{row['network']} (not replayed)"
        differs = "" if row["same"] else ", DIFFERS"
        yield (
            f"| {name} | {row['replayed_ms']:.2f} | {row['op_by_op_ms']:.2f} |"
            f" {row['ratio']:.2f} ({row['low']:.2f} to {row['high']:.2f}) |"
            f" {row['max_abs_diff']:.2g}{differs} |"
        )


if __name__ == "__main__":
    main()
