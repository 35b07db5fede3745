"""What a value costs that is sent between devices of two hosts, by the model's own kernels.

It is sent by threads that share cores with the lanes, and the kernel that reads it has slept
meanwhile: what it takes longer and what it waited after the value was made is one sum, of which the
mean counts, for what is late once makes all late that follows.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from placement.core.machine import Device
from profiling.backends.base import Compiled
from profiling.devices.lanes import Step
from profiling.measuring.crossings import (
    FEWEST_CROSSINGS,
    crossings_of,
    handed_s,
    in_turns,
    overlaps_s,
    seconds_of,
    way_on_both,
    way_on_one,
)

# It is not measured where that takes longer.
MOST_S = 20.0


class Sending(NamedTuple):
    """How many times what a message takes a value takes to cross in a step, and the shares of that
    for which it holds up the lanes of who sends and who receives it."""

    ratio: float
    send: float
    receive: float


def sending(
    compiled: Compiled,
    pair: Sequence[Device],
    feeds: Mapping[str, Any],
    timeout_s: float,
    message: tuple[float, float],
    contention: float = 0.0,
) -> Sending | None:
    """What a value costs that crosses between devices of two hosts, beside (seconds, seconds per
    byte) of a message between hosts that do nothing else; on average of both ways, for clocks of
    hosts may differ by more than a crossing takes, which the way back makes up for. Beside each
    other both are slower by `contention`, which is taken off.

    What kernels take longer, which send on what they make, holds up the senders. Where hosts tell
    the time of cores that they used, what crossing took of it beyond that holds up the receivers:
    threads of theirs that take values in run on the cores of the lanes.

    None where too little crosses to say, something may not cross, or it would take too long.
    """
    plan = crossings_of(compiled.kernels)
    made = [t for t in compiled.kernels.tensors if t.producer is not None and t.consumers]
    if np.count_nonzero(plan.num_bytes) < FEWEST_CROSSINGS or not all(
        map(compiled.exchanges, made)
    ):
        return None
    names = [op.name for op in compiled.kernels.ops]
    ways = [way_on_both(compiled.kernels, pair, plan)]
    ways += [way_on_one(compiled.kernels, device, plan) for device in pair]
    there, *here = in_turns(compiled, pair, feeds, timeout_s, ways, MOST_S)
    if not there:
        return None
    alone_s = np.array([np.mean([seconds_of(step) for step in steps], axis=0) for steps in here])
    # With what a kernel takes to send on what it makes.
    usual_s = alone_s[plan.lane_of, np.arange(len(names))]
    slowed_s = np.mean([overlaps_s(step, plan) for step in there], axis=0)
    usual_s += slowed_s * contention / (1 + contention)
    longer_s = np.mean([seconds_of(step) for step in there], axis=0) - usual_s
    handed: dict[int, list[float]] = {}
    for step in there:
        for k, seconds in handed_s(step, plan, pair).items():
            handed.setdefault(k, []).append(seconds)
    # Of those that waited each time; others were sent while something else was computed. What
    # renews state is sent to all who hold it.
    renewing = {renewal.maker for renewal in compiled.renewals}
    waited = [k for k, s in handed.items() if len(s) == len(there) and names[k] not in renewing]
    each_way = [[k for k in waited if plan.lane_of[k] == lane] for lane in (0, 1)]
    if min(map(len, each_way)) < FEWEST_CROSSINGS:
        return None
    makers_s = sum(float(np.mean(longer_s[way])) for way in each_way)
    taken_s = makers_s + sum(float(np.mean([np.mean(handed[k]) for k in way])) for way in each_way)
    said_s = sum(message[0] + message[1] * float(np.mean(plan.num_bytes[way])) for way in each_way)
    if not (said_s > 0 and taken_s > 0):
        return None
    ratio, send = taken_s / said_s, min(1.0, max(0.0, makers_s / taken_s))
    crossed = plan.num_bytes[plan.num_bytes > 0]
    whole_s = ratio * float((message[0] + message[1] * crossed).sum())
    used_s = [used for steps in (there, *here) if (used := _mean_processor_s(steps)) is not None]
    if len(used_s) < 3:
        return Sending(ratio, send, 0.0)
    extra_s = used_s[0] - sum(
        alone * float(usual_s[plan.lane_of == lane].sum() / alone_s[lane].sum())
        for lane, alone in enumerate(used_s[1:])
    )
    return Sending(ratio, send, min(1.0, max(send, extra_s / whole_s)) - send)


def _mean_processor_s(steps: Sequence[Step]) -> float | None:
    told = [step.processor_s for step in steps if step.processor_s is not None]
    return float(np.mean(told)) if told else None
