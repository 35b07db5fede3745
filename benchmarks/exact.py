"""How near to the best does the exact method come, and how soon?

    python -m benchmarks.exact [NAME ...] [--folder DIR] [--limits S,S] [--stand-ins] [--json]

`branch_and_bound` on the workload files of Tarnawski et al. whose names hold one of the texts, once
with each time limit: value, bound and gap. With --stand-ins on files of like shape instead, which
nothing was tuned to: training graphs mirrored from the inference files, and other numbers of
accelerators.
"""

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks._shared.figures import by_name, numbers, parser
from placement import make_problem, place
from placement.core.amounts import in_unit
from placement.loaders import load

FOLDER = Path(__file__).parents[2] / "shared" / "workloads"
PROVEN = 1.0 + 1e-9
# Memory of an accelerator in the files for throughput.
ROOMY_BYTES = 17_185_374_208


class Case(NamedTuple):
    """A file's name, its content and what is minimised."""

    name: str
    content: dict[str, Any]
    objective: str


def files(folder: Path) -> Iterator[Case]:
    """The workload files of a folder by objective."""
    for objective in ("throughput", "latency"):
        for path in sorted((folder / objective).glob("*.json")):
            content = json.loads(path.read_text(encoding="utf-8"))
            yield Case(f"{objective}/{path.stem}", content, objective)


def stand_ins(cases: list[Case]) -> Iterator[Case]:
    """Graphs of like shape for throughput, made from the files."""
    of_name = {case.name: case.content for case in cases}
    roomy = {"maxSizePerFPGA": ROOMY_BYTES}
    others: list[tuple[str, str, dict[str, Any], bool]] = [
        ("op_bert12, training", "throughput/op_bert12_inference", {}, True),
        ("op_resnet50, training", "latency/op_resnet50_inference", {**roomy, "maxFPGAs": 6}, True),
        ("op_resnet50", "latency/op_resnet50_inference", {**roomy, "maxFPGAs": 6}, False),
        ("op_bert12, 4 of 6", "throughput/op_bert12_inference", {"maxFPGAs": 4}, False),
        ("op_bert12, 8 for 6", "throughput/op_bert12_inference", {"maxFPGAs": 8}, False),
        ("op_bert3, training, 6 for 3", "throughput/op_bert3_training", {"maxFPGAs": 6}, False),
        ("layer_gnmt, training, 4 of 6", "throughput/layer_gnmt_training", {"maxFPGAs": 4}, False),
        ("layer_resnet50, 3 of 6", "throughput/layer_resnet50_inference", {"maxFPGAs": 3}, False),
    ]
    for name, source, keys, both_ways in others:
        if source in of_name:
            content = {**of_name[source], **keys}
            yield Case(name, mirrored(content) if both_ways else content, "throughput")


def mirrored(content: dict[str, Any]) -> dict[str, Any]:
    """A training graph: each op with inputs or work has a backward one of twice its times."""
    nodes, edges = content["nodes"], content["edges"]
    fed = {edge["destId"] for edge in edges}
    shift = 1 + max(node["id"] for node in nodes)
    free = 1 + max(node.get("colorClass") or 0 for node in nodes)
    forward = [{**n, "colorClass": n.get("colorClass", free + n["id"])} for n in nodes]
    late = {n["id"] for n in forward if n["fpgaLatency"] > 0 or n["id"] in fed}
    backward = [
        {
            **node,
            "id": node["id"] + shift,
            "isBackwardNode": True,
            "fpgaLatency": 2 * node["fpgaLatency"],
            "cpuLatency": 2 * node["cpuLatency"],
            "size": 0,
        }
        for node in forward
        if node["id"] in late
    ]
    back, cost = [], {edge["sourceId"]: edge["cost"] for edge in edges}
    for u, v in ((edge["sourceId"], edge["destId"]) for edge in edges):
        back.append({"sourceId": u, "destId": v + shift, "cost": cost[u]})
        if u in late:
            # What flows back to u is as large as what it made.
            back.append({"sourceId": v + shift, "destId": u + shift, "cost": cost[u]})
    largest: dict[int, float] = {}
    for edge in back:
        source = edge["sourceId"]
        largest[source] = max(largest.get(source, 0.0), edge["cost"])
    back = [{**edge, "cost": largest[edge["sourceId"]]} for edge in back]
    return {**content, "nodes": forward + backward, "edges": edges + back}


def row(case: Case, limits_s: list[int]) -> dict[str, str]:
    """Values and bounds of a case in milliseconds, one column for each limit."""
    cells = {"case": case.name}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.json"
        path.write_text(json.dumps(case.content), encoding="utf-8")
        model = load(str(path))
    assert model.problem is not None
    problem = make_problem(model, model.problem.machine, objective=case.objective)
    for limit_s in limits_s:
        placed = place(problem, "branch_and_bound", time_limit_s=limit_s)
        value, bound = (in_unit(x, placed.unit) for x in (placed.value, placed.lower_bound))
        gap = "proven" if value <= bound * PROVEN else f"{value / bound - 1.0:.2%}"
        cells[f"{limit_s} s"] = f"{value:.6g} >= {bound:.6g}, {gap} ({placed.seconds:.3g} s)"
    return cells


def main() -> None:
    made = parser(__doc__, limits="20,60", folder=str(FOLDER))
    made.add_argument("names", nargs="*", help="texts in names of cases; all without them")
    made.add_argument("--stand-ins", action="store_true", help="graphs of like shape instead")
    options = made.parse_args()
    cases = list(files(Path(options.folder)))
    chosen = list(stand_ins(cases)) if options.stand_ins else cases
    rows = []
    for case in (c for c in chosen if any(n in c.name for n in options.names or [""])):
        rows.append(row(case, numbers(options.limits)))
        print(*rows[-1].values(), sep="  ", file=sys.stderr, flush=True)
    print(json.dumps(rows) if options.json else by_name(rows))


if __name__ == "__main__":
    main()
