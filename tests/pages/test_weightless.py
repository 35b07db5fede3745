"""A configuration on the pages: placed and predicted, and nowhere measured or run."""

import json
import re
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from pages.ui.panels import export, side_by_side
from pages.ui.session.current import snapshot
from pages.ui.what_if import comparison
from placement.core import formatting
from studio import standings
from studio.project import store
from tests.pages.going import go

APP = Path(__file__).parents[2] / "app.py"
SAID = "No weights: predicted only"
DIMS = {"task": "prefill", "batch": 3, "length": 4, "context": 16, "dtype": "bfloat16"}


@pytest.fixture
def tiny(configuration, tmp_path, monkeypatch):
    """A project with the configuration, and the app that shows it."""
    monkeypatch.setenv("PLACEMENT_STUDIO_HOME", str(tmp_path))
    project = store.create()
    project.change(model_kind="path", model=str(configuration), machine="null-2", dims=DIMS)
    app = AppTest.from_file(str(APP), default_timeout=120)
    app.query_params["project"] = project.id
    return project, go(app, "model")


def texts(app):
    kinds = (app.markdown, app.caption, app.info, app.sidebar.markdown)
    return [str(element.value) for kind in kinds for element in kind]


def test_every_page_says_that_there_are_no_weights(tiny):
    _, app = tiny
    shown = [box for box in app.selectbox if box.label == "dtype"]
    assert [box.value for box in shown] == ["bfloat16"]
    for page in ("model", "run", "compare"):
        go(app, page)
        assert not app.exception, (page, app.exception[0].message)
        assert any(
            SAID.replace(" ", "") in text.replace("*", "").replace(" ", "") for text in texts(app)
        ), page
        for button in app.button:
            if button.label.startswith(("Run (", "Train", "Measure")) or button.label == "Run":
                assert button.disabled, (page, button.label)


def test_steps_of_generating_say_tokens_a_second_and_the_first_token(tiny):
    project, app = tiny
    assert not app.exception, app.exception[0].message
    now = snapshot(project)
    cache_bytes = formatting.num_bytes(2 * 2 * 8 * 2 * 16 * 3)
    assert f"and a cache of {cache_bytes}" in texts(app)
    step_s = now.simulated.value
    rate, first = formatting.token_rate(3 * 4 / step_s), formatting.seconds(step_s)
    for page in ("place", "compare"):
        go(app, page)
        assert not app.exception, (page, app.exception[0].message)
        said = next(text for text in texts(app) if "first token" in text)
        assert rate in said and first in said, page
    sides = [side_by_side.side_of(now, row) for row in standings.standings(now)]
    rows = dict(side_by_side.rows_of(now, sides))
    assert (rows["Tokens"], rows["Time to first token"]) == ([rate], [first])
    slower = comparison.figures(now, now.problem)
    assert slower["As it is"] == slower["What if"] and rate in slower["As it is"][0]


def test_a_configuration_is_exported_by_its_layers(tiny):
    """In the formats of servers of language models, which need no weights."""
    project, app = tiny
    app = go(app, "studio")
    app.session_state["export-open"] = True
    app.run()
    for name, said in (
        ("vllm-layers", "The layers of every pipeline rank, for vLLM."),
        ("llama-cpp-split", "The layers on CPU and accelerators, as arguments of llama.cpp."),
    ):
        app = app.selectbox(key="export-format").set_value(name).run()
        assert not app.exception, app.exception[0].message
        assert any(said in text for text in texts(app)), name
    found = json.loads(export.content(project, "vllm-layers", frozenset()))
    assert (found["layers"], found["num_hidden_layers"]) == ("model.layers", 1)


CPU = {"name": "cpu:0", "memory_bytes": 30_000, "flops_per_s": 1e9, "memory_bytes_per_s": 1e9}
SMALL = {"name": "small", "devices": [CPU], "links": []}


@pytest.fixture
def too_large(configuration, tmp_path, monkeypatch):
    """A project whose model no device holds as it is, and the app that shows it."""
    monkeypatch.setenv("PLACEMENT_STUDIO_HOME", str(tmp_path))
    project = store.create()
    project.change(model_kind="path", model=str(configuration), dims=DIMS)
    name = project.keep_upload("small.json", json.dumps(SMALL).encode(), "machines")
    project.change(machine=name)
    app = AppTest.from_file(str(APP), default_timeout=120)
    app.query_params["project"] = project.id
    return project, app


def test_what_does_not_fit_is_said_once_with_the_way_out(too_large):
    project, app = too_large
    for page in ("studio", "model"):
        go(app, page)
        assert not app.exception, (page, app.exception[0].message)
        assert len(app.error) == 1, [error.value for error in app.error]
        said = app.error[0].value
        assert "KiB" in said and "int4" in said, said
        assert not re.search(r"\d{5}", said), said
    go(app, "studio")
    place = next(button for button in app.button if button.label == "Place")
    assert place.disabled and "weights need" in place.help
    # That int4 makes less of a model is shown in tests/placers; here there is room once more.
    project.change(machine="null-2")
    app.run()
    assert not app.error and not app.exception
    assert not next(button for button in app.button if button.label == "Place").disabled
