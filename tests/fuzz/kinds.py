"""The kinds of files that the program opens: small right ones, and what opening one means.

A kind is opened as the command line or the page opens it: `read` goes through the same reader, and
`use` does with the value what comes next. Both run in this process.
"""

import dataclasses
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import placement as pl
from placement.api import lessons
from placement.cli import reading
from placement.constraints.pins import held
from placement.core.machine import Machine
from placement.core.model import Model
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.core.problem_json import problem_to_json
from placement.core.profile import Profile, profile_from_json
from placement.files.input import read_value
from placement.lessons.answer import Answer, read_answer
from placement.lessons.grading import graded
from placement.lessons.judging import Posed
from placement.lessons.lesson import Lesson
from placement.lessons.reading import read_lesson
from placement.loaders import load
from tests.fuzz import mutation
from tests.instances import canonical_file, random_problem
from tests.pages.problems import MACHINE, diamond, everywhere

HOSTILE = Path(__file__).parents[1] / "hostile"
MACHINES = Path(__file__).parents[2] / "assets" / "machines"
LESSONS = MACHINES.with_name("lessons")
PACKAGE_FILES = 60
LARGEST_PACKAGE_FILE = 3_000


@dataclass(frozen=True)
class Kind:
    """A kind of file: the ending of its name, right files, how to mutate and how to open one."""

    suffix: str
    seeds: Callable[[], list[bytes]]
    by_field: mutation.Mutate
    read: Callable[[Path], Any]
    use: Callable[[Any], object]
    # Whether a refusal of its reader must name the file.
    is_named: bool = True
    # What must be imported by a process that opens it; those of one group share a process.
    group: str = "json"


def _json(*contents: Any) -> list[bytes]:
    return [json.dumps(content).encode() for content in contents]


def _hostile(pattern: str) -> list[bytes]:
    return [path.read_bytes() for path in sorted(HOSTILE.glob(pattern))]


# --- models


def _onnx_seeds() -> list[bytes]:
    from tests.loaders.models import package_files

    small = [p for p in package_files() if p.stat().st_size < LARGEST_PACKAGE_FILE]
    every = len(small) // PACKAGE_FILES
    return [*_hostile("*.onnx"), *(path.read_bytes() for path in small[::every])]


def _pt2_seeds() -> list[bytes]:
    import torch

    torch.manual_seed(0)
    norm = torch.nn.BatchNorm2d(2)
    modules = (
        (torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU()), torch.ones(2, 4)),
        (torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), norm), torch.ones(1, 1, 5, 5)),
        (torch.nn.LayerNorm(4), torch.ones(2, 4)),
    )
    made = []
    for module, example in modules:
        buffer = io.BytesIO()
        torch.export.save(torch.export.export(module.eval(), (example,)), buffer)
        made.append(buffer.getvalue())
    return [*_hostile("*.pt2"), *made]


def _two_lanes() -> Machine:
    """The machine of the diamond, with the speeds that estimated costs need."""
    speeds = {"flops_per_s": 1e9, "memory_bytes_per_s": 1e9}
    lanes = tuple(dataclasses.replace(lane, **speeds) for lane in MACHINE.devices)
    return dataclasses.replace(MACHINE, devices=lanes)


def _inspect(model: Model) -> object:
    return pl.inspect(model)


def _place(model: Model) -> object:
    """Inspect and place a model; one without costs of its own on two equal devices."""
    pl.inspect(model)
    problem = pl.make_problem(model, model.problem.machine if model.problem else _two_lanes())
    return _placed(problem)


def _placed(problem: Problem) -> object:
    placer = "greedy_fill" if problem.execution == "call" else "heft"
    return pl.simulate(problem, pl.place(problem, placer).placement)


# --- graphs with costs


def _problem_seeds() -> list[bytes]:
    drawn = (random_problem(s, num_ops=6, with_groups=True, with_gaps=True) for s in (1, 2))
    return _json(canonical_file(), *map(problem_to_json, drawn))


