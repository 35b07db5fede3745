"""Settings of placers: their types, ranges and choices, in the list and where one is made."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

import pytest
from streamlit.testing.v1 import AppTest

from placement.core.verb_options import PlaceOptions
from placement.placers.base import Placer, build, describe, quiet, setting


class Order(StrEnum):
    UP = "up"
    DOWN = "down"


@dataclass(frozen=True, kw_only=True)
class Menu(Placer):
    summary = "A placer with choices and ranges"

    mode: Literal["near", "far"] = setting("near", "Where to look")
    order: Order = setting(Order.UP, "Which way")
    share: float = setting(0.5, "How much", low=0.0, high=1.0)
    rounds: int = setting(3, "How often", low=1)
    top: int = setting(2, "How far up", high=10**17)
    weight: float = setting(1, "Whole ends of a fraction", low=0, high=2)

    def place(self, problem, report=quiet):
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class Sized(Menu):
    sizes: tuple[int, ...] = setting((1, 2), "Sizes that no form can ask for")


def asked(placer: type[Placer], **settings: object) -> Placer:
    return build(placer, PlaceOptions(placer="menu", settings=settings))


def test_one_of_a_few_values_is_a_menu():
    settings = describe("menu", Menu)["settings"]
    assert settings["mode"]["choices"] == ["near", "far"]
    assert settings["order"]["choices"] == ["up", "down"]
    assert {settings[name]["type"] for name in ("mode", "order")} == {"str"}
    made = asked(Menu, mode="far", order="down")
    assert (made.mode, made.order) == ("far", Order.DOWN) and type(made.order) is Order
    with pytest.raises(ValueError, match=r"'mode' of placer 'menu' is 'x'; use one of near, far\."):
        asked(Menu, mode="x")


def test_a_number_is_within_the_range_that_its_setting_states():
    settings = describe("menu", Menu)["settings"]
    assert (settings["share"]["low"], settings["share"]["high"]) == (0.0, 1.0)
    assert settings["rounds"]["low"] == 1 and "high" not in settings["rounds"]
    for share in ("0", "1"):
        assert asked(Menu, share=share).share == float(share)
    for wrong in ("-0.1", "1.1", "nan"):
        with pytest.raises(ValueError, match=rf"Setting 'share' is {wrong}; use 0 to 1\."):
            asked(Menu, share=wrong)
    with pytest.raises(ValueError, match=r"Setting 'rounds' is 0; use 1 or more\."):
        asked(Menu, rounds=0)
    with pytest.raises(ValueError, match=r"Setting 'top' is \d+; use 1e\+17 or less\."):
        asked(Menu, top=10**18)


def test_every_range_can_be_asked_for_in_a_form():
    """A browser takes limits and values of one type, and no whole number beyond 2**53."""
    page = AppTest.from_function(form)
    page.session_state["described"] = describe("menu", Menu)
    assert not page.run().exception
    shown = {widget.label: widget for widget in page.number_input}
    assert (shown["Weight"].min, shown["Weight"].max, shown["Weight"].value) == (0.0, 2.0, 1.0)
    assert shown["Top"].max == 2**53 - 1


def form():
    import msgspec
    import streamlit as st

    from pages.ui.forms.settings import settings_form
    from studio.jobs.methods import Setting

    described = st.session_state["described"]["settings"]
    settings_form("menu", {n: msgspec.convert(a, Setting) for n, a in described.items()})


def test_a_setting_of_another_type_is_left_out_of_the_list_and_refused():
    assert "sizes" not in describe("menu", Sized)["settings"]
    with pytest.raises(ValueError, match=r"Setting 'sizes' of placer 'menu' has the type tuple"):
        asked(Sized)
