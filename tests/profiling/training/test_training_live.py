"""Training for real, with a real change of placement: the losses are those of one placement."""

from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest
import torch

import placement as pl
from placement.advice.replacing import Policy, Slowdown, prepare, unslowed
from placement.core.machine import Link
from placement.core.verb_options import TrainOptions
from placement.placers import placer_class
from placement.schedule.segments import make_schedule
from profiling.backends.base import DevicesLost
from profiling.devices.probes import Probes
from profiling.training import sites
from profiling.training.loop import Adjust, train
from profiling.training.monitor import Watch
from profiling.training.sites import LiveSite, VirtualSite
from tests.exporters.torch_models import Seeing, seeing
from tests.profiling.backends.test_torch import lanes

HASTY = Watch(skip=1, settle=4, window=3, patience=2, pause=6, glance=2, probes=3)
STEPS = 40


class Pretending(LiveSite):
    """Computes for real, but tells the times of a virtual clock: cpu:0 becomes slow, then cpu:1."""

    def __init__(self, problem, model):
        super().__init__(problem, model, TrainOptions())
        calm = unslowed(problem)
        first = Slowdown(np.array([4.0, 1.0]), 1.0, calm.contention)
        then = Slowdown(np.array([1.0, 4.0]), 1.0, calm.contention)
        worlds = [calm, first, then]
        self.told = VirtualSite(problem, lambda n: worlds[(n >= 10) + (n >= 25)])

    def open(self, schedule):
        super().open(schedule)
        self.told.open(schedule)

    def step(self):
        super().step()
        return self.told.step()

    def probe(self):
        return self.told.probe()


@pytest.mark.parametrize("optimizer", ["momentum", "adam"])
def test_losses_and_state_are_the_same_through_real_moves(optimizer):
    opened = seeing(optimizer)
    problem = pl.make_problem(opened, lanes(opened))
    begun = placer_class("single")().place(problem)
    policy = Policy(time_limit_s=60.0, max_moves=100)
    prepare(problem, policy)
    found = {}
    for name, adjust in (("still", None), ("moved", Adjust(policy=policy, watch=HASTY))):
        site = Pretending(problem, opened)
        run = train(problem, begun, site, steps=STEPS, adjust=adjust, clock=lambda: 0.0)
        found[name] = run, site.state()
        site.close()
    (still, state), (moved, moved_state) = found["still"], found["moved"]
    assert len(moved.moves) >= 2 and not still.moves, "there and back"
    assert sum(move.bytes_moved for move in moved.moves) > 0
    assert len(still.losses) == STEPS and still.losses[-1] < 0.9 * still.losses[0]
    assert moved.losses == still.losses, "to the bit"
    assert {*state} == {*moved_state} != set()
    assert all(torch.equal(state[name], moved_state[name]) for name in state)


class Leaving(LiveSite):
    """Loses one device before its step 3 and another before step 6, the second while it opens."""

    number = 0

    def __init__(self, problem, model):
        super().__init__(problem, model, TrainOptions())
        self._leaving = {3: "cpu:2", 6: "cpu:1"}

    def step(self):
        self._lose(self.number)
        made = super().step()
        self.number += 1
        return made

    def _lose(self, number):
        if number in self._leaving:
            name = self._leaving.pop(number)
            raise DevicesLost(f"{name} left", (name,))


class LeavingAtOnce(Leaving):
    """Loses both before the same step, the second while it goes on without the first."""

    def remain(self, problem):
        super().remain(problem)
        self._lose(6)


def three_lanes(model):
    device = lanes(model).devices[0]
    three = tuple(replace(device, name=f"cpu:{i}", core_ids=()) for i in range(3))
    links = tuple(Link(a.name, b.name, 2e-5, 1e10) for a in three for b in three if a is not b)
    return replace(lanes(model), devices=three, links=links)


