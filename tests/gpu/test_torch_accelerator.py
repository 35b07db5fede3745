"""PyTorch programs on a real accelerator and the CPU together: values, state, times, memory."""

import itertools

import numpy as np
import pytest
import torch
from torch import nn

import placement as pl
from placement import loaders
from placement.core.verb_options import RunOptions
from profiling import backends
from profiling.execution.execute import execute
from profiling.measuring.outputs import compare
from profiling.measuring.reference import Expected
from tests.exporters.torch_models import Seeing
from tests.profiling.backends.test_torch import run_once, schedules
from tests.profiling.backends.test_torch_memories import STEPS, decoding, network, trained
from tests.profiling.backends.test_torch_zoo import SMALL

TIMEOUT_S = 60.0
NETWORKS = [sample.name for sample in loaders.samples() if sample.name.partition(":")[0] in SMALL]


def alike(expected, found, tolerance):
    for one, other in zip(expected, found, strict=True):
        compared = compare(one, other, tolerance)
        assert compared.match, compared


def replayed(program, schedule):
    """The outputs of a third step: segments are captured in the second one, where they can be."""
    for _ in range(2):
        run_once(program, schedule)
    found = run_once(program, schedule)
    assert bool(program.lanes_note) == ("cuda" in program.actual_devices.values())
    return found


@pytest.fixture
def opened(shared_machine):
    """A model as kernels for the CPU and the accelerator: the machine, them, and inputs."""

    def of(model):
        machine = shared_machine(model)
        compiled = backends.usable("torch").compile(model, machine)
        return machine, compiled, compiled.feeds(0, {})

    return of


def learning():
    """A training step of plain gradients: what rounding does to it grows no larger."""
    torch.manual_seed(0)
    return pl.from_torch(
        Seeing(),
        (torch.randn(4, 3, 8, 8), torch.randint(0, 5, (4,))),
        training=True,
        loss=nn.functional.cross_entropy,
        targets=(torch.randint(0, 4, (4,)),),
        optimizer="sgd",
    )


@pytest.mark.parametrize("kind", ["inference", "training"])
def test_random_placements_are_the_network_unplaced(kind, opened):
    model = network(kind)
    machine, compiled, feeds = opened(model)
    expected = Expected(compiled, machine.devices[0], feeds, TIMEOUT_S)
    for schedule in schedules(model, machine, 10):
        program = compiled.open(schedule, feeds)
        compared = expected.compared(program, replayed(program, schedule))
        assert compared.match, compared
        there = {d.name: d.provider for d in machine.devices}
        assert program.actual_devices == {s.device: there[s.device] for s in schedule.segments}
        assert not program.fallbacks
        program.close()


@pytest.mark.parametrize("name", NETWORKS)
def test_every_network_of_the_zoo_in_one_step(name, opened):
    """Each by itself on the accelerator, and in random parts."""
    model = pl.load(name, SMALL[name.partition(":")[0]])
    machine, compiled, feeds = opened(model)
    expected = Expected(compiled, machine.devices[0], feeds, TIMEOUT_S)
    there = compiled.unplaced(machine.devices[1], feeds)
    there.run(0)
    compared = expected.compared(there, there.outputs())
    assert compared.match, compared
    for schedule in schedules(model, machine, 2):
        program = compiled.open(schedule, feeds)
        compared = expected.compared(program, replayed(program, schedule))
        assert compared.match, compared
        program.close()


def test_steps_in_a_row_are_those_of_the_network_unplaced(opened):
    model = learning()
    machine, compiled, feeds = opened(model)
    expected = trained(compiled.unplaced(machine.devices[0], feeds), 1)
    for schedule in schedules(model, machine, 3):
        program = compiled.open(schedule, feeds)
        alike(expected, trained(program, len(schedule.segments)), program.tolerance)
        program.close()


