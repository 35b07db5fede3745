"""The presenter's view: large words, devices told apart without colour, and a walk in sentences.

It is the Studio page with `?present` in its address. What a lecturer steps through is a walk, along
the critical path or along the changes by hand, or through the steps of a method while their tab is
open; each step is one sentence, on the screen and for screen readers, and what it is about is
selected, so that picture and timeline show it.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Literal, NamedTuple

import streamlit as st

from pages.ui.desk import dock
from pages.ui.panels import predicted
from pages.ui.session import choices, fragments, outbox
from pages.ui.session.current import attempt, carry_out, edit, studio
from pages.ui.session.outbox import Count, Message
from pages.ui.shell.messages import plain_errors
from pages.ui.steps import walk as steps
from pages.ui.timeline import critical_path, timelines
from pages.ui.timeline.timelines import Measured
from placement.core import formatting
from placement.core.problem import Objective
from placement.drawing import gantt, spans
from placement.drawing.names import names_of
from placement.drawing.path_stops import Stop, stops
from placement.drawing.wording import shortened
from placement.simulator.throughput import loads_s
from placement.simulator.uncertainty import is_tie
from studio import editing
from studio.consequence import Change
from studio.jobs import runs
from studio.project import edits
from studio.project.edits import Edit
from studio.snapshot import Studio

ASSETS = Path(__file__).resolve().parents[3] / "assets"
SCRIPTS = ("canvas/outbox.js", "present/bar.js")
KEY, AT, WALK, SEEN, CHANGE, STOOD, VIEW, CHOSEN, FORMER = (
    f"present-{name}"
    for name in ("bar", "at", "walk", "seen", "told", "stood", "view", "chosen", "former")
)
PATH, CHANGES, METHOD = "path", "changes", "method"
WALKS = {PATH: "Critical path", CHANGES: "Changes by hand"}
MOST_NAME, MOST_LABEL = 60, 90
KEYS = (
    ("→ ← or Page Down, Page Up", "the next step and the one before: a clicker has these two keys"),
    ("Home, End", "the first step and the last"),
    ("T", "step along the critical path, or along the changes that were made by hand"),
    ("→ ←, Space", "with the tab Steps open: the steps of its method; Space plays them"),
    ("1 … 9", "put what the step shows on that device, and see what becomes of the score"),
    ("Ctrl+Z, Ctrl+Y", "undo, redo"),
    ("↑ ↓, Space, Enter", "go from op to op in the picture, select one, open a block"),
    ("+ − F", "zoom, show everything"),
    ("D", "what is further down in the lower part, and from its end its beginning"),
    ("[ ]", "the tab of the lower part before the open one, and the one after it"),
    ("H", "hide the graph, so that the lower part has all the room; once more shows it again"),
    ("?", "these keys"),
    ("Esc", "select nothing; once more leaves the presentation"),
)


class Place(NamedTuple):
    """Where a walk is and between which of its `of` steps one can go, and the sentence there."""

    at: int
    first: int
    last: int
    of: int
    told: str


class Go(Message, frozen=True, tag="go"):
    """To step number `to` of the walk; of those that have one, 0 is before the first step."""

    to: Count


class Follow(Message, frozen=True, tag="follow"):
    walk: Literal["path", "changes"]


class Leave(Message, frozen=True, tag="leave"): ...


def button() -> None:
    """The way into the view."""
    st.button(
        "Present",
        icon=":material/co_present:",
        on_click=_begin,
        help="Show this to an audience: large words, hatched devices, and steps with the arrow keys"
        " or a clicker.",
    )


def _begin() -> None:
    for what, at_first in ((AT, 0), (SEEN, None), (CHANGE, ""), (STOOD, None)):
        choices.keep(what, at_first)
    choices.keep(CHOSEN, list(choices.selection()))
    choices.keep(FORMER, studio().named.name)
    choices.keep(VIEW, choices.kept(VIEW, 0) + 1)
    choices.present(on=True)


def lay() -> None:
    """The page's own measures in this view."""
    st.html(ASSETS / "present" / "page.css")


