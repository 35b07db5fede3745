"""What stands for a value in the keys of results that sessions share."""

from dataclasses import replace

import pytest

import placement as pl
from pages.ui.session.cache import KEYS
from placement.core.machine import Machine
from placement.core.model import Model
from placement.core.profile import Profile


@pytest.mark.parametrize("key", ["memory_bytes", "flops_per_s", "memory_bytes_per_s"])
def test_machines_that_differ_in_a_number_have_different_keys(key):
    """As when somebody corrects a machine file, or two projects have files of one name."""
    machine = pl.machine("two-lanes")
    first, *others = machine.devices
    changed = replace(machine, devices=(replace(first, **{key: 7}), *others))
    assert changed.fingerprint == machine.fingerprint
    assert KEYS[Machine](changed) != KEYS[Machine](machine)
    slow = replace(machine, links=tuple(replace(x, latency_s=1.0) for x in machine.links))
    assert KEYS[Machine](slow) != KEYS[Machine](machine)
    assert KEYS[Machine](pl.machine("two-lanes")) == KEYS[Machine](machine)


def test_profiles_and_models_that_differ_in_costs_have_different_keys(tmp_path):
    model = pl.load("onnx-squeezenet")
    profile = pl.profile(model, pl.machine("null-2"))
    for changed in (
        replace(profile, contention=0.5),
        replace(profile, machine=replace(profile.machine, links=profile.machine.links[:1])),
    ):
        assert KEYS[Profile](changed) != KEYS[Profile](profile)
    posed = pl.make_problem(model, pl.machine("null-2"))
    assert KEYS[Model](replace(model, problem=posed)) != KEYS[Model](model)
