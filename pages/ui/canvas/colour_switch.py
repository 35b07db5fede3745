"""The switch that says what the graph is coloured by, and the tones that follow from it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.ui import canvas
from pages.ui.panels import search_account
from pages.ui.session import choices, fragments
from pages.ui.session.current import studio
from pages.ui.shell import glossary
from pages.ui.shell.messages import plain_errors
from placement.core import formatting
from placement.core.placement import Placement
from placement.costs.op_times import placed_seconds
from placement.drawing import op_values
from placement.drawing.colours.palette import colours, lone_colour
from placement.drawing.wording import shortened
from placement.schedule.simulated import busy_of
from placement.schedule.symmetry import renaming, with_names
from studio import standings
from studio.snapshot import Studio

BY = {
    "device": "Device",
    "kind": "Op type",
    "time": "Time",
    "time-log": "Time (logarithmic)",
    "memory": "Memory (logarithmic)",
    "path": "Critical path",
    "groups": "Groups of the method",
    "difference": "Difference to…",
}
HELP = (
    "What the colours of the picture say. The left edge of an op and the bar in a closed block show"
    " the device whatever you choose. Time is what an op takes on its device; where the runtime"
    " runs several ops as one kernel, its time is shared out by their arithmetic. Memory is the"
    " weights of an op and what it writes. Groups are ops that the method which found this"
    f" placement put together at last. {glossary.CRITICAL}"
)
HATCH_HELP = "Hatch every device in its own way, so that devices can be told apart without colour."
MEMORY = {"live": "Weights and outputs", "sum": "Memory (from the file)"}
ORIGIN = {"measured": "measured", "analytic": "estimated", "given": "from the file"}


@dataclass(frozen=True)
class Colouring:
    """What is drawn on the cards: `tones` (None: the device), and whether devices are hatched."""

    tones: canvas.Tones | None
    hatched: bool


PLAIN = Colouring(None, hatched=False)


def kept(form: Mapping[str, object]) -> Colouring | None:
    """What a project's settings say of it; None where that takes more than the placement."""
    if form.get("colour-by", "device") != "device":
        return None
    return Colouring(None, hatched=bool(form.get("hatch", False)))


@st.fragment(key="colours")
@plain_errors()
def show() -> None:
    """Draw the switch, apart from the picture, so that an edit draws that first."""
    now = studio()
    row = st.container(key="colours", horizontal=True, vertical_alignment="center", gap="small")
    row.markdown("Colours", help=HELP, width="content")
    by, others = _menu(row, "colour-by", list(BY), BY), _others(now)
    if by == "difference" and others:
        _menu(row, _against_key(now), others, {})
    row.checkbox(
        "Hatch devices",
        value=bool(choices.remembered("hatch", False)),
        key="hatch",
        on_change=_choose,
        args=("hatch",),
        help=HATCH_HELP,
    )


def chosen(now: Studio, view: canvas.View) -> Colouring:
    """What is chosen at the switch; the project's choice where none is drawn yet."""
    by, others = _chosen("colour-by", list(BY)), _others(now)
    against = _chosen(_against_key(now), others) if by == "difference" and others else ""
    return Colouring(tones_of(now, view, by, against), is_hatched())


def is_hatched() -> bool:
    """Whether devices are told apart by hatches: by choice, and always before an audience."""
    chosen = choices.typed("hatch", choices.remembered("hatch", False))
    return choices.presenting() or bool(chosen)


def _others(now: Studio) -> list[str]:
    return [item.name for item in now.shelf.items if item.name != now.named.name]


def _chosen(key: str, options: Sequence[str]) -> str:
    typed = choices.typed(key, choices.remembered(key, options[0]))
    return str(typed) if typed in options else options[0]


def _choose(key: str) -> None:
    choices.remember(key, key)()
    beside = ("side", "table", "timeline") if key == "hatch" else ()
    fragments.only("canvas", "colours", *beside)


def compare_with(now: Studio, name: str) -> None:
    """Have the graph coloured by the difference to a placement; from a callback."""
    for key, value in (("colour-by", "difference"), (_against_key(now), name)):
        choices.store(key, value)
        choices.put(key, value)


def _against_key(now: Studio) -> str:
    return f"colour-against-{now.shelf.folder.name}"


def _menu(row: DeltaGenerator, key: str, options: list[str], shown: dict[str, str]) -> str:
    kept = choices.remembered(key, options[0])
    chosen = row.selectbox(
        "Colour by" if shown else "Compared with",
        options,
        index=options.index(kept) if kept in options else 0,
        key=key,
        format_func=lambda option: shown.get(option, option),
        on_change=_choose,
        args=(key,),
        label_visibility="collapsed",
        width=200,
    )
    return str(chosen)


