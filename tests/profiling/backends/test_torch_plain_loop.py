"""Every network of the zoo, trained for three steps: the graph is a plain loop of PyTorch."""

from itertools import product

import pytest
import torch
from torch import fx, nn

from placement.formats.torch import zoo
from placement.formats.torch.module import from_torch
from tests.profiling.backends.test_torch import OPTIMISERS
from tests.profiling.backends.test_torch_zoo import FEW, NETWORKS, SIZES, convolutions, trained
from tests.thorough import either

STEPS = 3
TRAINING = ":training"

# With Adam, which makes steps of full size from gradients that are all but zero: behind a
# normalisation of two values per channel, which leaves next to nothing but their signs, gradients
# are that small, and losses of later steps then tell rounding apart. Four images of these sizes
# leave more.
FOR_ADAM = {"inception_v3": {"size": 75, "batch": 4}, "resnet50": {"size": 64, "batch": 4}}
NAMES = [name.removesuffix(TRAINING) for name in NETWORKS]
# Every op of the networks, and every optimiser, or each network with each.
FIRST, *OTHERS = (name.removesuffix(TRAINING) for name in FEW)
CASES = either(
    [*product([FIRST], OPTIMISERS), *product(OTHERS, ["sgd"])],
    [*product(["convolutions", *NAMES], OPTIMISERS)],
)


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "optimizer"), CASES)
def test_the_graph_is_a_plain_loop(name, optimizer):
    """Losses and, but for Adam, parameters and buffers. No network of the zoo has dropout.

    Adam makes steps of full size from rounding where a gradient should be zero (a bias before a
    normalisation); in double precision that is below its epsilon, and losses stay together.
    """
    sizes = FOR_ADAM.get(name, {}) if optimizer == "adam" else {}
    module, inputs, targets, loss = built(name, **sizes)
    if optimizer == "adam":
        module = module.double()
        inputs = tuple(x.double() if x.is_floating_point() else x for x in inputs)
    if optimizer == "sgd" and name + TRAINING in FEW:
        # From the same seed, so that both begin with the same weights.
        model = trained(name + TRAINING)
    else:
        how = {"loss": loss, "targets": targets, "optimizer": optimizer}
        model = from_torch(module, inputs, training=True, **how)
    found, state = captured_steps(model.executable, (*inputs, *targets))
    wanted = plain_steps(module.train(), inputs, targets, loss, optimizer)
    assert found == pytest.approx(wanted, rel=1e-4)
    assert found[0] != found[-1]
    if optimizer != "adam":
        for label, value in (*module.named_parameters(), *module.named_buffers()):
            assert torch.allclose(state[label], value, rtol=1e-4, atol=1e-6), label


def built(name, **sizes):
    """The network in its small sizes, and a narrow head where a wide one is most of it."""
    if name == "convolutions":
        return convolutions()
    network = zoo.network_of(name)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module, *others = network.build({**network.SIZES, **SIZES[name], **sizes})
        if name in ("alexnet", "vgg16"):
            layers = (nn.Linear(module.head[0].in_features, 32), nn.ReLU(), nn.Linear(32, 1000))
            module.head = nn.Sequential(*layers)
    return module, *others


def plain_steps(module, inputs, targets, loss, optimizer):
    step, losses = OPTIMISERS[optimizer](module.parameters()), []
    for _ in range(STEPS):
        step.zero_grad()
        value = loss(module(*inputs), *targets)
        value.backward()
        step.step()
        losses.append(value.item())
    return losses


def captured_steps(program, given):
    """Losses, and by label the state after the last step."""
    graph, made = fx.Graph(), {}
    graph.graph_copy(program.graph, made)
    ends = [program.outputs[0][1], *(node for _, node in program.updates)]
    graph.output(tuple(made[program.nodes[name]] for name in ends))
    module = fx.GraphModule({}, graph)
    state, losses = dict(program.state), []
    for _ in range(STEPS):
        values = {**state, **dict(zip(program.inputs, given, strict=True))}
        with torch.no_grad():
            places = (n.name for n in graph.nodes if n.op == "placeholder")
            value, *new = module(*(values[name] for name in places))
        state |= dict(zip((held for held, _ in program.updates), new, strict=True))
        losses.append(value.item())
    return losses, {program.labels[name]: value for name, value in state.items()}
