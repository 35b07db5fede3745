"""A placement cut into calls: what schedules are made of, and pipelines too."""

from dataclasses import dataclass

from placement.core.graph import Ints


@dataclass(frozen=True, eq=False)
class Cut:
    """Kernels in segments: `segment_of` (K,) and the segments in running order."""

    device_of_kernel: Ints
    kernels_in_order: Ints
    segment_of: Ints
    order: Ints