@st.fragment(key="present")
@plain_errors()
def show() -> None:
    """The sentence of the step, and the buttons that lead on."""
    now = studio()
    walk = METHOD if steps.is_open(now) else choices.kept(WALK, PATH)
    notice_change(now)
    place = PLACES[walk](now)
    method = {METHOD: f"Method {steps.chosen(now)}"} if walk == METHOD else {}
    data = {
        **place._asdict(),
        "walk": walk,
        "walks": list({**WALKS, **method}.items()),
        "keys": KEYS,
        "view": f"{choices.nonce()}-{choices.kept(VIEW, 0)}",
        **outbox.state(KEY),
    }
    # Streamlit sends `str(data)` without an error where JSON fails; fail here instead.
    json.dumps(data, allow_nan=False)
    _component()(key=KEY, data=data, on_steps_change=_on_steps, height="content")


def _on_steps() -> None:
    """Do what was asked for, the last step alone where several came at once."""
    asked = outbox.unread(KEY, (Go, Follow, Leave), box="steps")
    for message in asked:
        outbox.applied(KEY, message)
    if any(isinstance(message, Leave) for message in asked):
        choices.present(on=False)
        choices.select(choices.kept(CHOSEN, ()))
        choices.keep(CHOSEN, ())
        carry_out(_put_back)
    dock_too = ("dock",) if steps.is_open(studio()) else ()
    following = [message.walk for message in asked if isinstance(message, Follow)]
    going = [message.to for message in asked if isinstance(message, Go)]
    if following:
        _follow(following[-1])
    if going:
        _go(going[-1])
    fragments.only(*((*fragments.SELECTED, *dock_too) if following else ()), "present")


def _follow(which: str) -> None:
    """Change to a walk, and select what the step is about at which it stands."""
    choices.keep(WALK, which)
    choices.keep(CHANGE, "")
    now = studio()
    if steps.is_open(now):
        dock.open_tab(dock.TIMELINE)
    if which == CHANGES:
        done = now.history.done
        _look_at(done[-1].ops if done else ())
    else:
        walk = stops_of(now)
        at = min(int(choices.kept(AT, 0)), len(walk))
        _look_at(walk[at - 1].ops if at else ())


def _look_at(ops: Sequence[str]) -> None:
    choices.select(ops)
    choices.look_at_selection()


def _go(to: int) -> None:
    now = studio()
    if steps.is_open(now):
        shown = steps.on_screen(now)
        if shown is not None:
            steps.go_to(now, shown, to - 1)
        fragments.only("canvas", "side", "dock", "present")
        return
    if choices.kept(WALK, PATH) == CHANGES:
        fewest, most = now.history.reach
        _walk_changes(now, min(fewest + to, most))
        return
    walk = stops_of(now)
    at = min(to, len(walk))
    choices.keep(AT, at)
    choices.keep(CHANGE, "")
    _look_at(walk[at - 1].ops if at else ())
    fragments.only(*fragments.SELECTED, "present")


def _walk_changes(now: Studio, number: int) -> None:
    """Undo or redo until so many changes are made, and select what the last one of these moved."""
    walked = edits.between(now.history, number)
    if walked:
        # Told of is what was made or undone last: going back, that is the first of them all.
        told_of = walked[-1] if number > len(now.history.done) else walked[0]
        _look_at(told_of.ops)
        choices.keep(STOOD, [*_walk_of(now), _began_at(now), number])
    edit(partial(editing.go_to, num_done=number))


def _walk_of(now: Studio) -> list[object]:
    """What stays the same as long as nothing but steps of the walk has changed the history."""
    made = (*now.history.done, *reversed(now.history.undone))
    return [now.named.name, [step.label for step in made]]


def _began_at(now: Studio) -> int:
    """How many changes were done before the walk along them, where nothing was edited since."""
    *walk, began_at, number = choices.kept(STOOD, None) or ("", (), 0, -1)
    num_done = len(now.history.done)
    return int(began_at) if [*walk, number] == [*_walk_of(now), num_done] else num_done


def _put_back(now: Studio) -> None:
    """Let the history stand where it did before somebody walked along it."""
    began_at = _began_at(now)
    choices.keep(STOOD, None)
    if began_at != len(now.history.done):
        attempt(now, partial(editing.go_to, num_done=began_at))
    if began_at == now.history.reach[0]:
        _take_off_copy(now)


def _take_off_copy(now: Studio) -> None:
    """Show again what a copy was made from for changes of which none is left."""
    copied, former = now.named, str(choices.kept(FORMER, ""))
    is_there = any(item.name == former for item in now.shelf.items)
    if is_there and copied.by_hand and copied.facts.start == former:
        now.shelf.remove(copied.name)
        now.shelf.choose(former)


