"""PyTorch programs, placed and run: bit-equal to the graph unplaced, and equal to plain PyTorch."""

import threading

import numpy as np
import pytest
import torch
from torch import nn

import placement as pl
from placement.formats.torch.optimisers import optimiser
from placement.schedule.segments import make_schedule
from profiling import backends
from profiling.backends._torch.run import use_threads
from tests.exporters.torch_models import Seeing, seeing, untrained
from tests.loaders.test_torch import Net
from tests.profiling.live import measure_briefly

OPTIMISERS = {
    "sgd": lambda params: torch.optim.SGD(params, 0.01),
    "momentum": lambda params: torch.optim.SGD(params, 0.01, momentum=0.9),
    "adam": lambda params: torch.optim.Adam(params, 1e-3),
}


def lanes(model):
    return pl.machine_for(model, pl.machine("two-lanes"))


def schedules(model, machine, number):
    """Random placements of the units, as schedules."""
    problem = pl.make_problem(model, machine)
    rng = np.random.default_rng(0)
    for _ in range(number):
        devices = rng.integers(0, len(machine.devices), problem.num_units)
        yield make_schedule(problem, problem.placement_of(devices))


def run_once(program, schedule):
    for segment in range(len(schedule.segments)):
        program.run(segment)
    return program.outputs()


def test_inference_in_pieces_is_the_module_to_the_bit():
    torch.manual_seed(0)
    module = Net().eval()
    image = torch.rand(2, 3, 16, 16)
    model = pl.from_torch(module, image)
    machine = lanes(model)
    compiled = backends.usable("torch").compile(model, machine)
    feeds = compiled.feeds(0, {"image": image})
    with torch.no_grad():
        expected = [value.numpy() for value in module(image)]
    for schedule in schedules(model, machine, 5):
        program = compiled.open(schedule, feeds)
        for _ in range(2):
            outputs = run_once(program, schedule)
        for value, wanted in zip(outputs.values(), expected, strict=True):
            assert np.array_equal(value, wanted)


@pytest.mark.parametrize("optimizer", OPTIMISERS)
def test_three_training_steps(optimizer):
    """Placed like unplaced to the bit; losses and, but for Adam, parameters like plain PyTorch."""
    plain, (image, word), target = untrained()
    plain.train()
    model = seeing(optimizer)
    step = OPTIMISERS[optimizer](plain.parameters())
    losses = []
    for _ in range(3):
        step.zero_grad()
        loss = nn.functional.cross_entropy(plain(image, word), target)
        loss.backward()
        step.step()
        losses.append(loss.item())
    machine = lanes(model)
    compiled = backends.usable("torch").compile(model, machine)
    feeds = compiled.feeds(0, {"image": image, "word": word, "target": target})
    first = None
    for schedule in schedules(model, machine, 5):
        program = compiled.open(schedule, feeds)
        found = []
        for _ in range(3):
            outputs = run_once(program, schedule)
            found.append(outputs["loss"])
            program.advance()
        assert found == pytest.approx(losses, rel=1e-4)
        first = first or outputs
        assert all(np.array_equal(outputs[name], first[name]) for name in first)
        if optimizer != "adam":
            for name, value in plain.state_dict().items():
                assert np.allclose(outputs[name], value, rtol=1e-4, atol=1e-7), name
    assert {*plain.state_dict()} <= {*first}


def test_another_placement_takes_over_between_steps():
    model = seeing("momentum")
    machine = lanes(model)
    compiled = backends.usable("torch").compile(model, machine)
    feeds = compiled.feeds(0, {})
    whole = compiled.unplaced(machine.devices[0], feeds)
    program, found = None, []
    for schedule in schedules(model, machine, 3):
        taken, program = program, compiled.open(schedule, feeds)
        if taken is not None:
            taken.advance()
            program.take_state(taken.state())
            taken.close()
        found = run_once(program, schedule)
        whole.run(0)
        expected = whole.outputs()
        whole.advance()
    assert all(np.array_equal(found[name], expected[name]) for name in expected)
    program.advance()
    assert {*program.state()} == {*whole.state()} != set()


@pytest.mark.parametrize("scale", [1.0, 1e-6])
def test_adam_is_that_of_the_framework(scale):
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(50, generator=generator)
    param = nn.Parameter(start.clone())
    plain = torch.optim.Adam([param], 1e-3, foreach=False)
    settings = optimiser("adam")
    ours, state = start, list(settings.state_of(start).values())
    for _ in range(5):
        param.grad = scale * torch.randn(50, generator=generator)
        plain.step()
        ours, *state = settings.function(ours, param.grad, *state, *settings.settings)
        assert torch.allclose(ours, param.detach(), rtol=1e-6, atol=1e-8)