def tones_of(now: Studio, view: canvas.View, by: str, against: str) -> canvas.Tones | None:
    """Tones of a view by one of `BY`; `against` names a placement of the shelf."""
    if by == "kind":
        return _by_kind(now, view)
    if by in ("time", "time-log"):
        return canvas.tones_by_value(
            view,
            placed_seconds(now.problem, now.placement),
            lambda value: formatting.seconds(value, now.problem.unit),
            by=by,
            title=f"Time on its device ({ORIGIN[now.problem.costs.origin]})",
            logarithmic=by == "time-log",
            note="costs nothing",
        )
    if by == "memory":
        return canvas.tones_by_value(
            view,
            op_values.num_bytes(now.problem),
            formatting.num_bytes,
            by=by,
            title=MEMORY[now.problem.memory_model],
            logarithmic=True,
            note="holds nothing",
        )
    if by == "path":
        return _by_path(now, view)
    if by == "groups":
        return _by_group(now, view)
    return _by_difference(now, view, against) if by == "difference" else None


def _by_kind(now: Studio, view: canvas.View) -> canvas.Tones:
    palette = colours("kinds")
    classes, common = op_values.kinds([op.kind for op in now.model.graph.ops], len(palette))
    keys = [(shortened(kind, 24), colour) for kind, colour in zip(common, palette, strict=False)]
    if (classes == len(common)).any():
        keys.append(("other types", lone_colour("rest")))
    return canvas.tones_by_class(view, classes, keys, by="kind", title="Op type")


def _by_path(now: Studio, view: canvas.View) -> canvas.Tones:
    little, much = (formatting.percent(s) for s in (op_values.LITTLE_SLACK, op_values.MUCH_SLACK))
    said = (
        "on the critical path",
        f"slack below {little} of a step",
        f"slack {little} to {much}",
        f"slack above {much}",
    )
    return canvas.tones_by_class(
        view,
        op_values.slack_classes(now.problem, now.simulated),
        list(zip(said, colours("path"), strict=True)),
        by="path",
        title="Critical path",
        note="costs nothing",
    )


def _by_group(now: Studio, view: canvas.View) -> canvas.Tones:
    formed = search_account.groups(now)
    if not formed:
        title = "This placement's method formed no groups; methods that learn to group do"
        everywhere = [0] * len(view.op_names)
        alone = [("no group", lone_colour("same"))]
        return canvas.tones_by_class(view, everywhere, alone, by="groups", title=title)
    palette = colours("kinds")
    classes, common = op_values.kinds([str(group) for group in formed], len(palette))
    keys = [(f"group {i + 1}", palette[i]) for i in range(len(common))]
    if (classes == len(common)).any():
        smaller = formatting.counted(len(set(formed)) - len(common), "smaller group")
        keys.append((smaller, lone_colour("rest")))
    return canvas.tones_by_class(view, classes, keys, by="groups", title="Groups of the method")


def _by_difference(now: Studio, view: canvas.View, against: str) -> canvas.Tones:
    if not against:
        same = ("same device", lone_colour("same"))
        title = "There is no other placement yet: press Place to make one, or copy this one"
        everywhere = [0] * len(view.op_names)
        return canvas.tones_by_class(view, everywhere, [same], by="difference", title=title)
    return difference(now, view, now.placement, standings.placement_of(now, against), against)


def difference(
    now: Studio, view: canvas.View, here: Placement, there: Placement, name: str
) -> canvas.Tones:
    """Tones by what moves from one placement to another, whose name is given.

    Equal devices of the other placement count as one another, so that as little as can be moves.
    """
    new = renaming(now.pinned_problem, here, there)
    there = with_names(there, new)
    same = ("same device", lone_colour("same"))
    palette, names = colours("moves"), [d.name for d in now.machine.devices]
    classes, moves = op_values.differences(
        op_values.device_indices(now.problem, here),
        op_values.device_indices(now.problem, there),
        len(palette),
    )
    keys = [same]
    for (source, target), colour in zip(moves, palette, strict=False):
        keys.append((shortened(f"{names[source]} → {names[target]}", 40), colour))
    if (classes == len(keys)).any():
        keys.append(("other moves", lone_colour("rest")))
    title = f"From here to {shortened(name, 30)}" + ", equal devices alike" * bool(new)
    return canvas.tones_by_class(view, classes, keys, by="difference", title=title)


def sums(now: Studio, view: canvas.View) -> dict[int, str]:
    """How long the ops of each closed block compute, each on its device; by node."""
    seconds = placed_seconds(now.problem, now.placement)
    total = canvas.sums_by_node(view, seconds)
    return {
        i: formatting.seconds(float(total[i]), now.problem.unit)
        for i, node in enumerate(view.nodes)
        if node.group >= 0
    }


def devices(now: Studio, *, loads: bool = True) -> list[canvas.DeviceKey]:
    """The legend of devices: name, colour, hatch, and with `loads` what is predicted of each."""
    names, predicted = [d.name for d in now.machine.devices], now.simulated
    if not loads:
        return canvas.device_keys(names)
    busy_s = busy_of(now.problem, predicted, now.placement)
    busy = [formatting.seconds(busy_s.get(n, 0.0), now.problem.unit) for n in names]
    # A file that gives the times of ops may say nothing of their sizes.
    peaks = [predicted.peak_bytes.get(n, 0) for n in names]
    memory = [formatting.num_bytes(peak) for peak in peaks] if any(peaks) else []
    return canvas.device_keys(names, busy=busy, memory=memory)
