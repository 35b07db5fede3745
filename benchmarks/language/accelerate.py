"""Placements against the device maps of Hugging Face accelerate, predicted for one problem.

    python -m benchmarks.language.accelerate [--json] [--seconds S] [--task WORD] [CASE ...]

accelerate maps whole modules to devices (`infer_auto_device_map`): "sequential" fills one device
after the other, "balanced" first asks `get_balanced_memory` for limits that share the weights out.
Both read the network on the meta device and its list of modules that must not be split. "even"
deals the layers in equal numbers. Ours is `auto` with a time limit. What a map puts on "cpu"
accelerate keeps there and computes on the map's first accelerator, which is what streams in a
problem with offload; "even" streams on the device that computes. The share of each memory that
weights may take is the largest that leaves room for the values, tried from all of it downwards.
"""

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import placement as pl
from benchmarks._shared.figures import named, show
from placement.constraints.fusion import mended
from placement.core.formatting import percent, seconds
from placement.core.machine import Device, streamed_name
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.core.violations import violations
from placement.formats.huggingface import configuration
from placement.loaders.huggingface import FOLDER
from placement.schedule.simulated import simulate

# Model and machine, and whether the weights exceed what the accelerators hold together.
CASES = {
    "qwen2-7b on desktop-2x24gb": False,
    "gemma-2-27b on pcie-4gpu": False,
    "mixtral-8x7b on nvlink-8gpu": False,
    "llama-3.1-70b on nvlink-8gpu": False,
    "llama-3.1-8b on laptop-gpu": True,
    "gemma-2-27b on desktop-2x24gb": True,
}
BATCH, LENGTH = 1, 128
SHARES = (1.0, 0.97, 0.94, 0.9, 0.85, 0.8, 0.7, 0.6, 0.5)
COLUMNS = {
    "model on machine": "{case}",
    "sequential": "{sequential}",
    "balanced": "{balanced}",
    "even": "{even}",
    "ours": "{ours}",
    "gain": "{gain}",
    "proven gap": "{gap}",
    "tokens/s": "{tokens_per_s:.0f}",
    "streamed": "{streamed}",
}
# A module by its path in dots, to a device by its name in the machine.
DeviceMap = Mapping[str, str]


def row(case: str, task: str, limit_s: float) -> dict[str, Any]:
    name, _, machine = case.partition(" on ")
    model = pl.load(name, {"task": task, "batch": BATCH, "length": LENGTH})
    problem = pl.make_problem(model, pl.machine(machine), offload=CASES[case])
    meta = _meta(name)
    theirs = {
        way: _best(problem, maps)
        for way, maps in (
            ("sequential", lambda share: _sequential(problem, meta, share)),
            ("balanced", lambda share: _balanced(problem, meta, share)),
            ("even", lambda share: _even(problem, share)),
        )
    }
    placed = pl.place(problem, "auto", time_limit_s=limit_s)
    assert not placed.violations, placed.violations
    best_s = min(theirs.values())
    streams = [d.name for d in problem.machine.devices if d.streams_from]
    device_of = placed.placement.device_of
    num_bytes = [op.param_bytes for op in model.graph.ops if device_of[op.name] in streams]
    return {
        "case": case,
        **{way: _shown(value_s) for way, value_s in theirs.items()},
        **{f"{way}_s": value_s for way, value_s in theirs.items()},
        "ours": seconds(placed.value),
        "ours_s": placed.value,
        "gain": percent(1 - placed.value / best_s, signed=True) if math.isfinite(best_s) else "",
        "gap": percent(placed.value / placed.lower_bound - 1),
        "bound_s": placed.lower_bound,
        "tokens_per_s": BATCH * (1 if task == "decode" else LENGTH) / placed.value,
        "streamed": f"{sum(num_bytes) / 2**30:.1f} GiB" if num_bytes else "",
    }


def _shown(value_s: float) -> str:
    return seconds(value_s) if math.isfinite(value_s) else "does not fit"


def _meta(name: str) -> Any:
    """The network as accelerate sees it: transformers' own, with nothing in its tensors."""
    import torch

    from placement.formats.huggingface.architecture import network

    content = json.loads((FOLDER / name / "config.json").read_text(encoding="utf-8"))
    config = configuration.configuration(content, None, None)
    dtype = getattr(torch, configuration.stated_dtype(content) or "float32")
    module = network(config, content.get("architectures"), dtype)
    module.tie_weights()
    return module