@pytest.mark.parametrize("kind", [Leaving, LeavingAtOnce])
def test_a_training_goes_on_from_its_last_step_where_devices_are_lost(kind):
    opened = seeing("adam")
    problem = pl.make_problem(opened, three_lanes(opened))
    begun = placer_class("round_robin")().place(problem)
    whole = LiveSite(problem, opened, TrainOptions())
    still = train(problem, begun, whole, steps=9)
    site, heard = kind(problem, opened), []
    run = train(
        problem, begun, site, steps=9, place=placer_class("heft")().place, emit=heard.append
    )
    assert run.losses == still.losses and len(run.step_s) == len(run.predicted_s) == 9
    state, moved = whole.state(), site.state()
    assert all(torch.equal(state[name], moved[name]) for name in state)
    assert [e["devices"] for e in heard if e["event"] == "lost"] == [["cpu:2"], ["cpu:1"]]
    assert [move.step for move in run.moves] == ([3, 6] if kind is Leaving else [3])
    assert set(run.placement.device_of.values()) == {"cpu:0"}
    for each in (whole, site):
        each.close()


@pytest.mark.parametrize("error", [DevicesLost("cpu:2 left", ("cpu:2",)), MemoryError("full")])
@pytest.mark.parametrize("where", ["started", "take_state"])
def test_the_state_outlives_a_move_that_fails(monkeypatch, error, where):
    """Whatever fails when another placement is opened: the training is where it was."""
    opened = seeing("adam")
    problem = pl.make_problem(opened, three_lanes(opened))
    first, second = (
        make_schedule(problem, placer_class(name)().place(problem))
        for name in ("round_robin", "single")
    )
    still, site = (LiveSite(problem, opened, TrainOptions()) for _ in range(2))
    still.open(first)
    site.open(first)
    for each in (still, site, still, site):
        each.step()
    with monkeypatch.context() as failing:
        owner = sites if where == "started" else type(site._program)
        failing.setattr(owner, where, Mock(side_effect=error))
        with pytest.raises(type(error)):
            site.open(second)
    if isinstance(error, DevicesLost):
        site.remain(problem)
        site.open(second)
    else:
        assert site.state(), "what was open before still is"
    for each in (still, site):
        each.step()
    assert site.loss() == still.loss()
    assert all(torch.equal(still.state()[name], value) for name, value in site.state().items())
    for each in (still, site):
        each.close()


def test_devices_that_are_lost_end_a_training_that_is_not_to_be_placed_anew():
    opened = seeing("sgd")
    problem = pl.make_problem(opened, three_lanes(opened))
    site = Leaving(problem, opened)
    with pytest.raises(DevicesLost, match="cpu:2 left"):
        train(problem, placer_class("round_robin")().place(problem), site, steps=9)
    site.close()


def test_the_verb_trains_for_real():
    opened = seeing("sgd")
    problem = pl.make_problem(opened, lanes(opened))
    begun = placer_class("round_robin")().place(problem)
    heard = []
    predicted, run = pl.train(opened, problem, begun, steps=6, emit=heard.append)
    steps = [event for event in heard if event["event"] == "step"]
    assert [event["index"] for event in steps] == list(range(6))
    assert [event["loss"] for event in steps] == list(run.losses)
    assert all(event["seconds"] > 0 for event in steps)
    assert run.losses[-1] < run.losses[0] and run.probe_s > 0
    assert predicted.timeline.step_s == run.predicted_s[0]


def test_what_cannot_be_trained_is_refused():
    inference = pl.from_torch(Seeing().eval(), (torch.randn(4, 3, 16, 16), torch.tensor([1])))
    problem = pl.make_problem(inference, lanes(inference))
    begun = placer_class("single")().place(problem)
    with pytest.raises(ValueError, match="is for inference"):
        pl.train(inference, problem, begun)
    opened = seeing("sgd")
    problem = pl.make_problem(opened, lanes(opened))
    begun = placer_class("single")().place(problem)
    with pytest.raises(ValueError, match="at least 1 step"):
        pl.train(opened, problem, begun, steps=0)
    streaming = replace(problem, objective="throughput")
    with pytest.raises(ValueError, match="objective latency"):
        pl.train(opened, streaming, begun)


def test_probes_measure_every_device_of_the_host():
    machine = pl.machine("two-lanes")
    probes = Probes(machine.devices)
    try:
        found = [probes.probe() for _ in range(3)]
    finally:
        probes.close()
    assert all({*one} == {d.name for d in machine.devices} for one in found)
    assert all(seconds > 0 for one in found for seconds in one.values())
