"""Segments as the kernels of a smaller problem, so that one simulator runs both.

Inside a segment nothing is sent; a tensor that leaves it appears when the whole segment ends, and
the segment starts when all that its kernels read from elsewhere is there.
"""

from typing import NamedTuple

import numpy as np

from placement.core.graph import Ints, starts
from placement.simulator.flat import Flat
from placement.simulator.run_state import RunState, run_state


class Condensed(NamedTuple):
    """`flat` has segments (S) for kernels; `device` (S,) is where each runs, `tensor` the original
    number of each tensor that leaves its segment."""

    flat: Flat
    device: Ints
    tensor: Ints


def condense(flat: Flat, device_of_kernel: Ints, segment_of: Ints, num_segments: int) -> Condensed:
    """The problem whose kernels are the segments of a schedule."""
    num_devices = flat.call_s.size
    device = np.zeros(num_segments, dtype=np.int64)
    device[segment_of] = device_of_kernel
    kernels = np.arange(segment_of.size)
    work_s = np.bincount(
        segment_of, flat.compute_s[kernels, device_of_kernel], minlength=num_segments
    )
    compute_s = np.full((num_segments, num_devices), np.inf)
    compute_s[np.arange(num_segments), device] = work_s
    maker = np.full(flat.producer.size, -1, dtype=np.int64)
    made_here = flat.producer >= 0
    maker[made_here] = segment_of[flat.producer[made_here]]
    tensor_of = np.repeat(np.arange(flat.producer.size), np.diff(flat.consumer_ptr))
    reader = segment_of[flat.consumers]
    outside = reader != maker[tensor_of]
    pairs = np.unique(tensor_of[outside] * num_segments + reader[outside])
    leaves = flat.is_output.copy()
    leaves[pairs // num_segments] = True
    tensor = np.flatnonzero(leaves)
    number = np.cumsum(leaves) - 1
    tensor_of, reader = number[pairs // num_segments], pairs % num_segments
    made = np.flatnonzero(maker[tensor] >= 0)
    by_maker = made[np.argsort(maker[tensor][made], kind="stable")]
    return Condensed(
        flat._replace(
            compute_s=compute_s,
            in_ptr=starts(np.bincount(reader, minlength=num_segments)),
            in_tensors=tensor_of[np.argsort(reader, kind="stable")],
            out_ptr=starts(np.bincount(maker[tensor][made], minlength=num_segments)),
            out_tensors=by_maker,
            producer=maker[tensor],
            consumer_ptr=starts(np.bincount(tensor_of, minlength=tensor.size)),
            consumers=reader,
            tensor_bytes=flat.tensor_bytes[tensor],
            is_output=flat.is_output[tensor],
            each_pays=True,
        ),
        device,
        tensor,
    )


def ready_to_run(condensed: Condensed, order: Ints) -> RunState:
    """The state of a run of segments in an order, with all details kept."""
    from placement.simulator.compiled.links import find_first_uses

    state = run_state(condensed.flat, order, detail=True, trials=False)
    state.device[:] = condensed.device
    find_first_uses(condensed.flat, state.device, state.position, state.first)
    return state
