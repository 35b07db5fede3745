"""How much is tried: in `make test` enough to notice what breaks, in `make fuzz` all there is."""

import os
from typing import TypeVar

T = TypeVar("T")
THOROUGH = os.environ.get("HYPOTHESIS_PROFILE") == "fresh"


def either(enough: T, everything: T) -> T:
    """What this run tries. Tests that ask are marked `thorough`, so that `make fuzz` finds them."""
    return everything if THOROUGH else enough
