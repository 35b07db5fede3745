"""Load: how much others computed on the cores that something was measured on, or beside them, and
where a host had put these.
"""

from dataclasses import asdict, dataclass
from typing import Any

from placement.core.amounts import is_amount
from placement.core.formatting import counted, percent

# Others that compute on a tenth of a core or more disturb what is measured there.
BUSY_CORES = 0.1
# The system counts processor time in such pieces, and may be one off at each end and on each core.
TICK_S = 0.01
# Core-to-core latencies of the same places differ by less than this.
MOVED = 1.6


@dataclass(frozen=True)
class Load:
    """Processor time of others on some cores, in a stretch of `seconds`; None if nobody can tell.

    `slowdown` is how much longer a fixed piece of work took after the stretch than before it: 1.1
    is a tenth. It tells of a computer that has become slower, whoever computes. `beside` is the
    share of what counts that was measured while the other hardware threads of its cores were busy,
    `core_to_core_s` the core-to-core latency, how long a cache line took from one of its cores to
    another; None where nobody looked.
    """

    seconds: float
    others_s: float | None
    num_cores: int
    slowdown: float = 1.0
    beside: float | None = None
    core_to_core_s: float | None = None

    def __post_init__(self) -> None:
        seconds, others_s = self.seconds, self.others_s or 0.0
        looked = (self.beside or 0.0, self.core_to_core_s or 0.0)
        if not all(map(is_amount, (seconds, others_s, self.num_cores, self.slowdown, *looked))):
            raise ValueError("A load has amounts below zero or beyond all measure; measure again.")

    @property
    def others_cores(self) -> float:
        """Cores' worth that others computed on, on average."""
        return (self.others_s or 0.0) / self.seconds if self.seconds else 0.0

    @property
    def is_known(self) -> bool:
        return self.others_s is not None

    @property
    def is_busy(self) -> bool:
        """Whether others computed so much that it shows, and is no error of counting."""
        return self._is_shared or bool(self.beside)

    @property
    def disturbed(self) -> float:
        """How much of what counts others may have disturbed, at most: 1 where nobody can tell."""
        if self.others_s is None or self.beside is None:
            return 1.0
        return min(1.0, max(self.beside, self.others_cores / max(1, self.num_cores)))

    @property
    def words(self) -> str:
        """How much others computed."""
        said = f"other programs computed on {self.others_cores:.2g} of {_cores(self.num_cores)}"
        if not self.beside:
            return said
        beside = (
            "the other hardware threads of its cores were busy with what this system does not count"
            f" ({percent(self.beside)} of what was measured)"
        )
        return f"{said}, and {beside}" if self._is_shared else beside

    @property
    def _is_shared(self) -> bool:
        error_s = 2 * TICK_S * self.num_cores
        return (self.others_s or 0.0) > BUSY_CORES * self.seconds + error_s

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def _cores(number: int) -> str:
    return counted(number, "core")
