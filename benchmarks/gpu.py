"""CPU and GPU together, live: networks on each alone and where `auto` places them.

    python -m benchmarks.gpu [--json] [--steps N] [NETWORK ...]

Networks are profiled on the whole CPU and on the first accelerator that PyTorch finds, for
inference and as training steps, and one ONNX network where ONNX Runtime has an accelerator. Each
row ran live, its outputs compared with the unplaced model's on the CPU, on the devices that its
values were really found on. The rows "less memory" have an accelerator with three fifths of the
memory that the whole step needs. Where there is no accelerator the script says so.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import placement as pl
from benchmarks._shared.figures import named
from placement.api import place
from placement.core.machine import Device, Machine
from placement.core.model import Model
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.core.profile import Profile
from placement.core.verb_options import RunOptions
from placement.schedule.simulated import simulate
from profiling import backends
from profiling.execution.execute import execute
from profiling.measuring.lock import measuring

NETWORKS = ("resnet50", "bert_base", "nmt", "onnx-resnet50")
# Those are run on an accelerator of less memory, too: this share of what they need.
CAPPED, SHARE = ":training", 0.6


def main() -> None:
    options = named(__doc__, (name for network in NETWORKS for name in _kinds(network)), steps=20)
    torch, any_gpu = backends.get("torch"), Device("cuda:0", "gpu", "torch", "cuda")
    if all(d.on_host for name in ("torch", "onnxruntime") for d in backends.get(name).devices()):
        why = torch.why_missing(any_gpu, {})
        print(f"Nothing was measured: no accelerator is at hand ({why}).")
        return
    with measuring("gpu"):
        rows = (row for name in options.names for row in rows_of(name, options.steps))
        if options.json:
            print(json.dumps(list(rows)))
            return
        for line in table(rows):
            print(line, flush=True)


def _kinds(network: str) -> tuple[str, ...]:
    """A network's inference and training step, where the zoo has it."""
    listed = {sample["name"] for sample in pl.samples()}
    return tuple(name for name in (network, f"{network}:training") if name in listed)


def rows_of(name: str, steps: int) -> Iterator[dict[str, Any]]:
    model = pl.load(name)
    machine = pl.machine_for(model, pl.machine("local:1"))
    first = next((d for d in machine.devices if not d.on_host), None)
    if first is None:
        return
    machine = _only(machine, (machine.devices[0], first))
    profile = pl.profile(model, machine)
    problem = pl.make_problem(model, machine, profile)
    for device in machine.devices:
        placed = place.place(problem, "single", settings={"device": device.name})
        yield _row(name, f"{device.name} only", model, problem, placed.placement, steps)
    placed = place.place(problem, "auto")
    yield _row(name, "auto", model, problem, placed.placement, steps)
    if name.endswith(CAPPED):
        yield from _capped(name, model, problem, profile, first, steps)


def _only(machine: Machine, devices: tuple[Device, ...]) -> Machine:
    names = {d.name for d in devices}
    links = tuple(link for link in machine.links if {link.src, link.dst} <= names)
    return replace(machine, devices=devices, links=links)


def _capped(
    name: str, model: Model, problem: Problem, profile: Profile, gpu: Device, steps: int
) -> Iterator[dict[str, Any]]:
    """The same where the accelerator cannot hold the whole step."""
    whole = place.place(problem, "single", settings={"device": gpu.name})
    limit = int(SHARE * whole.timeline.peak_bytes[gpu.name])
    host, smaller = problem.machine.devices[0], replace(gpu, memory_bytes=limit)
    machine = replace(problem.machine, devices=(host, smaller))
    problem = pl.make_problem(model, machine, profile)
    try:
        place.place(problem, "single", settings={"device": gpu.name})
        raise AssertionError("the accelerator was expected to be too small")
    except ValueError as error:
        yield {"network": name, "placement": f"{gpu.name} only, less memory", "refused": str(error)}
    placed = place.place(problem, "auto")
    yield _row(name, "auto, less memory", model, problem, placed.placement, steps)


def _row(
    name: str, what: str, model: Model, problem: Problem, placement: Placement, steps: int
) -> dict[str, Any]:
    predicted = simulate(problem, placement)
    run = execute(
        problem, predicted.schedule, RunOptions(steps=steps), model=model, baselines=False
    )
    used = {segment.device for segment in predicted.schedule.segments}
    return {
        "network": name,
        "placement": what,
        "requested": {d: run.requested_devices[d] for d in sorted(used)},
        "actual": {d: run.actual_devices[d] for d in sorted(used)},
        "labels": {d.name: d.label for d in problem.machine.devices if d.name in used},
        "ms": run.median_s * 1e3,
        "predicted_ms": predicted.value * 1e3,
        "peak_mb": {d: n / 1e6 for d, n in run.peak_bytes.items()},
        "transfer_mb": run.transfer_bytes / 1e6,
        "outputs_equal": run.outputs_match,
        "max_abs_diff": run.max_abs_diff,
    }


def table(rows: Iterable[dict[str, Any]]) -> Iterator[str]:
    yield (
        "| network | placement | requested | actual | step ms | predicted ms | peak MB |"
        " moved MB | outputs equal (largest difference) |"
    )
    yield "|---|---|---|---|---|---|---|---|---|"
    for row in rows:
        begin = f"| {row['network']} | {row['placement']} |"
        if "refused" in row:
            yield f"{begin} refused: {row['refused']} | | | | | | |"
            continue
        pairs = [", ".join(f"{d}: {p}" for d, p in row[k].items()) for k in ("requested", "actual")]
        peak = ", ".join(f"{d}: {n:.0f}" for d, n in sorted(row["peak_mb"].items()))
        equal = {True: "yes", False: "no", None: "not compared"}[row["outputs_equal"]]
        yield (
            f"{begin} {pairs[0]} | {pairs[1]} | {row['ms']:.2f} | {row['predicted_ms']:.2f} |"
            f" {peak} | {row['transfer_mb']:.1f} | {equal} ({row['max_abs_diff']}) |"
        )


if __name__ == "__main__":
    main()
