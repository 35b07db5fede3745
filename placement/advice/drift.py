"""Drift of a computer: what its devices take for the model alone, now and when it was measured.

On a quiet computer, too, the same program takes 2.1 ms now and 2.5 a minute later, because others
leave it less of the last cache or a lower clock, and a profile is of the minute in which it was
measured. A run that times the unplaced model on each device, as the profile did, knows by how much,
and so tells an error of the prediction from a drift of the computer. What refinements have learned
since plays no part: these are two measurements of the same program.
"""

import statistics
from collections.abc import Mapping

from placement.core.profile import Profile


def drift(profile: Profile | None, alone_s: Mapping[str, float | None]) -> float | None:
    """How many times as long the model alone takes now as when it was measured; 1.1 is slower.

    `alone_s` has seconds of a step by device, None where the model does not fit. The median over
    devices; None where nothing can be compared.
    """
    if profile is None:
        return None
    found = [
        now_s / then_s
        for device, then_s in zip(profile.machine.devices, profile.step_s, strict=True)
        if then_s and (now_s := alone_s.get(device.name))
    ]
    return statistics.median(found) if found else None
