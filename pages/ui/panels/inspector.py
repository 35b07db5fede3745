"""The side panel about the selected ops: what they are, and why they are where they are."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence

import streamlit as st

from pages.ui.panels import training_phases
from pages.ui.session import cache
from pages.ui.shell import glossary
from placement.core import formatting
from placement.drawing.names import names_of
from placement.drawing.op_reasons import Move, Why, why
from placement.placers import names, placer_class
from studio import consequence
from studio.consequence import Change
from studio.snapshot import Studio

MOST_ROWS = 8
SLACK_HELP = (
    "How much later this could end before the whole step gets longer. No slack: it is on the"
    " critical path, the chain of work and waiting that decides the step time."
)
ELSEWHERE_HELP = (
    "All other ops stay where they are. Methods look at many ops at once, so one of them may be"
    " where it is for the sake of others; what would take less here is worth a try."
)
REASON_HELP = (
    "What the method has compared when it chose this device, in its own plan, which the prediction"
    " of the whole step may differ from. Steps shows all of its choices, one after another."
)
GROUP_HELP = (
    "The runtime runs these ops as one piece of work (one kernel), so they always share a device."
)


def show(now: Studio, selection: Sequence[str]) -> None:
    ops = [name for name in selection if name in now.model.graph.index]
    if not ops:
        st.caption(
            "Nothing is selected. Click a block or an op in the picture to see what it costs on"
            " each device and why it is where it is."
        )
        return
    _title(now, ops)
    answer = why(now.problem, now.placement, now.simulated, ops)
    _times(now, answer)
    _reason(now, ops)
    _moves(now, answer)
    if answer.along:
        st.caption(f"Moves along with it ({len(answer.along)}):", help=GROUP_HELP)
        st.text(_shortened(names_of(now.model.graph).listed(answer.along)))
    if len(ops) == 1:
        _attributes(now, ops[0])


def _title(now: Studio, ops: Sequence[str]) -> None:
    graph = now.model.graph
    chosen = [graph.ops[graph.index[name]] for name in ops]
    if len(chosen) == 1:
        st.markdown(f"**Selected: {one_of(chosen[0].kind)}**")
        st.text(names_of(graph).of(chosen[0].name))
    else:
        st.markdown(f"**Selected: {formatting.counted(len(chosen), 'op')}**")
        st.text(kinds_of(op.kind for op in chosen))
    flops, weights = sum(op.flops for op in chosen), sum(op.param_bytes for op in chosen)
    # A problem file says nothing of arithmetic, and may say nothing of memory.
    said = [formatting.flops(flops)] if graph.flops else []
    said += [f"weights {formatting.num_bytes(weights)}"] if graph.param_bytes else []
    cached = sum(op.state_bytes for op in chosen)
    said += [f"cache {formatting.num_bytes(cached)}"] if cached else []
    if training_phases.training_of(graph) is not None:
        said += [f"{n} {phase}" for phase, n in Counter(op.phase for op in chosen).items()]
    if said:
        st.caption(", ".join(said))


def one_of(kind: str) -> str:
    """One op with its type, where a file gives it one that reads as a word."""
    return f"1 {kind} op" if kind.isidentifier() and kind.lower() != "op" else "1 op"


def kinds_of(kinds: Iterable[str], most: int = 4) -> str:
    """How many ops there are of each type, the commonest first, and how many types are not named.

    A rest of one type is named too: that takes no more room.
    """
    common = sorted(Counter(kinds).items(), key=lambda k: (-k[1], k[0]))
    shown = common if len(common) <= most + 1 else common[:most]
    said = ", ".join(f"{n} {kind}" for kind, n in shown)
    rest = common[len(shown) :]
    ops = sum(n for _, n in rest)
    return f"{said}, and {ops} more of {len(rest)} other types" if rest else said


def _times(now: Studio, answer: Why) -> None:
    unit = now.problem.unit
    rows = []
    for device, time_s in answer.time_s.items():
        here = "here" if device in answer.devices else ""
        rows.append(
            {
                "Device": glossary.plain(device),
                "Time": glossary.plain(
                    "cannot run it" if time_s is None else formatting.seconds(time_s, unit)
                ),
                "Placed": here if len(answer.devices) == 1 else ("in part" if here else ""),
            }
        )
    origin = "estimated" if now.is_estimate else now.costs.split()[0]
    number = len(answer.along)
    goes = "moves" if number == 1 else "move"
    with_others = f", with {formatting.counted(number, 'op')} that {goes} along" if number else ""
    st.markdown(
        f"Time on each device ({origin}{with_others})",
        help=glossary.IN_PART if len(answer.devices) > 1 else None,
    )
    st.table(rows, border="horizontal", hide_index=True)
    if answer.slack_s is None:
        st.caption("Costs nothing by itself.")
    elif answer.is_critical:
        st.caption("On the critical path: no slack.", help=SLACK_HELP)
    else:
        st.caption(f"Slack: {formatting.seconds(answer.slack_s, unit)}", help=SLACK_HELP)


def _reason(now: Studio, ops: Sequence[str]) -> None:
    """Why these ops are here: what their method has compared, and what each other device would do.

    The first where one op is asked for, and the method can tell it.
    """
    if len(ops) == 1:
        said = reason(now, ops[0])
        if said:
            st.text(said, help=REASON_HELP)
    found = consequence.elsewhere(now, ops)
    if found:
        st.text(instead(found, now.problem.objective.per), help=ELSEWHERE_HELP)


def reason(now: Studio, op: str) -> str:
    """Who or what has put an op where it is, and why, where anybody can tell; else empty."""
    named, posed = now.named, now.pinned_problem
    pinned = dict(posed.pins).get(op)
    if pinned is not None:
        return f"It is pinned to {pinned}."
    if named.by_hand or named.made_by not in names():
        return ""
    step = cache.step_of(posed, named.made_by, now.placement, op)
    if step is not None:
        return f"{named.made_by}: {step.why}"
    is_open = not cache.tells_at_once(posed, named.made_by)
    is_open = is_open and cache.steps_so_far(posed, named.made_by) is None
    if is_open and placer_class(named.made_by).pseudo_code:
        return f"What {named.made_by} has compared is told here once it was followed in Steps."
    return ""


def instead(found: Sequence[tuple[str, Change]], per: str) -> str:
    """What the step would take with ops elsewhere, in one sentence."""
    said = [f"on {device} {_took(change)}" for device, change in found]
    return f"With this alone elsewhere, a {per} would take: {'; '.join(said)}."


def _took(change: Change) -> str:
    if not math.isfinite(change.after_s):
        return "it could not run"
    value = formatting.seconds(change.after_s, change.unit)
    if not change.way:
        return f"{value}, as long as now"
    percent = formatting.percent(abs(change.share))
    less = f"{percent} {'less' if change.way < 0 else 'more'}"
    return f"{value}, {less}, which is a tie" if change.is_tie else f"{value}, {less}"


def _moves(now: Studio, answer: Why) -> None:
    for verb, moves in (("Waits for", answer.incoming), ("Sends", answer.outgoing)):
        if moves:
            st.markdown(f"{verb} {glossary.plain(_sum(moves, now.problem.unit))}")
            st.table([_row(m, now.problem.unit) for m in moves[:MOST_ROWS]], hide_index=True)
            if len(moves) > MOST_ROWS:
                st.caption(f"and {len(moves) - MOST_ROWS} more")
    if not answer.incoming and not answer.outgoing:
        st.caption("Nothing crosses to another device here.")


def _sum(moves: Sequence[Move], unit: str) -> str:
    total_bytes = formatting.num_bytes(sum(m.num_bytes for m in moves))
    total_s = formatting.seconds(sum(m.duration_s for m in moves), unit)
    number = formatting.counted(len(moves), "tensor")
    return f"{number}, {total_bytes}, {total_s}"


def _row(move: Move, unit: str) -> dict[str, str]:
    return {
        "Way": glossary.plain(f"{move.src} to {move.dst}"),
        "Size": glossary.plain(formatting.num_bytes(move.num_bytes)),
        "Time": glossary.plain(formatting.seconds(move.duration_s, unit)),
    }


def _attributes(now: Studio, name: str) -> None:
    op = now.model.graph.ops[now.model.graph.index[name]]
    reads = [t.name for t in now.model.graph.tensors if name in t.consumers]
    writes = [t for t in now.model.graph.tensors if t.producer == name]
    with st.expander("Attributes"):
        rows = [("name in the file", op.name), ("block", op.scope or "(top)"), *op.attributes]
        rows += [("reads", r) for r in reads[:MOST_ROWS]]
        for tensor in writes[:MOST_ROWS]:
            rows.append(("writes", f"{tensor.name} {list(tensor.shape or ())} {tensor.dtype}"))
        for key, value in rows:
            st.text(f"{key}: {value[:300]}")


def _shortened(names: Sequence[str]) -> str:
    rest = f" and {len(names) - MOST_ROWS} more" if len(names) > MOST_ROWS else ""
    return ", ".join(names[:MOST_ROWS]) + rest
