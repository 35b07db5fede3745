"""Work for tasks of searches that does not notice when nobody waits for it any more."""

import time
from contextlib import suppress
from pathlib import Path

from placement.parallel.calls import travels

# Far longer than a test waits.
HOUR_S = 3600.0


@travels
def work_on(file: str) -> int:
    """Write the file, and go on whoever interrupts."""
    until_s = time.monotonic() + HOUR_S
    Path(file).touch()
    while time.monotonic() < until_s:
        with suppress(KeyboardInterrupt):
            time.sleep(0.05)
    return 0


@travels
def doubled(number: int) -> int:
    """Work that is soon done."""
    return 2 * number
