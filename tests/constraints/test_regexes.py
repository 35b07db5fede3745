"""Searching names under a budget: what is found equals `re`, and one slow expression harms none."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.constraints import regexes
from placement.constraints.regexes import Searched, search_names

NAMES = ("conv_1", "block/Conv_2", "relu", "a" * 60, "", "überall", "conv_1")
ENDLESS = "(a+)+$b"

expressions = st.lists(
    st.sampled_from(["conv", "^block", r"_\d$", "", "a{60}", "(?i)CONV", "ü", "x|r", "[^a]$"]),
    max_size=6,
)


@settings(max_examples=10, deadline=None)
@given(expressions, st.booleans())
def test_what_is_found_is_what_re_finds(patterns, any_case):
    flags = re.IGNORECASE if any_case else 0
    assert search_names(patterns, NAMES, any_case=any_case) == tuple(
        Searched(tuple(i for i, name in enumerate(NAMES) if re.search(p, name, flags)))
        for p in patterns
    )


def test_slow_ones_among_quick_ones_are_named_and_the_others_answer():
    patterns = [ENDLESS, "conv", f"x?{ENDLESS}", "(", "relu"]
    found = search_names(patterns, NAMES, budget_s=0.5)
    assert [searched.too_slow for searched in found] == [True, False, True, False, False]
    assert found[1].found == (0, 6) and found[4].found == (2,)
    assert "unterminated subpattern" in found[3].error


def test_an_expression_goes_on_where_its_turn_ended():
    """What ten slow names take is more than a share of the first turn, and little of the budget.

    Twenty quick expressions have shares of that turn, too.
    """
    names = ["aa", *(f"{'a' * 17}{i}" for i in range(10)), "aa"]
    found = search_names(["(a+)+$", ENDLESS, *["conv"] * 20], names, budget_s=4.0)
    assert found == (Searched((0, 11)), *[Searched()] * 21)


def test_what_ends_the_process_leaves_the_answers_before_it(monkeypatch):
    monkeypatch.setattr(regexes, "MATCHER", regexes.MATCHER.replace("while left:", "while True:"))
    monkeypatch.setattr(regexes, "WALL_PER_BUDGET", 1.0)
    assert search_names(["relu"], NAMES, budget_s=3.0)[0].found == (2,)


def test_nothing_is_started_for_nothing(monkeypatch):
    monkeypatch.setattr(regexes, "_told", lambda *_: pytest.fail("a process was started"))
    assert search_names([], NAMES) == ()
