"""How a method came to its placement: its account in words, and its best value over time."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import streamlit as st

from pages.ui.panels import charts
from pages.ui.shell import glossary
from placement.api.results.placing import PlaceResult
from placement.core import formatting
from placement.core.objective import Objective
from studio.jobs import jobs
from studio.jobs.event_log import Event, Progress
from studio.project.facts import Facts
from studio.snapshot import Studio

PATIENCE_S = 4.0
COMPILING = (
    "When a method is used for the first time on a computer it is compiled to machine code; that"
    " can take a minute and does not count as its time."
)

LEARNING = (
    "A method that learns tries placements by chance and makes the better ones likelier. The mean"
    " of what it tries falls while it learns. Entropy says how undecided it is: high at first, near"
    " 0 once it always tries much the same."
)
OF_THEN = "Nothing here can be held against the values of now"


@dataclass(frozen=True)
class Curve:
    """Best value and proven bound (0: none) in `unit`, by seconds since the method began.

    A method that learns also has the mean of what it tries, in `unit`, and the entropy of its
    decisions, None where it did not tell them; of others both are empty.
    """

    seconds: tuple[float, ...]
    best: tuple[float, ...]
    bound: tuple[float, ...]
    unit: str
    mean: tuple[float | None, ...] = ()
    entropy: tuple[float | None, ...] = ()


class _Point(NamedTuple):
    seconds: float
    best: float
    bound: float
    mean: float | None = None
    entropy: float | None = None


def curve_of(events: Sequence[Event]) -> Curve | None:
    """The curve that a place job's events tell; None before it has reported two values.

    Only the points at which something changes are kept, and the last one. The result ends the
    curve, because its value is the one that counts.
    """
    told = [e for e in events if isinstance(e, Progress) and e.best is not None]
    if len(told) < 2:
        return None
    points = [
        _Point(e.seconds or 0.0, e.best or 0.0, e.bound or 0.0, e.mean, e.entropy) for e in told
    ]
    result = next((e for e in events if isinstance(e, PlaceResult)), None)
    if result is not None:
        points.append(_Point(result.seconds, result.value, result.lower_bound))
        if not any(point.bound for point in points[:-1]):
            points = [point._replace(bound=result.lower_bound) for point in points]
    changes = [point for before, point in pairwise(points) if point[1:] != before[1:]]
    last = [] if changes and changes[-1] == points[-1] else points[-1:]
    seconds, best, bound, mean, entropy = zip(*points[:1], *changes, *last, strict=True)
    curve = Curve(seconds, best, bound, told[0].unit)
    return replace(curve, mean=mean, entropy=entropy) if any(entropy) else curve


def live(job: jobs.Job) -> None:
    """What a method has found so far, below the progress of its job."""
    curve = curve_of(job.events)
    if not _has_begun(job) and time.time() - job.started_at > PATIENCE_S:
        st.caption(COMPILING)
    if curve is not None:
        _chart(curve, job, "curve-live")
        latest = job.last(Progress) or Progress()
        note = latest.note or (
            f"{formatting.counted(latest.evaluations, 'placement')} tried"
            if latest.evaluations
            else ""
        )
        if note:
            st.caption(glossary.plain(f"{note}."), help=_help(note))


def _has_begun(job: jobs.Job) -> bool:
    """Whether the method itself has said something; a job that waits has said why."""
    return job.status == "waiting" or any(e.seconds is not None for e in job.all(Progress))


def show(now: Studio) -> None:
    """How the placement on the screen was found, where a method found it."""
    facts = now.named.facts
    if facts.seconds is None:
        return
    account = facts.account or ""
    best = "proven to be the best possible" if facts.proven_optimal else ""
    found = f"Found by {now.named.made_by} in {formatting.seconds(facts.seconds)}"
    stale = _what_changed(now, facts)
    told = "" if stale else f": {account}" if account else f", {best}" if best else ""
    told += f"; loads charged with: {facts.rules}" if facts.rules else ""
    told += _held(facts)
    if stale:
        told += f", {stale}; its values of then are left out, and Place asks it again"
    st.caption(glossary.plain(f"{found}{told}."), help=_help(account))
    job = job_of(now)
    # A comparison tells values of several methods, and none of them is the end of one search.
    curve = None if job is None or job.verb == "compare" else curve_of(job.events)
    if job is not None and curve is not None:
        # Drawn once somebody looks: the browser fetches more for a chart than for all the rest.
        box = st.expander("How the search went", key="search-open", on_change="rerun")
        if box.open:
            with box:
                if stale:
                    st.caption(glossary.plain(f"{OF_THEN}: {stale}."))
                _chart(curve, job, f"curve-{job.id}")


def _what_changed(now: Studio, facts: Facts) -> str:
    """In what the problem that the method solved is not the one of now; empty where it is the same.

    Of one that placed a selection alone only the goal can be told: what it had to leave where it
    was is part of its problem.
    """
    goal = facts.objective
    if goal not in (None, now.settings.objective):
        return f"for another goal, {Objective(goal).heading.lower()}"
    if facts.problem is None or facts.num_selected:
        return ""
    # Where nothing was pinned it is the plain problem's still, whatever is pinned by now.
    if facts.problem in (now.problem.fingerprint, now.pinned_problem.fingerprint):
        return ""
    return "before pins, measured times or the machine changed"


def _held(facts: Facts) -> str:
    """What the method could not move: its value and its bound are of that task alone."""
    selected, pinned = facts.num_selected, facts.num_pinned
    said = [f"for the selection in {facts.start!r} alone"] if selected else []
    said += ["with pinned ops"] if pinned else []
    said += ["stopped early"] if facts.cancelled else []
    return "".join(f"; {part}" for part in said)


def _help(account: str) -> str | None:
    """What an account means that says how far the optimum can be."""
    return glossary.OPTIMUM if "optim" in account else None


def groups(now: Studio) -> tuple[int, ...]:
    """The group of each op, in the graph's order, that the placement's method formed; empty where
    it formed none."""
    job = job_of(now)
    found = job.result if job is not None else None
    formed = (found.groups or ()) if isinstance(found, PlaceResult) else ()
    return formed if len(formed) == len(now.model.graph.ops) else ()


def job_of(now: Studio) -> jobs.Job | None:
    """The job that found the placement; a copy of a project may have none."""
    job_id = now.named.facts.job
    try:
        return jobs.read(now.project.folder, job_id) if job_id else None
    except ValueError:
        return None


def _chart(curve: Curve, job: jobs.Job, key: str) -> None:
    per = job.about.goal.per
    figure = charts.best_so_far(
        curve.seconds,
        curve.best,
        curve.bound,
        curve.unit,
        per,
        mean=curve.mean,
        entropy=curve.entropy,
    )
    st.plotly_chart(figure, key=key, config=charts.CONFIG)
    if curve.entropy:
        st.caption(LEARNING)
