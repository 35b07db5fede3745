"""What a training run has shown: how fast its steps were, the loss, and what moved and why."""

import streamlit as st

from pages.ui.panels.charts import CONFIG
from pages.ui.run import results, training_charts
from pages.ui.shell import glossary
from placement.api.results.training import Move, TrainResult
from placement.api.wording import is_scattered
from placement.core import formatting
from studio.jobs import jobs, runs
from studio.snapshot import Studio

MOST_ROWS = 500
BETWEEN = (
    "Testing the cores, looking for a better placement and switching to it happen between steps and"
    " are no part of the step times."
)
SCATTERED = (
    "The steps scattered: something else kept this computer busy for a while. Adjusting answers to"
    " that, so what moved is of this run and no advice for a quiet computer."
)
MARGIN = "Ops move only where that is predicted to save enough to pay for the move."


def show(now: Studio, job: jobs.Job) -> None:
    """Everything a training run said, the most asked first."""
    result = job.trained
    assert result is not None
    about = job.about
    stopped = ", stopped early" if result.cancelled else ""
    st.caption(
        glossary.plain(
            f"{about.model} on {about.machine}, begun with the placement"
            f" {about.placement}, {formatting.counted(result.steps, 'step')}{stopped}"
        )
    )
    if result.emulated:
        st.info(
            "Emulated: the steps followed a virtual clock. Nothing was computed, so there is no"
            " loss.",
            icon=":material/theater_comedy:",
        )
    if not runs.is_of_this(now, job):
        st.warning("This training run was of another model or machine than the one now open.")
    _numbers(result)
    if is_scattered(result.step_s):
        st.warning(SCATTERED)
    _curves(result)
    _moves(result)


def _numbers(result: TrainResult) -> None:
    cells = st.columns(4)
    losses = result.losses
    results.step_time(cells[0], result)
    cells[1].metric(
        "Predicted",
        formatting.seconds(result.predicted_final_s),
        f"{formatting.seconds(result.predicted_s)} at the start",
        delta_color="off",
        delta_arrow="off",
        help="For the placement at the end, at the speed that the devices then had.",
    )
    cells[2].metric(
        "Loss",
        formatting.loss(losses.last) if losses else "not computed",
        f"{formatting.loss(losses.first)} at the start" if losses else "",
        delta_color="off",
        delta_arrow="off",
    )
    between_s = result.between_steps_s.sum_s
    number = len(result.moves)
    cells[3].metric(
        "Moves",
        number if result.adjusted else "off",
        f"{formatting.seconds(between_s)} between steps",
        delta_color="off",
        delta_arrow="off",
        help=f"How often other devices took over ops. {BETWEEN}",
    )


def _curves(result: TrainResult) -> None:
    st.subheader("Step times")
    curve = training_charts.step_curve(result.steps_s, result.predicted_steps_s, result.moves)
    st.plotly_chart(curve, key="training-steps", config=CONFIG)
    if result.all_losses:
        st.subheader("Loss")
        st.plotly_chart(
            training_charts.loss_curve(result.all_losses), key="training-loss", config=CONFIG
        )


def _moves(result: TrainResult) -> None:
    """What moved and why, and after which changes nothing did."""
    if not result.adjusted:
        return
    st.subheader("What moved", help=MARGIN)
    if not result.moves:
        st.markdown("Nothing: the ops stayed where the placement has them.")
    for number, move in enumerate(result.moves, 1):
        st.markdown(sentence(number, move))
    for stay in result.stays:
        st.markdown(
            f"Before step {stay.step + 1} a change was seen, but nothing moved:"
            f" {glossary.plain(stay.reason)}."
        )
    rows = [
        {"Move": number, "Op": op, "From": src, "To": dst}
        for number, move in enumerate(result.moves, 1)
        for op, src, dst in move.ops
    ]
    if rows:
        number = len({row["Op"] for row in rows})
        with st.expander(
            f"{formatting.counted(number, 'op')} moved,"
            f" {formatting.counted(len(rows), 'time')} in all"
        ):
            st.dataframe(rows[:MOST_ROWS], hide_index=True, height=280)
            if len(rows) > MOST_ROWS:
                st.caption(f"The first {MOST_ROWS} are shown.")


def sentence(number: int, move: Move) -> str:
    """A move in plain words."""
    ops = formatting.counted(move.ops_moved, "op")
    why = glossary.plain(move.reason)
    return (
        f"**Move {number}, before step {move.step + 1}:** {why}."
        f" {ops} changed device, with {formatting.num_bytes(move.bytes_moved)} of weights and"
        f" optimiser state. Looking for it took {formatting.seconds(move.solve_s)}, switching"
        f" {formatting.seconds(move.switch_s)}."
    )
