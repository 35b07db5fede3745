"""What several tests of projects begin with."""

import pytest

from studio.project import store
from tests.studio.opened_once import opened_once

__all__ = ["opened_once"]


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project that the test may change, on a machine of two devices, in a home of its own."""
    monkeypatch.setenv("PLACEMENT_STUDIO_HOME", str(tmp_path))
    monkeypatch.setattr("pages.ui.session.choices.may_write", lambda: True)
    made = store.create()
    made.change(machine="null-2")
    return made
