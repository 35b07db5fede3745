"""What the placement on the screen would do on a changed machine, beside the machine as it is."""

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from pages.ui.panels import run_warnings, side_by_side, timeline_component, yardstick
from pages.ui.session import cache, choices, fragments
from pages.ui.session.current import studio
from pages.ui.shell import glossary, job_status, messages
from pages.ui.shell.messages import plain_errors
from pages.ui.what_if import conditions
from placement.api.wording import tokens_in_words
from placement.core import formatting
from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.costs.what_if import UNCHANGED, Conditions
from placement.schedule.simulated import busy_of
from placement.simulator.uncertainty import is_tie
from studio import standings
from studio.jobs import command_line
from studio.leaders import listed
from studio.snapshot import Studio

# Kernels times placements up to which the others are predicted at every move of a slider.
AT_ONCE = 20_000
MOST_DEVICES = 16
# Less of a difference than this is none, because it is not even shown.
NOTICEABLE = 5e-4
COUNTED = (
    "What a device needs is counted call after call, in the schedule's order; the table says how"
    " much that is."
)
ORIGIN = {"measured": "from measurements", "analytic": "estimate", "given": "from the file"}


@dataclass(frozen=True)
class Case:
    """One placement on the machine as it is and on the changed one; seconds of the goal.

    `range_s` holds what would be measured there, where anybody can tell.
    """

    name: str
    before_s: float
    after_s: float
    broken: tuple[str, ...]
    range_s: tuple[float, float] | None = None

    @property
    def ratio(self) -> float:
        """How many times as long it takes on the changed machine."""
        return self.after_s / self.before_s if self.before_s else 1.0


def case_of(posed: Problem, changed: Problem, name: str, placement: Placement) -> Case:
    there = cache.simulated(changed, placement)
    return Case(
        name,
        cache.simulated(posed, placement).value,
        there.value,
        cache.violations(changed, placement),
        there.range_s,
    )


@st.fragment(key="what-if")
@plain_errors()
def show() -> None:
    """Sliders on the left, what follows from them on the right; only this is drawn anew."""
    now = studio()
    messages.show()
    left, right = st.columns([0.36, 0.64], gap="medium")
    with left:
        st.subheader("The what-if machine", help="The machine of this project with other parts.")
        wanted = conditions.sliders(now)
        st.button(
            "Reset to the machine as it is",
            icon=":material/restart_alt:",
            disabled=wanted == UNCHANGED,
            on_click=_reset,
            width="stretch",
        )
    with right:
        _prediction(now, wanted)


def _prediction(now: Studio, wanted: Conditions) -> None:
    changed = cache.what_if(now.problem, wanted)
    case = case_of(now.problem, changed, now.named.name, now.placement)
    st.subheader("Simulated, not measured", help="No machine like this is here; all is computed.")
    said = glossary.plain(conditions.in_words(wanted))
    name = glossary.plain(now.named.name)
    st.caption(
        f"Placement **{name}** on a machine with {said}."
        if wanted != UNCHANGED
        else f"Placement **{name}** on the machine as it is: move a slider."
    )
    yardstick.remember(now, now.named.name, now.placement, case.before_s)
    _numbers(now, case, changed, disproved=run_warnings.disproved(now))
    for sentence in case.broken:
        st.warning(glossary.plain(sentence), icon=":material/memory:")
    st.table(
        {glossary.plain(key): value for key, value in figures(now, changed).items()},
        hide_header=False,
        alt="Figures of the placement on the machine as it is and on the what-if machine",
    )
    slowed = slowed_less(now, changed, wanted)
    if slowed:
        st.caption(glossary.plain(slowed))
    _others(now, changed, case)
    if st.toggle("Show both steps on one axis of time", key="what-if-steps"):
        _steps(now, changed)
    path = now.shelf.path(now.named.name)
    argv = command_line.what_if(now, wanted, path)
    job_status.command_box(argv)


def _numbers(now: Studio, case: Case, changed: Problem, *, disproved: bool) -> None:
    per, unit = now.settings.objective.per, now.problem.unit
    cells = st.columns(3)
    cells[0].metric(
        f"What-if time per {per}",
        formatting.seconds(case.after_s, unit),
        _change(case.ratio),
        delta_color="off",
        delta_arrow="off",
        help="Simulated.",
    )
    cells[1].metric(
        f"Time per {per} as it is",
        formatting.seconds(case.before_s, unit),
        "a run disproved its costs" if disproved else ORIGIN[now.problem.costs.origin],
        delta_color="off",
        delta_arrow="off",
        help=f"Simulated, with times {now.costs}.",
    )
    cells[2].metric(
        "Allowed there",
        "no" if case.broken else "yes",
        "memory and other rules",
        delta_color="off",
        delta_arrow="off",
        help=f"Whether the placement keeps within the memory limits and all rules. {COUNTED}",
    )


def _change(ratio: float) -> str:
    if abs(ratio - 1.0) < NOTICEABLE:
        return "no change"
    return f"{formatting.percent(abs(ratio - 1.0))} {'longer' if ratio > 1 else 'shorter'}"


