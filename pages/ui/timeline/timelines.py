"""Timelines of one step: predicted and measured on one axis, their bars tied to the picture."""

from dataclasses import dataclass

import streamlit as st

from pages.ui.canvas import device_colour
from pages.ui.consequence import asking, last_edit
from pages.ui.forms import run_form
from pages.ui.panels import run_warnings, timeline_component
from pages.ui.session import cache, choices, fragments
from pages.ui.session.current import on_screen, redraw, studio
from pages.ui.shell import glossary
from pages.ui.shell.messages import plain_errors
from placement.api.results.running import RunResult, StreamResult
from placement.api.wording import middle_step
from placement.core import formatting
from placement.drawing import gantt, spans
from placement.simulator.critical_path import critical_path
from placement.simulator.path_steps import waits
from studio import exercise
from studio.jobs import caveats, jobs, runs
from studio.snapshot import Studio

KEY = "gantt"
PREDICTED = "predicted"


@dataclass(frozen=True)
class Measured:
    """A finished run of the model and machine on the screen."""

    job: jobs.Job
    result: RunResult

    @property
    def streams(self) -> bool:
        return isinstance(self.result, StreamResult)

    @property
    def verb(self) -> str:
        return self.result.verb


def chosen(now: Studio) -> Measured | None:
    """The run beside the prediction: the one picked last, else the newest."""
    found = runs.here(now)
    shown = choices.run_shown()
    job = next((job for job in found if job.id == shown), found[0] if found else None)
    return None if job is None or job.ran is None else Measured(job, job.ran)


@st.fragment(key="timeline")
def show() -> None:
    """The numbers of prediction and run, and both timelines."""
    with plain_errors():
        now = studio()
        run = chosen(now)
        drawn = panels(now, run)
        timeline_component.draw(
            drawn,
            key=KEY,
            of=last_edit.axis_of(now),
            began=glossary.BEGINNING[now.settings.objective],
            selection=choices.selection(),
            on_pick=_on_pick,
            edited=timeline_component.Edited(
                PREDICTED if choices.may_write() else "",
                asking.about(now, drawn[0]),
                last_edit.seen(now, bars=True),
            ),
            targets=exercise.targets(now),
            fits=True,
        )
        if run is not None:
            _warn(now, run)
        _numbers(now, run)


def colours_of(now: Studio) -> dict[str, str]:
    """Devices in declared order, each in the colour that it has everywhere."""
    return {d.name: device_colour(i) for i, d in enumerate(now.machine.devices)}


def panels(now: Studio, run: Measured | None) -> list[gantt.Panel]:
    """The prediction of the placement on the screen, and below it the run."""
    key = cache.key_of(now.problem, now.placement)
    found = [_predicted(key, now.costs, now)]
    if run is None:
        return found
    return [*found, _measured(str(run.job.folder), _whose(now, run), key, now, run)]


@st.cache_resource(max_entries=64, show_spinner=False)
def _predicted(key: tuple[int, int], costs: str, _now: Studio) -> gantt.Panel:
    now, predicted = _now, _now.simulated
    alone = glossary.ALONE[now.settings.objective]
    return gantt.panel(
        PREDICTED,
        f"Predicted, {alone}" if alone else "Predicted",
        f"{formatting.seconds(predicted.timeline.step_s, now.problem.unit)}, times {costs}",
        predicted.timeline,
        colours_of(now),
        sources=spans.Sources(now.problem.graph, spans.ops_of(now.problem, predicted.schedule)),
        path=gantt.CriticalPath(
            predicted.critical_path,
            waits(now.problem, predicted.schedule, predicted.critical_path),
        ),
    )


def _whose(now: Studio, run: Measured) -> str:
    """Which placement ran, and that it is not the one above where it is another."""
    name = run.job.about.placement
    if not caveats.not_of_screen(now, run.job):
        return f"placement {name}"
    if runs.of_placement((run.job,), now.placement) is not None:
        return f"a run of {name}, which is the same placement as {now.named.name}"
    if lost := caveats.left(run.job):
        return f"a run of {name} that began again without {lost}"
    if name == now.named.name:
        return f"a run of {name} before it was {now.named.origin.changed}"
    return f"a run of {name} and not of {now.named.name}, which is on the screen"


