"""Segments of PyTorch programs as graphs: the same bits, spans, errors and ends as in Python."""

import functools
import itertools
import threading

import numpy as np
import pytest
import torch
from torch import nn

import placement as pl
from placement.core.machine import Device, Link, Machine
from placement.core.schedule import Schedule, Segment
from placement.core.verb_options import RunOptions, StreamOptions
from placement.formats.torch.source import shared_values
from placement.simulator.executions import lower
from placement.simulator.simulate import simulate
from profiling import backends
from profiling.backends._torch.graphs import NotCaptured, captured
from profiling.backends._torch.run import use_threads
from profiling.devices.lanes import Lanes
from profiling.execution.execute import execute, lanes_of
from profiling.execution.stream import stream
from profiling.measuring.reference import release, safe_step
from tests.profiling.live import problem_of, random_schedule, steps

NATIVELY = "Segments ran natively, without the interpreter's lock."
LANES = tuple(Device(f"cpu:{i}", "cpu", "torch", "cpu") for i in range(2))
LINKS = (Link(a.name, b.name, 2e-5, 1e10) for a, b in itertools.permutations(LANES, 2))
TWO = Machine("two", LANES, tuple(LINKS))


class Kinds(nn.Module):
    """Ops with several results, lists of them, numbers for tensors, types, indices and layouts."""

    def forward(self, x, number):
        a, b = x.split(2, 1)
        mean, low = torch.var_mean(a, 1), torch.topk(b, 1, dim=1)[0]
        rows = x.unbind(0)
        joined = torch.cat([rows[1], rows[0]], 0)[torch.tensor([0, 2, 1])]
        whole = (number * 2.5, number // 2, number > 1, number.to(torch.float64) - 0.1)
        grid = (
            x[:, :, None, None].expand(-1, -1, 3, 3).contiguous(memory_format=torch.channels_last)
        )
        pooled = nn.functional.avg_pool2d(grid, 2, 1, ceil_mode=True)
        picked = x[:, None, :][:, 0, torch.arange(3)]
        same = torch.where(x > 0, x, -1.0).clamp(-0.5).pow(2)
        return (*mean, low, joined, *whole, pooled, picked, same, torch.zeros_like(x) + 1)


MODULES = {
    "kinds": lambda: (Kinds(), (torch.randn(3, 4), torch.arange(4))),
    "lstm": lambda: (nn.LSTM(6, 5, 2), (torch.randn(4, 2, 6),)),
    "attention": lambda: (nn.TransformerEncoderLayer(8, 2, 16), (torch.randn(3, 2, 8),)),
    "convolution": lambda: (
        nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.GELU(), nn.Flatten()),
        (torch.randn(2, 3, 6, 6),),
    ),
    "half": lambda: (nn.Linear(4, 4).bfloat16(), (torch.randn(2, 4).bfloat16(),)),
}


@functools.cache
def model_of(name):
    torch.manual_seed(0)
    module, inputs = MODULES[name]()
    return pl.from_torch(module.eval(), inputs)


@functools.cache
def trained(optimizer):
    torch.manual_seed(0)
    module = nn.Sequential(nn.Embedding(5, 4), nn.LayerNorm(4), nn.Flatten(), nn.Linear(12, 3))
    return pl.from_torch(
        module,
        torch.randint(0, 5, (2, 3)),
        training=True,
        loss=nn.functional.cross_entropy,
        targets=(torch.tensor([0, 2]),),
        optimizer=optimizer,
    )


@pytest.mark.parametrize("name", [*MODULES, "sgd", "momentum", "adam"])
def test_graphs_give_the_bits_of_python(name):
    model = model_of(name) if name in MODULES else trained(name)
    compiled = backends.compiled(model, TWO)
    feeds = compiled.feeds(0, {})
    problem = problem_of(model, TWO)
    names = tuple(op.name for op in compiled.kernels.ops)
    whole = Schedule((Segment("cpu:0", names),))
    single = Schedule(tuple(Segment("cpu:0", (name,)) for name in names))
    for schedule in (whole, single, random_schedule(problem, np.random.default_rng(1))):
        graphs, python = compiled.open(schedule, feeds), compiled.in_python().open(schedule, feeds)
        assert (graphs.lanes_note, python.lanes_note) == (NATIVELY, "")
        for found, wanted in zip(
            steps(graphs, schedule, 3), steps(python, schedule, 3), strict=True
        ):
            for label in wanted:
                assert found[label].dtype == wanted[label].dtype, (name, label)
                assert np.array_equal(found[label], wanted[label]), (name, label)


@pytest.mark.parametrize("seed", range(2))
def test_a_run_has_the_spans_that_were_simulated(seed):
    model = trained("momentum")
    problem = problem_of(model, TWO)
    schedule = random_schedule(problem, np.random.default_rng(seed))
    run = execute(problem, schedule, RunOptions(steps=3), model=model, baselines=False)
    assert run.outputs_match and run.max_abs_diff == 0.0 and run.lanes_note == NATIVELY
    key = lambda s: (s.kind, s.name, s.device, s.segment, s.num_bytes)  # noqa: E731
    spans = run.timeline.spans
    assert sorted(map(key, spans)) == sorted(map(key, simulate(problem, schedule).spans))
    for span in spans:
        assert 0 <= span.start_s <= span.end_s <= run.timeline.step_s
        assert all(spans[i].end_s <= span.start_s + 1e-9 for i in span.after if span.segment >= 0)


