"""What several tests of the pages' parts begin with."""

from tests.studio.conftest import project

__all__ = ["project"]
