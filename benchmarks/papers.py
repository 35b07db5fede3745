"""The comparisons of two papers, made here: methods side by side on the networks that they name.

    python -m benchmarks.papers [--json] [--only samos,throughput,latency] [--time-limit S]

Huang, Fu and Hsu (SAMOS 2019): CEFT with PBQP beside HEFT, one device and round robin, on a step of
training of their five networks, once at the speeds of the profile and once with the busiest
accelerator twice as slow, where a placement stays as it was or is adjusted. Tarnawski et al.
(NeurIPS 2020): their files for throughput and for latency, where they are at hand, by the methods
of their tables, with the figures of the authors' programs beside. All values are predicted.
"""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import placement as pl
from benchmarks._shared.figures import by_name, parser, parts
from benchmarks.placers import PUBLISHED_MS, REFERENCES, WORKLOADS
from placement.advice.replacing import Policy, alone, decide, unslowed, updated
from placement.core.amounts import in_unit
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.search.feasible import final_s

# The networks that the abstract names; of the paper only that is public.
NETWORKS = ("alexnet", "vgg16", "inception_v3", "resnet50", "rnnlm")
MACHINES = ("laptop-gpu", "pcie-4gpu")
SLOWER, STEPS = 2.0, 1000
PAPER = "CEFT + PBQP"
# By name: the placer and its settings. The paper's method alone, and with the moves that ours adds.
STATIC: dict[str, tuple[str, dict[str, Any]]] = {
    "one device": ("single", {}),
    "round robin": ("round_robin", {}),
    "HEFT": ("heft", {}),
    PAPER: ("ceft_pbqp", {"adjusting": 0}),
    "and moves": ("ceft_pbqp", {}),
}

# Methods of the NeurIPS paper's tables, and ours beside them. Where the paper has a partitioner
# that is not free to install (Scotch) there are two others.
THROUGHPUT = {
    "one accelerator": "single",
    "DP": "ideals_dp",
    "DPL": "linear_dp",
    "PipeDream": "pipedream",
    "METIS": "metis",
    "KaHIP": "kahip",
    "any split": "branch_and_bound",
}
LATENCY = {
    "one device": "single",
    "greedy": "greedy_fill",
    "DP over orders": "linear_dp",
    "METIS": "metis",
    "any split": "branch_and_bound",
}
SEARCHES = ("branch_and_bound",)
EXPERTS = {
    "layer_bert24_inference": "bert24_inference_expert",
    "layer_bert24_training": "bert24_training_expert",
    "layer_gnmt_inference": "gnmt_inference_expert",
    "layer_gnmt_training": "gnmt_inference_expert",
}
# Milliseconds of the authors' local search with 10 restarts, whose splits are not contiguous.
AUTHORS_LOCAL_SEARCH = {
    "layer_bert24_inference": 17.7776,
    "layer_bert24_training": 39.9432,
    "layer_gnmt_inference": 31.7827,
    "layer_gnmt_training": 90.9476,
    "layer_resnet50_inference": 35.889,
}
NONE = "-"


def samos() -> Iterator[dict[str, Any]]:
    """Milliseconds of a step by network and machine; the last columns are on the slower machine."""
    for network in NETWORKS:
        model = pl.load(f"{network}:training")
        for preset in MACHINES:
            problem = pl.make_problem(model, pl.machine(preset))
            placements = {
                told: _placement(problem, placer, settings)
                for told, (placer, settings) in STATIC.items()
            }
            yield {
                "network": network,
                "machine": preset,
                "ops": len(model.graph.ops),
                **{told: _ms(problem, found) for told, found in placements.items()},
                **_adjusted(problem, placements),
            }


