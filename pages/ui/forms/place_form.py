"""What lets a method place the model: menu, settings with goal and limits, and the button."""

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from pages.ui.forms import option_fields, policy_fields
from pages.ui.forms import settings as forms
from pages.ui.session import choices
from pages.ui.session.current import carry_out, studio
from pages.ui.shell import glossary
from placement.api import lessons
from placement.core import formatting
from placement.core.objective import Objective
from placement.core.verb_options import PlaceOptions, option_of
from placement.placers import current_name
from placement.search.feasible import no_room_for_weights
from studio.jobs import command_line, jobs, kinds, methods
from studio.jobs.methods import Method
from studio.snapshot import Studio

GOAL_HELP = (
    "Shortest step: one input goes through as fast as it can. Most samples per second: many inputs"
    " follow each other, and the busiest device sets the pace."
)

# Keys of the fields of what is measured while a method learns, by the option's name.
LIVE = {
    "live": "place-live",
    "live_placements": "place-live-placements",
    "live_limit_s": "place-live-limit",
}
SEARCH_ON = {"search_on": "place-search-on"}
RACE_HELP = (
    "When the method is done, its best placements, those made by hand or from a file, each device"
    " alone and the whole CPU as one device run on this computer, turn by turn, until it is certain"
    " which is the fastest, or the seconds below are over. The answer is the fastest by"
    " measurement; the Board has the times of all."
)
LIVE_HELP = (
    "When the time limit of the search is over, the method goes on with steps that are measured on"
    " this computer: placements near the best one, and of what it learned, run in turns with it."
    " The answer is the fastest by measurement, never slower than what it began with. A hundred"
    " placements of a small network take a minute or two."
)


@dataclass(frozen=True)
class Asked:
    """What the fields ask for; its settings are the ones that differ from the method's defaults."""

    method: Method
    options: PlaceOptions


def show(now: Studio) -> None:
    """Draw it into a line: the method, what else can be set, and the button."""
    offered = methods.offered(now.problem)
    locked = not choices.may_write()
    remembered = _remembered()
    name = st.selectbox(
        "Method",
        list(offered),
        index=list(offered).index(remembered) if remembered in offered else 0,
        key=_method_key(now),
        on_change=choices.remember("placer", _method_key(now)),
        help=f"{glossary.AUTO} What the chosen method does stands in Settings.",
        disabled=locked,
    )
    with st.popover("Settings", disabled=locked):
        _about(now, offered[name])
        _goal_and_limit(now, offered[name], locked)
        option_fields.seed(st, PlaceOptions, "place-seed", disabled=locked)
        option_fields.search_on(st, PlaceOptions, SEARCH_ON["search_on"])
        if _may_measure(now):
            _live_fields(offered[name], locked)
        forms.settings_form(name, offered[name].settings, disabled=locked)
        policy_fields.show(now, offered[name], disabled=locked)
    _button(now, offered[name])


def _goal_and_limit(now: Studio, method: Method, locked: bool) -> None:
    st.selectbox(
        "Goal",
        list(Objective),
        index=list(Objective).index(now.settings.objective),
        format_func=lambda goal: Objective(goal).heading,
        key=_goal_key(now),
        on_change=_set_goal,
        args=(_goal_key(now), now.settings.objective),
        help=GOAL_HELP,
        disabled=locked,
    )
    rules = now.problem.rules.words
    if rules:
        st.caption(glossary.plain(f"Loads are charged with: {rules}. Devices has the settings."))
    option_fields.number(
        st,
        option_of(PlaceOptions, "time_limit_s"),
        _limit_key(now, method.name),
        value=choices.remembered(f"time-limit-{method.name}", methods.time_limit_s(method)),
        placeholder="none",
        on_change=choices.remember(f"time-limit-{method.name}", _limit_key(now, method.name)),
        help="A search stops then and gives the best it has found.",
        disabled=locked,
    )


def _may_measure(now: Studio) -> bool:
    """Whether placements can be measured by their steps here."""
    return now.can_measure and now.settings.objective is Objective.LATENCY


def _live_fields(method: Method, locked: bool) -> None:
    """Whether to measure in the end, and how much of it, by how the method does that."""
    asked = option_of(PlaceOptions, "live")
    told = LIVE_HELP if method.learns_live else RACE_HELP
    st.toggle(asked.label, key=choices.own(LIVE["live"]), help=told, disabled=locked)
    name, step = ("live_placements", 1) if method.learns_live else ("live_limit_s", 5.0)
    option_fields.number(
        st,
        option_of(PlaceOptions, name),
        choices.own(LIVE[name]),
        step=step,
        disabled=locked or not choices.typed(choices.own(LIVE["live"]), False),
    )


@st.fragment(key="command")
def command() -> None:
    """What the button and the prediction are on the command line; drawn anew when pins change."""
    # What shows code is the largest script that a browser loads here: only where it is wanted.
    box = st.expander("The same on the command line", key="command-open", on_change="rerun")
    if not box.open:
        return
    now = studio()
    asked = _asked(now)
    place = command_line.place(
        now,
        asked.options,
        held=command_line.fixed_ops(now),
        beside=command_line.own_placements(now, asked.options),
        out=f"{asked.options.placer}.json",
    )
    simulate = command_line.simulate(now, now.shelf.path(now.named.name))
    with box:
        st.caption("Place with this method, and predict the placement on the screen:")
        code = f"{command_line.text(place)}\n{command_line.text(simulate)}"
        st.code(code, language="bash", wrap_lines=True)