def _best(problem: Problem, maps: Callable[[float], DeviceMap]) -> float:
    """Seconds of a step with the largest share of memory that keeps to it, infinite without one."""
    for share in SHARES:
        placement = _placement(problem, maps(share))
        simulated = simulate(problem, placement)
        if not violations(problem, simulated.schedule):
            return simulated.value
    return math.inf


def _accelerators(problem: Problem) -> list[Device]:
    return [d for d in problem.machine.devices if not d.on_host and not d.streams_from]


def _limits(problem: Problem, share: float) -> dict[int | str, int]:
    """What accelerate may use: accelerators by number, then the CPU."""
    found: dict[int | str, int] = {
        i: int(share * (d.memory_bytes or 0)) for i, d in enumerate(_accelerators(problem))
    }
    host = next(d for d in problem.machine.devices if d.on_host)
    return found | {"cpu": host.memory_bytes or 2**50}


def _sequential(problem: Problem, meta: Any, share: float) -> DeviceMap:
    return _inferred(problem, meta, _limits(problem, share))


def _balanced(problem: Problem, meta: Any, share: float) -> DeviceMap:
    from accelerate.utils import get_balanced_memory

    limits = get_balanced_memory(
        meta, _limits(problem, share), no_split_module_classes=_whole(meta), dtype=meta.dtype
    )
    return _inferred(problem, meta, limits)


def _inferred(problem: Problem, meta: Any, limits: Mapping[int | str, int]) -> DeviceMap:
    from accelerate import infer_auto_device_map

    found = infer_auto_device_map(
        meta, dict(limits), no_split_module_classes=_whole(meta), dtype=meta.dtype
    )
    words = [word for word in found.values() if word != "cpu"]
    main = _accelerators(problem)[int(words[0]) if words else 0]
    names: dict[int | str, str] = {i: d.name for i, d in enumerate(_accelerators(problem))}
    names["cpu"] = streamed_name(main.name) if problem.offloads else "cpu:0"
    return {path: names[word] for path, word in found.items()}


def _whole(meta: Any) -> list[str]:
    """Classes of modules that accelerate must not split."""
    return sorted(meta._no_split_modules or ())


def _even(problem: Problem, share: float) -> DeviceMap:
    """Layers in equal numbers; those that exceed a share of a device's memory stream to it."""
    accelerators, sizes = _accelerators(problem), _layer_bytes(problem)
    found, left = {}, [share * (d.memory_bytes or math.inf) for d in accelerators]
    # What is before the layers is with the first, what is behind them with the last.
    outside = sum(op.param_bytes for op in problem.graph.ops) - sum(sizes.values())
    left[0] -= outside / 2
    left[-1] -= outside / 2
    for i, (path, num_bytes) in enumerate(sizes.items()):
        d = i * len(accelerators) // len(sizes)
        fits = num_bytes <= left[d] or not problem.offloads
        left[d] -= num_bytes if fits else 0
        name = accelerators[d].name
        found[path] = name if fits else streamed_name(name)
    ends = {"lm_head": accelerators[-1].name, "model.norm": accelerators[-1].name}
    return found | ends | {"": accelerators[0].name}


def _layer_bytes(problem: Problem) -> dict[str, int]:
    """Weights of each layer by its path, in order."""
    found: dict[str, int] = {}
    for op in problem.graph.ops:
        layer = re.match(r"((?:\w+\.)*layers\.\d+)(?:\.|$)", _path(op.scope))
        if layer:
            found[layer[1]] = found.get(layer[1], 0) + op.param_bytes
    return found


def _path(scope: str) -> str:
    """The path of an op's module, as the network names it."""
    return ".".join(re.sub(r"@\d+$", "", word) for word in scope.split("/") if word)


def _placement(problem: Problem, device_map: DeviceMap) -> Placement:
    """Each op where the map puts its module; what the map does not name, with the first module."""
    first = next(iter(device_map.values()))

    def device_of(path: str) -> str:
        return next((device_map[p] for p in _prefixes(path) if p in device_map), first)

    found = {op.name: device_of(_path(op.scope)) for op in problem.graph.ops}
    placement = Placement(problem.graph.fingerprint, problem.machine.name, found)
    return mended(problem, placement)


def _prefixes(path: str) -> Iterator[str]:
    words = path.split(".")
    yield from (".".join(words[:end]) for end in range(len(words), -1, -1))


def main() -> None:
    options = named(__doc__, CASES, seconds=60.0, task="inference")
    rows = [row(case, options.task, options.seconds) for case in options.names]
    show(options.json, COLUMNS, rows)


if __name__ == "__main__":
    main()
