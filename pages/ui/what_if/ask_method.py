"""What a method would do on a what-if machine: asked in a job, kept apart from real placements."""

import dataclasses
from collections.abc import Sequence

import streamlit as st
from streamlit.elements.lib.column_types import ButtonColumnResult, ColumnConfig

from pages.ui.forms import option_fields
from pages.ui.panels import search_account
from pages.ui.session import cache, choices
from pages.ui.session.current import carry_out, studio
from pages.ui.shell import job_status
from pages.ui.what_if import conditions
from placement.constraints.fusion import mended
from placement.core import formatting
from placement.core.objective import Objective
from placement.core.verb_options import PlaceOptions, option_of
from placement.costs.what_if import Conditions
from studio.jobs import jobs, kinds, methods, outcomes
from studio.project.facts import Facts, Named
from studio.project.placements import Shelf
from studio.snapshot import Studio

HELP = (
    "The method places the model for the machine that the sliders describe. What it finds is kept"
    " in a list of its own, apart from the placements of the real machine."
)


def show(now: Studio) -> None:
    """Ask a method, watch it, and see what was found for earlier conditions."""
    st.subheader("What would a method do there?", help=HELP)
    _form(now)
    job_status.show(now, "what-if", search_account.live)
    _answers(now)


def _form(now: Studio) -> None:
    offered = methods.fitting(now.problem)
    locked = not choices.may_write()
    method, limit, go = st.columns([0.4, 0.25, 0.35], vertical_alignment="bottom")
    name = method.selectbox(
        "Method", list(offered), key=choices.own("what-if-method"), disabled=locked
    )
    limit_s = option_fields.number(
        limit,
        option_of(PlaceOptions, "time_limit_s"),
        choices.own(f"what-if-limit-{name}"),
        value=methods.time_limit_s(offered[name]),
        help=None,
        placeholder="none",
        disabled=locked,
    )
    go.button(
        "Place for the what-if machine",
        type="primary",
        width="stretch",
        disabled=locked or jobs.is_live(now.project.folder, "what-if"),
        on_click=_ask,
        args=(name, limit_s),
    )


def _ask(name: str, limit_s: float | None) -> None:
    """With what sliders and fields hold now: a click may come before the page was drawn with it."""
    placer = str(choices.typed(choices.own("what-if-method"), name))
    limit_s = choices.typed(choices.own(f"what-if-limit-{placer}"), limit_s)
    options = PlaceOptions(placer=placer, time_limit_s=limit_s)
    carry_out(lambda now: kinds.start_what_if(now, conditions.live(now), options))


def _answers(now: Studio) -> None:
    shelf = outcomes.what_if_shelf(now.project.folder, now.shelf.folder.name)
    items = shelf.items[::-1]
    if not items:
        st.caption("Nothing was asked yet for this model and these devices.")
        return
    names = [item.name for item in items]
    column = st.column_config
    locked = not choices.may_write()
    buttons: dict[str, ColumnConfig | ButtonColumnResult] = {}
    if not locked:
        buttons = {
            "Sliders": column.ButtonColumn(
                key="what-if-set", on_click=_set, args=(names,), help="Set the sliders like that."
            ),
            "Placement": column.ButtonColumn(
                key="what-if-keep",
                on_click=keep,
                args=(names,),
                help="Put it among the placements of the real machine, to look at, edit and run.",
            ),
        }
    st.dataframe(
        [_cells(now, item) for item in items],
        column_config={
            "There": column.TextColumn(help="Simulated on its what-if machine."),
            "Here": column.TextColumn(help="Simulated on the machine as it is."),
            "For": column.TextColumn(width="medium"),
            **buttons,
        },
        column_order=["Method", *buttons, "There", "Here", "For", "Goal"],
        hide_index=True,
        key="what-if-answers",
        alt="What methods found for what-if machines, the newest first",
    )
    st.caption("All simulated. These placements are for machines that are not here.")


def values_of(now: Studio, item: Named) -> tuple[str, str]:
    """What an answer takes on its machine and on the one as it is, by the times of now."""
    posed, goal = now.problem, item.facts.objective or Objective.LATENCY
    if goal != now.settings.objective:
        posed = now.problem_for(goal)
    shelf = outcomes.what_if_shelf(now.project.folder, now.shelf.folder.name)
    placement = mended(posed, shelf.read(item.name))
    there, here = (
        cache.simulated(problem, placement).value
        for problem in (cache.what_if(posed, conditions_of(item)), posed)
    )
    return formatting.seconds(there, posed.unit), formatting.seconds(here, posed.unit)


def _cells(now: Studio, item: Named) -> dict[str, object]:
    there, here = values_of(now, item)
    return {
        "Method": item.name,
        "For": conditions.in_words(conditions_of(item)),
        "There": there,
        "Here": here,
        "Goal": (item.facts.objective or Objective.LATENCY).goal,
        "Sliders": "Set",
        "Placement": "Keep",
    }


def conditions_of(item: Named) -> Conditions:
    told = item.facts.what_if
    return Conditions() if told is None else told.conditions()


def _clicked(now: Studio, key: str, names: Sequence[str]) -> tuple[Shelf, Named] | None:
    """The row whose button was clicked, where it is still there."""
    click = choices.typed(key, None)
    if click is None or not 0 <= click["row"] < len(names):
        return None
    shelf = outcomes.what_if_shelf(now.project.folder, now.shelf.folder.name)
    found = next((i for i in shelf.items if i.name == names[click["row"]]), None)
    return None if found is None else (shelf, found)


def _set(names: Sequence[str]) -> None:
    now = studio()
    clicked = _clicked(now, "what-if-set", names)
    if clicked is not None:
        conditions.put(now, conditions_of(clicked[1]))


def keep(names: Sequence[str]) -> None:
    """Copy the placement to the real machine's shelf, with nothing that was claimed about it."""
    now = studio()
    clicked = _clicked(now, "what-if-keep", names)
    if clicked is None or not choices.renew_claim(now.project):
        return
    shelf, item = clicked
    placement = dataclasses.replace(shelf.read(item.name), machine=now.machine.name)
    facts = Facts(made_for=conditions.in_words(conditions_of(item)))
    name = now.shelf.add(item.name, placement, item.made_by, facts, show=False)
    now.project.change()
    choices.say("success", f"{name} is now among the placements; here it is predicted anew.")
    st.rerun()
