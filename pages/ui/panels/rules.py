"""The panel of rules: which ops go where by type, block or name, in an order that counts."""

from functools import partial

import streamlit as st

from pages.ui.session import choices, fragments
from pages.ui.session.current import carry_out, studio
from pages.ui.shell import glossary, messages
from pages.ui.shell.messages import plain_errors
from placement.constraints.rules import NAME, REGEX, SCOPE, TYPE, blocks_of
from placement.core import formatting
from studio.project import rules
from studio.project.rules import Row
from studio.snapshot import Studio

KINDS = {
    TYPE: "Op type",
    SCOPE: "Block",
    NAME: "Name (* and ?)",
    REGEX: "Name (regular expression)",
    "": "Pattern or list of rules",
}
EXAMPLES = {
    NAME: "conv_*",
    REGEX: r"^conv_\d+$",
    "": "Conv=cpu:0; block_1/*=cpu:1",
}
HELP = (
    "A rule puts all ops of a type, a block or a name on a device. Where several rules name an op,"
    " the last one in the list wins: 3 of 5 ops means that later rules take 2. Rules are kept with"
    " the project and change nothing until you apply them; then all moves together are one step"
    " that can be undone. The command line knows the same rules: --placer manual --set"
    " 'rules=Conv=cpu:0'."
)
TITLE = "Rules by op type, block or name"
MOST_BLOCKS = 2000
# Messages of this panel, which may be far below the others.
PLACE = "rules"


@st.fragment(key="rules")
@plain_errors()
def show() -> None:
    """Draw the list and its form; ops are counted only while somebody has it open."""
    now = studio()
    # The label never changes: the box would close.
    box = st.expander(TITLE, key="rules-open", on_change="rerun")
    if not box.open:
        return
    locked = not choices.may_write()
    with box:
        st.caption("The last rule that names an op wins.", help=HELP)
        rows = rules.rows(now)
        for i, row in enumerate(rows):
            _row(i, row, len(rows), locked)
        _form(now, locked)
        messages.show(PLACE)
        st.button(
            "Apply rules",
            key="rules-apply",
            type="primary",
            disabled=locked or not rows,
            on_click=_apply,
            width="stretch",
        )


def _row(number: int, row: Row, of: int, locked: bool) -> None:
    doing = row.trouble or formatting.counted(row.num_won, "op")
    if not row.trouble and row.num_won < row.num_matched:
        doing = f"{row.num_won} of {formatting.counted(row.num_matched, 'op')}"
    shown = glossary.plain(f"{number + 1}: {row.rule.pattern} → {row.rule.device}", 120)
    colour = "orange" if row.trouble else "gray"
    lines = st.container(gap="xxsmall")
    lines.markdown(shown)
    line = lines.container(horizontal=True, vertical_alignment="center", gap="xxsmall")
    line.markdown(f":{colour}[:small[{glossary.plain(doing)}]]", width="stretch")
    # The names are for screen readers (assets/studio.css hides them); the icons say it to others.
    for icon, say, by in (("arrow_upward", "up", -1), ("arrow_downward", "down", 1)):
        line.button(
            f"Move rule {number + 1} {say}",
            icon=f":material/{icon}:",
            key=f"rule-{say}-{number}",
            help=f"Move rule {number + 1} {say}",
            type="tertiary",
            disabled=locked or not 0 <= number + by < of,
            on_click=carry_out,
            args=(partial(rules.moved, number=number, rule=row.rule, by=by),),
        )
    line.button(
        f"Remove rule {number + 1}",
        icon=":material/delete:",
        key=f"rule-remove-{number}",
        help=f"Remove rule {number + 1}",
        type="tertiary",
        disabled=locked,
        on_click=carry_out,
        args=(partial(rules.removed, number=number, rule=row.rule),),
    )


def _form(now: Studio, locked: bool) -> None:
    kind = st.selectbox(
        "New rule for",
        list(KINDS),
        format_func=KINDS.__getitem__,
        key=choices.own("rule-kind"),
        disabled=locked,
    )
    listed = _listed(now, kind)
    if listed is None:
        st.text_input(
            KINDS[kind],
            key=choices.own(f"rule-value-{kind}"),
            placeholder=EXAMPLES.get(kind, ""),
            max_chars=300,
            disabled=locked,
        )
    else:
        st.selectbox(KINDS[kind], listed, key=choices.own(f"rule-value-{kind}"), disabled=locked)
    names = [d.name for d in now.machine.devices]
    where, go = st.columns([0.6, 0.4], vertical_alignment="bottom")
    if kind:
        where.selectbox("goes to", names, key=choices.own("rule-device"), disabled=locked)
    go.button(
        "Add",
        key="rule-add",
        help="Put the rule at the end of the list, where it wins.",
        on_click=_add,
        args=(names[0],),
        disabled=locked,
        width="stretch",
    )


def _listed(now: Studio, kind: str) -> list[str] | None:
    """What there is to choose from; None where one has to type."""
    ops = now.model.graph.ops
    if kind == TYPE:
        return sorted({op.kind for op in ops})
    if kind == SCOPE:
        blocks = sorted({b for op in ops for b in blocks_of(op)})
        return blocks if 0 < len(blocks) <= MOST_BLOCKS else None
    return None


def _add(first_device: str) -> None:
    """Take the form as it stands: the button may be pressed before the page knew what was typed."""
    kind = str(choices.typed(choices.own("rule-kind"), TYPE))
    value = str(choices.typed(choices.own(f"rule-value-{kind}"), None) or "").strip()
    device = choices.typed(choices.own("rule-device"), first_device) or first_device
    now = studio()
    if not value:
        choices.say("warning", f"Say which ops the rule is for: {KINDS[kind].lower()}.", PLACE)
    elif choices.renew_claim(now.project):
        try:
            rules.add(now, f"{kind}{value}={device}" if kind else value)
        except ValueError as error:
            choices.say("warning", str(error), PLACE)
    fragments.only("rules")


def _apply() -> None:
    carry_out(lambda now: choices.say("info", rules.apply(now), PLACE))
