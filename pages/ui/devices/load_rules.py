"""Settings of a workload's cost model that its file does not state: overlap, phases, clusters."""

import dataclasses
from typing import Any

import streamlit as st

from pages.ui.session import choices
from pages.ui.shell import glossary
from placement.core.objective import CallRules, Objective
from placement.core.problem import Execution
from placement.core.verb_options import option_of
from studio.snapshot import Studio

SWITCHES = ("overlap", "gpipe")
NUMBERS = ("sync_bytes_per_ms", "cluster_size", "slow_link_factor")


def show(now: Studio) -> None:
    """The settings of a workload file; for another objective a sentence says where they count."""
    given = now.model.problem
    if given is None or given.execution is not Execution.CALL:
        return
    st.markdown("**How throughput is charged**")
    if now.settings.objective is not Objective.THROUGHPUT:
        st.caption(
            "A device computes and moves tensors in turn. For most samples per second there are"
            " settings here, which change that."
        )
        return
    drawn = now.settings.rules
    for where, name in zip(st.columns(2), SWITCHES, strict=True):
        where.toggle(**_asked(name, drawn, value=getattr(drawn, name)))
    for where, name in zip(st.columns(3), NUMBERS, strict=True):
        asked = option_of(CallRules, name)
        # Streamlit wants all numbers of a field to be of one type.
        kind = int if name == "cluster_size" else float
        least = 0 if asked.default is None else asked.least
        about = _asked(name, drawn, value=_number(drawn, name), min_value=kind(least or 0))
        if name == "slow_link_factor" and drawn.cluster_size is None:
            about["disabled"] = True
        where.number_input(**about)
    st.caption(glossary.plain(in_words(drawn)))


def in_words(rules: CallRules) -> str:
    """What the time between samples is under these rules."""
    work = "the longer of its compute and its transfers" if rules.overlap else "compute + transfers"
    load = f"An accelerator's load is {work}"
    if rules.has_clusters:
        load += (
            f"; what goes from one cluster of {rules.cluster_size} accelerators to another takes"
            f" {rules.slow_link_factor:g} times as long"
        )
    if rules.gpipe:
        return f"{load}. The largest forward load and the largest backward load add up."
    return f"{load}. The largest load is the time between samples."


def _number(rules: CallRules, name: str) -> float:
    """A number as its field shows it, where 0 stands for none."""
    value = getattr(rules, name)
    kind = int if name == "cluster_size" else float
    return kind(0 if value is None else value)


def _asked(name: str, drawn: CallRules, *, value: float | bool, **about: Any) -> dict[str, Any]:
    """What a field needs."""
    asked = option_of(CallRules, name)
    key = choices.own(f"rules-{name}-{value}")
    none = " 0 is none." if asked.default is None else ""
    return {
        "label": asked.label,
        "value": value,
        "key": key,
        "on_change": _put,
        "args": (key, name, drawn, value),
        "disabled": not choices.may_write(),
        "help": f"{glossary.sentence(asked.help)}{none}",
        **about,
    }


def _put(key: str, name: str, drawn: CallRules, shown: float | bool) -> None:
    value = choices.changed(key, shown)
    if value is None or not choices.may_write():
        return
    without = option_of(CallRules, name).default is None and value == 0
    wanted: dict[str, Any] = {name: None if without else value}
    if name == "cluster_size" and without:
        wanted["slow_link_factor"] = 1.0
    try:
        rules = dataclasses.replace(drawn, **wanted)
    except ValueError as error:
        choices.say("warning", str(error))
        return
    choices.project().change(rules=rules)
