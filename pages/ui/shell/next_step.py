"""One line on every page that says what to do next, by what is known so far."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from studio.jobs import caveats, jobs
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
    if page in ("lessons", "projects"):
        return None
    try:
        _ = now.model, now.machine
        if page in ("studio", "model") and now.unplaced:
            # The page itself says why, and what would help.
            return None
        return STEPS.get(page, _nothing)(now)
    except ValueError:
        # Why the model cannot be opened is said by the page itself.
        if page == "model":
            return Step("Open another network on the left; this project keeps its placements.")
        return Step("This network cannot be opened as it is; choose another: Model", "model")


def _studio(now: Studio) -> Step | None:
    if not now.settings.touched:
        return Step(
            "A sample, already placed: one colour per device. Press Place to improve it, drag ops"
            " onto a device, or open your own network: Model",
            "model",
        )
    measuring = jobs.is_live(now.project.folder, "profile")
    if now.is_estimate and now.can_measure and not measuring:
        return Step(
            "Times are estimates so far. Measure this network on this computer: Devices", "devices"
        )
    if now.can_measure and not measuring and caveats.disproof(now) is not None:
        again = "" if now.is_estimate else " again"
        return Step(
            f"A run took less than the costs allow. Measure this network{again}: Devices", "devices"
        )
    return None


def _model(now: Studio) -> Step:
    if not now.settings.touched:
        return Step(
            "A sample, already placed: one colour per device. Open yours on the left, or improve"
            " it: Studio",
            "studio",
        )
    return Step("Let a method place this network, or move ops by hand: Studio", "studio")


def _on_devices(now: Studio) -> Step:
    if now.is_estimate and now.can_measure:
        return Step("Press Measure this model, and times are no estimates any more.")
    return Step("Let a method decide which device runs what: Studio", "studio")


def _nothing(now: Studio) -> None:
    """For pages that say themselves what to do."""


STEPS: dict[str, Callable[[Studio], Step | None]] = {
    "studio": _studio,
    "model": _model,
    "devices": _on_devices,
}
