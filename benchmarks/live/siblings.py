"""What a busy sibling of a core costs, and whether looks at the core tell it. Live, by core.

    python -m benchmarks.live.siblings [--json] [--seconds S] [MODEL]

On each core in turn: a look (`profiling/measuring/siblings.py`), some steps of the model, a look. A
core's look is high where it is more than 1.12 times the least of all looks at it, but for some.
"Steps" are medians by what both looks say; "told" is the share of slow steps (more than 1.15 times
the 5th percentile of that core's) with a high look, "falsely" that of the other steps. A sibling is
busy only where somebody uses it: on a virtual machine another one on the same host.
"""

import json
import statistics
import time
from typing import Any

import numpy as np

import placement as pl
from benchmarks._shared import turns
from benchmarks._shared.figures import named, table
from profiling.execution.execute import compiled_for
from profiling.measuring.lock import measuring
from profiling.measuring.reference import settled
from profiling.measuring.siblings import MOST_ABOVE, Siblings, least

SLOW, USUAL = 1.15, 5
COLUMNS = {
    "core": "{core}",
    "steps": "{num}",
    "look is high": "{high:.0%}",
    "alone ms": "{alone_ms:.3g}",
    "beside ms": "{beside_ms:.3g}",
    "beside / alone": "{ratio:.2f}",
    "told": "{told:.0%}",
    "falsely": "{falsely:.0%}",
}


def rows(model_name: str, seconds: float) -> list[dict[str, Any]]:
    model, lanes = pl.load(model_name), pl.machine("two-lanes")
    problem = pl.make_problem(model, lanes, pl.profile(model, lanes))
    placed = {
        device.name: pl.place(problem, "single", settings={"device": device.name}).schedule
        for device in lanes.devices
    }
    looks = {device.name: Siblings(device.core_ids) for device in lanes.devices}
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in placed}
    with turns.opened(problem, compiled_for(problem, model), placed) as steps:
        until_s = time.monotonic() + seconds
        while time.monotonic() < until_s:
            for device in lanes.devices:
                step = steps[device.name]
                looked = looks[device.name].around(lambda step=step: settled(step, float))
                found[device.name].append((looked.value, max(looked.ratios.values())))
    return [_row(name, np.array(pairs)) for name, pairs in found.items()]


def _row(core: str, found: Any) -> dict[str, Any]:
    step_s, ratio = found.T
    high = ratio > (1 + MOST_ABOVE) * least(ratio)
    slow = step_s > SLOW * np.percentile(step_s, USUAL)
    alone_s = statistics.median(step_s[~high])
    beside_s = statistics.median(step_s[high]) if high.any() else float("nan")
    return {
        "core": core,
        "num": len(step_s),
        "high": float(high.mean()),
        "alone_ms": 1e3 * alone_s,
        "beside_ms": 1e3 * beside_s,
        "ratio": beside_s / alone_s,
        "told": float(high[slow].mean()) if slow.any() else float("nan"),
        "falsely": float(high[~slow].mean()),
    }


def main() -> None:
    options = named(__doc__, ["onnx-shufflenet"], seconds=60.0)
    found = []
    with measuring("siblings"):
        for name in options.names:
            found += rows(name, options.seconds)
    print(json.dumps(found) if options.json else table(COLUMNS, found))


if __name__ == "__main__":
    main()
