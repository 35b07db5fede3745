"""What the tests of the command line begin with."""

from tests.studio.opened_once import opened_once

__all__ = ["opened_once"]
