"""A step of a method as bars: the plan so far, and the alternatives of this step as ghosts."""

from collections.abc import Mapping, Sequence

from placement.core.problem import Problem
from placement.core.timeline import Span, Timeline
from placement.drawing import gantt, spans
from placement.search.steps import Step, ops_of_kernel


def end_s(steps: Sequence[Step]) -> float:
    """When the latest of all bars of a walk ends: one axis for all of its steps."""
    drawn = (span.end_s for step in steps for span in (*step.spans, *step.ghosts))
    return max(drawn, default=0.0)


def step_panel(
    problem: Problem,
    step: Step,
    before: Step,
    title: str,
    note: str,
    colours: Mapping[str, str],
    axis_s: float,
    *,
    hidden: bool = False,
    ghosts: bool = True,
) -> gantt.Panel:
    """The panel of a step; `hidden` shows the plan of the step `before` and every alternative.

    The winner of the alternatives is a bar of the plan and no ghost. Without `ghosts` there is the
    plan alone.
    """
    plan = before.spans if hidden else step.spans
    drawn = [g for i, g in enumerate(step.ghosts) if hidden or i != step.winner]
    return gantt.panel(
        "steps",
        title,
        note,
        Timeline(plan, axis_s, "predicted"),
        colours,
        sources=spans.Sources(problem.graph, _ops_of(problem)),
        # Empty and not None: the plan is not done.
        ghosts=drawn if ghosts else (),
    )


def _ops_of(problem: Problem) -> spans.OpsOf:
    index = problem.kernels.index

    def found(span: Span) -> tuple[str, ...]:
        if span.kind == "compute" and span.name in index:
            return ops_of_kernel(problem, index[span.name])
        return ()

    return found