@st.cache_resource(max_entries=64, show_spinner=False)
def _measured(job: str, of: str, key: tuple[int, int], _now: Studio, _run: Measured) -> gantt.Panel:
    now, run = _now, _run
    timeline, what = run.result.timeline, middle_step(run.result.steps_s)
    if run.streams:
        emulated = run.result.emulated
        what = "one sample alone" if emulated else "the first samples of the full pipeline"
    return gantt.panel(
        f"run-{run.job.id}",
        f"{run.verb}, {what}",
        f"{formatting.seconds(timeline.step_s)}, {of}",
        timeline,
        colours_of(now),
        sources=spans.Sources(now.problem.graph, ops_of(now, run)),
        # Samples of a pipeline wait for each other in ways that their spans do not tell.
        path=gantt.CriticalPath(() if run.streams else critical_path(timeline)),
        against=run.result.predicted_timeline,
    )


def ops_of(now: Studio, run: Measured) -> spans.OpsOf:
    """Source ops of the run's spans."""
    return runs.sources(now, run.job)[1]


def _on_pick() -> None:
    before, now = on_screen(), studio()
    done = timeline_component.apply(KEY, panels(now, chosen(now)))
    if done.selected:
        choices.look_at_selection()
    if done.edited:
        redraw(before)
    else:
        fragments.only(*fragments.SELECTED)


def _numbers(now: Studio, run: Measured | None) -> None:
    cells = st.columns([0.21, 0.21, 0.2, 0.38], vertical_alignment="bottom")
    predicted, goal = now.simulated.value, now.settings.objective
    cells[0].metric(
        f"Predicted {glossary.VALUE[goal]}",
        formatting.seconds(predicted, now.problem.unit),
        help=f"{glossary.VALUE_HELP[goal]} {glossary.ESTIMATE * now.is_estimate}",
    )
    if run is None:
        reason = run_form.why_not(now)
        if reason:
            is_model = now.model.has_weights
            said = "Cannot be measured here." if is_model else "No weights: predicted only"
            cells[1].caption(said, help=glossary.plain(reason))
            return
        with cells[1]:
            st.caption("Not measured yet: press Run above.")
        return
    measured = run.result.step_s.median
    cells[1].metric(
        f"{run.verb} {glossary.VALUE[goal]}",
        formatting.seconds(measured),
        help="The median of the run.",
    )
    if measured:
        error = formatting.percent(run.result.predicted_s / measured - 1.0, signed=True)
        if caveats.not_of_screen(now, run.job):
            cells[2].metric(
                "Its prediction",
                formatting.seconds(run.result.predicted_s),
                f"{error} off",
                delta_color="off",
                delta_arrow="off",
                help="The run is not of the placement on the screen; this is what was predicted"
                " for the one that ran.",
            )
        else:
            cells[2].metric(
                "Prediction error",
                error,
                help="Of what was predicted for the placement that ran, against what was"
                f" {run.verb.lower()}.",
            )
    with cells[3]:
        _run_menu(now, run)


def _run_menu(now: Studio, run: Measured) -> None:
    found = runs.here(now)
    labels = {job.id: run_form.label(job, brief=True) for job in found}
    key = f"timeline-run-{found[0].id}-{run.job.id}"
    st.selectbox(
        "Run",
        list(labels),
        index=list(labels).index(run.job.id),
        key=key,
        format_func=labels.__getitem__,
        on_change=_pick_run,
        args=(key, run.job.id),
    )


def _pick_run(key: str, drawn: str) -> None:
    wanted = choices.changed(key, drawn)
    if wanted is not None:
        choices.show_run(str(wanted))
    fragments.only("dock", "present")


def _warn(now: Studio, run: Measured) -> None:
    """What to know before comparing the two."""
    changed = caveats.not_of_screen(now, run.job)
    if changed:
        st.warning(glossary.plain(changed), icon=":material/edit_note:")
    if not run.streams and caveats.scatter(run.result):
        st.warning(caveats.scatter(run.result))
    if run.job.about.imported:
        st.info(run_warnings.IMPORTED, icon=":material/input:")
    if run.result.emulated:
        st.info("Emulated: the run followed a virtual clock, nothing was measured on hardware.")


def accuracy(run: Measured) -> list[dict[str, str]]:
    """Predicted beside measured busy time of every device and link, for the placement that ran."""
    result = run.result
    if isinstance(result, StreamResult):
        predicted, measured = result.loads_s, result.busy_s
    else:
        predicted, measured = result.predicted_timeline.busy_s(), result.timeline.busy_s()
    rows = []
    for name in dict.fromkeys((*predicted, *measured)):
        guess_s, found_s = predicted.get(name), measured.get(name)
        error = guess_s / found_s - 1 if guess_s is not None and found_s else None
        rows.append(
            {
                "Device or link": gantt.shown(name),
                "Predicted": "" if guess_s is None else formatting.seconds(guess_s),
                run.verb: "not watched" if found_s is None else formatting.seconds(found_s),
                "Error": "" if error is None else formatting.percent(error, signed=True),
            }
        )
    return rows
