"""What a training step holds, against a network whose sizes are known by hand."""

import pytest
from streamlit.testing.v1 import AppTest

import placement as pl
from pages.ui.panels import training_phases
from studio.project import store
from tests.pages.going import go
from tests.pages.test_pages import APP, checked, metric
from tests.studio.test_standings import own_home

__all__ = ["own_home"]


def step_of(optimizer: str):
    import torch

    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
    return pl.from_torch(
        module,
        (torch.randn(5, 8),),
        training=True,
        targets=(torch.randint(0, 4, (5,)),),
        loss=torch.nn.functional.cross_entropy,
        optimizer=optimizer,
    ).graph


# Weights and biases of both layers, four bytes each.
PARAMETERS = 4 * (8 * 16 + 16 + 16 * 4 + 4)


@pytest.mark.parametrize(
    ("optimizer", "low", "high"),
    [("sgd", 0, 0), ("momentum", PARAMETERS, PARAMETERS), ("adam", 2 * PARAMETERS, 3 * PARAMETERS)],
)
def test_a_training_step_is_told_by_phase(optimizer, low, high):
    graph = step_of(optimizer)
    found = training_phases.training_of(graph)
    assert list(found.num_ops) == ["forward", "backward", "update"]
    assert sum(found.num_ops.values()) == len(graph.ops)
    assert found.parameter_bytes == found.gradient_bytes == PARAMETERS
    # Adam counts its steps too, a few bytes for each parameter.
    assert low <= found.state_bytes <= high


def test_the_model_page_says_what_training_holds():
    assert training_phases.training_of(pl.load("onnx-squeezenet").graph) is None
    project = store.create()
    project.change(model="alexnet:training", dims={"batch": 1})
    app = AppTest.from_file(str(APP), default_timeout=300)
    app.query_params["project"] = project.id
    checked(go(app, "model"))
    # 61,100,840 parameters of four bytes.
    assert metric(app, "Parameters").value == metric(app, "Gradients").value == "233 MiB"
    assert metric(app, "Forward + backward + update ops").value.count("+") == 2