def stops_of(now: Studio) -> tuple[Stop, ...]:
    """What the walk along the critical path stops at; for throughput, who has most to do."""
    schedule = now.simulated.schedule
    if now.settings.objective is not Objective.THROUGHPUT:
        return stops(now.problem, now.placement, schedule, now.simulated.critical_path)
    loads = loads_s(now.problem, schedule, now.placement.replicas)
    ranked = sorted((name for name in loads if loads[name]), key=lambda name: -loads[name])
    return tuple(Stop("load", name, _placed_on(now, name), loads[name], name) for name in ranked)


def _placed_on(now: Studio, device: str) -> tuple[str, ...]:
    return tuple(op for op, place in now.placement.device_of.items() if place == device)


def _path(now: Studio) -> Place:
    """Where the walk along the critical path is, and what is seen there."""
    walk = stops_of(now)
    at, of = min(int(choices.kept(AT, 0)), len(walk)), len(walk)
    seen = stop_in_words(now, walk[at - 1]) if at else overview_of(now, of)
    return Place(at, 0, of, of, str(choices.kept(CHANGE, "")) or seen)


def _step(now: Studio) -> Place:
    """Which step of a method is shown, and why the method goes on as it does there."""
    shown = steps.on_screen(now)
    if shown is None:
        return Place(0, 0, 0, 0, f"{steps.chosen(now)} has no step to show yet.")
    question = shown.step.question
    told = question.text if question is not None and shown.is_hidden else shown.step.why
    return Place(shown.at + 1, 1, shown.furthest + 1, len(shown.steps), told)


def overview_of(now: Studio, num_stops: int) -> str:
    """What is predicted of the step, what it consists of, and what a run of it measured."""
    value = f"{_value(now)} predicted ({predicted.origin(now)})"
    run = _run(now)
    took = "" if run is None else f"{run.verb.lower()} {_seconds(now, runs.measured_s(run.result))}"
    also = f"; {took}" if took else ""
    if now.settings.objective is Objective.THROUGHPUT:
        what = formatting.counted(num_stops, "device or link", "devices and links")
        return f"{value}{also}; → shows who has most to do, of {what}."
    what = critical_path.in_words(now.simulated.critical_path, now.problem.unit)
    _, _, parts = what.partition(", of which ")
    made_of = f", of which {parts.rstrip('.')}" if parts else ""
    way = formatting.counted(num_stops, "stop")
    return f"{value}{made_of}{also}; → follows the critical path, {way}."


def stop_in_words(now: Studio, stop: Stop) -> str:
    """What is predicted to happen at a stop, for how long, why not sooner, and what a run took."""
    total_s = now.simulated.value
    share = f", {formatting.percent(stop.duration_s / total_s)} of the step" if total_s else ""
    takes = f"is predicted to take {_seconds(now, stop.duration_s)}{share}"
    place = gantt.shown(stop.place)
    if stop.kind == "load":
        has = f"is predicted to have {_seconds(now, stop.duration_s)}{share}, to do"
        return f"{place} {has} for every {now.settings.objective.per}."
    waited = ""
    if stop.queued_for:
        waited = f", after waiting for {gantt.shown(stop.queued_for)} to be free"
    if stop.kind == "transfer":
        sent = f"{formatting.num_bytes(stop.num_bytes)}, " if stop.num_bytes else ""
        source, _, target = stop.place.partition("->")
        sending = f"Sending {stop.name} ({sent}{source} to {target})"
        return f"{sending} {takes}{waited}{_took(now, stop)}."
    if stop.kind == "wait":
        for_s = f"{_seconds(now, stop.duration_s)}{share}"
        return f"Nothing of the path is predicted to run on {place} for {for_s}."
    return f"{_called(now, stop)} on {place} {takes}{waited}{_took(now, stop)}."


def _took(now: Studio, stop: Stop) -> str:
    """What the same ops took in the run of this placement that is shown, or the segment that they
    are part of; empty where its spans do not tell."""
    run = _run(now)
    if run is None or not stop.ops:
        return ""
    of, wanted = timelines.ops_of(now, run), set(stop.ops)
    spans_there = run.result.timeline.spans
    there = [(s, set(of(s))) for s in spans_there if (s.kind, s.device) == (stop.kind, stop.place)]
    step = f"in the {run.verb.lower()} step"
    same = [span for span, ops in there if ops == wanted]
    if len(same) == 1:
        return f"; it took {_seconds(now, same[0].duration_s)} {step}"
    whole = [(span, ops) for span, ops in there if ops > wanted]
    if stop.kind == "compute" and not same and len(whole) == 1:
        span, ops = whole[0]
        of_ops = formatting.counted(len(ops), "op")
        return f"; its segment of {of_ops} took {_seconds(now, span.duration_s)} {step}"
    parts = [(span, ops) for span, ops in there if ops and ops < wanted]
    if stop.kind == "compute" and parts and set().union(*(ops for _, ops in parts)) == wanted:
        return f"; it took {_seconds(now, sum(s.duration_s for s, _ in parts))} {step}"
    return ""


