"""Work for tasks of searches that does not notice when nobody waits for it any more."""

import signal
import time
from pathlib import Path

from placement.parallel.calls import travels

# Far longer than a test waits.
HOUR_S = 3600.0


@travels
def work_on(file: str) -> int:
    """Write the file, and go on whoever interrupts."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Path(file).touch()
    time.sleep(HOUR_S)
    return 0