def _adjusted(problem: Problem, placements: Mapping[str, Placement | None]) -> dict[str, str]:
    """What CEFT + PBQP and HEFT take once the device that computes most is slower: as they were,
    placed anew, and what adjusting makes of CEFT + PBQP while training."""
    begun = placements[PAPER] or placements["one device"]
    assert begun is not None
    on = problem.kernel_devices(begun)
    work_s = np.bincount(
        on, problem.costs.compute_s[np.arange(on.size), on], minlength=problem.num_devices
    )
    factors = np.ones(problem.num_devices)
    factors[int(work_s.argmax())] = SLOWER
    slower = updated(problem, replace(unslowed(problem), device=factors))
    known = {"the start": begun} | dict(alone(slower))
    decided = decide(
        slower, begun, known=known, remaining_steps=STEPS, switch_s=0.0, policy=Policy()
    )
    return {
        "slower": problem.machine.devices[int(factors.argmax())].name,
        "HEFT stays": _ms(slower, placements["HEFT"]),
        f"{PAPER} stays": _ms(slower, begun),
        "adjusted": _ms(slower, decided.placement),
        "by": decided.method if decided.moves else "stays",
        "HEFT anew": _ms(slower, _placement(slower, "heft", {})),
    }


def _placement(problem: Problem, placer: str, settings: dict[str, Any]) -> Placement | None:
    """None where it finds nothing, as round robin where a device cannot hold its part."""
    try:
        return pl.place(problem, placer, settings=settings).placement
    except ValueError:
        return None


def _ms(problem: Problem, placement: Placement | None) -> str:
    seconds = math.inf if placement is None else final_s(problem, placement)
    return NONE if math.isinf(seconds) else f"{seconds * 1e3:.4g}"


def splits(objective: str, time_limit_s: float) -> Iterator[dict[str, Any]]:
    """Values of the files of an objective in milliseconds, by method, with the authors' beside."""
    methods = THROUGHPUT if objective == "throughput" else LATENCY
    for path in sorted((WORKLOADS / objective).glob("*.json")):
        model = pl.load(str(path))
        assert model.problem is not None
        problem = pl.make_problem(model, model.problem.machine, objective=objective)
        found: dict[str, str] = {}
        bound = 0.0
        for told, placer in methods.items():
            limit_s = time_limit_s if placer in SEARCHES else None
            value, proven = _split(problem, placer, time_limit_s=limit_s)
            found[told] = _number(value)
            bound = max(bound, proven)
        expert, _ = _split(problem, "expert", settings={"split": str(_expert(path.stem))})
        yield {
            "file": path.stem,
            **found,
            "expert": _number(expert),
            "bound": _number(bound),
            **_authors(objective, path.stem),
        }


def _split(problem: Problem, placer: str, **options: Any) -> tuple[float, float]:
    """A placer's value and bound in the file's unit; infinite where it finds nothing allowed."""
    try:
        placed = pl.place(problem, placer, **options)
    except ValueError:
        return math.inf, 0.0
    value = math.inf if placed.violations else in_unit(placed.value, placed.unit)
    return value, in_unit(placed.lower_bound, placed.unit)


def _expert(file: str) -> Path:
    return WORKLOADS / "experts" / f"{EXPERTS.get(file, 'none')}.json"


def _authors(objective: str, file: str) -> dict[str, str]:
    """What the authors' own programs reach."""
    if objective == "latency":
        published = PUBLISHED_MS.get(f"latency/{file}", {})
        return {f"authors' {name}": _number(value) for name, value in published.items()}
    optimum, _, expert = REFERENCES.get(f"throughput/{file}", ("", "", ""))
    return {
        "authors' DP": optimum or NONE,
        "authors' local search": _number(AUTHORS_LOCAL_SEARCH.get(file, math.inf)),
        "authors' expert": expert or NONE,
    }


def _number(value: float) -> str:
    return NONE if math.isinf(value) else f"{value:.6g}"


def main() -> None:
    options = parser(__doc__, only="samos,throughput,latency", time_limit=5.0).parse_args()
    found = {}
    for name in parts(options.only):
        rows = samos() if name == "samos" else splits(name, options.time_limit)
        found[name] = list(rows)
        if not options.json:
            print(f"{name}\n\n{by_name(found[name]) if found[name] else 'no files'}\n", flush=True)
    if options.json:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