def _run(now: Studio) -> Measured | None:
    """The run beside the prediction, where it is of this very placement."""
    run = timelines.chosen(now)
    is_own = run is not None and runs.of_placement((run.job,), now.placement) is not None
    return run if is_own else None


def _seconds(now: Studio, time_s: float) -> str:
    return formatting.seconds(time_s, now.problem.unit)


def _called(now: Studio, stop: Stop) -> str:
    if not stop.ops:
        return shortened(stop.name, MOST_NAME)
    graph = now.model.graph
    block = spans.block_of(graph, stop.ops) if len(stop.ops) > 1 else ""
    first = block or names_of(graph).of(stop.ops[0])
    more = f" ({formatting.counted(len(stop.ops), 'op')})" if block else ""
    if len(stop.ops) > 1 and not block:
        more = f" and {formatting.counted(len(stop.ops) - 1, 'op')} after it"
    return shortened(first, MOST_NAME) + more


def _change(now: Studio) -> Place:
    """The change that was made last, and what it brought."""
    done, (fewest, most) = now.history.done, now.history.reach
    at, of = len(done) - fewest, most - fewest
    if not of:
        nothing = "Nothing was changed by hand yet; select something and press 1 to 9."
        return Place(0, 0, 0, 0, nothing)
    made = f"As it was made: {_value(now)}; → makes the first change again."
    if at:
        made = f"{_label(now, done[-1])}; now {_value(now)}."
    return Place(at, 0, of, of, str(choices.kept(CHANGE, "")) or made)


PLACES: Mapping[str, Callable[[Studio], Place]] = {PATH: _path, CHANGES: _change, METHOD: _step}


def _label(now: Studio, change: Edit) -> str:
    """What a change is called; a single op as the picture calls it, and not as its file does."""
    return shortened(editing.label(now, change), MOST_LABEL)


def _value(now: Studio) -> str:
    value = formatting.seconds(now.simulated.value, now.problem.unit)
    return f"{value} per {now.settings.objective.per}"


def notice_change(now: Studio) -> None:
    """Keep a sentence about what has changed since this was drawn last, until the next step."""
    done, value_s = len(now.history.done), now.simulated.value
    seen = choices.kept(SEEN, None)
    range_s = now.simulated.range_s
    choices.keep(SEEN, [now.named.name, done, value_s, range_s and list(range_s)])
    if seen is None or seen[:3] == [now.named.name, done, value_s]:
        return
    name, before, before_s, before_range_s = seen
    # The first edit of a placement that is none made by hand makes a copy, which has that one step.
    copied = now.named.by_hand and now.named.facts.start == name and not now.history.undone
    if name != now.named.name and copied and done == now.history.reach[0] + 1:
        before = done - 1
    elif name != now.named.name:
        choices.keep(CHANGE, f"The placement {now.named.name} is on the screen: {_value(now)}.")
        return
    made = _label(now, now.history.done[-1]) if done > before else ""
    undone = _label(now, now.history.undone[-1]) if done < before else ""
    what = made or (f"Undone: {undone}" if undone else "Predicted anew")
    is_tied = is_tie(value_s, range_s, before_s, before_range_s and tuple(before_range_s))
    change = Change(before_s, value_s, now.problem.unit, is_tied)
    choices.keep(CHANGE, f"{what}; now {_value(now)}, {compared(change)}.")


def compared(change: Change) -> str:
    """A change as the score judges it: where it is a tie nobody can say that it is less or more."""
    if not change.way:
        return "as long as before"
    if change.is_tie:
        return "a tie with before, for predictions err by more"
    percent = formatting.percent(abs(change.share))
    return f"{percent} {'less' if change.way < 0 else 'more'} than before"


@cache
def _component() -> Callable[..., object]:
    html, css = ((ASSETS / f"present/bar.{kind}").read_text("utf-8") for kind in ("html", "css"))
    js = "\n".join((ASSETS / name).read_text("utf-8") for name in SCRIPTS)
    return st.components.v2.component("placement_present", html=html, css=css, js=js)
