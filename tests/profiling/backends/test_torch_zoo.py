"""Every network of the zoo, trained for three placed steps, is the graph unplaced to the bit."""

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
import torch
from torch import nn

import placement as pl
from placement import loaders
from profiling import backends
from profiling.measuring.outputs import compare
from tests.profiling.backends.pretend import Pretend, everywhere, put_in_place, with_pretended
from tests.profiling.backends.test_torch import lanes, schedules
from tests.thorough import either

# Small inputs, where the network allows; the ops are those of the large ones but for the
# recurrent networks, which are unrolled.
SMALL = {
    "alexnet": {"size": 67},
    "bert_base": {"batch": 2, "length": 8, "depth": 2, "width": 64},
    "gpt2": {"batch": 2, "length": 8, "depth": 2, "width": 64},
    "inception_v3": {"size": 75, "batch": 2},
    "nmt": {"batch": 2, "length": 3, "depth": 2, "width": 32},
    "resnet50": {"size": 32, "batch": 2},
    "rnnlm": {"batch": 2, "length": 3},
    "vgg16": {"size": 32},
}
# Without what only repeats: longer sentences and further layers have the same ops.
FEWER = {
    "bert_base": {"batch": 2, "length": 4, "depth": 1, "width": 64},
    "gpt2": {"batch": 2, "length": 4, "depth": 1, "width": 64},
    "nmt": {"batch": 2, "length": 2, "depth": 2, "width": 16},
}
SIZES = either({**SMALL, **FEWER}, SMALL)
NETWORKS = [s.name for s in loaders.samples() if s.name.endswith(":training")]
# Between them they have every op of the others: the networks that see look at images with those of
# "convolutions", and the recurrent ones and those of attention have all of theirs in three.
FEW = ["convolutions", "bert_base:training", "gpt2:training", "nmt:training"]
STEPS = 3


class Convolutions(nn.Module):
    """What AlexNet, VGG-16, ResNet-50 and Inception v3 are made of, each once."""

    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 8, 3, 2, bias=False), nn.BatchNorm2d(8)
        self.wide, self.biased = nn.Conv2d(8, 8, (1, 3), padding=(0, 1)), nn.Conv2d(8, 8, 1)
        self.most, self.mean = nn.MaxPool2d(3, 2), nn.AvgPool2d(3, 1, padding=1)
        self.fixed, self.one = nn.AdaptiveAvgPool2d(2), nn.AdaptiveAvgPool2d(1)
        self.head = nn.Sequential(nn.Linear(64 + 16, 16), nn.ReLU(), nn.Linear(16, 10))

    def forward(self, image):
        seen = self.most(torch.relu(self.norm(self.first(image))))
        both = torch.cat([torch.relu(self.wide(seen)), self.biased(self.mean(seen)) + seen], 1)
        return self.head(torch.cat([self.fixed(both).flatten(1), self.one(both).flatten(1)], 1))


def convolutions():
    """As a network of the zoo is built: with inputs, targets and a loss."""
    torch.manual_seed(0)
    targets = (torch.tensor([3, 7]),)
    return Convolutions(), (torch.rand(2, 3, 16, 16),), targets, nn.functional.cross_entropy


# Few at a time where there are all, for VGG-16 has 138 million parameters.
@lru_cache(either(len(FEW), 1))
def trained(name):
    """A training step of a network with SGD."""
    if name == "convolutions":
        module, inputs, targets, loss = convolutions()
        return pl.from_torch(module, inputs, training=True, loss=loss, targets=targets)
    return pl.load(name, SIZES[name.partition(":")[0]])


@pytest.fixture(scope="module")
def small(request):
    """The name of a network and its model."""
    return request.param, trained(request.param)


def each(names):
    return pytest.mark.parametrize("small", names, indirect=True, scope="module")


@pytest.mark.thorough
@each(either(FEW, ["convolutions", *NETWORKS]))
def test_placed_training_is_unplaced_training(small):
    name, model = small
    listed = {sample.name: sample.num_ops for sample in loaders.samples()}
    if name in listed and "length" not in SMALL[name.partition(":")[0]]:
        assert len(model.graph.ops) == listed[name]
    machine = lanes(model)
    compiled = backends.usable("torch").compile(model, machine)
    feeds = compiled.feeds(0, {})
    whole = compiled.unplaced(machine.devices[0], feeds)
    expected = advanced(whole, 1)
    for schedule in schedules(model, machine, either(2, 5)):
        program = compiled.open(schedule, feeds)
        found = advanced(program, len(schedule.segments))
        program.close()
        assert list(found) == list(expected)
        differ = [k for k in found if not np.array_equal(found[k], expected[k])]
        assert not differ, f"{name}: {differ[:3]}"
    assert np.isfinite(expected["loss"])


def advanced(program, num_segments):
    """Outputs and state after the last of several steps, each from what the one before made."""
    for number in range(STEPS):
        if number:
            program.advance()
        for segment in range(num_segments):
            program.run(segment)
    return program.outputs()


@pytest.mark.thorough
@each(either(FEW, [*FEW, "resnet50:training", "rnnlm:training"]))
def test_across_accelerators_that_pretend(small, monkeypatch):
    name, model = small
    places = put_in_place(monkeypatch, lambda device: Pretend(captures=True))
    machine = with_pretended(lanes(model))
    compiled = backends.usable("torch").compile(model, machine)
    feeds = compiled.feeds(0, {})
    expected = advanced(compiled.unplaced(machine.devices[0], feeds), 1)
    (schedule,) = schedules(model, machine, 1)
    program = compiled.open(schedule, feeds)
    found = advanced(program, len(schedule.segments))
    # A copy lies in memory in order, what it is of need not: matrices are summed in another order.
    compared = compare(expected, found)
    assert compared.match, f"{name}: {compared}"
    assert compared.max_abs_diff < 1e-6
    assert len(places) == 2
    assert all(place.taken and place.given and place.replayed for place in places.values())


@pytest.mark.thorough
@each(either(FEW, ["convolutions", *NETWORKS]))
def test_every_value_is_made_where_its_segment_runs(small):
    """Under the device "meta" nothing is computed, and mixing it with the CPU is an error."""
    values = everywhere(small[1], torch.device("meta"))
    kinds = {v.device.type for v in values.values() if isinstance(v, torch.Tensor)}
    assert kinds == {"meta"}


@pytest.mark.thorough
@each(either(FEW[:2], ["convolutions", *NETWORKS]))
def test_gpus_that_are_not_here_run_on_a_virtual_clock(small):
    _, model = small
    gpus = pl.machine("pcie-4gpu")
    machine = replace(gpus, devices=tuple(replace(d, runtime="null") for d in gpus.devices))
    problem = pl.make_problem(model, machine)
    placed = pl.place(problem, "round_robin")
    predicted, measured = pl.run(model, problem, placed.placement, steps=2)
    assert measured.timeline.origin == "emulated" and measured.outputs_match is None
    assert {*measured.actual_devices.values()} == {"virtual clock"}
    assert measured.step_s == (predicted.timeline.step_s,) * 2
    used = {s.device for s in measured.timeline.spans if s.kind == "compute"}
    assert {"cuda:0", "cuda:1", "cuda:2", "cuda:3"} <= used