def selection_button(now: Studio) -> None:
    """A button that lets the chosen method decide for the selected ops alone."""
    ops = choices.selection()
    method = _chosen(now)
    st.button(
        "Place selection",
        key="place-selection",
        disabled=not ops or _is_locked(now, method),
        on_click=_start_selection,
        help=f"Lets the method {method.name} decide for the selected ops alone. All others stay"
        " where they are, and so do pinned ops. The answer is a new placement.",
    )


def _button(now: Studio, method: Method) -> None:
    reason = _why_not(now, method)
    st.button(
        "Place",
        type="primary",
        disabled=_is_locked(now, method),
        on_click=_start,
        args=(_goal_key(now), now.settings.objective),
        help="Let the method decide which device runs what."
        if not reason
        else glossary.plain(reason),
    )


def _is_locked(now: Studio, method: Method) -> bool:
    busy = jobs.is_live(now.project.folder, "place")
    return busy or bool(_why_not(now, method)) or not choices.may_write()


def _why_not(now: Studio, method: Method) -> str:
    """Why the method has nothing to begin with, in a sentence; empty where it has."""
    if not _fits(now, method):
        return "This method does not work for the chosen goal."
    reason = no_room_for_weights(now.problem)
    return f"No method can place this: {reason}." if reason else ""


def _fits(now: Studio, method: Method) -> bool:
    return now.settings.objective in method.objectives


def _about(now: Studio, method: Method) -> None:
    said = [glossary.plain(method.summary.rstrip(".")) + "."]
    if now.settings.objective not in method.objectives:
        said.append(f"It does not work for the goal {now.settings.objective.heading}.")
    if method.needs:
        said.append(glossary.plain(f"Needs: {', '.join(method.needs)}."))
    if now.is_estimate and now.can_measure:
        said.append("Not measured on this machine yet: placing measures the model first.")
    others = methods.left_out(now.problem)
    if others:
        number = formatting.counted(len(others), "method")
        said.append(f"Not in the menu: {number} for other kinds of files.")
    notes = [f"Paper: {method.paper}."] if method.paper else []
    notes += [f"Lesson {told}." for told in lessons.about_method(method.name)]
    notes += [f"Not in the menu: {', '.join(others)}."] if others else []
    st.caption(" ".join(said), help=glossary.plain(" ".join(notes)) or None)


def _start(goal_key: str, drawn_goal: str) -> None:
    _set_goal(goal_key, drawn_goal)
    carry_out(_start_job)


def _start_selection() -> None:
    now = studio()
    free = [op for op in choices.selection() if op not in now.pins]
    if not free:
        what = "All selected ops are pinned; unpin" if choices.selection() else "Select"
        choices.say("warning", f"{what} the ops that the method shall place.")
    elif choices.renew_claim(now.project):
        _start_job(now, free)
        # The progress is drawn outside the part of the page that this button is in.
        st.rerun()


def _start_job(now: Studio, ops: Sequence[str] = ()) -> None:
    asked = _asked(now)
    name = asked.method.name
    if not _fits(now, asked.method):
        goal = now.settings.objective.heading
        choices.say("warning", f"{name} does not work for the goal {goal}; choose another method.")
    elif _why_not(now, asked.method):
        choices.say("warning", _why_not(now, asked.method))
    elif not jobs.is_live(now.project.folder, "place"):
        policy_fields.make_room(now)
        kinds.start_place(now, asked.options, ops)


def _asked(now: Studio) -> Asked:
    """What the fields hold now: a click may come before the page was drawn with it."""
    method = _chosen(now)
    name = method.name
    limit_s = choices.remembered(f"time-limit-{name}", methods.time_limit_s(method))
    options = PlaceOptions(
        placer=name,
        settings={
            **forms.typed_settings(name, method.settings),
            **policy_fields.typed(now, method),
        },
        time_limit_s=choices.typed(_limit_key(now, name), limit_s),
        seed=int(choices.typed(choices.own("place-seed"), 0) or 0),
    )
    drawn = LIVE if _may_measure(now) else {}
    if option_fields.may_search_elsewhere():
        drawn = {**drawn, **SEARCH_ON}
    return Asked(method, option_fields.typed(options, drawn))


def _remembered() -> str:
    return current_name(str(choices.remembered("placer", methods.DEFAULT)))


def _chosen(now: Studio) -> Method:
    """The method that the menu names now."""
    offered = methods.offered(now.problem)
    name = choices.typed(_method_key(now), _remembered())
    return offered.get(name, next(iter(offered.values())))


# A key is what a widget is known by: with the project in it, another project's menus start anew,
# and with the goal in it, the menu shows a goal that was set elsewhere.
def _goal_key(now: Studio) -> str:
    return f"objective-{now.project.id}-{now.settings.objective}"


def _method_key(now: Studio) -> str:
    return f"placer-{now.project.id}"


def _limit_key(now: Studio, method: str) -> str:
    return f"time-limit-{now.project.id}-{method}"


def _set_goal(key: str, drawn: str) -> None:
    goal = choices.changed(key, drawn)
    if goal is not None and choices.may_write():
        choices.project().change(objective=goal)
