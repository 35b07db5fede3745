"""Fields of a form for the options of a verb: limits, default and help are those of the option."""

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar

from pages.ui.session import choices
from pages.ui.shell import glossary
from placement.core.verb_options import CLUSTER, LOCAL, Option, option_of, options_of
from profiling import backends

T = TypeVar("T")
SEARCHERS = {"": "Where the devices are", LOCAL: "This computer", CLUSTER: "Ray cluster"}


def number(where: Any, asked: Option, key: str, **how: Any) -> Any:
    """A field for a number; `how` goes to the widget and may stand in for what the option says."""
    about = {
        "min_value": asked.least,
        "max_value": asked.most,
        "value": asked.default,
        "help": glossary.sentence(asked.help) or None,
    }
    return where.number_input(asked.label, key=key, **{**about, **how})


def kept_number(where: Any, kind: type, name: str, key: str, **how: Any) -> Any:
    """The same, with what was last typed into it in this project."""
    asked, own = option_of(kind, name), choices.own(key)
    kept = {
        "value": choices.remembered(key, asked.default),
        "on_change": choices.remember(key, own),
    }
    return number(where, asked, own, **{**kept, **how})


def kept_toggle(where: Any, kind: type, name: str, key: str, **how: Any) -> bool:
    """A switch for yes or no, as it was last set in this project."""
    asked, own = option_of(kind, name), choices.own(key)
    about = {
        "value": choices.remembered(key, asked.default),
        "on_change": choices.remember(key, own),
        "help": glossary.sentence(asked.help) or None,
    }
    return bool(where.toggle(asked.label, key=own, **{**about, **how}))


def seed(where: Any, kind: type, key: str, **how: Any) -> Any:
    """The field for the seed, which is not kept: it says enough by its label."""
    return number(where, option_of(kind, "seed"), choices.own(key), help=None, step=1, **how)


def search_on(where: Any, kind: type, key: str) -> None:
    """The menu of who searches, where there may be others than this computer."""
    if not may_search_elsewhere():
        return
    asked = option_of(kind, "search_on")
    where.selectbox(
        asked.label,
        list(SEARCHERS),
        format_func=SEARCHERS.__getitem__,
        key=choices.own(key),
        help="A search on the hosts of a Ray cluster has one lane for each of their cores. With a"
        " fixed number of moves it finds what this computer finds.",
        disabled=not choices.may_write(),
    )


def may_search_elsewhere() -> bool:
    """Whether this program can ask a cluster."""
    return not backends.get(CLUSTER).missing()


def typed(drawn: T, keys: Mapping[str, str]) -> T:
    """Options as their fields hold them now: a click may come before the page was drawn with them.

    `keys` are those of the fields by the option's name.
    """
    values = {}
    for asked in (asked for asked in options_of(type(drawn)) if asked.name in keys):
        before = getattr(drawn, asked.name)
        value = choices.typed(choices.own(keys[asked.name]), before)
        values[asked.name] = before if value is None and asked.default is not None else value
    return dataclasses.replace(drawn, **values)  # type: ignore[type-var]
