"""What several tests of the pages' parts begin with."""

import json
import math

import pytest

from pages.ui.session import cache
from tests.studio.conftest import project
from tests.studio.opened_once import opened_once

__all__ = ["opened_once", "project"]


@pytest.fixture(autouse=True)
def steps_at_once(monkeypatch):
    """Methods show their steps in the page, however busy this computer is."""
    monkeypatch.setattr(cache, "AT_ONCE_S", math.inf)


@pytest.fixture(scope="session")
def configuration(tmp_path_factory):
    """Of one layer; all tests open the same file with the same sizes, so that it is read once."""
    # It imports PyTorch, which most tests of the pages do without.
    from tests.loaders.test_huggingface import TINY

    path = tmp_path_factory.mktemp("tiny") / "config.json"
    path.write_text(json.dumps({**TINY, "num_hidden_layers": 1}))
    return path
