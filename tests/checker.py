"""The slow, clear checker of timelines, written from the definitions in docs/design.md."""

import itertools
from collections.abc import Sequence

from placement.core.problem import Execution, Problem
from placement.core.schedule import Schedule
from placement.core.timeline import Span, Timeline

CLOSE = 1e-9


def timeline_faults(problem: Problem, schedule: Schedule, timeline: Timeline) -> list[str]:
    """What a predicted timeline breaks: one sentence each, none for a right one."""
    faults: list[str] = []
    compute = {s.segment: s for s in timeline.spans if s.kind == "compute"}
    moves = [s for s in timeline.spans if s.kind == "transfer"]
    index, costs = problem.machine.index, problem.costs
    if sorted(compute) != list(range(len(schedule.segments))):
        return ["not every segment has one compute span"]
    for number, segment in enumerate(schedule.segments):
        d = index[segment.device]
        work = costs.call_s[d] + sum(
            costs.compute_s[problem.kernels.index[k], d] for k in segment.kernels
        )
        for move in moves:
            src, dst = (index[name] for name in move.device.split("->"))
            whole_s = costs.transfer_s(src, dst, move.num_bytes)
            reader = first_reader(problem, schedule, move)
            if move.segment == number:
                work += costs.overhead[0, src, dst] * whole_s
            # What only returns to the host holds up its sender alone.
            if move.segment >= 0 and number == (move.segment if reader is None else reader):
                work += costs.overhead[1, src, dst] * whole_s
        span = compute[number]
        if span.device != segment.device:
            faults.append(f"segment {number} ran on {span.device}")
        slower = 1 + costs.contention * (sum(x.on_host for x in problem.machine.devices) - 1)
        if not work - CLOSE <= span.duration_s <= work * slower + CLOSE:
            faults.append(f"segment {number} took {span.duration_s}, its work is {work}")
    engine = {d.name: d.engine or d.name for d in problem.machine.devices}
    for device in index:
        own = [compute[i] for i, s in enumerate(schedule.segments) if engine[s.device] == device]
        for a, b in itertools.pairwise(own):
            if b.start_s < a.end_s - CLOSE:
                faults.append(f"{device} runs two segments at once or out of order")
    arrivals = {}
    for span in moves:
        src, dst = span.device.split("->")
        if (span.name, dst) in arrivals:
            faults.append(f"tensor {span.name} went to {dst} twice")
        arrivals[span.name, dst] = span.end_s
        cost = costs.transfer_s(index[src], index[dst], span.num_bytes)
        if span.segment >= 0:
            sender, receiver = costs.overhead[:, index[src], index[dst]]
            cost *= 1 - sender - receiver
        if abs(span.duration_s - cost) > CLOSE:
            faults.append(f"transfer of {span.name} took {span.duration_s}, it costs {cost}")
        if span.segment >= 0 and span.start_s < compute[span.segment].end_s - CLOSE:
            faults.append(f"tensor {span.name} left before it was made")
    if problem.link_contention:
        cards = {f"{link.src}->{link.dst}": link.card for link in problem.machine.links}
        channel = {s.device: cards.get(s.device) or s.device for s in moves}
        for one in set(channel.values()):
            passing = sorted(
                (s for s in moves if channel[s.device] == one), key=lambda s: s.start_s
            )
            for a, b in itertools.pairwise(passing):
                made_s = [compute[s.segment].end_s if s.segment >= 0 else 0.0 for s in (a, b)]
                if b.start_s < a.end_s - CLOSE:
                    faults.append(f"two tensors pass {one} at once")
                if made_s[0] > made_s[1] + CLOSE:
                    faults.append(f"{b.name} was there before {a.name} and passed {one} after it")
    segment_of = schedule.segment_of
    host = next((d.name for d in problem.machine.devices if d.on_host), None)
    for tensor in problem.kernels.tensors:
        made = None if tensor.producer is None else segment_of[tensor.producer]
        at = host if made is None else schedule.segments[made].device
        for consumer in tensor.consumers:
            reader = segment_of[consumer]
            if reader == made:
                continue
            device = schedule.segments[reader].device
            if engine[device] == engine.get(at) or (
                made is None and problem.machine.device(device).on_host
            ):
                ready = 0.0 if made is None else compute[made].end_s
            elif made is None and host is None:
                ready = 0.0
            else:
                ready = arrivals.get((tensor.name, device), float("inf"))
            if compute[reader].start_s < ready - CLOSE:
                faults.append(f"{consumer} started before {tensor.name} was there")
        returns = tensor.is_output and at != host and host is not None and made is not None
        if returns and (tensor.name, host) not in arrivals:
            faults.append(f"output {tensor.name} did not return to the host")
    faults += _late_starts(timeline)
    last = max((s.end_s for s in timeline.spans), default=0.0)
    if abs(last - timeline.step_s) > CLOSE:
        faults.append(f"the step took {timeline.step_s} but its last span ended at {last}")
    return faults


