"""How much is tried: in `make test` enough to notice what breaks, in `make fuzz` all there is.

`make test-hosts` tries all there is over Ray hosts: what `TRY_ALL` says. A test that is marked
`only_thorough` shows what a cheaper one shows, too, or one thing more, and is left to those two.
"""

import os
from typing import TypeVar

T = TypeVar("T")
THOROUGH = os.environ.get("HYPOTHESIS_PROFILE") == "fresh" or bool(os.environ.get("TRY_ALL"))


def either(enough: T, everything: T) -> T:
    """What this run tries. Tests that ask are marked `thorough`, so that `make fuzz` finds them."""
    return everything if THOROUGH else enough
