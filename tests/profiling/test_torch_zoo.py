"""Every network of the zoo, trained for three placed steps, is the graph unplaced to the bit."""

import numpy as np
import pytest

import placement as pl
from placement import loaders
from profiling import backends
from tests.profiling.test_torch import lanes, schedules

# Small inputs, where the network allows; the ops are those of the large ones but for the
# recurrent networks, which are unrolled.
SMALL = {
    "alexnet": {"size": 67},
    "inception_v3": {"size": 75, "batch": 2},
    "nmt": {"batch": 2, "length": 3, "depth": 2, "width": 32},
    "resnet50": {"size": 32, "batch": 2},
    "rnnlm": {"batch": 2, "length": 3},
    "vgg16": {"size": 32},
}
NETWORKS = [s.name for s in loaders.samples() if s.name.endswith(":training")]
STEPS = 3


@pytest.mark.parametrize("name", NETWORKS)
def test_placed_training_is_unplaced_training(name):
    network = name.partition(":")[0]
    model = pl.load(name, SMALL[network])
    if "length" not in SMALL[network]:
        listed = {sample.name: sample.num_ops for sample in loaders.samples()}
        assert len(model.graph.ops) == listed[name]
    machine = lanes(model)
    compiled = backends.usable("torch").compile(model, machine)
    feeds = compiled.feeds(0, {})
    whole = compiled.unplaced(machine.devices[0], feeds)
    expected = advanced(whole, 1)
    for schedule in schedules(model, machine, 5):
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
