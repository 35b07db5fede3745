"""Levers: what would shorten the step, each thing made faster by itself and simulated again."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from placement.core.problem import Objective, Problem
from placement.core.schedule import Schedule
from placement.core.timeline import Span
from placement.simulator import throughput
from placement.simulator.call_costs import Replicas
from placement.simulator.condensed import Condensed, ready_to_run
from placement.simulator.simulate import as_kernels, simulate
from placement.simulator.throughput import bottleneck, value_of_run_s

# The longest of each kind that are tried; more would all save less.
MOST_SEGMENTS, MOST_TENSORS, MOST_LINKS = 8, 6, 6
# What saves less than this share is noise.
LEAST_SHARE = 1e-4
KINDS = ("segment", "tensor", "device", "link")


@dataclass(frozen=True)
class Lever:
    """With one thing faster the step (or the time per sample) is `saves_s` shorter.

    `kind` says what: a "segment" computes in half its time, a "tensor" is half as large, a "device"
    computes and takes calls in half the time, a "link" carries everything in half the time. `name`
    is the segment's first kernel, the tensor, the device, or the link as "src->dst"; `where` is the
    device of the segment or the link of the tensor.
    """

    kind: str
    name: str
    where: str
    saves_s: float


def levers(
    problem: Problem,
    schedule: Schedule,
    path: Sequence[Span],
    *,
    replicas: Replicas = None,
    most: int = 6,
) -> tuple[Lever, ...]:
    """What would save most, best first; who runs what in which order stays as it is.

    For latency the candidates are on the critical `path`, for throughput they belong to the device
    or link with the largest load: nothing else can help. Under the execution "call" a device moves
    tensors inside its calls, so there are no links and tensors to try, and `replicas` of a device
    share its load.
    """
    links = problem.execution.uses_links
    value_s = _of_segments(problem, schedule) if links else _of_calls(problem, schedule, replicas)
    now_s = value_s("", -1, -1)
    index, kernels = problem.machine.index, problem.kernels
    number_of = {tensor.name: t for t, tensor in enumerate(kernels.tensors)}
    first = {segment.kernels[0]: s for s, segment in enumerate(schedule.segments)}
    found = []
    for kind, name, where in dict.fromkeys(_candidates(problem, schedule, path, replicas)):
        if kind == "segment":
            at = (first[name], index[where])
        elif kind == "tensor":
            at = (number_of[name], -1)
        elif kind == "device":
            at = (index[name], -1)
        else:
            src, _, dst = name.partition("->")
            at = (index[src], index[dst])
        saves_s = now_s - value_s(kind, *at)
        if saves_s > now_s * LEAST_SHARE:
            found.append(Lever(kind, name, where, saves_s))
    return tuple(sorted(found, key=lambda lever: -lever.saves_s)[:most])


def _candidates(
    problem: Problem, schedule: Schedule, path: Sequence[Span], replicas: Replicas
) -> Iterator[tuple[str, str, str]]:
    """(kind, name, where) of everything that may help."""
    computing, sending = _deciding(problem, schedule, path, replicas)
    for span in _longest(computing, MOST_SEGMENTS):
        yield "segment", span.name, span.device
    for name in dict.fromkeys(span.device for span in computing):
        yield "device", name, ""
    if problem.execution.uses_links:
        for span in _longest(sending, MOST_TENSORS):
            yield "tensor", span.name, span.device
        links = dict.fromkeys(span.device for span in _longest(sending, len(sending)))
        for name in list(links)[:MOST_LINKS]:
            yield "link", name, ""


def _deciding(
    problem: Problem, schedule: Schedule, path: Sequence[Span], replicas: Replicas
) -> tuple[list[Span], list[Span]]:
    """Computing and sending that decides the value: the path's, or that of the largest load."""
    if problem.objective is Objective.LATENCY:
        computing = [s for s in path if s.kind == "compute"]
        sending = [s for s in path if s.kind == "transfer"]
        return computing, [*sending, *_holding_up(problem, schedule, computing)]
    slowest = bottleneck(problem, schedule, replicas)
    spans = simulate(problem, schedule).spans
    computing = [s for s in spans if s.kind == "compute" and s.device == slowest]
    sending = [s for s in spans if s.kind == "transfer" and _touches(s.device, slowest)]
    return computing, sending


def _holding_up(problem: Problem, schedule: Schedule, computing: Sequence[Span]) -> Iterator[Span]:
    """Transfers that hold up segments of these, which send them or first read them."""
    if not problem.costs.overhead.any():
        return
    index, segments = problem.machine.index, {s.segment for s in computing}
    spans = simulate(problem, schedule).spans
    readers = {i: s.segment for s in reversed(spans) if s.kind == "compute" for i in s.after}
    for number, span in enumerate(spans):
        if span.kind != "transfer" or span.segment < 0:
            continue
        src, _, dst = span.device.partition("->")
        send, receive = problem.costs.overhead[:, index[src], index[dst]]
        if (send and span.segment in segments) or (receive and readers.get(number) in segments):
            yield span


def _touches(link: str, name: str) -> bool:
    src, _, dst = link.partition("->")
    return name in (link, src, dst)


def _longest(spans: Sequence[Span], most: int) -> list[Span]:
    return sorted(spans, key=lambda s: -s.duration_s)[:most]


# The value with one thing faster, by kind and the one or two numbers that name it; "" for none.
Value = Callable[[str, int, int], float]


def _of_segments(problem: Problem, schedule: Schedule) -> Value:
    """By arrays that are changed in one place and run again, quick on large graphs too."""
    from placement.simulator.compiled.run import run_whole

    condensed, order = as_kernels(problem, schedule)

    def value_s(kind: str, a: int, b: int) -> float:
        faster = _faster(condensed, kind, a, b)
        state = ready_to_run(faster, order)
        return value_of_run_s(problem, faster.flat, state, run_whole(faster.flat, state))

    return value_s


def _faster(condensed: Condensed, kind: str, a: int, b: int) -> Condensed:
    links = ("move_s", "s_per_byte", "way_s", "way_s_per_byte")
    names = ("compute_s", "call_s", "tensor_bytes", *links)
    flat = condensed.flat._replace(**{n: getattr(condensed.flat, n).copy() for n in names})
    if kind == "segment":
        flat.compute_s[a] *= 0.5
    elif kind == "tensor":
        flat.tensor_bytes[condensed.tensor == a] *= 0.5
    elif kind == "device":
        flat.compute_s[:, a] *= 0.5
        flat.call_s[a] *= 0.5
    elif kind == "link":
        for name in links:
            getattr(flat, name)[a, b] *= 0.5
    return condensed._replace(flat=flat)


def _of_calls(problem: Problem, schedule: Schedule, replicas: Replicas) -> Value:
    """By problems with other costs: calls have a cost model of their own."""
    index = problem.kernels.index
    members = [[index[kernel] for kernel in s.kernels] for s in schedule.segments]

    def value_s(kind: str, a: int, b: int) -> float:
        compute_s = problem.costs.compute_s.copy()
        if kind == "segment":
            compute_s[members[a], b] *= 0.5
        elif kind == "device":
            compute_s[:, a] *= 0.5
        faster = replace(problem, costs=replace(problem.costs, compute_s=compute_s))
        return throughput.value_s(faster, schedule, replicas)

    return value_s