def _workload_seeds() -> list[bytes]:
    from tests.workloads import edges, node, workload

    nodes = [node(i, 3.0, 1.0, colorClass=i // 3) for i in range(6)]
    chain = edges(*((i, i + 1, 0.5) for i in range(5)))
    return _json(workload(nodes, chain), workload(nodes[:1], [], maxFPGAs=0))


def _networkx_seeds() -> list[bytes]:
    import networkx as nx

    from placement.exporters.networkx import to_networkx

    whole = nx.node_link_data(to_networkx(diamond().graph, None), edges="edges")
    plain = nx.DiGraph([("a", "b"), ("b", "c")])
    plain.edges["a", "b"]["bytes"] = 12
    return [*_json(whole, nx.node_link_data(plain, edges="links")), *_hostile("n_*.json")]


# --- what goes with a model


def _profile() -> Profile:
    problem = diamond()
    names = [op.name for op in problem.graph.ops]
    return Profile(
        graph=problem.graph.fingerprint,
        machine=MACHINE,
        kernels=problem.kernels,
        sources=tuple(tuple(names[i] for i in ops) for ops in problem.sources),
        compute_s=((0.001, 0.002), (0.01, None), (0.01, 0.01), (0.001, 0.002)),
        spread=((0.1, 0.2),) * 4,
        call_s=(0.0, 0.0),
        step_s=(0.02, None),
        measured_at="2026-01-01T00:00:00+00:00",
    )


def _use_profile(profile: Profile) -> object:
    problem = diamond()
    return _placed(pl.make_problem(Model(problem.graph), MACHINE, profile))


def _use_machine(machine: Any) -> object:
    return _placed(pl.make_problem(Model(diamond().graph), machine))


def _split() -> Placement:
    return everywhere(diamond(), b="cpu:1")


def _placement_seeds() -> list[bytes]:
    order = tuple(op.name for op in diamond().graph.ops)
    return _json(_split().to_json(), dataclasses.replace(_split(), order=order).to_json())


def run_result(**changes: Any) -> dict[str, Any]:
    predicted = pl.simulate(diamond(), _split())
    timeline = predicted.timeline.to_json()
    return {
        "event": "result",
        "step_s": {"median": 2.0, "p5": 1.5, "p95": 2.5},
        "steps_s": [2.0, 2.0],
        "predicted_s": 1.8,
        "error": -0.1,
        "baseline_s": {"cpu:0": 3.0, "cpu:1": None},
        "outputs_match": True,
        "num_segments": len(predicted.schedule.segments),
        "critical_path": [],
        "busy_s": dict(predicted.busy_s),
        "timeline": {**timeline, "origin": "measured"},
        "predicted_timeline": timeline,
        "placement": _split().to_json(),
        "schedule": predicted.schedule.to_json(),
        **changes,
    }


def _use_run(timeline: Any) -> object:
    problem = diamond()
    model, folder = Model(problem.graph), Path.cwd()
    for form in ("chrome-trace", "perfetto-trace", "timeline-csv"):
        pl.export(model, problem, _split(), form, folder / f"{form}.out", measured=timeline)
    return None


def _use_pins(pins: dict[str, str]) -> object:
    return _placed(dataclasses.replace(diamond(), pins=tuple(pins.items())))


def _use_names(names: list[str]) -> object:
    problem = diamond()
    return _placed(
        dataclasses.replace(problem, pins=tuple(held(problem, {}, _split(), names).items()))
    )


def _input_seeds() -> list[bytes]:
    import numpy as np

    buffer = io.BytesIO()
    np.savez(buffer, x=np.ones((2, 3), np.float32), ids=np.arange(4))
    packed = io.BytesIO()
    np.savez_compressed(packed, x=np.zeros((2, 3)), text=np.array(["a", "b"]))
    return [buffer.getvalue(), packed.getvalue()]


# --- projects


def _project_seeds() -> list[bytes]:
    from placement.costs.what_if import Conditions
    from studio.project.edits import Edit, History
    from studio.project.placements import machine_key
    from studio.transfer.archive import FORMAT, NOTE, VERSION

    shelf = f"{diamond().graph.fingerprint}-{machine_key(MACHINE)}"
    item = {"name": "heft", "file": "heft.json", "made_by": "heft", "facts": {"value": 1.5}}
    told = {"value": 1.5, "unit": "s", "objective": "latency", "unchanged_value": 2.0}
    conditions = Conditions({"cpu:1": 0.5}, 4.0, 1.0, {"cpu:0": None}, {("cpu:0", "cpu:1"): 2.0})
    answer = {**item, "facts": {**told, "what_if": conditions.to_json()}}
    steps = History().add(Edit("b", (("b_conv", "cpu:0", "cpu:1"),)))
    settings = {
        "name": "mine",
        "created_at": 0.0,
        "model_kind": "sample",
        "model": "onnx-squeezenet",
        "dims": {},
        "machine": "box.json",
        "lanes": None,
        "objective": "latency",
    }
    placed = _split().to_json()
    run = {
        "started_at": 7.0,
        "about": {"shelf": shelf, "placement": "heft", "objective": "latency", "steps": 3},
        "result": run_result(),
    }
    contents = {
        NOTE: {"format": FORMAT, "version": VERSION, "exported_at": 0.0},
        "project.json": settings,
        "machines/box.json": MACHINE.to_json(),
        "rules.json": [{"pattern": "Conv*", "device": "cpu:1"}],
        f"placements/{shelf}/index.json": {"current": "heft", "items": [item]},
        f"placements/{shelf}/heft.json": placed,
        f"placements/{shelf}/heft.history": steps.to_json(),
        f"placements/{shelf}/pins.json": {"a_conv": "cpu:0"},
        f"what_if/{shelf}/index.json": {"current": "heft", "items": [answer]},
        f"what_if/{shelf}/heft.json": placed,
        "runs/1-abcd.json": run,
    }
    members = [(name, json.dumps(content).encode()) for name, content in contents.items()]
    model = json.dumps(canonical_file()).encode()
    own = {**settings, "model_kind": "file", "model": "m.json", "machine": "local"}
    small = [
        members[0],
        ("project.json", json.dumps(own).encode()),
        ("model/m.json", model),
    ]
    return [mutation.zipped(members), mutation.zipped(small), *_hostile("redos100.zip")]


def _read_project(path: Path) -> Any:
    import shutil

    from studio.transfer.archive import unpack

    project = unpack(path.read_bytes(), lambda source, dims: load(source, dict(dims)))
    try:
        assert project.settings.touched
    finally:
        shutil.rmtree(project.folder)


def _nothing(value: Any) -> None:
    """What comes after a file that is only read."""


@cache
def _first_lesson() -> tuple[Lesson, Posed]:
    lesson = lessons.lesson("1")
    return lesson, lessons.posed(lesson)


def _answer_seeds() -> list[bytes]:
    lesson, found = _first_lesson()
    answer = Answer(
        lesson=lesson.hash,
        problem=found.problem.fingerprint,
        placement=found.start,
        name="Ada",
        moves=(("right", "B"), ("right", "A")),
        answers={"1": 8.0, "3": "load"},
        hints=(1,),
    )
    return [answer.to_text().encode()]


def _grade(answer: Answer) -> object:
    return graded(*_first_lesson(), answer)


def _load(path: Path) -> Model:
    return load(str(path))


KINDS = {
    "onnx": Kind(
        ".onnx", _onnx_seeds, mutation.by_onnx, _load, _inspect, is_named=False, group="onnx"
    ),
    "pt2": Kind(
        ".pt2",
        _pt2_seeds,
        mutation.by_members(mutation.by_json),
        _load,
        _inspect,
        is_named=False,
        group="pt2",
    ),
    "problem": Kind(".json", _problem_seeds, mutation.by_json, _load, _place),
    "workload": Kind(".json", _workload_seeds, mutation.by_json, _load, _place),
    "networkx": Kind(".json", _networkx_seeds, mutation.by_json, _load, _place),
    "machine": Kind(
        ".json",
        lambda: [
            *_json(_two_lanes().to_json()),
            *(p.read_bytes() for p in sorted(MACHINES.iterdir())),
        ],
        mutation.by_json,
        lambda path: pl.machine(str(path)),
        _use_machine,
        is_named=False,
    ),
    "placement": Kind(
        ".json",
        _placement_seeds,
        mutation.by_json,
        lambda path: reading.read_placement(str(path)),
        lambda placement: pl.simulate(diamond(), placement),
    ),
    "profile": Kind(
        ".json",
        lambda: _json(_profile().to_json()),
        mutation.by_json,
        lambda path: read_value(path, "profile", profile_from_json),
        _use_profile,
    ),
    "run": Kind(
        ".json",
        lambda: [*_json(run_result()), *_hostile("*-run.json")],
        mutation.by_json,
        lambda path: reading.read_timeline(str(path)),
        _use_run,
    ),
    "pins": Kind(
        ".json",
        lambda: _json({"a_conv": "cpu:0", "b_relu": "cpu:1"}),
        mutation.by_json,
        lambda path: reading.read_pins(str(path)),
        _use_pins,
    ),
    "names": Kind(
        ".json",
        lambda: _json(["a_conv", "b_relu"]),
        mutation.by_json,
        lambda path: reading.read_names(str(path)),
        _use_names,
    ),
    "lesson": Kind(
        ".md",
        lambda: [path.read_bytes() for path in sorted(LESSONS.glob("0*.md"))],
        mutation.by_bytes,
        read_lesson,
        lessons.posed,
    ),
    "answer": Kind(".json", _answer_seeds, mutation.by_json, read_answer, _grade),
    "inputs": Kind(
        ".npz",
        _input_seeds,
        mutation.by_members(mutation.by_bytes),
        lambda path: reading.read_inputs(str(path)),
        _nothing,
    ),
    "project": Kind(
        ".zip",
        _project_seeds,
        mutation.by_members(mutation.by_json),
        _read_project,
        _nothing,
        is_named=False,
        group="project",
    ),
}


@cache
def seeds_of(kind: str) -> tuple[bytes, ...]:
    return tuple(KINDS[kind].seeds())