@torch.library.custom_op("placement_tests::twice", mutates_args=())
def _twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@_twice.register_fake
def _(x):
    return torch.empty_like(x)


def test_what_graphs_do_not_have_runs_in_python_and_the_run_says_so(monkeypatch):
    from profiling.backends._torch import graphs

    own = graphs._require

    def require(node, schema, numbers):
        if schema.name == "aten::sin":
            raise NotCaptured("graphs have no 'aten::sin' for these arguments")
        own(node, schema, numbers)

    monkeypatch.setattr(graphs, "_require", require)

    class Net(nn.Module):
        def forward(self, x):
            return _twice(x.exp()).sin() + 1

    model = pl.from_torch(Net(), torch.randn(3))
    problem = problem_of(model, TWO)
    names = [op.name for op in problem.kernels.ops]
    parts = [Segment(f"cpu:{i % 2}", (name,)) for i, name in enumerate(names)]
    run = execute(
        problem, Schedule(tuple(parts)), RunOptions(steps=2), model=model, baselines=False
    )
    assert run.outputs_match and run.max_abs_diff == 0.0
    assert run.lanes_note == (
        "Segments ran natively, without the interpreter's lock, but for 1 of 4 segments, because"
        " graphs have no 'aten::sin' for these arguments."
    )


def test_a_number_for_a_tensor_is_the_overload_for_numbers_or_nothing():
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    x.meta["val"] = torch.zeros(2)
    made = graph.call_function(torch.ops.aten.atan2.default, (x, 1.0))
    graph.output((made,))
    from placement.formats.torch.program import TorchProgram

    program = TorchProgram("atan2", graph, ("x",), {}, {}, (("y", made.name),))
    with pytest.raises(NotCaptured, match="graphs have no 'aten::atan2' for these arguments"):
        captured(program, [made.name], shared_values(program, [[made.name]]), 0)


def opened(model, schedule):
    problem = problem_of(model, TWO)
    compiled = backends.compiled(model, TWO)
    program = compiled.open(schedule, compiled.feeds(0, {}))
    lanes = lanes_of(problem, lower(problem, schedule))
    return program, Lanes(lanes, len(schedule.segments), program.run, native=program.native)


def test_an_error_of_an_op_is_one_sentence_and_ends_the_lanes():
    module = nn.Sequential(nn.Embedding(5, 4), nn.Tanh(), nn.Linear(4, 2))
    model = pl.from_torch(module, torch.zeros(3, dtype=torch.int64))
    names = [op.name for op in model.graph.ops]
    schedule = Schedule(tuple(Segment(f"cpu:{i % 2}", (n,)) for i, n in enumerate(names)))
    program, lanes = opened(model, schedule)
    safe_step(lanes, program, 10.0)
    program._values[program._shared["input"]] = torch.full((3,), 7)
    with pytest.raises(RuntimeError, match=r"^The runtime failed in a step: .*index out of range"):
        safe_step(lanes, program, 10.0)
    release([program], [lanes])
    assert not {t.name for t in threading.enumerate()} & {d.name for d in LANES}


def test_a_step_that_takes_too_long_is_given_up():
    model = pl.from_torch(
        nn.Sequential(*(nn.Linear(900, 900) for _ in range(15))), torch.ones(900, 900)
    )
    names = [op.name for op in model.graph.ops]
    schedule = Schedule((Segment("cpu:0", (names[0],)), Segment("cpu:1", tuple(names[1:]))))
    program, lanes = opened(model, schedule)
    with pytest.raises(RuntimeError, match=r"longer than 0\.01 s and was given up"):
        safe_step(lanes, program, 0.01)
    assert lanes.close(20.0)
    release([program], [lanes])


def test_pipelines_of_graphs_give_the_outputs_in_order():
    model = model_of("lstm")
    problem = problem_of(model, TWO)
    found = stream(
        problem,
        random_schedule(problem, np.random.default_rng(3)),
        StreamOptions(samples=20, warmup=0, depth=3),
        model=model,
        baselines=False,
    )
    assert found.bit_equal and found.num_samples == 20
    assert found.run.lanes_note == NATIVELY


def test_segments_let_other_threads_compute():
    """While one lane is inside a segment the interpreter's lock is free for others."""
    module = nn.Sequential(*(nn.Linear(500, 500) for _ in range(20)))
    model = pl.from_torch(module, torch.ones(500, 500))
    compiled = backends.compiled(model, TWO)
    schedule = Schedule((Segment("cpu:0", tuple(op.name for op in model.graph.ops)),))
    program = compiled.open(schedule, compiled.feeds(0, {}))
    inside, counts = threading.Event(), []

    def lane():
        use_threads(1)
        program.run(0)
        inside.set()

    thread = threading.Thread(target=lane)
    thread.start()
    while not inside.is_set():
        counts.append(0)
    thread.join()
    assert len(counts) > 10_000
