"""A change of speed that lasts, as the monitor finds it and as people are told of it."""

from dataclasses import dataclass

import numpy as np

from placement.core.costs import Floats
from placement.core.problem import Problem


@dataclass(frozen=True, eq=False)
class Drift:
    """Devices whose speed has changed: `factor` (D,) on their seconds since the last drift."""

    factor: Floats
    by_probe: tuple[bool, ...]

    @property
    def size(self) -> float:
        """The largest change, up or down: 0.7 for twice or half as long."""
        return float(np.abs(np.log(self.factor)).max())


def in_words(problem: Problem, drift: Drift) -> str:
    """A drift in a sentence for people."""
    said = []
    for device, factor in zip(problem.machine.devices, drift.factor.tolist(), strict=True):
        if factor > 1.0:
            said.append(f"{device.name} takes {factor:.1f} times as long as before")
        elif factor < 1.0:
            said.append(f"{device.name} is {1 / factor:.1f} times as fast as before")
    return " and ".join(said)
