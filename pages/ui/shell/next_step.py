"""One line on every page that says what to do next, by what is known so far."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from studio.jobs import jobs
from studio.snapshot import Studio

PAGES = Path(__file__).parents[2]


@dataclass(frozen=True)
class Step:
    """What to say, and the page that it sends to; "" where it is to be done on the page itself."""

    text: str
    page: str = ""


def show(now: Studio, page: str) -> None:
    """Draw the line; a page that nobody wrote one for has none."""
    step = _next(now, page)
    if step is None:
        return
    if (PAGES / f"{step.page}.py").is_file():
        st.page_link(
            f"pages/{step.page}.py",
            label=step.text,
            icon=":material/arrow_forward:",
            width="content",
        )
    else:
        st.caption(f":material/arrow_forward: {step.text}")


def _next(now: Studio, page: str) -> Step | None:
    if page == "projects":
        return None
    try:
        _ = now.model, now.machine
        return STEPS.get(page, _nothing)(now)
    except ValueError:
        # Why the model cannot be opened is said by the page itself.
        if page == "model":
            return Step("Open another network on the left; this project keeps its placements.")
        return Step("This network cannot be opened as it is; choose another: Model", "model")


def _model(now: Studio) -> Step:
    if not now.settings.touched:
        return Step(
            "A sample, already placed: one colour per device. Open yours on the left, or improve"
            " it: Place",
            "place",
        )
    if now.is_estimate and now.can_measure:
        return Step(
            "Times are estimates so far. Measure this network on this computer: Devices", "devices"
        )
    if len(now.shelf.items) > 1:
        return _place(now)
    return Step("Let a method place this network, or move ops by hand: Place", "place")


def _on_devices(now: Studio) -> Step:
    if now.is_estimate and now.can_measure:
        return Step("Press Measure this model, and times are no estimates any more.")
    return Step("Let a method decide which device runs what: Place", "place")


def _place(now: Studio) -> Step:
    if not now.can_measure:
        return Step("See when each device is busy, and what decides the time: Timeline", "timeline")
    if _has_run(now):
        return Step("See when each device is busy, predicted and measured: Timeline", "timeline")
    return Step("See what this placement really takes on this computer: Run", "run")


def _run(now: Studio) -> Step | None:
    if _has_run(now):
        return Step("Hold this placement against others: Compare", "compare")
    return None


def _nothing(now: Studio) -> None:
    """For pages that say themselves what to do."""


def _has_run(now: Studio) -> bool:
    latest = jobs.latest(now.project.folder, "run")
    return latest is not None and latest.status == "done"


STEPS: dict[str, Callable[[Studio], Step | None]] = {
    "model": _model,
    "devices": _on_devices,
    "place": _place,
    "run": _run,
}
