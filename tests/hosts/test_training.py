"""Training over hosts: the losses of one computer to the bit, whoever leaves in the middle."""

import pytest

import placement as pl
from placement.advice.replacing import Policy, prepare
from profiling import backends
from profiling.backends.base import DevicesLost
from profiling.training.loop import Adjust, train
from tests.hosts import trainings
from tests.hosts.trainings import is_same, trained
from tests.hosts.two_nodes import kill
from tests.profiling.live import problem_of
from tests.profiling.training.test_training_live import HASTY, Pretending


@pytest.fixture(scope="module")
def model():
    return trainings.opened()


@pytest.fixture(scope="module")
def alone():
    return trainings.alone()


@pytest.mark.parametrize(("resume", "seed"), [(False, 0), (True, 1)])
def test_losses_and_state_are_those_of_one_computer(cluster, model, alone, resume, seed):
    assert is_same(trained(model, cluster.machine(), resume=resume, seed=seed), alone)
    losses = alone.run.losses
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("on", [None, 1])
def test_a_training_goes_on_from_its_last_step_without_a_host_that_is_lost(
    cluster, model, alone, on
):
    def before(number):
        if number == 4:
            kill(cluster.own_worker("beta"))

    found = trained(model, cluster.machine(), before, resume=True, seed=3, on=on)
    assert is_same(found, alone)
    (move,) = found.run.moves
    assert move.step == 4 and set(move.placement.device_of.values()) == {"alpha/cpu:0"}


def test_without_copies_a_lost_host_ends_a_training(cluster, model):
    def before(number):
        if number == 2:
            kill(cluster.raylet("beta"))

    # Where the last step was over before that was noticed, its state cannot be had any more.
    said = "Host 'beta' left the cluster|was on 'beta' alone and is lost"
    with pytest.raises(DevicesLost, match=said):
        trained(model, cluster.machine(), before)


def test_ops_move_between_hosts_when_one_slows(cluster, model):
    """Steps are computed by the hosts; the times that are told say that one slows, then another."""
    policy = Policy(placer="single", max_moves=10)
    here = problem_of(model, pl.machine_for(model, pl.machine("two-lanes")))
    over = problem_of(model, cluster.machine())
    prepare(over, policy)
    found = []
    for problem, adjust in ((here, None), (over, Adjust(policy=policy, watch=HASTY))):
        site = Pretending(problem, model)
        begun = trainings.drawn(problem, 0, on=0)
        found.append(train(problem, begun, site, steps=40, adjust=adjust, clock=lambda: 0.0))
        site.close()
    still, moved = found
    assert moved.losses == still.losses, "to the bit"
    first, then, *_ = ({(a, b) for _, a, b in move.ops_moved} for move in moved.moves)
    assert ("alpha/cpu:0", "beta/cpu:0") in first and ("beta/cpu:0", "alpha/cpu:0") in then


def test_hosts_probe_their_own_devices(cluster, model):
    found = backends.compiled(model, cluster.machine()).probe()
    assert found.keys() == {"alpha/cpu:0", "beta/cpu:0"}
    assert all(0.0 < seconds < 10.0 for seconds in found.values())