def test_a_live_run_tells_the_times_of_both(shared_machine):
    model = network("training")
    machine = shared_machine(model)
    problem = pl.make_problem(model, machine)
    placement = problem.placement_of(np.arange(problem.num_units) // 4 % 2)
    schedule = pl.simulate(problem, placement).schedule
    run = execute(problem, schedule, RunOptions(steps=5, warmup=2), model=model, baselines=False)
    assert run.outputs_match, run.max_abs_diff
    spans, gpu = run.timeline.spans, machine.devices[1].name
    assert {s.device for s in spans if s.kind == "compute"} == {d.name for d in machine.devices}
    crossed = [s for s in spans if s.kind == "transfer"]
    assert crossed and all(0 <= s.start_s <= s.end_s <= run.timeline.step_s for s in crossed)
    for span in spans:
        assert all(spans[i].end_s <= span.start_s + 1e-9 for i in span.after), span
    own = sorted((s.start_s, s.end_s) for s in spans if s.kind == "compute" and s.device == gpu)
    # Events of one stream are in order; the clocks of two devices are compared to microseconds.
    assert all(before[1] <= after[0] + 1e-5 for before, after in itertools.pairwise(own))
    assert run.peak_bytes[gpu] > 0


def test_inputs_change_between_the_samples_of_a_pipeline(shared_machine):
    model = network("inference")
    machine = shared_machine(model)
    compiled = backends.usable("torch").compile(model, machine)
    feeds = [compiled.feeds(seed, {}) for seed in range(3)]
    (schedule,) = schedules(model, machine, 1)
    ring = compiled.open_ring(schedule, feeds, 2)
    for number in (0, 1, 2, 0):
        program = ring[number % 2]
        program.feed(number)
        found = run_once(program, schedule)
        whole = compiled.unplaced(machine.devices[0], feeds[number])
        whole.run(0)
        alike([whole.outputs()], [found], program.tolerance)


def test_a_cache_is_written_to_wherever_it_lies(opened):
    model = decoding()
    machine, compiled, feeds = opened(model)
    expected = trained(compiled.unplaced(machine.devices[0], feeds), 1)
    for schedule in schedules(model, machine, STEPS):
        program = compiled.open(schedule, feeds)
        alike(expected, trained(program, len(schedule.segments)), program.tolerance)


def test_another_placement_takes_over_the_state(opened):
    model = learning()
    machine, compiled, feeds = opened(model)
    whole, program = compiled.unplaced(machine.devices[0], feeds), None
    for schedule in schedules(model, machine, STEPS):
        before, program = program, compiled.open(schedule, feeds)
        if before is not None:
            before.advance()
            program.take_state(before.state())
            before.close()
            whole.advance()
        found = run_once(program, schedule)
        whole.run(0)
        alike([whole.outputs()], [found], program.tolerance)


def test_a_full_accelerator_says_so_and_goes_on_working(opened, gpu):
    if gpu.provider == "mps":
        pytest.skip("Metal's memory is the computer's own")
    model = pl.load("vgg16")
    machine, compiled, feeds = opened(model)
    library = torch.get_device_module(torch.device(gpu.name))
    library.empty_cache()
    free, _ = library.mem_get_info(gpu.name)
    taken = torch.empty(free - (256 << 20), dtype=torch.uint8, device=gpu.name)
    with pytest.raises(MemoryError, match="does not fit into its free memory"):
        compiled.unplaced(machine.devices[1], feeds)
    del taken
    library.empty_cache()
    there = compiled.unplaced(machine.devices[1], feeds)
    there.run(0)
    assert np.isfinite(next(iter(there.outputs().values()))).all()


def test_a_profile_predicts_what_is_measured_of_one_device(shared_machine):
    """A profile has times of both, the links between them, and a network alone on each."""
    model = pl.load("alexnet")
    machine = shared_machine(model)
    profile = pl.profile(model, machine)
    assert profile.coverage == 1.0 and all(s > 0 for s in profile.step_s)
    assert len(profile.machine.links) == 2
    assert all(k.bytes_per_s > 1e8 and 0 < k.latency_s < 1e-2 for k in profile.machine.links)
    problem = pl.make_problem(model, machine, profile)
    placed = pl.place(problem, "single", settings={"device": machine.devices[1].name})
    predicted, measured = pl.run(model, problem, placed.placement, steps=5)
    assert measured.outputs_match
    assert predicted.value > 0 and measured.median_s > 0


def test_a_network_trains_across_both(shared_machine):
    model = network("training")
    machine = shared_machine(model)
    problem = pl.make_problem(model, machine)
    placement = problem.placement_of(np.arange(problem.num_units) % 2)
    here = problem.placement_of(np.zeros(problem.num_units, dtype=int))
    (_, across), (_, alone) = (pl.train(model, problem, p, steps=6) for p in (placement, here))
    assert np.allclose(across.losses, alone.losses, rtol=1e-3)
