"""What the searches by branch and bound have in common: they go on, and say what is proven."""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from placement.core.graph import Ints


class Branching(ABC):
    """A search that is continued for some nodes at a time.

    It starts from a known split, or from none at `best_s` infinite; `best` (U,) are the devices or
    slots of units in the best one. `complete` says that none is better, by more than `rounding` of
    its value.
    """

    rounding: ClassVar[float]

    def __init__(self, known: Ints, known_s: float = np.inf) -> None:
        self.best, self.best_s, self.complete = known.copy(), known_s, False

    @abstractmethod
    def go_on(self, max_nodes: int) -> None:
        """Search `max_nodes` nodes more, or to the end."""

    @property
    def bound_s(self) -> float:
        """Seconds that no split is below, 0 as long as some are untried."""
        return self.best_s * (1.0 - self.rounding) if self.complete else 0.0
