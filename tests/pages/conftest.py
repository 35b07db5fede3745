"""What several tests of the pages' parts begin with."""

import math

import pytest

from pages.ui.session import cache
from tests.studio.conftest import project

__all__ = ["project"]


@pytest.fixture(autouse=True)
def steps_at_once(monkeypatch):
    """Methods show their steps in the page, however busy this computer is."""
    monkeypatch.setattr(cache, "AT_ONCE_S", math.inf)
