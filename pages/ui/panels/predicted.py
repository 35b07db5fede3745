"""What is predicted of the placement on the screen, in numbers, each with what it means."""

import streamlit as st

from pages.ui.shell import glossary
from placement.api.wording import bound_in_words, range_in_words, tokens_in_words
from placement.core import formatting
from placement.costs import roofline
from studio import snapshot
from studio.snapshot import Studio

MOST_COUNTS = 4
ORIGIN = {"measured": "from measurements", "analytic": "estimate", "given": "from the file"}
SENT = (
    "Between devices. Most is sent while the devices compute; what is added to the step is the"
    " sending and waiting on its critical path."
)


def show(now: Studio) -> None:
    """Predicted step time and what it consists of."""
    predicted, unit = now.simulated, now.problem.unit
    path = predicted.critical_path
    sending = sum(s.duration_s for s in path if s.kind != "compute")
    counts = now.placement.ops_per_device()
    # In workloads a call has its sending inside, and nobody says how many bytes that is.
    knows_bytes = now.problem.execution.uses_links
    cells = st.columns(5 if knows_bytes else 4)
    cells[0].metric(
        f"Predicted {glossary.VALUE[now.settings.objective]}",
        formatting.seconds(predicted.value, unit),
        origin(now),
        delta_color="off",
        delta_arrow="off",
        help=f"{glossary.VALUE_HELP[now.settings.objective]}"
        f" {glossary.ESTIMATE if now.is_estimate else glossary.RANGE}",
    )
    bound_s = snapshot.bound_of(now)
    cells[1].metric(
        f"Fastest possible{', estimated' * now.is_estimate}",
        f"≥ {formatting.seconds(bound_s, unit)}",
        above(predicted.value, bound_s),
        delta_color="off",
        delta_arrow="off",
        help=about_bound(now),
    )
    cells[2].metric("Segments", len(predicted.schedule.segments), help=glossary.SEGMENT)
    if knows_bytes:
        cells[3].metric(
            "Sent per step",
            formatting.num_bytes(predicted.transfer_bytes),
            f"adds {formatting.seconds(sending, unit)}",
            delta_color="off",
            delta_arrow="off",
            help=f"{SENT} {glossary.CRITICAL}",
        )
    cells[-1].metric(
        "Ops per device",
        " / ".join(str(counts.get(d.name, 0)) for d in now.machine.devices[:MOST_COUNTS])
        + (" …" if len(now.machine.devices) > MOST_COUNTS else ""),
        help="In the order of the machine's devices: "
        + glossary.plain(", ".join(d.name for d in now.machine.devices[:9])),
    )
    if now.problem.graph.tokens is not None:
        said = tokens_in_words(predicted.tokens_per_s, predicted.first_token_s)
        bound_by = bound_in_words(roofline.waits_s(now.problem, now.placement))
        said = ", ".join(filter(None, (said, bound_by)))
        st.caption(f"{said[:1].upper()}{said[1:]}.", help=glossary.TOKENS)
    for broken in snapshot.violations_of(now):
        st.warning(glossary.plain(broken))


def origin(now: Studio) -> str:
    """Where a prediction comes from: the range that runs are expected in, or what its times are."""
    return range_told(now) or ORIGIN[now.problem.costs.origin]


def range_told(now: Studio) -> str:
    """What a run is expected to measure; empty where nobody can tell."""
    limits = now.simulated.range_s
    return range_in_words(limits, now.problem.unit) if limits else ""


def about_bound(now: Studio) -> str:
    """What a bound says, which is no more than the times that it is worked out from."""
    return glossary.ESTIMATED_BOUND if now.is_estimate else glossary.BOUND


def above(value_s: float, bound_s: float) -> str:
    """How far a placement is from what is known to be impossible."""
    if value_s <= bound_s * (1 + 1e-9):
        return "this is the best possible"
    above = formatting.gap(value_s, bound_s)
    return f"this is {formatting.percent(above)} above" if above else ""