def test_first_steps_of_adam_are_as_long_as_those_of_the_framework():
    """Its corrections for few steps are exact, though steps are counted in single precision."""
    start = torch.linspace(-1.0, 1.0, 50, dtype=torch.float64)
    param = nn.Parameter(start.clone())
    plain = torch.optim.Adam([param], 1e-3, foreach=False)
    settings = optimiser("adam")
    ours, state = start, list(settings.state_of(start).values())
    for _ in range(3):
        before = ours
        param.grad = torch.cos(before)
        plain.step()
        ours, *state = settings.function(ours, param.grad, *state, *settings.settings)
        assert torch.allclose(ours - start, param.detach() - start, rtol=1e-6, atol=0.0)


def test_each_lane_computes_with_its_own_threads():
    """A thread's number must not be taken from the lane that started last."""
    seen, ready = {}, threading.Barrier(2)

    def lane(number):
        use_threads(number)
        ready.wait()
        torch.ones(200_000).exp()
        seen[number] = torch.get_num_threads()

    lanes = [threading.Thread(target=lane, args=(n,)) for n in (3, 1)]
    for thread in lanes:
        thread.start()
    for thread in lanes:
        thread.join()
    assert seen == {3: 3, 1: 1}


def test_text_is_no_input():
    model = pl.from_torch(nn.Linear(2, 1), torch.zeros(1, 2))
    compiled = backends.usable("torch").compile(model, lanes(model))
    with pytest.raises(ValueError, match=r"the model takes torch.float32"):
        compiled.feeds(0, {"input": np.array([["a", "b"]])})


def test_a_live_run_of_a_training_step_matches_the_unplaced_one(monkeypatch):
    measure_briefly(monkeypatch)
    model = seeing("sgd")
    machine = lanes(model)
    problem = pl.make_problem(model, machine, pl.profile(model, machine))
    assert problem.costs.origin == "measured"
    devices = np.arange(problem.num_units) % 2
    predicted, measured = pl.run(model, problem, problem.placement_of(devices), steps=3)
    assert measured.outputs_match
    assert measured.max_abs_diff == 0
    assert set(measured.actual_devices.values()) == {"cpu"}
    assert predicted.timeline.step_s > 0
    assert set(measured.baseline_s) == {"cpu:0", "cpu:1"}


@pytest.fixture(scope="module")
def compiled():
    """A module that takes pictures and words."""
    model = pl.from_torch(Seeing(), (torch.randn(2, 3, 8, 8), torch.randint(0, 5, (2,))))
    return backends.usable("torch").compile(model, lanes(model))


def test_token_inputs_stay_within_their_tables(compiled):
    seen = {int(i) for seed in range(20) for i in compiled.feeds(seed, {})["word"]}
    assert seen == set(range(5))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"word": np.zeros((3,), dtype=np.int64)}, "has shape"),
        ({"picture": np.zeros(1)}, "has no input 'picture'; it takes image, word"),
        ({"word": np.zeros((2,))}, "takes torch.int64"),
    ],
)
def test_inputs_that_do_not_fit(compiled, given, said):
    with pytest.raises(ValueError, match=said):
        compiled.feeds(0, given)


def test_dropout_in_training_is_random_and_not_compared():
    module = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.Linear(4, 1))
    model = pl.from_torch(module, torch.randn(2, 4), training=True, loss=torch.sum)
    compiled = backends.usable("torch").compile(model, lanes(model))
    assert compiled.random_ops
    still = pl.from_torch(module, torch.randn(2, 4))
    assert not backends.usable("torch").compile(still, lanes(still)).random_ops


def test_onnx_models_stay_on_onnxruntime():
    model = pl.load("onnx-squeezenet")
    machine = pl.machine("two-lanes")
    assert pl.machine_for(model, machine) is machine
    with pytest.raises(ValueError, match="cannot be run by torch; open a PyTorch model"):
        backends.usable("torch").compile(model, machine)


@pytest.mark.parametrize("optimizer", OPTIMISERS)
def test_steps_leave_the_weights_of_the_model_alone(optimizer):
    """Results are written over those of earlier steps, never over what the model holds."""
    model = seeing(optimizer)
    before = {name: value.clone() for name, value in model.executable.state.items()}
    machine = lanes(model)
    compiled = backends.usable("torch").compile(model, machine)
    feeds = compiled.feeds(0, {})
    schedule = next(schedules(model, machine, 1))
    for program in (compiled.open(schedule, feeds), compiled.unplaced(machine.devices[0], feeds)):
        num_segments = len(schedule.segments) if program.actual_devices else 1
        first = [_step(program, num_segments) for _ in range(3)]
        for again in first[1:]:
            for name, value in again.items():
                assert np.array_equal(value, first[0][name])
        losses = []
        for _ in range(4):
            program.advance()
            losses.append(float(_step(program, num_segments)["loss"]))
        assert len({float(first[0]["loss"]), *losses}) == 5
        for name, value in before.items():
            assert torch.equal(model.executable.state[name], value)


def _step(program, num_segments):
    for segment in range(num_segments):
        program.run(segment)
    return program.outputs()