def figures(now: Studio, changed: Problem) -> dict[str, list[str]]:
    """Columns of the table: what it is about, as it is, and on the changed machine."""
    used = set(now.placement.device_of.values())
    names = [d.name for d in now.machine.devices if d.name in used][:MOST_DEVICES]
    tokens = ["tokens"] if now.problem.graph.tokens is not None else []
    columns = {"": tokens + [f"{name}: {what}" for name in names for what in ("busy", "memory")]}
    for title, posed in (("As it is", now.problem), ("What if", changed)):
        simulated = cache.simulated(posed, now.placement)
        busy_s = busy_of(posed, simulated, now.placement)
        said = tokens_in_words(simulated.tokens_per_s, simulated.first_token_s)
        columns[title] = [said] if tokens else []
        for name in names:
            share = busy_s.get(name, 0.0) / simulated.value if simulated.value else 0.0
            busy = formatting.seconds(busy_s.get(name, 0.0), posed.unit)
            held = simulated.peak_bytes.get(name, 0)
            columns[title] += [f"{busy} ({formatting.percent(share)})", _held(posed, name, held)]
    return {key: [glossary.plain(text) for text in texts] for key, texts in columns.items()}


def slowed_less(now: Studio, changed: Problem, wanted: Conditions) -> str:
    """Why devices are busy for another time though their speed is the same; empty where none is.

    Those of one computer share its memory, and slow each other while they compute at once.
    """
    # In a throughput's loads sending counts, and may be another where links are.
    links_too = (wanted.bandwidth, wanted.latency, wanted.own_links) != (1.0, 1.0, ())
    if not now.problem.costs.contention or (links_too and now.problem.objective != "latency"):
        return ""
    before, after = (
        busy_of(posed, cache.simulated(posed, now.placement), now.placement)
        for posed in (now.problem, changed)
    )
    shares = {
        name: after.get(name, 0.0) / busy_s - 1.0
        for name, busy_s in before.items()
        if name in now.machine.index and name not in wanted.speed and busy_s
    }
    told = []
    for way, word in ((-1, "less"), (1, "more")):
        names = [name for name, share in shares.items() if share * way > NOTICEABLE]
        if names:
            verb = "is" if len(names) == 1 else "are"
            told.append(f"{listed(names)} {verb} busy for {word} time")
    if not told:
        return ""
    return (
        f"{' and '.join(told)} at the same speed: devices of one computer slow each other while"
        " they compute at once, and how long they do so is another there."
    )


def _held(posed: Problem, device: str, num_bytes: float) -> str:
    limit = posed.machine.device(device).memory_bytes
    held = formatting.num_bytes(num_bytes)
    if limit is None:
        return f"{held}, no limit"
    return f"{held} of {formatting.num_bytes(limit)}" + (", too much" * (num_bytes > limit))


def _others(now: Studio, changed: Problem, case: Case) -> None:
    """Whether another placement of the shelf would then be better."""
    items = [i for i in now.shelf.items if i.name != now.named.name]
    if not items:
        st.caption("There is no other placement to hold against it; the tab Board makes some.")
        return
    many = len(now.problem.kernels.ops) * len(items) > AT_ONCE
    if many and not st.toggle("Predict the other placements there too", key="what-if-others"):
        return
    cases = [case]
    for item in items:
        placement = standings.placement_of(now, item.name)
        cases.append(case_of(now.problem, changed, item.name, placement))
    cases.sort(key=lambda c: (bool(c.broken), c.after_s))
    st.markdown(verdict(case, cases, now.problem.unit))
    with st.expander(f"All {len(cases)} placements on this machine"):
        st.table(_ranking(cases, now), hide_header=False, alt="All placements, the best first")
    best = cases[0]
    if best.name != case.name and is_better(best, case):
        st.button(
            glossary.plain(f"Show {best.name} instead"),
            on_click=_choose,
            args=(best.name,),
            disabled=not choices.may_write(),
        )


def is_better(best: Case, case: Case) -> bool:
    """Whether a placement is better there: allowed where this one is not, or faster by more than a
    tie."""
    if best.broken:
        return False
    if case.broken:
        return True
    if is_tie(best.after_s, best.range_s, case.after_s, case.range_s):
        return False
    return best.after_s < case.after_s * (1 - NOTICEABLE)


def verdict(case: Case, cases: Sequence[Case], unit: str) -> str:
    """Which placement would be best there, in a sentence."""
    best = cases[0]
    if not is_better(best, case):
        if case.broken:
            return "No other placement of this project is allowed there either."
        if len(cases) == 2:
            return "The other placement would not be better there than this one."
        return f"None of the {len(cases) - 1} other placements would be better there than this one."
    reach = (
        f"**{glossary.plain(best.name)}** would be best: {formatting.seconds(best.after_s, unit)}"
    )
    if case.broken:
        return f"Of the placements that are allowed there, {reach}."
    gain = 1 - best.after_s / case.after_s
    return f"{reach}, {formatting.percent(gain)} shorter than this one there."


def _ranking(cases: Sequence[Case], now: Studio) -> dict[str, list[str]]:
    unit = now.problem.unit
    return {
        "Placement": [glossary.plain(c.name, 40) for c in cases],
        "What if": [glossary.plain(formatting.seconds(c.after_s, unit)) for c in cases],
        "As it is": [glossary.plain(formatting.seconds(c.before_s, unit)) for c in cases],
        "Change": [glossary.plain(_change(c.ratio)) for c in cases],
        "Allowed": ["no" if c.broken else "yes" for c in cases],
    }


def _steps(now: Studio, changed: Problem) -> None:
    parts = [
        (title, posed, cache.simulated(posed, now.placement))
        for title, posed in (("As it is", now.problem), ("What if", changed))
    ]
    timeline_component.draw(
        side_by_side.panels(now, parts), key="what-if-steps-drawn", of=now.shelf.folder.name
    )


def _reset() -> None:
    conditions.put(studio(), UNCHANGED)
    fragments.only("what-if")


def _choose(name: str) -> None:
    now = studio()
    if choices.renew_claim(now.project) and any(i.name == name for i in now.shelf.items):
        now.shelf.choose(name)
        # All of the page: whatever it says of one placement may not stay beside another.
        st.rerun()
