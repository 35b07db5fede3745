"""Train the model that is open: start, watch and stop; older runs can be looked at again."""

import time
from functools import partial

import streamlit as st

from pages.ui.forms import option_fields, run_form
from pages.ui.panels.charts import CONFIG
from pages.ui.run import training_charts, training_results
from pages.ui.session import choices
from pages.ui.session.current import carry_out
from pages.ui.shell import glossary, job_status
from placement.api.results.training import Move
from placement.api.train import is_training
from placement.core import formatting
from placement.core.objective import Objective
from placement.core.verb_options import TrainOptions
from studio.jobs import command_line, jobs, kinds, runs
from studio.jobs.event_log import Step
from studio.snapshot import Studio

MEASURE, TRAIN = "Measure steps", "Train"
KEYS = {
    "steps": "train-steps",
    "seed": "train-seed",
    "adjust": "train-adjust",
    "resume": "train-resume",
}
ABOUT = (
    "Measuring repeats one and the same step. Training goes on from step to step, so that the"
    " loss falls, always on the same made-up batch."
)
ADJUST = (
    "While it trains, the studio watches how long each device takes and tests every core now and"
    " then. When a device has become slower or faster for good, as when another program takes a"
    " core, the ops are placed anew between two steps. Short disturbances change nothing."
)


def is_wanted(now: Studio) -> bool:
    """Draw the choice between measuring and training, where the model open can be trained."""
    if not is_training(now.model.graph):
        return False
    key = choices.own("run-what")
    picked = st.radio(
        "What to run",
        (MEASURE, TRAIN),
        index=int(choices.remembered("run-what", MEASURE) == TRAIN),
        key=key,
        on_change=choices.remember("run-what", key),
        horizontal=True,
        help=ABOUT,
    )
    return picked == TRAIN


def show(now: Studio) -> None:
    """The controls, the run that is going on, and the one that is looked at."""
    options = _controls(now)
    job_status.show(now, "train", live_curves)
    argv = command_line.train(now, now.shelf.path(now.named.name), options)
    job_status.command_box(argv)
    shown = _chosen(now)
    if shown is not None:
        training_results.show(now, shown)
    elif not jobs.is_live(now.project.folder, "train"):
        st.info(
            f"Not trained yet. A step of the placement {glossary.plain(now.named.name)} is"
            f" predicted to take {formatting.seconds(now.simulated.value, now.problem.unit)}"
            f" ({now.costs})" + ("; press Train to start." if not why_not(now) else "."),
            icon=":material/model_training:",
        )


def _controls(now: Studio) -> TrainOptions:
    """The form, and what it holds."""
    locked = not choices.may_write()
    cells = st.columns([0.2, 0.2, 0.36, 0.24], vertical_alignment="bottom")
    steps = option_fields.kept_number(
        cells[0], TrainOptions, "steps", KEYS["steps"], disabled=locked
    )
    seed = option_fields.seed(cells[1], TrainOptions, KEYS["seed"], disabled=locked)
    adjust = option_fields.kept_toggle(
        cells[2], TrainOptions, "adjust", KEYS["adjust"], help=ADJUST, disabled=locked
    )
    resume = run_form.may_lose_hosts(now) and option_fields.kept_toggle(
        cells[2], TrainOptions, "resume", KEYS["resume"], disabled=locked
    )
    options = TrainOptions(steps=int(steps), seed=int(seed), adjust=adjust, resume=resume)
    reason = why_not(now)
    cells[3].button(
        "Train" if not now.emulated else "Train (emulated)",
        type="primary",
        icon=":material/model_training:",
        disabled=locked or jobs.is_live(now.project.folder, "train") or bool(reason),
        on_click=_start,
        args=(options,),
        width="stretch",
    )
    if reason:
        st.info(glossary.plain(reason))
    elif now.is_estimate and now.can_measure:
        st.caption("Not measured on this machine yet: training measures the model first.")
    return options


def why_not(now: Studio) -> str:
    """Why the current placement cannot be trained here; empty where it can."""
    if now.settings.objective is not Objective.LATENCY:
        goal = Objective.LATENCY.heading
        return f"Training runs step after step; to train, choose the goal {goal!r} in Settings."
    return run_form.why_not(now)


def live_curves(job: jobs.Job) -> None:
    """The steps so far, what moved, and the loss."""
    steps = job.all(Step)
    if not steps:
        return
    curve = training_charts.step_curve(
        [step.seconds for step in steps], [step.predicted_s for step in steps], job.all(Move)
    )
    st.plotly_chart(curve, key=f"training-{job.id}", config=CONFIG)
    losses = [step.loss for step in steps]
    if any(loss is not None for loss in losses):
        st.plotly_chart(
            training_charts.loss_curve(losses), key=f"training-loss-{job.id}", config=CONFIG
        )


def _chosen(now: Studio) -> jobs.Job | None:
    """The finished training run on the screen: the one picked from the list, else the newest."""
    done = runs.finished(now.project, "train")
    if len(done) < 2:
        return done[0] if done else None
    by_id = {job.id: job for job in done}
    key = choices.own(f"trained-{done[0].id}")
    picked = st.selectbox(
        "Training run", list(by_id), key=key, format_func=lambda i: label(by_id[i])
    )
    return by_id.get(picked, done[0])


def label(job: jobs.Job) -> str:
    """A finished training run in a list."""
    assert job.trained is not None
    age = formatting.age(time.time() - job.started_at)
    return f"{job.about.placement}: {kinds.trained_in_short(job.trained)}, {age}"


def _start(drawn: TrainOptions) -> None:
    carry_out(partial(kinds.start_training, options=option_fields.typed(drawn, KEYS)))
