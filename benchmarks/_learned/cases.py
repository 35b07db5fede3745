"""The cases on which learned placers are compared: samples on machines, and workload files."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial

import placement as pl
from benchmarks.placers import REFERENCES, WORKLOADS
from placement.core.model import Model
from placement.core.problem import Problem
from placement.costs.what_if import Conditions, what_if

# Seconds of each device alone: Duan et al., "A structure-aware framework for learning device
# placements on computation graphs", NeurIPS 2024, the columns CPU and GPU of the table of results.
PUBLISHED_S = {
    "inception_v3": {"cpu:0": 0.0128, "cuda:0": 0.0120},
    "resnet50": {"cpu:0": 0.0160, "cuda:0": 0.00781},
    "bert_base": {"cpu:0": 0.00638, "cuda:0": 0.00277},
}
NMT_DIMS = {"batch": 64, "length": 6}
# The placement by hand: a layer of the encoder and one of the decoder on each GPU.
NMT_LAYERS = ";".join(
    f"{scope}=cuda:{i}"
    for i, scopes in enumerate(
        (
            ("*", "ahead", "back", "decoder/0", "attention", "source_words", "target_words"),
            ("encoder/0", "decoder/1"),
            ("encoder/1", "decoder/2"),
            ("encoder/2", "decoder/3", "head"),
        )
    )
    for scope in scopes
)
MANY_GPUS = ("pcie-4gpu", "nvlink-8gpu")
FILES = ("op_bert3_inference", "op_bert12_inference", "layer_gnmt_training")


@dataclass(frozen=True)
class Case:
    """A problem, which is made when it is its turn.

    `is_long` are the cases with most to gain, which get the whole time of a learner. `rules` place
    by hand; `best_known_ms` is infinite where none was found before.
    """

    name: str
    problem: Callable[[], Problem]
    is_long: bool = False
    rules: str = ""
    best_known_ms: float = float("inf")


def cases() -> Iterator[Case]:
    """Inception v2 on machines, networks of the studies, translation, and workload files."""
    for machine in ("laptop-gpu", "pcie-4gpu", "nvlink-8gpu", "two-lanes"):
        made = partial(_on_machine, "onnx-inception-v2", machine)
        yield Case(f"onnx-inception-v2/{machine}", made, machine in MANY_GPUS)
    for sample, alone_s in PUBLISHED_S.items():
        yield Case(f"{sample}/scaled", partial(_scaled, sample, alone_s))
        made = partial(_on_machine, sample, "pcie-4gpu")
        yield Case(f"{sample}/pcie-4gpu", made, sample == "inception_v3")
    nmt = partial(_on_machine, "nmt:training", "pcie-4gpu", NMT_DIMS)
    yield Case("nmt:training/pcie-4gpu", nmt, True, NMT_LAYERS)
    if not WORKLOADS.is_dir():
        print(f"There are no workload files in {WORKLOADS}; they are left out.")
        return
    for name in FILES:
        known = float(REFERENCES[f"throughput/{name}"][1])
        yield Case(name, partial(_workload, name), True, best_known_ms=known)


@cache
def _opened(source: str, dims: tuple[tuple[str, int], ...] = ()) -> Model:
    return pl.load(source, dict(dims))


def _on_machine(sample: str, machine: str, dims: Mapping[str, int] | None = None) -> Problem:
    model = _opened(sample, tuple((dims or {}).items()))
    return pl.make_problem(model, pl.machine(machine))


def _workload(name: str) -> Problem:
    model = _opened(str(WORKLOADS / "throughput" / f"{name}.json"))
    assert model.problem is not None
    return pl.make_problem(model, model.problem.machine, objective="throughput")


def _scaled(sample: str, alone_s: Mapping[str, float]) -> Problem:
    return with_devices_alone(_on_machine(sample, "laptop-gpu"), alone_s)


def with_devices_alone(problem: Problem, alone_s: Mapping[str, float]) -> Problem:
    """The problem with devices of such speeds that everything on one of them takes these seconds.

    What a device computes scales with its speed, what it sends and receives does not. Speeds are
    found by halving, from a millionth to a million of what they are.
    """
    speed = {}
    for name, wanted_s in alone_s.items():
        slow, fast = 1e-6, 1e6
        fastest_s = _alone_s(what_if(problem, Conditions(speed={name: fast})), name)
        if wanted_s <= fastest_s:
            raise ValueError(
                f"Device {name!r} needs {fastest_s:g} s for transfers alone; ask for more than the"
                f" {wanted_s:g} s given."
            )
        while fast > slow * (1 + 1e-12):
            middle = (slow * fast) ** 0.5
            middle_s = _alone_s(what_if(problem, Conditions(speed={name: middle})), name)
            slow, fast = (middle, fast) if middle_s > wanted_s else (slow, middle)
        speed[name] = fast
    return what_if(problem, Conditions(speed=speed))


def _alone_s(problem: Problem, device: str) -> float:
    return pl.place(problem, "single", settings={"device": device}).value
