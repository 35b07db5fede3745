"""A configuration on the pages: placed and predicted, and nowhere measured or run."""

import json
from pathlib import Path

from streamlit.testing.v1 import AppTest

from studio.project import store
from tests.loaders.test_huggingface import TINY

APP = Path(__file__).parents[2] / "app.py"
SAID = "No weights: predicted only"


def texts(app):
    kinds = (app.markdown, app.caption, app.info, app.sidebar.markdown)
    return [str(element.value) for kind in kinds for element in kind]


def test_every_page_says_that_there_are_no_weights(tmp_path, monkeypatch):
    monkeypatch.setenv("PLACEMENT_STUDIO_HOME", str(tmp_path / "home"))
    path = tmp_path / "tiny" / "config.json"
    path.parent.mkdir()
    path.write_text(json.dumps({**TINY, "num_hidden_layers": 1}))
    project = store.create()
    dims = {"length": 4, "dtype": "bfloat16"}
    project.change(model_kind="path", model=str(path), machine="null-2", dims=dims)
    app = AppTest.from_file(str(APP), default_timeout=120)
    app.query_params["project"] = project.id
    app.run()
    shown = [box for box in app.selectbox if box.label == "dtype"]
    assert [box.value for box in shown] == ["bfloat16"]
    for page in ("model", "run", "compare"):
        if page != "model":
            app.switch_page(f"pages/{page}.py").run()
        assert not app.exception, (page, app.exception[0].message)
        assert any(
            SAID.replace(" ", "") in text.replace("*", "").replace(" ", "") for text in texts(app)
        ), page
        for button in app.button:
            if button.label.startswith(("Run (", "Train", "Measure")) or button.label == "Run":
                assert button.disabled, (page, button.label)
