"""ONNX models on a real accelerator of ONNX Runtime's and the CPU together."""

import numpy as np
import pytest

import placement as pl
from placement import loaders
from placement.core.verb_options import RunOptions
from placement.loaders import load
from placement.schedule.segments import make_schedule
from profiling import backends
from profiling.devices.local import local_machine
from profiling.execution.execute import execute
from tests.profiling.live import problem_of
from tests.webgpu.models import attention, cnn

SAMPLES = [sample.name for sample in loaders.samples() if sample.name.startswith("onnx-")]


@pytest.fixture(scope="module")
def machine():
    """The whole CPU of this computer and the first accelerator of ONNX Runtime's."""
    found = local_machine(1)
    there = [d for d in found.devices if not d.on_host]
    if not there:
        pytest.skip("ONNX Runtime has no accelerator on this computer")
    return found


def ran(model, machine, every, **options):
    """A live run with every so many units on the accelerator, in turns with the CPU."""
    problem = problem_of(model, machine)
    where = (np.arange(problem.num_units) // every + 1) % len(machine.devices)
    placement = problem.placement_of(where)
    schedule = make_schedule(problem, placement)
    chosen = RunOptions(**{"steps": 3, "warmup": 1, **options})
    return execute(problem, schedule, chosen, model=model, baselines=False)


@pytest.mark.parametrize("make", [cnn, attention])
@pytest.mark.parametrize("every", [1, 2, 100])
def test_small_models_in_parts(make, every, machine, tmp_path):
    run = ran(load(str(make(tmp_path))), machine, every)
    assert run.outputs_match, run.max_abs_diff
    providers = {d.name: d.provider for d in machine.devices}
    used = {s.device for s in run.timeline.spans if s.kind == "compute"}
    assert {d: run.actual_devices[d] for d in used} == {d: providers[d] for d in used}


@pytest.mark.parametrize("name", SAMPLES)
def test_bundled_networks_alone_and_in_parts(name, machine):
    model = pl.load(name)
    for every in (7, 100_000):
        run = ran(model, machine, every)
        assert run.outputs_match, (name, every, run.max_abs_diff)
    compiled = backends.compiled(model, machine)
    there = compiled.unplaced(machine.devices[1], compiled.feeds(0, {}))
    there.run(0)
    assert all(np.isfinite(value).all() for value in there.outputs().values())


def test_a_profile_has_the_times_of_both(machine):
    model = pl.load("onnx-squeezenet")
    profile = pl.profile(model, machine)
    assert profile.coverage == 1.0 and all(s > 0 for s in profile.step_s)
    assert {(k.src, k.dst) for k in profile.machine.links} >= {
        (machine.devices[0].name, machine.devices[1].name),
        (machine.devices[1].name, machine.devices[0].name),
    }
    problem = pl.make_problem(model, machine, profile)
    placed = pl.place(problem, "single", settings={"device": machine.devices[1].name})
    _, measured = pl.run(model, problem, placed.placement, steps=10)
    assert measured.outputs_match
    assert measured.actual_devices[machine.devices[1].name].startswith(machine.devices[1].provider)
