"""What a picture needs to ask what a move would do."""

from pages.ui.consequence import questions, route
from placement.drawing.gantt import Panel
from studio.snapshot import Studio


def about(now: Studio, panel: Panel | None = None) -> dict[str, str]:
    """Where to ask, and what stands for the placement that is drawn; `panel` is its timeline."""
    return {"address": route.address(), "of": questions.show(now, panel)}