def first_reader(problem: Problem, schedule: Schedule, move: Span) -> int | None:
    """The first segment on a transfer's destination that reads its tensor."""
    _, dst = move.device.split("->")
    (tensor,) = (t for t in problem.kernels.tensors if t.name == move.name)
    readers = {schedule.segment_of[consumer] for consumer in tensor.consumers}
    return min((s for s in readers if schedule.segments[s].device == dst), default=None)


def _late_starts(timeline: Timeline) -> list[str]:
    """Spans that start later than the last span they say they waited for, or than time 0."""
    return [
        f"{span.name} on {span.device} started at {span.start_s}, it could at {ready}"
        for span in timeline.spans
        for ready in [max((timeline.spans[i].end_s for i in span.after), default=0.0)]
        if abs(span.start_s - ready) > CLOSE
    ]


def plan_faults(problem: Problem, spans: Sequence[Span]) -> list[str]:
    """What the plan of a list scheduler breaks, which may still lack kernels: one sentence each.

    A kernel of such a plan takes its time, and a call beyond it where it may pay for one. Where
    several of its inputs queue for one link, the plan knows of each only what went before all.
    """
    faults: list[str] = []
    index, costs, kernels = problem.machine.index, problem.costs, problem.kernels
    compute = {s.name: s for s in spans if s.kind == "compute"}
    moves = {(s.name, s.device.split("->")[1]): s for s in spans if s.kind == "transfer"}
    host = next((d.name for d in problem.machine.devices if d.on_host), None)
    for name, span in compute.items():
        d = index[span.device]
        least = costs.compute_s[kernels.index[name], d]
        most = least + (0 if problem.execution is Execution.OP else costs.call_s[d])
        if not least - CLOSE <= span.duration_s <= most + CLOSE:
            faults.append(f"{name} took {span.duration_s} on {span.device}, not {least} to {most}")
    for row in {s.device for s in spans}:
        on_row = sorted((s for s in spans if s.device == row), key=lambda s: (s.start_s, s.end_s))
        if "->" in row and not problem.link_contention:
            continue
        for a, b in itertools.pairwise(on_row):
            if b.start_s < a.end_s - CLOSE:
                faults.append(f"{a.name} and {b.name} are on {row} at once")
    for tensor in kernels.tensors:
        made = None if tensor.producer is None else compute.get(tensor.producer)
        at = made.device if made else (host if tensor.producer is None else None)
        for reader in (compute[c] for c in tensor.consumers if c in compute):
            if tensor.producer is not None and made is None:
                faults.append(f"{reader.name} runs before {tensor.producer} is placed")
                continue
            since_s = made.end_s if made else 0.0
            here = at is None or at == reader.device
            here |= made is None and problem.machine.device(reader.device).on_host
            move = moves.get((tensor.name, reader.device))
            if not here and move is not None:
                took_s = costs.transfer_s(index[str(at)], index[reader.device], tensor.num_bytes)
                if abs(move.duration_s - took_s) > CLOSE or move.start_s < since_s - CLOSE:
                    faults.append(f"{tensor.name} was sent too early or too fast")
                since_s = move.end_s
            elif not here:
                faults.append(f"{tensor.name} was not sent to {reader.device}")
            queued = problem.link_contention and move is not None and move.start_s > 0
            if reader.start_s < since_s - CLOSE and not queued:
                faults.append(f"{reader.name} starts before {tensor.name} is there")
    return faults
